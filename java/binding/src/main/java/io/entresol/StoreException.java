package io.entresol;

import io.entresol.heap.engine.Failure;

/** A store could not be opened, used or closed; the message says what, where, expected, found. */
public final class StoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What went wrong. */
    public enum Kind {
        /** No room: writes are refused until something is removed. Reads and removes go on. */
        FULL,
        /** A key, value or option outside its limits. */
        INVALID,
        /** The bytes on the device are not what was written. */
        CORRUPT,
        /** A write or sync failed, or the store was closed: open it again. */
        POISONED,
        /** The device holds something else, or another version of it. */
        INCOMPATIBLE,
        /** The device failed. */
        IO,
        /** Too much waits for the device already: finish some first. */
        BUSY,
        /** The encryption key is missing, or not the store's. */
        WRONG_KEY,
        /** The device is in use, foreign or absent. */
        DEVICE,
        /** A defect of the library. */
        DEFECT
    }

    private final Kind kind;

    StoreException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Of something that should not happen, and why it did. */
    static StoreException defect(String message, Throwable cause) {
        StoreException defect = new StoreException(Kind.DEFECT, message);
        defect.initCause(cause);
        return defect;
    }

    /** Of a kind's number in the native library. */
    static StoreException of(int number, String sentence) {
        return new StoreException(kindOf(number), sentence);
    }

    /** The result of a native function, unless that is a failure. */
    static long checked(long result) {
        if (result < 0) {
            Failure failure = Failure.of(result);
            throw of(failure.kind(), failure.sentence());
        }
        return result;
    }

    /** What went wrong. */
    public Kind kind() {
        return kind;
    }

    private static Kind kindOf(int number) {
        return switch (number) {
            case Failure.FULL -> Kind.FULL;
            case Failure.INVALID -> Kind.INVALID;
            case Failure.CORRUPT -> Kind.CORRUPT;
            case Failure.POISONED -> Kind.POISONED;
            case Failure.INCOMPATIBLE -> Kind.INCOMPATIBLE;
            case Failure.DEFECT -> Kind.DEFECT;
            case Failure.TOO_MUCH -> Kind.BUSY;
            case Failure.WRONG_KEY -> Kind.WRONG_KEY;
            case Failure.BUSY, Failure.DEVICE -> Kind.DEVICE;
            default -> Kind.IO;
        };
    }
}
