package io.entresol.heap.engine;

import java.lang.invoke.MethodHandle;

/**
 * The native library's functions. All take and give longs. A negative result is a failure: its
 * negation is the address of a text, which {@link Failure#of} reads and releases.
 */
public final class Native {
    private static final boolean FFM =
            !"jni".equals(System.getProperty("entresol.heap.native"));

    private static final MethodHandle HEAP_CREATE = function("entresol_heap_create", 8);
    private static final MethodHandle HEAP_OPEN = function("entresol_heap_open", 7);
    private static final MethodHandle HEAP_CLOSE = function("entresol_heap_close", 1);
    private static final MethodHandle HEAP_SYNC = function("entresol_heap_sync", 1);
    private static final MethodHandle HEAP_BASE = function("entresol_heap_base", 1);
    private static final MethodHandle HEAP_BYTES = function("entresol_heap_bytes", 1);
    private static final MethodHandle HEAP_LIMIT = function("entresol_heap_limit", 1);
    private static final MethodHandle HEAP_FIRST = function("entresol_heap_first", 1);
    private static final MethodHandle HEAP_ROOT = function("entresol_heap_root", 1);
    private static final MethodHandle HEAP_SET_ROOT = function("entresol_heap_set_root", 2);
    private static final MethodHandle HEAP_GROW = function("entresol_heap_grow", 2);
    private static final MethodHandle HEAP_SHRINK = function("entresol_heap_shrink", 1);
    private static final MethodHandle HEAP_ALLOCATE = function("entresol_heap_allocate", 4);
    private static final MethodHandle HEAP_FREE = function("entresol_heap_free", 3);
    private static final MethodHandle HEAP_IS_LIVE = function("entresol_heap_is_live", 2);
    private static final MethodHandle HEAP_USABLE = function("entresol_heap_usable", 2);
    private static final MethodHandle HEAP_REGISTER = function("entresol_heap_register", 2);
    private static final MethodHandle HEAP_PERSIST = function("entresol_heap_persist", 4);
    private static final MethodHandle HEAP_PERSIST_DIRTY =
            function("entresol_heap_persist_dirty", 1);
    private static final MethodHandle HEAP_STATISTICS = function("entresol_heap_statistics", 3);
    private static final MethodHandle HEAP_DURABILITY = function("entresol_heap_durability", 1);
    private static final MethodHandle HEAP_CHECK = function("entresol_heap_check", 1);
    private static final MethodHandle HEAP_BACKUP = function("entresol_heap_backup", 3);
    private static final MethodHandle HEAP_GUARD = function("entresol_heap_guard", 1);
    private static final MethodHandle GUARD_RELEASE = function("entresol_guard_release", 1);
    private static final MethodHandle TRANSACTION_BEGIN = function("entresol_transaction_begin", 1);
    private static final MethodHandle TRANSACTION_ALLOCATE =
            function("entresol_transaction_allocate", 2);
    private static final MethodHandle TRANSACTION_FREE = function("entresol_transaction_free", 2);
    private static final MethodHandle TRANSACTION_SET_ROOT =
            function("entresol_transaction_set_root", 2);
    private static final MethodHandle TRANSACTION_SAVEPOINT =
            function("entresol_transaction_savepoint", 1);
    private static final MethodHandle TRANSACTION_ROLLBACK =
            function("entresol_transaction_rollback", 2);
    private static final MethodHandle TRANSACTION_COMMIT =
            function("entresol_transaction_commit", 5);
    private static final MethodHandle TRANSACTION_ABORT = function("entresol_transaction_abort", 1);
    private static final MethodHandle BUFFER_ALLOCATE = function("entresol_buffer_allocate", 1);
    private static final MethodHandle BUFFER_FREE = function("entresol_buffer_free", 2);
    private static final MethodHandle TEXT_RELEASE = function("entresol_text_release", 1);
    private static final MethodHandle TREE_CREATE = function("entresol_tree_create", 1);
    private static final MethodHandle TREE_OPEN = function("entresol_tree_open", 2);
    private static final MethodHandle TREE_CLOSE = function("entresol_tree_close", 1);
    private static final MethodHandle TREE_ENTRIES = function("entresol_tree_entries", 1);
    private static final MethodHandle TREE_GET = function("entresol_tree_get", 4);
    private static final MethodHandle TREE_PUT = function("entresol_tree_put", 6);
    private static final MethodHandle TREE_REMOVE = function("entresol_tree_remove", 5);
    private static final MethodHandle TREE_HOLD = function("entresol_tree_hold", 4);
    private static final MethodHandle TREE_CLEAR = function("entresol_tree_clear", 2);
    private static final MethodHandle TREE_DESTROY = function("entresol_tree_destroy", 2);
    private static final MethodHandle TREE_SPLIT = function("entresol_tree_split", 2);
    private static final MethodHandle TREE_RANGE = function("entresol_tree_range", 3);
    private static final MethodHandle RANGE_NEXT = function("entresol_range_next", 4);
    private static final MethodHandle RANGE_CLOSE = function("entresol_range_close", 1);
    private static final MethodHandle POOL_OPEN = function("entresol_pool_open", 3);
    private static final MethodHandle POOL_BASE = function("entresol_pool_base", 1);
    private static final MethodHandle POOL_BYTES = function("entresol_pool_bytes", 1);
    private static final MethodHandle POOL_FLUSH = function("entresol_pool_flush", 3);
    private static final MethodHandle POOL_CLOSE = function("entresol_pool_close", 1);

