package io.entresol.collections;

/** What a garbage collection found and freed. */
public final class Collected {
    private final long keptObjects;
    private final long keptBlocks;
    private final long keptBytes;
    private final long freedBlocks;
    private final long freedBytes;

    Collected(long keptObjects, long keptBlocks, long keptBytes, long freedBlocks,
            long freedBytes) {
        this.keptObjects = keptObjects;
        this.keptBlocks = keptBlocks;
        this.keptBytes = keptBytes;
        this.freedBlocks = freedBlocks;
        this.freedBytes = freedBytes;
    }

    /** Persistent objects that something leads to. */
    public long keptObjects() {
        return keptObjects;
    }

    /** Blocks of the heap that are used: of objects and what they own, and of the heap's books. */
    public long keptBlocks() {
        return keptBlocks;
    }

    /** Bytes of those. */
    public long keptBytes() {
        return keptBytes;
    }

    /** Blocks that were garbage: of objects, or of what those owned or replaced. */
    public long freedBlocks() {
        return freedBlocks;
    }

    /** Bytes of those. */
    public long freedBytes() {
        return freedBytes;
    }

    @Override
    public String toString() {
        return "freed " + freedBlocks + " blocks of " + freedBytes + " bytes, kept " + keptObjects
                + " objects in " + keptBlocks + " blocks of " + keptBytes + " bytes";
    }
}
