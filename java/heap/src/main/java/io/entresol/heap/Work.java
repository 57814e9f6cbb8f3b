package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;

/** The transaction that one Java thread, platform or virtual, has open in one heap. */
final class Work {
    private final AnyHeap heap;
    private final UndoLog log;
    private boolean hasRoot;
    private long root;

    Work(AnyHeap heap, UndoLog log) {
        this.heap = heap;
        this.log = log;
    }

    AnyHeap heap() {
        return heap;
    }

    UndoLog log() {
        return log;
    }

    /** Keeps the bytes at an address, which the commit will log. */
    void keep(long address, long length) {
        log.add(heap.base(), address - heap.base(), length);
    }

    /** Allocates for a request of {@code size}; {@code header}, if not 0, goes to the front. */
    long allocate(long bytes, long header, long size) {
        long handle = Native.transactionAllocate(log.transaction(heap), bytes);
        if (handle < 0) {
            throw heap.notAllocated(handle, size, header == 0);
        }
        if (header != 0) {
            Memory.putLong(heap.base() + handle, header);
            log.addBorn(handle, Long.BYTES);
        }
        return handle;
    }

    void free(long handle) {
        long result = Native.transactionFree(log.transaction(heap), handle);
        if (result < 0) {
            throw new HeapException(Failure.of(result).sentence());
        }
    }

    void setRoot(long handle) {
        heap.checked(Native.transactionSetRoot(log.transaction(heap), handle));
        hasRoot = true;
        root = handle;
    }

    long root() {
        return hasRoot ? root : heap.committedRoot();
    }

    void commit(Durability durability) {
        log.commit(heap, durability);
    }

    void abort() {
        log.abort(heap);
    }

    /** A point to roll back to. */
    Point point() {
        return new Point(log.mark(), hasRoot, root);
    }

    void merge(Point point) {
        log.merge(point.mark);
    }

    void rollback(Point point) {
        log.rollback(heap, point.mark);
        hasRoot = point.hasRoot;
        root = point.root;
    }

    /** A point in the work. */
    static final class Point {
        private final UndoLog.Mark mark;
        private final boolean hasRoot;
        private final long root;

        private Point(UndoLog.Mark mark, boolean hasRoot, long root) {
            this.mark = mark;
            this.hasRoot = hasRoot;
            this.root = root;
        }
    }
}
