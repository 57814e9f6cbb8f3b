package io.entresol.heap.engine;

/**
 * The native library's functions. All take and give longs. A negative result is a failure: its
 * negation is the address of a text, which {@link Failure#of} reads and releases.
 */
public final class Native {
    private Native() {
    }

    /** Which way the library is called: {@code jni} or {@code ffm}. */
    public static String path() {
        if ("ffm".equals(System.getProperty("entresol.heap.native"))) {
            throw new IllegalStateException("entresol.heap.native is ffm, which needs Java 22 or"
                    + " newer; this is Java " + Runtime.version().feature());
        }
        return "jni";
    }

    /** Creates a heap, encrypted unless {@code key} is 0; its address. */
    public static long heapCreate(long path, long pathLength, long bytes, long limit, long label,
            long durability, long argument, long medium, long key) {
        return Jni.heapCreate(path, pathLength, bytes, limit, label, durability, argument, medium,
                key);
    }

    /** Opens a heap; its address. Flag 1: read only; flag 2: whatever the label. */
    public static long heapOpen(long path, long pathLength, long label, long flags,
            long durability, long argument, long medium, long key) {
        return Jni.heapOpen(path, pathLength, label, flags, durability, argument, medium, key);
    }

    /** Closes a heap, whose memory is zeros from now on. */
    public static long heapClose(long heap) {
        return Jni.heapClose(heap);
    }

    /** Releases a heap's address, and its memory once nothing of it is left. */
    public static long heapRelease(long heap) {
        return Jni.heapRelease(heap);
    }

    /** Everything committed is durable on return. */
    public static long heapSync(long heap) {
        return Jni.heapSync(heap);
    }

    /** Address of handle 0. */
    public static long heapBase(long heap) {
        return Jni.heapBase(heap);
    }

    /** Bytes that handles may lie in now. */
    public static long heapBytes(long heap) {
        return Jni.heapBytes(heap);
    }

    /** Bytes that the heap may grow to. */
    public static long heapLimit(long heap) {
        return Jni.heapLimit(heap);
    }

    /** The lowest handle there can be. */
    public static long heapFirst(long heap) {
        return Jni.heapFirst(heap);
    }

    /** The root. */
    public static long heapRoot(long heap) {
        return Jni.heapRoot(heap);
    }

    /** Sets the root in a transaction of its own. */
    public static long heapSetRoot(long heap, long root) {
        return Jni.heapSetRoot(heap, root);
    }

    /** Grows the heap to `bytes`. */
    public static long heapGrow(long heap, long bytes) {
        return Jni.heapGrow(heap, bytes);
    }

    /** Gives free pages at the end back to the file system; bytes left. */
    public static long heapShrink(long heap) {
        return Jni.heapShrink(heap);
    }

    /** Allocates in a transaction of its own; `header`, if not 0, goes to the first 8 bytes. */
    public static long heapAllocate(long heap, long bytes, long header, long durability) {
        return Jni.heapAllocate(heap, bytes, header, durability);
    }

    /** Frees in a transaction of its own. */
    public static long heapFree(long heap, long handle, long durability) {
        return Jni.heapFree(heap, handle, durability);
    }

    /** 1 if `handle` is a live allocation, else 0. */
    public static long heapIsLive(long heap, long handle) {
        return Jni.heapIsLive(heap, handle);
    }

    /** Bytes of the allocation, 0 if it is not live. */
    public static long heapUsable(long heap, long handle) {
        return Jni.heapUsable(heap, handle);
    }

    /** 1 if allocations of `bytes` now have a size class of their own. */
    public static long heapRegister(long heap, long bytes) {
        return Jni.heapRegister(heap, bytes);
    }

    /** Makes a range durable. */
    public static long heapPersist(long heap, long offset, long length, long durability) {
        return Jni.heapPersist(heap, offset, length, durability);
    }

    /** Makes every page durable that was ever stored to. */
    public static long heapPersistDirty(long heap) {
        return Jni.heapPersistDirty(heap);
    }

    /** Writes up to `count` figures to `out`; how many there are. */
    public static long heapStatistics(long heap, long out, long count) {
        return Jni.heapStatistics(heap, out, count);
    }

    /** Text: what the medium holds and when. */
    public static long heapDurability(long heap) {
        return Jni.heapDurability(heap);
    }

    /** Text: what is wrong with the heap; 0 if nothing is. */
    public static long heapCheck(long heap) {
        return Jni.heapCheck(heap);
    }

    /** Copies the committed heap to a new file. */
    public static long heapBackup(long heap, long path, long pathLength) {
        return Jni.heapBackup(heap, path, pathLength);
    }

    /** Keeps freed blocks from being used again; the guard's address. */
    public static long heapGuard(long heap) {
        return Jni.heapGuard(heap);
    }

    /** Releases a guard. */
    public static long guardRelease(long guard) {
        return Jni.guardRelease(guard);
    }

