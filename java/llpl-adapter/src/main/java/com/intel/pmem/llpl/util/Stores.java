package com.intel.pmem.llpl.util;

import com.intel.pmem.llpl.AnyHeap;
import com.intel.pmem.llpl.AnyMemoryBlock;
import com.intel.pmem.llpl.CompactMemoryBlock;
import com.intel.pmem.llpl.Heap;
import com.intel.pmem.llpl.MemoryBlock;
import com.intel.pmem.llpl.PersistentCompactMemoryBlock;
import com.intel.pmem.llpl.PersistentHeap;
import com.intel.pmem.llpl.PersistentMemoryBlock;
import com.intel.pmem.llpl.TransactionalCompactMemoryBlock;
import com.intel.pmem.llpl.TransactionalMemoryBlock;

/** Stores, allocations and frees inside a transaction, whichever kind the heap is of. */
final class Stores {
    private Stores() {
    }

    static void setLong(AnyMemoryBlock block, long offset, long value) {
        if (block instanceof CompactMemoryBlock) {
            ((CompactMemoryBlock) block).addToTransaction(offset, Long.BYTES);
            block.setLong(offset, value);
        } else if (block instanceof PersistentCompactMemoryBlock) {
            ((PersistentCompactMemoryBlock) block).transactionalSetLong(offset, value);
        } else {
            block.setLong(offset, value);
        }
    }

    static AnyMemoryBlock allocateCompact(AnyHeap heap, long bytes) {
        if (heap instanceof Heap) {
            return ((Heap) heap).allocateCompactMemoryBlock(bytes, true);
        }
        if (heap instanceof PersistentHeap) {
            return ((PersistentHeap) heap).allocateCompactMemoryBlock(bytes, true);
        }
        return heap.allocateCompactMemoryBlock(bytes);
    }

    static void free(AnyMemoryBlock block) {
        if (block instanceof CompactMemoryBlock) {
            ((CompactMemoryBlock) block).free(true);
        } else if (block instanceof PersistentCompactMemoryBlock) {
            ((PersistentCompactMemoryBlock) block).free(true);
        } else if (block instanceof TransactionalCompactMemoryBlock) {
            ((TransactionalCompactMemoryBlock) block).free();
        } else if (block instanceof MemoryBlock) {
            ((MemoryBlock) block).free(true);
        } else if (block instanceof PersistentMemoryBlock) {
            ((PersistentMemoryBlock) block).free(true);
        } else {
            ((TransactionalMemoryBlock) block).free();
        }
    }

    /** After a plain store to a raw heap, which would be durable at close only. */
    static void flush(AnyMemoryBlock block, long offset, long length) {
        if (block instanceof MemoryBlock) {
            ((MemoryBlock) block).flush(offset, length);
        }
    }
}
