package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.Range;
import io.entresol.heap.TransactionalHeap;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * Entries whose keys stand behind eight bytes of their hash. So any keys are spread evenly, and a
 * search looks at few bytes. The order of the entries means nothing.
 */
public final class HashedEntries implements Entries {
    private final Entries entries;
    private final long seed;

    private HashedEntries(Entries entries, long seed) {
        this.entries = entries;
        this.seed = seed;
    }

    /** Makes what no entries consist of; gives what writes the words of their header. */
    public static Consumer<Range> empty(TransactionalHeap heap) {
        long seed = ThreadLocalRandom.current().nextLong();
        return RadixEntries.empty(heap)
                .andThen(range -> range.setLong(Header.SEED_AT, seed));
    }

    /** The entries whose header has these words. */
    public static HashedEntries open(TransactionalHeap heap, MemoryAccessor header) {
        return new HashedEntries(
                RadixEntries.open(heap, header), header.getLong(Header.SEED_AT));
    }

    @Override
    public long size() {
        return entries.size();
    }

    @Override
    public long get(byte[] key) {
        return entries.get(hashed(key));
    }

    @Override
    public long put(byte[] key, long word) {
        return entries.put(hashed(key), word);
    }

    @Override
    public long remove(byte[] key) {
        return entries.remove(hashed(key));
    }

    @Override
    public void clear(LongConsumer words) {
        entries.clear(words);
    }

    @Override
    public void hold() {
        entries.hold();
    }

    @Override
    public Walk walk(Bounds bounds, boolean backwards) {
        if (bounds != Bounds.ALL) {
            throw new IllegalArgumentException("hashed keys have no ranges");
        }
        return new HashedWalk(entries.walk(Bounds.ALL, backwards));
    }

    @Override
    public void trace(Tracer tracer) {
        entries.trace(tracer);
    }

    private byte[] hashed(byte[] key) {
        return ByteBuffer.allocate(Long.BYTES + key.length)
                .putLong(Hash.of(key, seed)).put(key).array();
    }

    private static final class HashedWalk implements Walk {
        private final Walk walk;

        HashedWalk(Walk walk) {
            this.walk = walk;
        }

        @Override
        public <T> T next(Reader<T> reader) {
            return walk.next((key, word) ->
                    reader.read(Arrays.copyOfRange(key, Long.BYTES, key.length), word));
        }

        @Override
        public void close() {
            walk.close();
        }
    }
}
