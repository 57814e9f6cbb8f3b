package io.entresol.heap;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.lang.ref.Cleaner;

/** Native memory of one Java thread for a key on its way in and a word on its way out. */
final class Scratch {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);
    private static final int FIRST_BYTES = 128;
    /** A longer key gets memory of its own, so that no thread keeps much. */
    private static final int KEPT_BYTES_MAX = 64 << 10;

    private final long address;
    private final int bytes;

    private Scratch() {
        this(FIRST_BYTES);
    }

    private Scratch(int bytes) {
        this.bytes = bytes;
        this.address = Native.bufferAllocate(bytes);
        long allocated = address;
        CLEANER.register(this, () -> Native.bufferFree(allocated, bytes));
    }

    /** Memory that holds {@code key}; good until the thread asks again. */
    static Scratch of(byte[] key) {
        Scratch scratch = OF_THREAD.get();
        int needed = Long.BYTES + key.length;
        if (needed > scratch.bytes) {
            scratch = new Scratch(Math.max(needed, 2 * scratch.bytes));
            if (scratch.bytes <= KEPT_BYTES_MAX) {
                OF_THREAD.set(scratch);
            }
        }
        Memory.copyIn(key, 0, scratch.key(), key.length);
        return scratch;
    }

    /** Address of the key. */
    long key() {
        return address + Long.BYTES;
    }

    /** Address of the word. */
    long out() {
        return address;
    }
}
