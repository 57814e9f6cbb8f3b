package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.Range;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.util.function.Consumer;

/**
 * Words in nodes that lead to the next node and the one before. Changes are part of the thread's
 * current transaction, which takes the turn first. The number of changes lies in the heap, so that
 * an abort puts it back with the changes.
 */
public final class Links {
    private static final long NEXT_AT = 0;
    private static final long PREVIOUS_AT = 8;
    private static final long WORD_AT = 16;
    private static final long NODE_BYTES = 24;

    private final TransactionalHeap heap;
    private final MemoryAccessor header;
    private final Turn turn;

    public Links(TransactionalHeap heap, MemoryAccessor header) {
        this.heap = heap;
        this.header = header;
        this.turn = Turn.open(heap, header);
    }

    /** Makes what no nodes consist of; gives what writes the words of their header. */
    public static Consumer<Range> empty(TransactionalHeap heap) {
        return Turn.empty(heap);
    }

    /** Keeps transactions of other threads from changes until the current one ends. */
    public void hold() {
        turn.take();
    }

    public long size() {
        return header.getLongAcquire(Header.COUNT_AT);
    }

    /** How often nodes were added or removed. */
    public long changes() {
        return header.getLongAcquire(Header.CHANGES_AT);
    }

    /** The first node; 0 if there is none. */
    public long first() {
        return header.getLongAcquire(Header.FIRST_AT);
    }

    /** The last node; 0 if there is none. */
    public long last() {
        return header.getLongAcquire(Header.LAST_AT);
    }

    /** The node behind; 0 if there is none. */
    public long next(long node) {
        return at(node).getLongAcquire(NEXT_AT);
    }

    /** The node before; 0 if there is none. */
    public long previous(long node) {
        return at(node).getLongAcquire(PREVIOUS_AT);
    }

    public long word(long node) {
        return at(node).getLongAcquire(WORD_AT);
    }

    public void setWord(long node, long word) {
        at(node).setLongRelease(WORD_AT, word);
    }

    /** The node of that index, 0 for the one behind the last. */
    public long node(long index) {
        long size = size();
        if (index >= size) {
            return 0;
        }
        long node;
        if (index < size / 2) {
            node = first();
            for (long at = 0; at < index && node != 0; at++) {
                node = next(node);
            }
        } else {
            node = last();
            for (long at = size - 1; at > index && node != 0; at--) {
                node = previous(node);
            }
        }
        return node;
    }

    /** Adds a node before {@code next}, or at the end if that is 0; the node. */
    public long insert(long next, long word) {
        long previous = next == 0 ? last() : previous(next);
        long node = heap.allocateMemoryBlock(NODE_BYTES, range -> {
            range.setLong(NEXT_AT, next);
            range.setLong(PREVIOUS_AT, previous);
            range.setLong(WORD_AT, word);
        }).handle();
        join(previous, node, node, next);
        count(1);
        return node;
    }

    /** Takes a node out; its word. */
    public long remove(long node) {
        long word = word(node);
        long next = next(node);
        long previous = previous(node);
        join(previous, next, previous, next);
        heap.memoryBlockFromHandle(node).free();
        count(-1);
        return word;
    }

    public void trace(Tracer tracer) {
        turn.trace(tracer);
        for (long node = first(); node != 0; node = next(node)) {
            tracer.block(node);
        }
    }

    /** Lets {@code next} follow {@code before}, and {@code previous} come before {@code behind}. */
    private void join(long before, long next, long previous, long behind) {
        if (before == 0) {
            header.setLongRelease(Header.FIRST_AT, next);
        } else {
            at(before).setLongRelease(NEXT_AT, next);
        }
        if (behind == 0) {
            header.setLongRelease(Header.LAST_AT, previous);
        } else {
            at(behind).setLongRelease(PREVIOUS_AT, previous);
        }
    }

    private void count(long more) {
        header.setLongRelease(Header.COUNT_AT, size() + more);
        header.setLongRelease(Header.CHANGES_AT, changes() + 1);
    }

    private TransactionalMemoryBlock at(long node) {
        return heap.guardedMemoryBlock(node);
    }
}