    /** Begins a transaction; its address. */
    public static long transactionBegin(long heap) {
        return Jni.transactionBegin(heap);
    }

    /** Allocates; the handle. */
    public static long transactionAllocate(long transaction, long bytes) {
        return Jni.transactionAllocate(transaction, bytes);
    }

    /** Frees. */
    public static long transactionFree(long transaction, long handle) {
        return Jni.transactionFree(transaction, handle);
    }

    /** Sets the root. */
    public static long transactionSetRoot(long transaction, long root) {
        return Jni.transactionSetRoot(transaction, root);
    }

    /** The number of a savepoint. */
    public static long transactionSavepoint(long transaction) {
        return Jni.transactionSavepoint(transaction);
    }

    /** Rolls allocations and frees back to a savepoint. */
    public static long transactionRollback(long transaction, long savepoint) {
        return Jni.transactionRollback(transaction, savepoint);
    }

    /** Commits pairs of offset and length, and a transaction if there is one (else 0). */
    public static long transactionCommit(long heap, long transaction, long ranges, long count,
            long durability) {
        return Jni.transactionCommit(heap, transaction, ranges, count, durability);
    }

    /** Aborts. */
    public static long transactionAbort(long transaction) {
        return Jni.transactionAbort(transaction);
    }

    /** Allocates native memory; its address. */
    public static long bufferAllocate(long bytes) {
        return Jni.bufferAllocate(bytes);
    }

    /** Frees native memory of that size. */
    public static long bufferFree(long address, long bytes) {
        return Jni.bufferFree(address, bytes);
    }

    /** Releases a text. */
    public static long textRelease(long text) {
        return Jni.textRelease(text);
    }

    /** Makes an ordered map; its handle. */
    public static long treeCreate(long transaction) {
        return Jni.treeCreate(transaction);
    }

    /** Opens an ordered map; its address. */
    public static long treeOpen(long heap, long handle) {
        return Jni.treeOpen(heap, handle);
    }

    /** Releases the address of an ordered map. */
    public static long treeClose(long tree) {
        return Jni.treeClose(tree);
    }

    /** How many entries. */
    public static long treeEntries(long tree) {
        return Jni.treeEntries(tree);
    }

    /** Address of the count that is odd while words of the map change. */
    public static long treeVersion(long tree) {
        return Jni.treeVersion(tree);
    }

    /** 1 if there is the key, with its value at `out`; else 0. */
    public static long treeGet(long tree, long key, long length, long out) {
        return Jni.treeGet(tree, key, length, out);
    }

    /** Puts an entry, alone if transaction is 0; as treeGet for the value before. */
    public static long treePut(long tree, long transaction, long key, long length, long value,
            long out) {
        return Jni.treePut(tree, transaction, key, length, value, out);
    }

    /** Removes an entry; as treePut. */
    public static long treeRemove(long tree, long transaction, long key, long length, long out) {
        return Jni.treeRemove(tree, transaction, key, length, out);
    }

    /** Makes other transactions that change the map wait until this one ends. */
    public static long treeHold(long tree, long transaction) {
        return Jni.treeHold(tree, transaction);
    }

    /** Removes all entries. */
    public static long treeClear(long tree, long transaction) {
        return Jni.treeClear(tree, transaction);
    }

    /** Frees the map with all entries. */
    public static long treeDestroy(long tree, long transaction) {
        return Jni.treeDestroy(tree, transaction);
    }

    /** Moves the upper half to a new map; its handle, 0 if there is none. */
    public static long treeSplit(long tree, long transaction) {
        return Jni.treeSplit(tree, transaction);
    }

    /** A view of the entries between two bounds; its address. */
    public static long treeRange(long tree, long transaction, long bounds) {
        return Jni.treeRange(tree, transaction, bounds);
    }

    /** Writes as many of the next entries as fit to `out`; how many. */
    public static long rangeNext(long range, long backwards, long out, long bytes) {
        return Jni.rangeNext(range, backwards, out, bytes);
    }

    /** Releases a view. */
    public static long rangeClose(long range) {
        return Jni.rangeClose(range);
    }

    /** Maps a file, which is made with `bytes` unless that is 0; the pool's address. */
    public static long poolOpen(long path, long pathLength, long bytes) {
        return Jni.poolOpen(path, pathLength, bytes);
    }

    /** Address of offset 0. */
    public static long poolBase(long pool) {
        return Jni.poolBase(pool);
    }

    /** Bytes of the pool. */
    public static long poolBytes(long pool) {
        return Jni.poolBytes(pool);
    }

    /** Makes a range durable. */
    public static long poolFlush(long pool, long offset, long length) {
        return Jni.poolFlush(pool, offset, length);
    }

    /** Lets the file go; the memory is zeros from now on. */
    public static long poolClose(long pool) {
        return Jni.poolClose(pool);
    }

    /** Releases a pool's memory. */
    public static long poolRelease(long pool) {
        return Jni.poolRelease(pool);
    }
}
