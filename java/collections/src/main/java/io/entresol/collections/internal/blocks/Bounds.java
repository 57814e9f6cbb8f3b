package io.entresol.collections.internal.blocks;

import java.util.Arrays;

/** A range of encoded keys; null is no bound. */
public final class Bounds {
    public static final Bounds ALL = new Bounds(null, false, null, false);

    final byte[] lower;
    final boolean lowerInclusive;
    final byte[] upper;
    final boolean upperInclusive;

    Bounds(byte[] lower, boolean lowerInclusive, byte[] upper, boolean upperInclusive) {
        this.lower = lower;
        this.lowerInclusive = lowerInclusive;
        this.upper = upper;
        this.upperInclusive = upperInclusive;
    }

    public boolean contain(byte[] key) {
        return !isBelow(key) && !isAbove(key);
    }

    /** Whether {@code key} may bound a part of this range, as {@code java.util} has it. */
    public boolean admit(byte[] key, boolean inclusive) {
        boolean below = lower != null && compare(key, lower) < 0;
        boolean above = upper != null && compare(key, upper) > 0;
        return !below && !above && (!inclusive || contain(key));
    }

    boolean isEmpty() {
        if (lower == null || upper == null) {
            return false;
        }
        int order = compare(lower, upper);
        return order > 0 || order == 0 && !(lowerInclusive && upperInclusive);
    }

    /** The part from {@code key} on. */
    public Bounds from(byte[] key, boolean inclusive) {
        if (isBelow(key)) {
            return this;
        }
        return new Bounds(key, inclusive, upper, upperInclusive);
    }

    /** The part up to {@code key}. */
    public Bounds upTo(byte[] key, boolean inclusive) {
        if (isAbove(key)) {
            return this;
        }
        return new Bounds(lower, lowerInclusive, key, inclusive);
    }

    public static int compare(byte[] left, byte[] right) {
        return Arrays.compareUnsigned(left, right);
    }

    private boolean isBelow(byte[] key) {
        if (lower == null) {
            return false;
        }
        int order = compare(key, lower);
        return order < 0 || order == 0 && !lowerInclusive;
    }

    private boolean isAbove(byte[] key) {
        if (upper == null) {
            return false;
        }
        int order = compare(key, upper);
        return order > 0 || order == 0 && !upperInclusive;
    }
}
