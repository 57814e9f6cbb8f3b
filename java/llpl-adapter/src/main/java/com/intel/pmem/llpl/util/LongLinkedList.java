package com.intel.pmem.llpl.util;

import com.intel.pmem.llpl.AnyHeap;
import com.intel.pmem.llpl.AnyMemoryBlock;
import com.intel.pmem.llpl.Transaction;
import java.util.ConcurrentModificationException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.LongSupplier;

/**
 * A persistent, singly linked list of longs. Every change is a transaction, or part of the current
 * one; Java memory holds nothing of the list, so that an abort undoes all changes. Not thread-safe.
 */
public final class LongLinkedList implements Iterable<Long> {
    private static final long VERSION = 100;
    private static final long VERSION_AT = 0;
    private static final long FIRST_AT = 8;
    private static final long COUNT_AT = 16;
    private static final long HEAD_BYTES = 24;
    private static final long VALUE_AT = 0;
    private static final long NEXT_AT = 8;
    private static final long NODE_BYTES = 16;

    private final AnyHeap heap;
    private final AnyMemoryBlock head;

    /** Allocates an empty list. */
    public LongLinkedList(AnyHeap heap) {
        this.heap = heap;
        this.head = Transaction.create(heap, () -> {
            AnyMemoryBlock block = Stores.allocateCompact(heap, HEAD_BYTES);
            Stores.setLong(block, VERSION_AT, VERSION);
            return block;
        });
    }

    private LongLinkedList(AnyHeap heap, AnyMemoryBlock head) {
        this.heap = heap;
        this.head = head;
    }

    /** The list of that handle. */
    public static LongLinkedList fromHandle(AnyHeap heap, long handle) {
        AnyMemoryBlock head = heap.compactMemoryBlockFromHandle(handle);
        if (head.getLong(VERSION_AT) != VERSION) {
            throw new IllegalArgumentException(handle + " is not the handle of a list");
        }
        return new LongLinkedList(heap, head);
    }

    /** The list's handle, the same after a restart. */
    public long handle() {
        return head.handle();
    }

    /** How many values. */
    public long size() {
        return head.getLong(COUNT_AT);
    }

    /** Inserts a value in front of the one at {@code index}, or at the end. */
    public void add(long index, long value) {
        requireIndex(index, size() + 1);
        change(() -> {
            AnyMemoryBlock before = blockBefore(index);
            long at = before == head ? FIRST_AT : NEXT_AT;
            AnyMemoryBlock node = Stores.allocateCompact(heap, NODE_BYTES);
            Stores.setLong(node, VALUE_AT, value);
            Stores.setLong(node, NEXT_AT, before.getLong(at));
            Stores.setLong(before, at, node.handle());
            Stores.setLong(head, COUNT_AT, size() + 1);
            return 0;
        });
    }

    /** Inserts a value in front of all. */
    public void addFirst(long value) {
        add(0, value);
    }

    /** The value at {@code index}. */
    public long get(long index) {
        requireIndex(index, size());
        return node(index).getLong(VALUE_AT);
    }

    /** The first value. */
    public long getFirst() {
        requireElement();
        return get(0);
    }

    /** Stores a value at {@code index}; what was there. */
    public long set(long index, long value) {
        requireIndex(index, size());
        return change(() -> {
            AnyMemoryBlock node = node(index);
            long old = node.getLong(VALUE_AT);
            Stores.setLong(node, VALUE_AT, value);
            return old;
        });
    }

    /** Removes the value at {@code index}; what it was. */
    public long remove(long index) {
        requireIndex(index, size());
        return change(() -> {
            AnyMemoryBlock before = blockBefore(index);
            long at = before == head ? FIRST_AT : NEXT_AT;
            AnyMemoryBlock node = heap.compactMemoryBlockFromHandle(before.getLong(at));
            long value = node.getLong(VALUE_AT);
            Stores.setLong(before, at, node.getLong(NEXT_AT));
            Stores.setLong(head, COUNT_AT, size() - 1);
            Stores.free(node);
            return value;
        });
    }

    /** Removes the first value; what it was. */
    public long removeFirst() {
        requireElement();
        return remove(0);
    }

    /** Removes all values. */
    public void clear() {
        change(() -> {
            long next = head.getLong(FIRST_AT);
            while (next != 0) {
                AnyMemoryBlock node = heap.compactMemoryBlockFromHandle(next);
                next = node.getLong(NEXT_AT);
                Stores.free(node);
            }
            Stores.setLong(head, FIRST_AT, 0);
            Stores.setLong(head, COUNT_AT, 0);
            return 0;
        });
    }

    /** Frees the list with all values. */
    public void free() {
        change(() -> {
            clear();
            Stores.free(head);
            return 0;
        });
    }

    @Override
    public Iterator<Long> iterator() {
        long expected = size();
        return new Iterator<Long>() {
            private long next = head.getLong(FIRST_AT);

            @Override
            public boolean hasNext() {
                return next != 0;
            }

            @Override
            public Long next() {
                if (size() != expected) {
                    throw new ConcurrentModificationException();
                }
                if (next == 0) {
                    throw new NoSuchElementException();
                }
                AnyMemoryBlock node = heap.compactMemoryBlockFromHandle(next);
                next = node.getLong(NEXT_AT);
                return node.getLong(VALUE_AT);
            }
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LongLinkedList && head.equals(((LongLinkedList) other).head);
    }

    @Override
    public int hashCode() {
        return head.hashCode();
    }

    private long change(LongSupplier body) {
        return Transaction.create(heap, () -> body.getAsLong());
    }

    /** The block that links to the node at {@code index}: the head, or a node. */
    private AnyMemoryBlock blockBefore(long index) {
        return index == 0 ? head : node(index - 1);
    }

    private AnyMemoryBlock node(long index) {
        long handle = head.getLong(FIRST_AT);
        for (long passed = 0; passed < index; passed++) {
            handle = heap.compactMemoryBlockFromHandle(handle).getLong(NEXT_AT);
        }
        return heap.compactMemoryBlockFromHandle(handle);
    }

    private static void requireIndex(long index, long end) {
        if (index < 0 || index >= end) {
            throw new IndexOutOfBoundsException("index " + index + ", not below " + end);
        }
    }

    private void requireElement() {
        if (size() == 0) {
            throw new NoSuchElementException("the list is empty");
        }
    }
}
