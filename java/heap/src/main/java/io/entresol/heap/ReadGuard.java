package io.entresol.heap;

import io.entresol.heap.engine.Native;

/** Keeps freed blocks from being used again until it is closed; it belongs to one thread. */
public final class ReadGuard implements AutoCloseable {
    private long address;

    ReadGuard(long address) {
        this.address = address;
    }

    @Override
    public void close() {
        if (address != 0) {
            Native.guardRelease(address);
            address = 0;
        }
    }
}
