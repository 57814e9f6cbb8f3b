package io.entresol.heap.engine;

import java.lang.invoke.MethodHandle;

/**
 * The native library's functions. All take and give longs. A negative result is a failure: its
 * negation is the address of a text, which {@link Failure#of} reads and releases.
 */
public final class Native {
    private static final boolean FFM =
            !"jni".equals(System.getProperty("entresol.heap.native"));

    private static final MethodHandle HEAP_CREATE = function("entresol_heap_create", 9);
    private static final MethodHandle HEAP_OPEN = function("entresol_heap_open", 8);
    private static final MethodHandle HEAP_CLOSE = function("entresol_heap_close", 1);
    private static final MethodHandle HEAP_RELEASE = function("entresol_heap_release", 1);
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
    private static final MethodHandle TREE_VERSION = function("entresol_tree_version", 1);
    private static final MethodHandle TREE_GET = function("entresol_tree_get", 4);
    private static final MethodHandle TREE_PUT = function("entresol_tree_put", 6);
    private static final MethodHandle TREE_REMOVE = function("entresol_tree_remove", 5);
    private static final MethodHandle TREE_HOLD = function("entresol_tree_hold", 2);
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
    private static final MethodHandle POOL_RELEASE = function("entresol_pool_release", 1);

    private Native() {
    }

    /** Which way the library is called: {@code jni} or {@code ffm}. */
    public static String path() {
        return FFM ? "ffm" : "jni";
    }

    /** Creates a heap, encrypted unless {@code key} is 0; its address. */
    public static long heapCreate(long path, long pathLength, long bytes, long limit, long label,
            long durability, long argument, long medium, long key) {
        return FFM
                ? Ffm.call(HEAP_CREATE, path, pathLength, bytes, limit, label, durability,
                        argument, medium, key)
                : Jni.heapCreate(path, pathLength, bytes, limit, label, durability, argument,
                        medium, key);
    }

    /** Opens a heap; its address. Flag 1: read only; flag 2: whatever the label. */
    public static long heapOpen(long path, long pathLength, long label, long flags,
            long durability, long argument, long medium, long key) {
        return FFM
                ? Ffm.call(HEAP_OPEN, path, pathLength, label, flags, durability, argument,
                        medium, key)
                : Jni.heapOpen(path, pathLength, label, flags, durability, argument, medium, key);
    }

    /** Closes a heap, whose memory is zeros from now on. */
    public static long heapClose(long heap) {
        return FFM ? Ffm.call(HEAP_CLOSE, heap) : Jni.heapClose(heap);
    }

    /** Releases a heap's address, and its memory once nothing of it is left. */
    public static long heapRelease(long heap) {
        return FFM ? Ffm.call(HEAP_RELEASE, heap) : Jni.heapRelease(heap);
    }

    /** Everything committed is durable on return. */
    public static long heapSync(long heap) {
        return FFM ? Ffm.call(HEAP_SYNC, heap) : Jni.heapSync(heap);
    }

    /** Address of handle 0. */
    public static long heapBase(long heap) {
        return FFM ? Ffm.call(HEAP_BASE, heap) : Jni.heapBase(heap);
    }

    /** Bytes that handles may lie in now. */
    public static long heapBytes(long heap) {
        return FFM ? Ffm.call(HEAP_BYTES, heap) : Jni.heapBytes(heap);
    }

    /** Bytes that the heap may grow to. */
    public static long heapLimit(long heap) {
        return FFM ? Ffm.call(HEAP_LIMIT, heap) : Jni.heapLimit(heap);
    }

    /** The lowest handle there can be. */
    public static long heapFirst(long heap) {
        return FFM ? Ffm.call(HEAP_FIRST, heap) : Jni.heapFirst(heap);
    }

    /** The root. */
    public static long heapRoot(long heap) {
        return FFM ? Ffm.call(HEAP_ROOT, heap) : Jni.heapRoot(heap);
    }

