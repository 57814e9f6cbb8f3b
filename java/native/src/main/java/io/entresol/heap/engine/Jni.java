package io.entresol.heap.engine;

/**
 * The native library by the Java Native Interface. Every function takes and gives longs: numbers,
 * addresses, and addresses of texts; {@link Native} says what each does.
 */
final class Jni {
    static {
        Library.load();
    }

    private Jni() {
    }

    static native long heapCreate(long path, long pathLength, long bytes, long limit, long label,
            long durability, long argument, long medium, long key);

    static native long heapOpen(long path, long pathLength, long label, long flags,
            long durability, long argument, long medium, long key);

    static native long heapClose(long heap);

    static native long heapRelease(long heap);

    static native long heapSync(long heap);

    static native long heapBase(long heap);

    static native long heapBytes(long heap);

    static native long heapLimit(long heap);

    static native long heapFirst(long heap);

    static native long heapRoot(long heap);

    static native long heapSetRoot(long heap, long root);

    static native long heapGrow(long heap, long bytes);

    static native long heapShrink(long heap);

    static native long heapAllocate(long heap, long bytes, long header, long durability);

    static native long heapFree(long heap, long handle, long durability);

    static native long heapIsLive(long heap, long handle);

    static native long heapUsable(long heap, long handle);

    static native long heapRegister(long heap, long bytes);

    static native long heapPersist(long heap, long offset, long length, long durability);

    static native long heapPersistDirty(long heap);

    static native long heapStatistics(long heap, long out, long count);

    static native long heapDurability(long heap);

    static native long heapCheck(long heap);

    static native long heapBackup(long heap, long path, long pathLength);

    static native long heapGuard(long heap);

    static native long guardRelease(long guard);

    static native long transactionBegin(long heap);

    static native long transactionAllocate(long transaction, long bytes);

    static native long transactionFree(long transaction, long handle);

    static native long transactionSetRoot(long transaction, long root);

    static native long transactionSavepoint(long transaction);

    static native long transactionRollback(long transaction, long savepoint);

    static native long transactionCommit(long heap, long transaction, long ranges, long count,
            long durability);

    static native long transactionAbort(long transaction);

    static native long bufferAllocate(long bytes);

    static native long bufferFree(long address, long bytes);

    static native long textRelease(long text);

    static native long treeCreate(long transaction);

    static native long treeOpen(long heap, long handle);

    static native long treeClose(long tree);

    static native long treeEntries(long tree);

    static native long treeVersion(long tree);

    static native long treeGet(long tree, long key, long length, long out);

    static native long treePut(long tree, long transaction, long key, long length, long value,
            long out);

    static native long treeRemove(long tree, long transaction, long key, long length, long out);

    static native long treeHold(long tree, long transaction);

    static native long treeClear(long tree, long transaction);

    static native long treeDestroy(long tree, long transaction);

    static native long treeSplit(long tree, long transaction);

    static native long treeRange(long tree, long transaction, long bounds);

    static native long rangeNext(long range, long backwards, long out, long bytes);

    static native long rangeClose(long range);

    static native long blocksOfHeap(long heap);

    static native long blocksOfTree(long heap, long handle);

    static native long blocksNext(long blocks, long out, long count);

    static native long blocksClose(long blocks);

    static native long poolOpen(long path, long pathLength, long bytes);

    static native long poolBase(long pool);

    static native long poolBytes(long pool);

    static native long poolFlush(long pool, long offset, long length);

    static native long poolClose(long pool);

    static native long poolRelease(long pool);

    static native long storeOpen(long options, long length);

    static native long storeSubmit(long store, long requests, long count);

    static native long storeReap(long store, long out);

    static native long storeBegin(long store, long token, long job, long argument);

    static native long storeCount(long store, long place, long whole);

    static native long storeStatistics(long store);

    static native long storeClose(long store);

    static native long storeRelease(long store);

    static native long storeSweep(long folder, long length);

    static native long scanOpen(long store, long space, long partitions, long count, long keysOnly);

    static native long scanNext(long store, long scan, long token, long limit, long now);

    static native long scanClose(long scan);

    /** A direct buffer over {@code bytes} bytes from {@code address}. */
    static native java.nio.ByteBuffer buffer(long address, long bytes);
}
