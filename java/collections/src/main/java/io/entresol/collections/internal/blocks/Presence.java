package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;

/** The values of a set's map: all are the same, without a block. */
public final class Presence implements Values<Boolean> {
    private static final long PRESENT = 1;

    @Override
    public long keep(Boolean value) {
        return PRESENT;
    }

    @Override
    public long member() {
        return PRESENT;
    }

    @Override
    public Boolean read(long word) {
        return Boolean.TRUE;
    }

    @Override
    public boolean refers(long word) {
        return false;
    }

    @Override
    public void release(long word) {
        // It owns nothing.
    }

    @Override
    public void trace(long word, Tracer tracer) {
        // It leads to nothing.
    }
}