    private Native() {
    }

    /** Which way the library is called: {@code jni} or {@code ffm}. */
    public static String path() {
        return FFM ? "ffm" : "jni";
    }

    /** Creates a heap; its address. */
    public static long heapCreate(long path, long pathLength, long bytes, long limit, long label,
            long durability, long argument, long medium) {
        if (!FFM) {
            return Jni.heapCreate(path, pathLength, bytes, limit, label, durability, argument,
                    medium);
        }
        try {
            return (long) HEAP_CREATE.invokeExact(path, pathLength, bytes, limit, label,
                    durability, argument, medium);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Opens a heap; its address. Flag 1: read only; flag 2: whatever the label. */
    public static long heapOpen(long path, long pathLength, long label, long flags,
            long durability, long argument, long medium) {
        if (!FFM) {
            return Jni.heapOpen(path, pathLength, label, flags, durability, argument, medium);
        }
        try {
            return (long) HEAP_OPEN.invokeExact(path, pathLength, label, flags, durability,
                    argument, medium);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Closes a heap whose memory nothing uses any more. */
    public static long heapClose(long heap) {
        if (!FFM) {
            return Jni.heapClose(heap);
        }
        try {
            return (long) HEAP_CLOSE.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Everything committed is durable on return. */
    public static long heapSync(long heap) {
        if (!FFM) {
            return Jni.heapSync(heap);
        }
        try {
            return (long) HEAP_SYNC.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Address of handle 0. */
    public static long heapBase(long heap) {
        if (!FFM) {
            return Jni.heapBase(heap);
        }
        try {
            return (long) HEAP_BASE.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Bytes that handles may lie in now. */
    public static long heapBytes(long heap) {
        if (!FFM) {
            return Jni.heapBytes(heap);
        }
        try {
            return (long) HEAP_BYTES.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Bytes that the heap may grow to. */
    public static long heapLimit(long heap) {
        if (!FFM) {
            return Jni.heapLimit(heap);
        }
        try {
            return (long) HEAP_LIMIT.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** The lowest handle there can be. */
    public static long heapFirst(long heap) {
        if (!FFM) {
            return Jni.heapFirst(heap);
        }
        try {
            return (long) HEAP_FIRST.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** The root. */
    public static long heapRoot(long heap) {
        if (!FFM) {
            return Jni.heapRoot(heap);
        }
        try {
            return (long) HEAP_ROOT.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Sets the root in a transaction of its own. */
    public static long heapSetRoot(long heap, long root) {
        if (!FFM) {
            return Jni.heapSetRoot(heap, root);
        }
        try {
            return (long) HEAP_SET_ROOT.invokeExact(heap, root);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Grows the heap to `bytes`. */
    public static long heapGrow(long heap, long bytes) {
        if (!FFM) {
            return Jni.heapGrow(heap, bytes);
        }
        try {
            return (long) HEAP_GROW.invokeExact(heap, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Gives free pages at the end back to the file system; bytes left. */
    public static long heapShrink(long heap) {
        if (!FFM) {
            return Jni.heapShrink(heap);
        }
        try {
            return (long) HEAP_SHRINK.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Allocates in a transaction of its own; `header`, if not 0, goes to the first 8 bytes. */
    public static long heapAllocate(long heap, long bytes, long header, long durability) {
        if (!FFM) {
            return Jni.heapAllocate(heap, bytes, header, durability);
        }
        try {
            return (long) HEAP_ALLOCATE.invokeExact(heap, bytes, header, durability);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Frees in a transaction of its own. */
    public static long heapFree(long heap, long handle, long durability) {
        if (!FFM) {
            return Jni.heapFree(heap, handle, durability);
        }
        try {
            return (long) HEAP_FREE.invokeExact(heap, handle, durability);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** 1 if `handle` is a live allocation, else 0. */
    public static long heapIsLive(long heap, long handle) {
        if (!FFM) {
            return Jni.heapIsLive(heap, handle);
        }
        try {
            return (long) HEAP_IS_LIVE.invokeExact(heap, handle);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Bytes of the allocation, 0 if it is not live. */
    public static long heapUsable(long heap, long handle) {
        if (!FFM) {
            return Jni.heapUsable(heap, handle);
        }
        try {
            return (long) HEAP_USABLE.invokeExact(heap, handle);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** 1 if allocations of `bytes` now have a size class of their own. */
    public static long heapRegister(long heap, long bytes) {
        if (!FFM) {
            return Jni.heapRegister(heap, bytes);
        }
        try {
            return (long) HEAP_REGISTER.invokeExact(heap, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Makes a range durable. */
    public static long heapPersist(long heap, long offset, long length, long durability) {
        if (!FFM) {
            return Jni.heapPersist(heap, offset, length, durability);
        }
        try {
            return (long) HEAP_PERSIST.invokeExact(heap, offset, length, durability);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Makes every page durable that was ever stored to. */
    public static long heapPersistDirty(long heap) {
        if (!FFM) {
            return Jni.heapPersistDirty(heap);
        }
        try {
            return (long) HEAP_PERSIST_DIRTY.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Writes up to `count` figures to `out`; how many there are. */
    public static long heapStatistics(long heap, long out, long count) {
        if (!FFM) {
            return Jni.heapStatistics(heap, out, count);
        }
        try {
            return (long) HEAP_STATISTICS.invokeExact(heap, out, count);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Text: what the medium holds and when. */
    public static long heapDurability(long heap) {
        if (!FFM) {
            return Jni.heapDurability(heap);
        }
        try {
            return (long) HEAP_DURABILITY.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Text: what is wrong with the heap; 0 if nothing is. */
    public static long heapCheck(long heap) {
        if (!FFM) {
            return Jni.heapCheck(heap);
        }
        try {
            return (long) HEAP_CHECK.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Copies the committed heap to a new file. */
    public static long heapBackup(long heap, long path, long pathLength) {
        if (!FFM) {
            return Jni.heapBackup(heap, path, pathLength);
        }
        try {
            return (long) HEAP_BACKUP.invokeExact(heap, path, pathLength);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Keeps freed blocks from being used again; the guard's address. */
    public static long heapGuard(long heap) {
        if (!FFM) {
            return Jni.heapGuard(heap);
        }
        try {
            return (long) HEAP_GUARD.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Releases a guard. */
    public static long guardRelease(long guard) {
        if (!FFM) {
            return Jni.guardRelease(guard);
        }
        try {
            return (long) GUARD_RELEASE.invokeExact(guard);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Begins a transaction; its address. */
    public static long transactionBegin(long heap) {
        if (!FFM) {
            return Jni.transactionBegin(heap);
        }
        try {
            return (long) TRANSACTION_BEGIN.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Allocates; the handle. */
    public static long transactionAllocate(long transaction, long bytes) {
        if (!FFM) {
            return Jni.transactionAllocate(transaction, bytes);
        }
        try {
            return (long) TRANSACTION_ALLOCATE.invokeExact(transaction, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Frees. */
    public static long transactionFree(long transaction, long handle) {
        if (!FFM) {
            return Jni.transactionFree(transaction, handle);
        }
        try {
            return (long) TRANSACTION_FREE.invokeExact(transaction, handle);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Sets the root. */
    public static long transactionSetRoot(long transaction, long root) {
        if (!FFM) {
            return Jni.transactionSetRoot(transaction, root);
        }
        try {
            return (long) TRANSACTION_SET_ROOT.invokeExact(transaction, root);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** The number of a savepoint. */
    public static long transactionSavepoint(long transaction) {
        if (!FFM) {
            return Jni.transactionSavepoint(transaction);
        }
        try {
            return (long) TRANSACTION_SAVEPOINT.invokeExact(transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Rolls allocations and frees back to a savepoint. */
    public static long transactionRollback(long transaction, long savepoint) {
        if (!FFM) {
            return Jni.transactionRollback(transaction, savepoint);
        }
        try {
            return (long) TRANSACTION_ROLLBACK.invokeExact(transaction, savepoint);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Commits pairs of offset and length, and a transaction if there is one (else 0). */
    public static long transactionCommit(long heap, long transaction, long ranges, long count,
            long durability) {
        if (!FFM) {
            return Jni.transactionCommit(heap, transaction, ranges, count, durability);
        }
        try {
            return (long) TRANSACTION_COMMIT.invokeExact(heap, transaction, ranges, count,
                    durability);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Aborts. */
    public static long transactionAbort(long transaction) {
        if (!FFM) {
            return Jni.transactionAbort(transaction);
        }
        try {
            return (long) TRANSACTION_ABORT.invokeExact(transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Allocates native memory; its address. */
    public static long bufferAllocate(long bytes) {
        if (!FFM) {
            return Jni.bufferAllocate(bytes);
        }
        try {
            return (long) BUFFER_ALLOCATE.invokeExact(bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Frees native memory of that size. */
    public static long bufferFree(long address, long bytes) {
        if (!FFM) {
            return Jni.bufferFree(address, bytes);
        }
        try {
            return (long) BUFFER_FREE.invokeExact(address, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Releases a text. */
    public static long textRelease(long text) {
        if (!FFM) {
            return Jni.textRelease(text);
        }
        try {
            return (long) TEXT_RELEASE.invokeExact(text);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Makes an ordered map; its handle. */
    public static long treeCreate(long transaction) {
        if (!FFM) {
            return Jni.treeCreate(transaction);
        }
        try {
            return (long) TREE_CREATE.invokeExact(transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Opens an ordered map; its address. */
    public static long treeOpen(long heap, long handle) {
        if (!FFM) {
            return Jni.treeOpen(heap, handle);
        }
        try {
            return (long) TREE_OPEN.invokeExact(heap, handle);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Releases the address of an ordered map. */
    public static long treeClose(long tree) {
        if (!FFM) {
            return Jni.treeClose(tree);
        }
        try {
            return (long) TREE_CLOSE.invokeExact(tree);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** How many entries. */
    public static long treeEntries(long tree) {
        if (!FFM) {
            return Jni.treeEntries(tree);
        }
        try {
            return (long) TREE_ENTRIES.invokeExact(tree);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** 1 if there is the key, with its value at `out`; else 0. */
    public static long treeGet(long tree, long key, long length, long out) {
        if (!FFM) {
            return Jni.treeGet(tree, key, length, out);
        }
        try {
            return (long) TREE_GET.invokeExact(tree, key, length, out);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Puts an entry, alone if transaction is 0; as treeGet for the value before. */
    public static long treePut(long tree, long transaction, long key, long length, long value,
            long out) {
        if (!FFM) {
            return Jni.treePut(tree, transaction, key, length, value, out);
        }
        try {
            return (long) TREE_PUT.invokeExact(tree, transaction, key, length, value, out);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Removes an entry; as treePut. */
    public static long treeRemove(long tree, long transaction, long key, long length, long out) {
        if (!FFM) {
            return Jni.treeRemove(tree, transaction, key, length, out);
        }
        try {
            return (long) TREE_REMOVE.invokeExact(tree, transaction, key, length, out);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Makes other transactions that change the map wait until this one ends. */
    public static long treeHold(long tree, long transaction, long key, long length) {
        if (!FFM) {
            return Jni.treeHold(tree, transaction, key, length);
        }
        try {
            return (long) TREE_HOLD.invokeExact(tree, transaction, key, length);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Removes all entries. */
    public static long treeClear(long tree, long transaction) {
        if (!FFM) {
            return Jni.treeClear(tree, transaction);
        }
        try {
            return (long) TREE_CLEAR.invokeExact(tree, transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Frees the map with all entries. */
    public static long treeDestroy(long tree, long transaction) {
        if (!FFM) {
            return Jni.treeDestroy(tree, transaction);
        }
        try {
            return (long) TREE_DESTROY.invokeExact(tree, transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Moves the upper half to a new map; its handle, 0 if there is none. */
    public static long treeSplit(long tree, long transaction) {
        if (!FFM) {
            return Jni.treeSplit(tree, transaction);
        }
        try {
            return (long) TREE_SPLIT.invokeExact(tree, transaction);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** A view of the entries between two bounds; its address. */
    public static long treeRange(long tree, long transaction, long bounds) {
        if (!FFM) {
            return Jni.treeRange(tree, transaction, bounds);
        }
        try {
            return (long) TREE_RANGE.invokeExact(tree, transaction, bounds);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Writes as many of the next entries as fit to `out`; how many. */
    public static long rangeNext(long range, long backwards, long out, long bytes) {
        if (!FFM) {
            return Jni.rangeNext(range, backwards, out, bytes);
        }
        try {
            return (long) RANGE_NEXT.invokeExact(range, backwards, out, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Releases a view. */
    public static long rangeClose(long range) {
        if (!FFM) {
            return Jni.rangeClose(range);
        }
        try {
            return (long) RANGE_CLOSE.invokeExact(range);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Maps a file, which is made with `bytes` unless that is 0; the pool's address. */
    public static long poolOpen(long path, long pathLength, long bytes) {
        if (!FFM) {
            return Jni.poolOpen(path, pathLength, bytes);
        }
        try {
            return (long) POOL_OPEN.invokeExact(path, pathLength, bytes);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Address of offset 0. */
    public static long poolBase(long pool) {
        if (!FFM) {
            return Jni.poolBase(pool);
        }
        try {
            return (long) POOL_BASE.invokeExact(pool);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Bytes of the pool. */
    public static long poolBytes(long pool) {
        if (!FFM) {
            return Jni.poolBytes(pool);
        }
        try {
            return (long) POOL_BYTES.invokeExact(pool);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Makes a range durable. */
    public static long poolFlush(long pool, long offset, long length) {
        if (!FFM) {
            return Jni.poolFlush(pool, offset, length);
        }
        try {
            return (long) POOL_FLUSH.invokeExact(pool, offset, length);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Unmaps the file. */
    public static long poolClose(long pool) {
        if (!FFM) {
            return Jni.poolClose(pool);
        }
        try {
            return (long) POOL_CLOSE.invokeExact(pool);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    private static MethodHandle function(String name, int longs) {
        return FFM ? Ffm.function(name, longs) : null;
    }
}
