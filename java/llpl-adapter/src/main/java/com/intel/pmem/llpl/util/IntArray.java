package com.intel.pmem.llpl.util;

import com.intel.pmem.llpl.AnyHeap;
import com.intel.pmem.llpl.AnyMemoryBlock;

/** A persistent array of ints; every store is durable, or part of the current transaction. */
public final class IntArray {
    private static final short VERSION = 100;
    private static final long HEADER_BYTES = 8;
    private static final long ELEMENT_BYTES = Integer.BYTES;

    private final AnyMemoryBlock block;

    /** Allocates an array of {@code size} zeros. */
    public IntArray(AnyHeap heap, long size) {
        if (size <= 0 || size > (Long.MAX_VALUE - HEADER_BYTES) / ELEMENT_BYTES) {
            throw new IllegalArgumentException("an array of " + size + " elements");
        }
        block = heap.allocateMemoryBlock(HEADER_BYTES + size * ELEMENT_BYTES,
                range -> range.setShort(0, VERSION));
        Stores.flush(block, 0, HEADER_BYTES);
    }

    private IntArray(AnyMemoryBlock block) {
        this.block = block;
    }

    /** The array of that handle. */
    public static IntArray fromHandle(AnyHeap heap, long handle) {
        AnyMemoryBlock block = heap.memoryBlockFromHandle(handle);
        if (block.size() < HEADER_BYTES || block.getShort(0) != VERSION) {
            throw new IllegalArgumentException(handle + " is not the handle of such an array");
        }
        return new IntArray(block);
    }

    /** The array's handle, the same after a restart. */
    public long handle() {
        return block.handle();
    }

    /** How many elements. */
    public long size() {
        // A freed block refuses to tell its handle.
        block.handle();
        return (block.size() - HEADER_BYTES) / ELEMENT_BYTES;
    }

    /** Stores an element. */
    public void set(long index, int value) {
        long offset = offset(index);
        block.setInt(offset, value);
        Stores.flush(block, offset, ELEMENT_BYTES);
    }

    /** Loads an element. */
    public int get(long index) {
        return block.getInt(offset(index));
    }

    /** Frees the array. */
    public void free() {
        block.freeMemory();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof IntArray && block.equals(((IntArray) other).block);
    }

    @Override
    public int hashCode() {
        return block.hashCode();
    }

    private long offset(long index) {
        long size = size();
        if (index < 0 || index >= size) {
            throw new ArrayIndexOutOfBoundsException(
                    "index " + index + " of an array with " + size + " elements");
        }
        return HEADER_BYTES + index * ELEMENT_BYTES;
    }
}
