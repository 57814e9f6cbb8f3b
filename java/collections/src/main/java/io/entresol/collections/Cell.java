package io.entresol.collections;

import io.entresol.heap.TransactionalMemoryBlock;

/**
 * Eight bytes that hold any value: 0 is null, an even number is the handle of a persistent object,
 * an odd number is the handle, plus one, of a block with the value's bytes as {@link
 * ObjectHeap#any} makes them. A replaced value is garbage; it is not freed at once, because readers
 * may still read it.
 */
final class Cell {
    static final int BYTES = 8;
    private static final long VALUE = 1;

    private Cell() {
    }

    /** The cell of a value, whose bytes are stored; in a transaction. */
    static long of(ObjectHeap objects, Object value) {
        if (value == null) {
            return 0;
        }
        if (value instanceof PersistentObject) {
            return objects.handleOf(value);
        }
        byte[] bytes = objects.any().encode(value);
        return VALUE | objects.heap().allocateMemoryBlock(bytes.length,
                range -> range.copyFromArray(bytes, 0, 0, bytes.length)).handle();
    }

    /** What a cell holds; in a transaction or a read. */
    @SuppressWarnings("unchecked")
    static <T> T value(ObjectHeap objects, long cell) {
        if ((cell & VALUE) == 0) {
            return objects.object(cell);
        }
        TransactionalMemoryBlock block = objects.heap().memoryBlockFromHandle(cell - VALUE);
        byte[] bytes = new byte[(int) block.size()];
        block.copyToArray(0, bytes, 0, bytes.length);
        return (T) objects.any().decode(bytes);
    }

    static void trace(long cell, Tracer tracer) {
        if ((cell & VALUE) == 0) {
            tracer.object(cell);
        } else {
            tracer.block(cell - VALUE);
        }
    }
}
