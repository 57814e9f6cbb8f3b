package io.entresol.heap.engine;

import java.nio.charset.StandardCharsets;

/** Bytes in native memory, for functions that take an address and a length. */
public final class Text implements AutoCloseable {
    private final long address;
    private final int length;

    /** A text in UTF-8. */
    public Text(String text) {
        this(text.getBytes(StandardCharsets.UTF_8));
    }

    /** Bytes as they are. */
    public Text(byte[] bytes) {
        length = bytes.length;
        address = Native.bufferAllocate(Math.max(length, 8));
        Memory.copyIn(bytes, 0, address, length);
    }

    /** Address of the first byte. */
    public long address() {
        return address;
    }

    /** How many bytes. */
    public int length() {
        return length;
    }

    @Override
    public void close() {
        Native.bufferFree(address, Math.max(length, 8));
    }
}
