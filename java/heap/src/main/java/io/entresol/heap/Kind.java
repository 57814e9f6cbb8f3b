package io.entresol.heap;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** What a plain store means in a heap; recorded in the file as its label. */
enum Kind {
    /** A store is a store; flushes and transactions are explicit. */
    RAW("raw"),
    /** A store is durable when it returns. */
    PERSISTENT("persistent"),
    /** A store is part of a transaction. */
    TRANSACTIONAL("transactional");

    /** Bytes of a label. */
    static final int LABEL_BYTES = 16;

    private final String label;

    Kind(String label) {
        this.label = label;
    }

    byte[] label() {
        return Arrays.copyOf(label.getBytes(StandardCharsets.US_ASCII), LABEL_BYTES);
    }
}
