package io.entresol.infinispan.recovery;

import io.entresol.StoreException;
import java.util.Optional;

/**
 * The fault of a node's store.
 *
 * @param kind how it fails
 * @param what the sentence that describes it
 */
public record StoreFault(Kind kind, String what) {
    /** How a store fails; the later, the less it is good for. */
    public enum Kind {
        /** No room: writes are refused until something is removed. */
        FULL,
        /** A write or sync failed: writes are refused until the store is opened again. */
        UNWRITABLE,
        /** Its file or device node is not there any more, or is another one. */
        REMOVED,
        /** A read failed, or gave bytes that were not written. */
        UNREADABLE
    }

    /** What a failed operation tells of the store; empty: nothing, its caller asked wrongly. */
    public static Optional<StoreFault> of(StoreException failure) {
        Kind kind = switch (failure.kind()) {
            case FULL -> Kind.FULL;
            case POISONED -> Kind.UNWRITABLE;
            case CORRUPT, IO, DEVICE -> Kind.UNREADABLE;
            default -> null;
        };
        return Optional.ofNullable(kind).map(found -> new StoreFault(found, failure.getMessage()));
    }

    /** The same of one that dropped entries, which reads nothing: its device takes no writes. */
    public static Optional<StoreFault> ofDrop(StoreException failure) {
        return of(failure).map(found -> found.kind() != Kind.UNREADABLE ? found
                : new StoreFault(Kind.UNWRITABLE, found.what()));
    }

    /** Whether nothing but a new store mends it. */
    public boolean stays() {
        return kind != Kind.FULL;
    }

    boolean isWorseThan(StoreFault other) {
        return other == null || kind.compareTo(other.kind) > 0;
    }
}