    /** Sets the root in a transaction of its own. */
    public static long heapSetRoot(long heap, long root) {
        return FFM ? Ffm.call(HEAP_SET_ROOT, heap, root) : Jni.heapSetRoot(heap, root);
    }

    /** Grows the heap to `bytes`. */
    public static long heapGrow(long heap, long bytes) {
        return FFM ? Ffm.call(HEAP_GROW, heap, bytes) : Jni.heapGrow(heap, bytes);
    }

    /** Gives free pages at the end back to the file system; bytes left. */
    public static long heapShrink(long heap) {
        return FFM ? Ffm.call(HEAP_SHRINK, heap) : Jni.heapShrink(heap);
    }

    /** Allocates in a transaction of its own; `header`, if not 0, goes to the first 8 bytes. */
    public static long heapAllocate(long heap, long bytes, long header, long durability) {
        return FFM
                ? Ffm.call(HEAP_ALLOCATE, heap, bytes, header, durability)
                : Jni.heapAllocate(heap, bytes, header, durability);
    }

    /** Frees in a transaction of its own. */
    public static long heapFree(long heap, long handle, long durability) {
        return FFM
                ? Ffm.call(HEAP_FREE, heap, handle, durability)
                : Jni.heapFree(heap, handle, durability);
    }

    /** 1 if `handle` is a live allocation, else 0. */
    public static long heapIsLive(long heap, long handle) {
        return FFM ? Ffm.call(HEAP_IS_LIVE, heap, handle) : Jni.heapIsLive(heap, handle);
    }

    /** Bytes of the allocation, 0 if it is not live. */
    public static long heapUsable(long heap, long handle) {
        return FFM ? Ffm.call(HEAP_USABLE, heap, handle) : Jni.heapUsable(heap, handle);
    }

    /** 1 if allocations of `bytes` now have a size class of their own. */
    public static long heapRegister(long heap, long bytes) {
        return FFM ? Ffm.call(HEAP_REGISTER, heap, bytes) : Jni.heapRegister(heap, bytes);
    }

    /** Makes a range durable. */
    public static long heapPersist(long heap, long offset, long length, long durability) {
        return FFM
                ? Ffm.call(HEAP_PERSIST, heap, offset, length, durability)
                : Jni.heapPersist(heap, offset, length, durability);
    }

    /** Makes every page durable that was ever stored to. */
    public static long heapPersistDirty(long heap) {
        return FFM ? Ffm.call(HEAP_PERSIST_DIRTY, heap) : Jni.heapPersistDirty(heap);
    }

    /** Writes up to `count` figures to `out`; how many there are. */
    public static long heapStatistics(long heap, long out, long count) {
        return FFM
                ? Ffm.call(HEAP_STATISTICS, heap, out, count)
                : Jni.heapStatistics(heap, out, count);
    }

    /** Text: what the medium holds and when. */
    public static long heapDurability(long heap) {
        return FFM ? Ffm.call(HEAP_DURABILITY, heap) : Jni.heapDurability(heap);
    }

    /** Text: what is wrong with the heap; 0 if nothing is. */
    public static long heapCheck(long heap) {
        return FFM ? Ffm.call(HEAP_CHECK, heap) : Jni.heapCheck(heap);
    }

    /** Copies the committed heap to a new file. */
    public static long heapBackup(long heap, long path, long pathLength) {
        return FFM
                ? Ffm.call(HEAP_BACKUP, heap, path, pathLength)
                : Jni.heapBackup(heap, path, pathLength);
    }

    /** Keeps freed blocks from being used again; the guard's address. */
    public static long heapGuard(long heap) {
        return FFM ? Ffm.call(HEAP_GUARD, heap) : Jni.heapGuard(heap);
    }

    /** Releases a guard. */
    public static long guardRelease(long guard) {
        return FFM ? Ffm.call(GUARD_RELEASE, guard) : Jni.guardRelease(guard);
    }

