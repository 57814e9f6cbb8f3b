package io.entresol.heap;

/** How a heap is created or opened; immutable, each method gives a changed copy. */
public final class HeapOptions {
    /** What a heap gets that is created or opened without options. */
    public static final HeapOptions DEFAULT =
            new HeapOptions(durabilityOfProperty(), 0, 0, false, Defaults.STRICT,
                    mediumOfProperty(), null);

    private static final int KEY_BYTES = 32;

    final Durability durability;
    final long argument;
    final long limit;
    final boolean readOnly;
    final boolean strict;
    final Medium medium;
    final byte[] key;

    private HeapOptions(Durability durability, long argument, long limit, boolean readOnly,
            boolean strict, Medium medium, byte[] key) {
        this.durability = durability;
        this.argument = argument;
        this.limit = limit;
        this.readOnly = readOnly;
        this.strict = strict;
        this.medium = medium;
        this.key = key;
    }

    /**
     * Commits, durable stores and flushes of this level; {@code DEFAULT} means {@code SYNC} here.
     */
    public HeapOptions durability(Durability level) {
        return new HeapOptions(level, 0, limit, readOnly, strict, medium, key);
    }

    /** Group commits that wait up to so many microseconds for others. */
    public HeapOptions group(long microseconds) {
        return new HeapOptions(Durability.GROUP, microseconds, limit, readOnly, strict, medium,
                key);
    }

    /** Buffered commits that reach the file after at most so many milliseconds. */
    public HeapOptions buffered(long milliseconds) {
        return new HeapOptions(Durability.BUFFERED, milliseconds, limit, readOnly, strict, medium,
                key);
    }

    /** A heap that is created may grow to so many bytes. */
    public HeapOptions limit(long bytes) {
        return new HeapOptions(durability, argument, bytes, readOnly, strict, medium, key);
    }

    /** Opened beside other readers; every store is refused. */
    public HeapOptions readOnly() {
        return new HeapOptions(durability, argument, limit, true, strict, medium, key);
    }

    /** Every access checks that its block is live; twice freed is refused. */
    public HeapOptions strict() {
        return new HeapOptions(durability, argument, limit, readOnly, true, medium, key);
    }

    /** The file is written so, whatever it is. */
    public HeapOptions medium(Medium medium) {
        return new HeapOptions(durability, argument, limit, readOnly, strict, medium, key);
    }

    /**
     * A heap that is created is encrypted with this key, for ever, and one that is opened was made
     * with it (AES-256-GCM): 32 bytes. An encrypted heap is written by pages.
     */
    public HeapOptions key(byte[] key) {
        if (key.length != KEY_BYTES) {
            throw new IllegalArgumentException(
                    "a key of " + key.length + " bytes; expected " + KEY_BYTES);
        }
        return new HeapOptions(
                durability, argument, limit, readOnly, strict, medium, key.clone());
    }

    /** Accesses trust their handle, as those of LLPL do. */
    public HeapOptions lenient() {
        return new HeapOptions(durability, argument, limit, readOnly, false, medium, key);
    }

    private static Medium mediumOfProperty() {
        String medium = System.getProperty("entresol.heap.medium", "auto");
        return Medium.valueOf(medium.toUpperCase(java.util.Locale.ROOT));
    }

    private static Durability durabilityOfProperty() {
        String level = System.getProperty("entresol.heap.durability", "sync");
        return Durability.valueOf(level.toUpperCase(java.util.Locale.ROOT));
    }
}
