package io.entresol.collections;

/** A set of handles other than 0. */
final class HandleSet {
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private long[] slots = new long[1 << 12];
    private int count;

    /** Adds a handle; whether it is new. */
    boolean add(long handle) {
        int slot = slotOf(handle);
        if (slots[slot] == handle) {
            return false;
        }
        slots[slot] = handle;
        count++;
        if (count > slots.length / 2) {
            grow();
        }
        return true;
    }

    boolean contains(long handle) {
        return slots[slotOf(handle)] == handle;
    }

    int size() {
        return count;
    }

    /** Where the handle is, or would be. */
    private int slotOf(long handle) {
        int mask = slots.length - 1;
        int slot = (int) (handle * SPREAD >>> 32) & mask;
        while (slots[slot] != 0 && slots[slot] != handle) {
            slot = slot + 1 & mask;
        }
        return slot;
    }

    private void grow() {
        long[] before = slots;
        slots = new long[before.length * 2];
        for (long handle : before) {
            if (handle != 0) {
                slots[slotOf(handle)] = handle;
            }
        }
    }
}