    /** Begins a transaction; its address. */
    public static long transactionBegin(long heap) {
        return FFM ? Ffm.call(TRANSACTION_BEGIN, heap) : Jni.transactionBegin(heap);
    }

    /** Allocates; the handle. */
    public static long transactionAllocate(long transaction, long bytes) {
        return FFM
                ? Ffm.call(TRANSACTION_ALLOCATE, transaction, bytes)
                : Jni.transactionAllocate(transaction, bytes);
    }

    /** Frees. */
    public static long transactionFree(long transaction, long handle) {
        return FFM
                ? Ffm.call(TRANSACTION_FREE, transaction, handle)
                : Jni.transactionFree(transaction, handle);
    }

    /** Sets the root. */
    public static long transactionSetRoot(long transaction, long root) {
        return FFM
                ? Ffm.call(TRANSACTION_SET_ROOT, transaction, root)
                : Jni.transactionSetRoot(transaction, root);
    }

    /** The number of a savepoint. */
    public static long transactionSavepoint(long transaction) {
        return FFM
                ? Ffm.call(TRANSACTION_SAVEPOINT, transaction)
                : Jni.transactionSavepoint(transaction);
    }

    /** Rolls allocations and frees back to a savepoint. */
    public static long transactionRollback(long transaction, long savepoint) {
        return FFM
                ? Ffm.call(TRANSACTION_ROLLBACK, transaction, savepoint)
                : Jni.transactionRollback(transaction, savepoint);
    }

    /** Commits pairs of offset and length, and a transaction if there is one (else 0). */
    public static long transactionCommit(long heap, long transaction, long ranges, long count,
            long durability) {
        return FFM
                ? Ffm.call(TRANSACTION_COMMIT, heap, transaction, ranges, count, durability)
                : Jni.transactionCommit(heap, transaction, ranges, count, durability);
    }

    /** Aborts. */
    public static long transactionAbort(long transaction) {
        return FFM ? Ffm.call(TRANSACTION_ABORT, transaction) : Jni.transactionAbort(transaction);
    }

    /** Allocates native memory; its address. */
    public static long bufferAllocate(long bytes) {
        return FFM ? Ffm.call(BUFFER_ALLOCATE, bytes) : Jni.bufferAllocate(bytes);
    }

    /** Frees native memory of that size. */
    public static long bufferFree(long address, long bytes) {
        return FFM ? Ffm.call(BUFFER_FREE, address, bytes) : Jni.bufferFree(address, bytes);
    }

    /** Releases a text. */
    public static long textRelease(long text) {
        return FFM ? Ffm.call(TEXT_RELEASE, text) : Jni.textRelease(text);
    }

    /** Makes an ordered map; its handle. */
    public static long treeCreate(long transaction) {
        return FFM ? Ffm.call(TREE_CREATE, transaction) : Jni.treeCreate(transaction);
    }

    /** Opens an ordered map; its address. */
    public static long treeOpen(long heap, long handle) {
        return FFM ? Ffm.call(TREE_OPEN, heap, handle) : Jni.treeOpen(heap, handle);
    }

    /** Releases the address of an ordered map. */
    public static long treeClose(long tree) {
        return FFM ? Ffm.call(TREE_CLOSE, tree) : Jni.treeClose(tree);
    }

    /** How many entries. */
    public static long treeEntries(long tree) {
        return FFM ? Ffm.call(TREE_ENTRIES, tree) : Jni.treeEntries(tree);
    }

    /** Address of the count that is odd while words of the map change. */
    public static long treeVersion(long tree) {
        return FFM ? Ffm.call(TREE_VERSION, tree) : Jni.treeVersion(tree);
    }

    /** 1 if there is the key, with its value at `out`; else 0. */
    public static long treeGet(long tree, long key, long length, long out) {
        return FFM
                ? Ffm.call(TREE_GET, tree, key, length, out)
                : Jni.treeGet(tree, key, length, out);
    }

