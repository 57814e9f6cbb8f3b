package io.entresol.collections;

import io.entresol.heap.RadixTree;
import io.entresol.heap.TransactionalHeap;

/**
 * Whose turn it is to change a collection that is made of blocks: a radix tree with one entry,
 * which is held as trees are, from a transaction's first change to its end. The heap refuses a
 * transaction that would wait in a circle.
 */
final class Turn {
    private static final byte[] KEY = {};

    private final RadixTree tree;

    private Turn(RadixTree tree) {
        this.tree = tree;
    }

    /** The handle of a new turn. */
    static long create(TransactionalHeap heap) {
        RadixTree tree = RadixTree.create(heap);
        tree.put(KEY, 0, 0);
        return tree.handle();
    }

    static Turn open(TransactionalHeap heap, long handle) {
        return new Turn(RadixTree.open(heap, handle));
    }

    /** Waits until no other transaction has the turn; the current one has it until it ends. */
    void take() {
        tree.hold(KEY);
    }

    void trace(Tracer tracer) {
        tracer.tree(tree.handle());
    }
}
