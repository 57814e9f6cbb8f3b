package io.entresol.cassandra;

/** A record of a store that is not what this plug-in writes. */
final class DamagedRow extends RuntimeException {
    private static final long serialVersionUID = 1;

    DamagedRow(String what) {
        super(what);
    }

    DamagedRow(String what, Throwable cause) {
        super(what, cause);
    }
}
