package io.entresol;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The outcome of an operation or a job; {@code entresol.h} draws its record.
 *
 * @param kind one of the constants
 * @param number a version, the kind of a failure, or whether a scan goes on
 * @param expires when the entry expires; at the end of a page, the number of damaged records
 * @param label the entry's byte
 * @param key the key, of entries of a scan
 * @param value the value, or a sentence
 * @param page the entries of a page
 */
record Outcome(int kind, long number, long expires, int label, byte[] key, byte[] value,
        List<Entry> page) {
    static final int FOUND = 1;
    static final int MISSING = 2;
    static final int STORED = 3;
    static final int REFUSED = 4;
    static final int REMOVED = 5;
    static final int TOUCHED = 6;
    static final int DONE = 7;
    static final int ENTRY = 8;
    static final int FAILED = 9;

    private static final int HEAD_BYTES = 8 * Long.BYTES;

    /** Bytes of the record at an address. */
    static long bytes(long record) {
        return Memory.getLong(record);
    }

    /** Of what kind the record is. */
    static int kind(long record) {
        return (int) word(record, 2);
    }

    /** Whose record it is. */
    static long token(long record) {
        return word(record, 1);
    }

    /** Reads the record at an address, with the entries that came before it. */
    static Outcome read(long record, List<Entry> page) {
        int keyLength = (int) word(record, 6);
        int valueLength = (int) word(record, 7);
        long value = record + HEAD_BYTES + ((keyLength + 7L) & ~7L);
        return new Outcome(
                kind(record), word(record, 3), word(record, 4),
                (int) word(record, 5) & 0xFF,
                copy(record + HEAD_BYTES, keyLength), copy(value, valueLength), page);
    }

    /**
     * That of whose answer Java's heap has no room for; the same as the store says that too much is
     * under way. Small, as there may be room for little.
     */
    static Outcome withoutRoom(OutOfMemoryError full) {
        return new Outcome(FAILED, Failure.TOO_MUCH, 0, 0, NONE,
                ("Java's heap has no room for the answer (" + full.getMessage() + "): let others"
                        + " go first, or give it more by -Xmx").getBytes(StandardCharsets.UTF_8),
                List.of());
    }

    /** The record of a scan as an entry. */
    Entry entry() {
        return new Entry(key, value, number, label, expires);
    }

    /** What failed. */
    StoreException failure() {
        return StoreException.of((int) number, sentence());
    }

    /** The value as a sentence. */
    String sentence() {
        return new String(value, StandardCharsets.UTF_8);
    }

    private static long word(long record, int word) {
        return Memory.getLong(record + (long) word * Long.BYTES);
    }

    private static final byte[] NONE = new byte[0];

    private static byte[] copy(long address, int length) {
        if (length == 0) {
            return NONE;
        }
        byte[] bytes = new byte[length];
        Memory.copyOut(address, bytes, 0, length);
        return bytes;
    }
}
