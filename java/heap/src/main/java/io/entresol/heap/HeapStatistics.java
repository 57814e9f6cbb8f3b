package io.entresol.heap;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;

/** Figures of a heap at one moment; the counts begin when it was opened. */
public final class HeapStatistics {
    private static final int FIGURES = 16;

    private final long[] figures = new long[FIGURES];

    private HeapStatistics() {
    }

    static HeapStatistics of(long heap) {
        HeapStatistics statistics = new HeapStatistics();
        long out = Native.bufferAllocate((long) FIGURES * Long.BYTES);
        try {
            Native.heapStatistics(heap, out, FIGURES);
            for (int index = 0; index < FIGURES; index++) {
                statistics.figures[index] = Memory.getLong(out + (long) index * Long.BYTES);
            }
        } finally {
            Native.bufferFree(out, (long) FIGURES * Long.BYTES);
        }
        return statistics;
    }

    /** Bytes that can be allocated without growing, in whatever pieces they lie. */
    public long freeBytes() {
        return freePageBytes() + freeSlotBytes();
    }

    /** Bytes of the file that handles lie in. */
    public long sizeBytes() {
        return figures[0];
    }

    /** Bytes that the heap may grow to. */
    public long limitBytes() {
        return figures[1];
    }

    /** Live allocations. */
    public long live() {
        return figures[2];
    }

    /** Bytes usable in live allocations. */
    public long liveBytes() {
        return figures[3];
    }

    /** Bytes in free pages. */
    public long freePageBytes() {
        return figures[4];
    }

    /** Bytes in free slots among live ones. */
    public long freeSlotBytes() {
        return figures[5];
    }

    /** Bytes of the largest block that needs no growth. */
    public long largestFreeBlock() {
        return figures[6];
    }

    /** Bytes of the log. */
    public long logBytes() {
        return figures[7];
    }

    /** Bytes of the log that wait to be applied to the pages. */
    public long logPendingBytes() {
        return figures[8];
    }

    /** Transactions committed. */
    public long commits() {
        return figures[9];
    }

    /** Records appended to the log. */
    public long records() {
        return figures[10];
    }

    /** Bytes of those records. */
    public long bytesLogged() {
        return figures[11];
    }

    /** Times that the log was applied to the pages. */
    public long checkpoints() {
        return figures[12];
    }

    /** Syncs of the file; fences on byte-persistent memory. */
    public long syncs() {
        return figures[13];
    }

    /** Bytes written to the file. */
    public long bytesWritten() {
        return figures[14];
    }

    /** Lines of 64 bytes written to the file. */
    public long lines() {
        return figures[15];
    }

    @Override
    public String toString() {
        return sizeBytes() + " bytes of at most " + limitBytes() + ", " + live() + " blocks of "
                + liveBytes() + " bytes live, " + freeBytes() + " bytes free, "
                + largestFreeBlock() + " of them in one piece; " + logPendingBytes() + " of "
                + logBytes() + " bytes of the log wait for a checkpoint; " + commits()
                + " commits, " + checkpoints() + " checkpoints, " + syncs() + " syncs, "
                + bytesWritten() + " bytes written";
    }
}
