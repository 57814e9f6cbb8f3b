package io.entresol.heap;

import io.entresol.heap.engine.Native;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongSupplier;

/**
 * Operations under way in a raw heap: transactions, and changes of maps outside of them. The end of
 * such a heap keeps all stores that were never flushed, but must not keep half of such an
 * operation.
 */
final class GoingOn {
    private final AnyHeap heap;
    private final Set<Work> transactions = ConcurrentHashMap.newKeySet();
    /** Changes outside of transactions hold the read side, the end of the heap the other one. */
    private final ReentrantReadWriteLock changes = new ReentrantReadWriteLock();
    /** What begins from now on is not kept. */
    private volatile boolean ended;

    GoingOn(AnyHeap heap) {
        this.heap = heap;
    }

    void begin(Work work) {
        transactions.add(work);
        if (ended) {
            work.takeBack();
        }
    }

    void end(Work work) {
        transactions.remove(work);
    }

    /** {@code change}, which the end of the heap finds done or not begun. */
    LongSupplier guarded(LongSupplier change) {
        Work work = heap.work();
        return () -> work != null ? work.guarded(change) : alone(change);
    }

    /** Makes all else durable, and takes transactions back; the native library's failure, or 0. */
    long keepStores() {
        changes.writeLock().lock();
        try {
            ended = true;
            transactions.forEach(Work::takeBack);
            long result = Native.heapPersistDirty(heap.address());
            return transactions.stream().mapToLong(Work::persistTakenBack)
                    .reduce(result, Math::min);
        } finally {
            changes.writeLock().unlock();
        }
    }

    private long alone(LongSupplier change) {
        changes.readLock().lock();
        try {
            heap.requireOpen();
            return change.getAsLong();
        } finally {
            changes.readLock().unlock();
        }
    }
}
