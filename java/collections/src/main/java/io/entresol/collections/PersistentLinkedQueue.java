package io.entresol.collections;

import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Links;
import io.entresol.collections.internal.views.Contents;
import io.entresol.collections.internal.views.LinkedElements;
import java.util.Queue;

/**
 * A queue in a heap that threads may share: elements leave in the order in which they came. If a
 * transaction is undone, the elements that it took are back. Other threads that take or add wait
 * for the end of the transaction. Every method is a transaction or part of the thread's current
 * one. Iterators fail fast.
 */
public final class PersistentLinkedQueue<E> extends PersistentCollection<E> implements Queue<E> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentLinkedQueue<?>> TYPE =
            type(PersistentLinkedQueue.class, PersistentLinkedQueue::new);

    private PersistentLinkedQueue(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty queue. */
    public static <E> PersistentLinkedQueue<E> create(ObjectHeap objects, Codec<E> codec) {
        return make(TYPE, objects, Links::empty, codec);
    }

    /** The queue of that handle, which was made with the same codec. */
    public static <E> PersistentLinkedQueue<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return open(TYPE, objects, handle, codec);
    }

    @Override
    public boolean offer(E element) {
        return elements().add(element);
    }

    @Override
    public E poll() {
        return elements().pollFirst();
    }

    @Override
    public E remove() {
        return elements().removeFirst();
    }

    @Override
    public E peek() {
        return elements().peekFirst();
    }

    @Override
    public E element() {
        return elements().getFirst();
    }

    @Override
    LinkedElements<E> elements() {
        return contents();
    }

    @Override
    Contents read() {
        return new LinkedElements<E>(owner(), new Links(objects().heap(), block()),
                new Cells<>(objects().heap(), codec(0)));
    }
}