    /** Puts an entry, alone if transaction is 0; as treeGet for the value before. */
    public static long treePut(long tree, long transaction, long key, long length, long value,
            long out) {
        return FFM
                ? Ffm.call(TREE_PUT, tree, transaction, key, length, value, out)
                : Jni.treePut(tree, transaction, key, length, value, out);
    }

    /** Removes an entry; as treePut. */
    public static long treeRemove(long tree, long transaction, long key, long length, long out) {
        return FFM
                ? Ffm.call(TREE_REMOVE, tree, transaction, key, length, out)
                : Jni.treeRemove(tree, transaction, key, length, out);
    }

    /** Makes other transactions that change the map wait until this one ends. */
    public static long treeHold(long tree, long transaction) {
        return FFM ? Ffm.call(TREE_HOLD, tree, transaction) : Jni.treeHold(tree, transaction);
    }

    /** Removes all entries. */
    public static long treeClear(long tree, long transaction) {
        return FFM ? Ffm.call(TREE_CLEAR, tree, transaction) : Jni.treeClear(tree, transaction);
    }

    /** Frees the map with all entries. */
    public static long treeDestroy(long tree, long transaction) {
        return FFM ? Ffm.call(TREE_DESTROY, tree, transaction) : Jni.treeDestroy(tree, transaction);
    }

    /** Moves the upper half to a new map; its handle, 0 if there is none. */
    public static long treeSplit(long tree, long transaction) {
        return FFM ? Ffm.call(TREE_SPLIT, tree, transaction) : Jni.treeSplit(tree, transaction);
    }

    /** A view of the entries between two bounds; its address. */
    public static long treeRange(long tree, long transaction, long bounds) {
        return FFM
                ? Ffm.call(TREE_RANGE, tree, transaction, bounds)
                : Jni.treeRange(tree, transaction, bounds);
    }

    /** Writes as many of the next entries as fit to `out`; how many. */
    public static long rangeNext(long range, long backwards, long out, long bytes) {
        return FFM
                ? Ffm.call(RANGE_NEXT, range, backwards, out, bytes)
                : Jni.rangeNext(range, backwards, out, bytes);
    }

    /** Releases a view. */
    public static long rangeClose(long range) {
        return FFM ? Ffm.call(RANGE_CLOSE, range) : Jni.rangeClose(range);
    }

    /** Maps a file, which is made with `bytes` unless that is 0; the pool's address. */
    public static long poolOpen(long path, long pathLength, long bytes) {
        return FFM
                ? Ffm.call(POOL_OPEN, path, pathLength, bytes)
                : Jni.poolOpen(path, pathLength, bytes);
    }

    /** Address of offset 0. */
    public static long poolBase(long pool) {
        return FFM ? Ffm.call(POOL_BASE, pool) : Jni.poolBase(pool);
    }

    /** Bytes of the pool. */
    public static long poolBytes(long pool) {
        return FFM ? Ffm.call(POOL_BYTES, pool) : Jni.poolBytes(pool);
    }

    /** Makes a range durable. */
    public static long poolFlush(long pool, long offset, long length) {
        return FFM
                ? Ffm.call(POOL_FLUSH, pool, offset, length)
                : Jni.poolFlush(pool, offset, length);
    }

    /** Lets the file go; the memory is zeros from now on. */
    public static long poolClose(long pool) {
        return FFM ? Ffm.call(POOL_CLOSE, pool) : Jni.poolClose(pool);
    }

    /** Releases a pool's memory. */
    public static long poolRelease(long pool) {
        return FFM ? Ffm.call(POOL_RELEASE, pool) : Jni.poolRelease(pool);
    }

    private static MethodHandle function(String name, int longs) {
        return FFM ? Ffm.function(name, longs) : null;
    }
}
