package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Range;
import io.entresol.heap.TransactionalHeap;
import java.util.function.Consumer;

/**
 * The turn to change a collection that is made of blocks: a radix tree with one entry, which a
 * transaction holds, like other trees, from its first change to its end. The heap refuses a
 * transaction that would wait in a circle.
 */
final class Turn {
    private static final byte[] KEY = {};

    private final RadixTree tree;

    private Turn(RadixTree tree) {
        this.tree = tree;
    }

    /** Makes a turn that nobody has; gives what writes the words of its header. */
    static Consumer<Range> empty(TransactionalHeap heap) {
        RadixTree tree = RadixTree.create(heap);
        tree.put(KEY, 0, 0);
        return range -> range.setLong(Header.ROOT_AT, tree.handle());
    }

    /** The turn that a header leads to. */
    static Turn open(TransactionalHeap heap, MemoryAccessor header) {
        return new Turn(RadixTree.open(heap, header.getLong(Header.ROOT_AT)));
    }

    /** Waits until no other transaction has the turn; the current one has it until it ends. */
    void take() {
        tree.hold();
    }

    void trace(Tracer tracer) {
        tracer.tree(tree.handle());
    }
}
