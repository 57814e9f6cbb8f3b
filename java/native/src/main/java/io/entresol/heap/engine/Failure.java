package io.entresol.heap.engine;

/** The failure of a native function: a kind and a sentence. */
public final class Failure {
    /** The heap or the file system has no room. */
    public static final int FULL = 1;
    /** Something outside the limits of the function. */
    public static final int INVALID = 2;
    /** The file is in use by another. */
    public static final int BUSY = 3;
    /** The bytes on the medium are not what was written. */
    public static final int CORRUPT = 4;
    /** A write or sync failed; commits are refused until the heap is reopened. */
    public static final int POISONED = 5;
    /** The file is no heap, or a heap of another kind or format. */
    public static final int INCOMPATIBLE = 6;
    /** The operating system refused. */
    public static final int IO = 7;
    /** A defect of the library. */
    public static final int DEFECT = 8;
    /** Another transaction changes the collection; it has to end first. */
    public static final int HELD = 9;
    /** As that, but the other one may be waiting for this one: this one has to be undone. */
    public static final int CIRCLE = 13;
    /** As {@link #POISONED}, by what is seen as committed, and may be so once it is reopened. */
    public static final int UNSETTLED = 14;
    /** Of stores: too much waits for the device already. */
    public static final int TOO_MUCH = 10;
    /** Of stores: the encryption key is missing or another. */
    public static final int WRONG_KEY = 11;
    /** Of stores: the device is in use, foreign or absent. */
    public static final int DEVICE = 12;

    private final int kind;
    private final String sentence;

    private Failure(int kind, String sentence) {
        this.kind = kind;
        this.sentence = sentence;
    }

    /** Reads and releases what the negative result of a function refers to. */
    public static Failure of(long result) {
        long text = -result;
        int kind = (int) Memory.getLong(text);
        return new Failure(kind, read(text));
    }

    /** Reads and releases a text that a function gave; the empty string if it gave 0. */
    public static String text(long text) {
        return text == 0 ? "" : read(text);
    }

    /** Which kind of failure, one of the constants. */
    public int kind() {
        return kind;
    }

    /** What went wrong, in words. */
    public String sentence() {
        return sentence;
    }

    private static String read(long text) {
        int length = (int) Memory.getLong(text + 8);
        byte[] bytes = new byte[length];
        Memory.copyOut(text + 16, bytes, 0, length);
        Native.textRelease(text);
        return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }
}
