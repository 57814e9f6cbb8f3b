package io.entresol.cassandra.node;

/** What people can mend: a sentence that says what failed, and what to do next. */
final class NodeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NodeException(String sentence) {
        super(sentence);
    }

    NodeException(String sentence, Throwable cause) {
        super(sentence, cause);
    }
}
