package io.entresol.heap;

/** The differences between this package and others that are made of the same sources. */
final class Defaults {
    /** Whether accesses check that their block is live when options do not say. */
    static final boolean STRICT = Boolean.getBoolean("entresol.heap.strict");

    private Defaults() {
    }

    /** What an allocation without room throws. */
    static RuntimeException full(AnyHeap heap, boolean compact, String sentence) {
        return new HeapException(sentence);
    }
}
