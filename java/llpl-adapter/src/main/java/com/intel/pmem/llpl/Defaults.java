package com.intel.pmem.llpl;

/** The behaviour of LLPL that differs from the heap under these classes. */
final class Defaults {
    /** Accesses trust their handle; {@code entresol.heap.strict} makes them look. */
    static final boolean STRICT = Boolean.getBoolean("entresol.heap.strict");

    private Defaults() {
    }

    /** What an allocation without room throws; LLPL has two answers. */
    static RuntimeException full(AnyHeap heap, boolean compact, String sentence) {
        return heap.kind == Kind.TRANSACTIONAL && compact
                ? new TransactionException(sentence) : new HeapException(sentence);
    }
}
