package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Range;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * A row of words in chunks of {@value #SLOTS}, which a radix tree finds by their number (8 bytes,
 * the highest first). A longer row gets more chunks, and existing words stay in their places.
 * Changes are part of the thread's current transaction.
 */
public final class Chunks {
    /** With the header of a block, 512 bytes. */
    public static final int SLOTS = 63;

    private final TransactionalHeap heap;
    private final MemoryAccessor header;
    private final RadixTree tree;

    public Chunks(TransactionalHeap heap, MemoryAccessor header) {
        this.heap = heap;
        this.header = header;
        this.tree = RadixTree.open(heap, header.getLong(Header.ROOT_AT));
    }

    /** Makes what an empty row consists of; gives what writes the words of its header. */
    public static Consumer<Range> empty(TransactionalHeap heap) {
        return RadixEntries.empty(heap);
    }

    public long size() {
        return header.getLongAcquire(Header.COUNT_AT);
    }

    /** Keeps transactions of other threads from changes until the current one ends. */
    public void hold() {
        tree.hold();
    }

    /** The word at {@code index}; 0 if the row was shortened meanwhile. */
    public long get(long index) {
        long chunk = tree.get(key(index / SLOTS), 0);
        return chunk == 0
                ? 0 : heap.guardedMemoryBlock(chunk).getLongAcquire(at(index % SLOTS));
    }

    public void set(long index, long word) {
        chunk(index / SLOTS).setLongRelease(at(index % SLOTS), word);
    }

    /** Inserts words at {@code index}. */
    public void insert(long index, long... words) {
        long size = size();
        long count = words.length;
        long needed = chunks(size + count);
        for (long number = chunks(size); number < needed; number++) {
            tree.put(key(number), heap.allocateMemoryBlock(at(SLOTS)).handle(), 0);
        }
        long end = size;
        while (end > index) {
            // The last piece that lies in one chunk before and after.
            long length = Math.min(end - index,
                    Math.min((end - 1) % SLOTS + 1, (end + count - 1) % SLOTS + 1));
            copy(end - length, end + count - length, length);
            end -= length;
        }
        for (int each = 0; each < words.length; each++) {
            set(index + each, words[each]);
        }
        // Last: a reader that goes by the count meets words alone that lead somewhere.
        header.setLongRelease(Header.COUNT_AT, size + count);
    }

    /** Takes {@code count} words from {@code index} on out. */
    public void close(long index, long count) {
        long size = size();
        long from = index + count;
        while (from < size) {
            long length = Math.min(size - from,
                    Math.min(SLOTS - from % SLOTS, SLOTS - (from - count) % SLOTS));
            copy(from, from - count, length);
            from += length;
        }
        header.setLongRelease(Header.COUNT_AT, size - count);
        long had = chunks(size);
        long kept = chunks(size - count);
        for (long number = kept; number < had; number++) {
            heap.memoryBlockFromHandle(tree.remove(key(number), 0)).free();
        }
        // An abort of later inserts puts back what they met before it puts back the first count.
        for (long vacated = size - count; vacated < Math.min(size, kept * SLOTS); vacated++) {
            set(vacated, 0);
        }
    }

    public void trace(Tracer tracer, LongConsumer words) {
        tracer.tree(tree.handle());
        long size = size();
        for (long number = 0; number < chunks(size); number++) {
            TransactionalMemoryBlock chunk = chunk(number);
            tracer.block(chunk.handle());
            long last = Math.min(SLOTS, size - number * SLOTS);
            for (long slot = 0; slot < last; slot++) {
                words.accept(chunk.getLong(at(slot)));
            }
        }
    }

    private void copy(long from, long to, long length) {
        chunk(to / SLOTS).copyFrom(chunk(from / SLOTS), at(from % SLOTS), at(to % SLOTS),
                length * Long.BYTES);
    }

    private TransactionalMemoryBlock chunk(long number) {
        return heap.memoryBlockFromHandle(tree.get(key(number), 0));
    }

    private static long chunks(long size) {
        return (size + SLOTS - 1) / SLOTS;
    }

    private static long at(long slot) {
        return slot * Long.BYTES;
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }
}
