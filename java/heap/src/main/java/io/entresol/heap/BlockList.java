package io.entresol.heap;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.NativeBlocks;
import java.util.function.LongConsumer;

/** Handles that the native library lists, read in pieces. */
final class BlockList {
    private static final int PIECE = 512;

    private BlockList() {
    }

    /** Gives all handles of a list, and releases it. */
    static void forEach(AnyHeap heap, long list, LongConsumer visit) {
        long piece = Native.bufferAllocate((long) PIECE * Long.BYTES);
        try {
            while (true) {
                long count = heap.checked(NativeBlocks.next(list, piece, PIECE));
                for (long index = 0; index < count; index++) {
                    visit.accept(Memory.getLong(piece + index * Long.BYTES));
                }
                if (count == 0) {
                    return;
                }
            }
        } finally {
            NativeBlocks.close(list);
            Native.bufferFree(piece, (long) PIECE * Long.BYTES);
        }
    }
}
