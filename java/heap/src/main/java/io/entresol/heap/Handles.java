package io.entresol.heap;

import io.entresol.heap.engine.Memory;

/** The checks of a number before it counts as the handle of an allocation. */
final class Handles {
    private Handles() {
    }

    /** Refuses a number that is no handle of an allocation with so many bytes in front. */
    static void require(AnyHeap heap, long handle, long headerBytes) {
        heap.requireOpen();
        long payload = handle + headerBytes;
        if (handle < heap.firstHandle() || payload < 0
                || payload >= heap.knownBytes() && payload >= heap.size()) {
            throw new IllegalArgumentException(handle + " is no handle: they lie between "
                    + heap.firstHandle() + " and " + heap.size());
        }
    }

    /** Bytes of a regular allocation. */
    static long size(AnyHeap heap, long handle) {
        long payload = handle + AnyHeap.HEADER_BYTES;
        long bytes = Memory.getLong(heap.base() + handle);
        if (bytes <= 0 || bytes > heap.knownBytes() - payload && bytes > heap.size() - payload) {
            throw new HeapException(handle + " is not the handle of a regular allocation: "
                    + bytes + " is no size");
        }
        return bytes;
    }
}
