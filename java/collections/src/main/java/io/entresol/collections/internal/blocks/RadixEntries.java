package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Range;
import io.entresol.heap.TransactionalHeap;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/** Entries in an adaptive radix tree, in the order of their bytes. A walk shows one moment. */
public final class RadixEntries implements Entries {
    private final RadixTree tree;

    private RadixEntries(RadixTree tree) {
        this.tree = tree;
    }

    /** Makes an empty tree; gives what writes the words of its header. */
    public static Consumer<Range> empty(TransactionalHeap heap) {
        long tree = RadixTree.create(heap).handle();
        return range -> range.setLong(Header.ROOT_AT, tree);
    }

    /** The entries whose header has these words. */
    public static RadixEntries open(TransactionalHeap heap, MemoryAccessor header) {
        return new RadixEntries(RadixTree.open(heap, header.getLong(Header.ROOT_AT)));
    }

    @Override
    public long size() {
        return tree.size();
    }

    @Override
    public long get(byte[] key) {
        return tree.get(key, 0);
    }

    @Override
    public long put(byte[] key, long word) {
        return tree.put(key, word, 0);
    }

    @Override
    public long remove(byte[] key) {
        return tree.remove(key, 0);
    }

    @Override
    public void clear(LongConsumer words) {
        hold();
        try (RadixTree.Cursor cursor = tree.entries()) {
            while (cursor.next()) {
                words.accept(cursor.value());
            }
        }
        tree.clear();
    }

    @Override
    public void hold() {
        tree.hold();
    }

    @Override
    public Walk walk(Bounds bounds, boolean backwards) {
        if (bounds.isEmpty()) {
            return Walk.EMPTY;
        }
        return new CursorWalk(tree.range(bounds.lower, bounds.lowerInclusive, bounds.upper,
                bounds.upperInclusive, backwards));
    }

    @Override
    public void trace(Tracer tracer) {
        tracer.tree(tree.handle());
    }

    private static final class CursorWalk implements Walk {
        private final RadixTree.Cursor cursor;

        CursorWalk(RadixTree.Cursor cursor) {
            this.cursor = cursor;
        }

        @Override
        public <T> T next(Reader<T> reader) {
            return cursor.next() ? reader.read(cursor.key(), cursor.value()) : null;
        }

        @Override
        public void close() {
            cursor.close();
        }
    }
}
