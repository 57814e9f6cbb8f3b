package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Lock;
import java.util.function.LongSupplier;

/** The transaction that one Java thread, platform or virtual, has open in one heap. */
final class Work {
    private final AnyHeap heap;
    private final UndoLog log;
    private boolean hasRoot;
    private long root;
    /** What the whole transaction holds; null if it is nothing. */
    private final Lock held;
    /** Who wants to know of the end, in pairs: once it is committed, once it is undone. */
    private List<Runnable> waiting = List.of();
    /** Of a strict heap: the handles of blocks that were made, and of freed ones with a minus. */
    private List<Long> blocks = List.of();
    private boolean committed;
    /** Under the log's monitor: the log is another transaction's, or nobody's. */
    private boolean done;
    /** Under the log's monitor: the heap ended first, and all was undone. */
    private boolean takenBack;

    Work(AnyHeap heap, UndoLog log, Lock held) {
        this.heap = heap;
        this.log = log;
        this.held = held;
    }

    AnyHeap heap() {
        return heap;
    }

    UndoLog log() {
        return log;
    }

    /** Keeps the bytes at an address, which the commit will log. */
    void keep(long address, long length) {
        if (heap.kind != Kind.RAW) {
            log.add(heap.base(), address - heap.base(), length);
            return;
        }
        synchronized (log) {
            requireNotTakenBack();
            log.add(heap.base(), address - heap.base(), length);
        }
    }

    /** Undoes all stores to what was kept, and refuses the commit: the heap ends before it. */
    void takeBack() {
        synchronized (log) {
            if (!done) {
                takenBack = true;
                log.takeBack(heap.base());
            }
        }
    }

    /**
     * Makes durable what {@link #takeBack} put back, as the thread may have stored to it again; the
     * result of the native library.
     */
    long persistTakenBack() {
        synchronized (log) {
            if (done || !takenBack) {
                return 0;
            }
            log.restore(heap.base());
            return log.persist(heap);
        }
    }

    /** Does what changes the heap by the native transaction, unless that was taken back. */
    long guarded(LongSupplier change) {
        synchronized (log) {
            requireNotTakenBack();
            return change.getAsLong();
        }
    }

    /** Allocates for a request of {@code size}; {@code header}, if not 0, goes to the front. */
    long allocate(long bytes, long header, long size) {
        LongSupplier allocation = heap.guarded(
                () -> Native.transactionAllocate(log.transaction(heap), bytes));
        long handle = allocation.getAsLong();
        if (handle < 0 && heap.cursors.reclaimAfter(handle)) {
            handle = allocation.getAsLong();
        }
        if (handle < 0) {
            throw heap.notAllocated(handle, size, header == 0);
        }
        note(handle);
        if (header != 0) {
            Memory.putLong(heap.base() + handle, header);
            log.addBorn(handle, Long.BYTES);
        }
        return handle;
    }

    void free(long handle) {
        long result = heap.guarded(
                () -> Native.transactionFree(log.transaction(heap), handle)).getAsLong();
        if (result < 0) {
            throw new HeapException(Failure.of(result).sentence());
        }
        note(-handle);
    }

    void setRoot(long handle) {
        heap.checked(heap.guarded(
                () -> Native.transactionSetRoot(log.transaction(heap), handle)).getAsLong());
        hasRoot = true;
        root = handle;
    }

    long root() {
        return hasRoot ? root : heap.committedRoot();
    }

    /** Commits; where that fails all is to be undone, unless it {@link #isCommitted}. */
    void commit(Durability durability) {
        synchronized (log) {
            requireNotTakenBack();
            Failure unsettled = log.commit(heap, durability);
            committed = true;
            done = true;
            UnsettledException.throwOf(unsettled);
        }
    }

    /** Whether the changes are made, although {@link #commit} may have thrown. */
    boolean isCommitted() {
        return committed;
    }

    void abort() {
        synchronized (log) {
            // What the thread stored since it was taken back may be in the file by now.
            persistTakenBack();
            done = true;
            undoBlocks(0);
            log.abort(heap);
        }
    }

    void whenSettled(Runnable ifCommitted, Runnable ifUndone) {
        if (waiting.isEmpty()) {
            waiting = new ArrayList<>();
        }
        waiting.add(ifCommitted);
        waiting.add(ifUndone);
    }

    /** After the end: tells who waits for it, and lets go. */
    void settle() {
        try {
            if (committed) {
                for (int index = 0; index < waiting.size(); index += 2) {
                    waiting.get(index).run();
                }
            } else {
                tellUndone(0);
            }
        } finally {
            if (held != null) {
                held.unlock();
            }
        }
    }

    /** A point to roll back to. */
    Point point() {
        return new Point(log.mark(), hasRoot, root, waiting.size(), blocks.size());
    }

    void merge(Point point) {
        log.merge(point.mark);
    }

    void rollback(Point point) {
        undoBlocks(point.blocks);
        rollback(point.mark);
        hasRoot = point.hasRoot;
        root = point.root;
        tellUndone(point.waiting);
    }

    private void rollback(UndoLog.Mark mark) {
        synchronized (log) {
            if (takenBack) {
                // All of it is undone, and is to be once more.
                log.restore(heap.base());
            } else {
                log.rollback(heap, mark);
            }
        }
    }

    private void requireNotTakenBack() {
        if (takenBack) {
            throw new TransactionException("the transaction was not committed and is undone: the"
                    + " heap was closed before, or the JVM ends");
        }
    }

    private void note(long block) {
        if (heap.lifetimes() == null) {
            return;
        }
        if (blocks.isEmpty()) {
            blocks = new ArrayList<>();
        }
        blocks.add(block);
    }

    /** Before the native library does: then a handle may be another block's at once. */
    private void undoBlocks(int from) {
        while (blocks.size() > from) {
            long block = blocks.remove(blocks.size() - 1);
            if (block > 0) {
                heap.lifetimes().end(block);
            } else {
                heap.lifetimes().goOn(-block);
            }
        }
    }

    private void tellUndone(int from) {
        while (waiting.size() > from) {
            Runnable undone = waiting.remove(waiting.size() - 1);
            waiting.remove(waiting.size() - 1);
            undone.run();
        }
    }

    /** A point in the work. */
    static final class Point {
        private final UndoLog.Mark mark;
        private final boolean hasRoot;
        private final long root;
        private final int waiting;
        private final int blocks;

        private Point(UndoLog.Mark mark, boolean hasRoot, long root, int waiting, int blocks) {
            this.mark = mark;
            this.hasRoot = hasRoot;
            this.root = root;
            this.waiting = waiting;
            this.blocks = blocks;
        }
    }
}
