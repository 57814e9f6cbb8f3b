package io.entresol.collections;

import java.util.NoSuchElementException;
import java.util.Queue;

/**
 * A queue in a heap that threads may share: elements leave in the order in which they came. What a
 * transaction takes is back if it is undone, and other threads that take or add wait for its end.
 * Every method is a transaction or part of the thread's current one. Iterators fail fast.
 */
public final class PersistentLinkedQueue<E> extends PersistentCollection<E> implements Queue<E> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentLinkedQueue<?>> TYPE = ObjectType.of(
            (Class<PersistentLinkedQueue<?>>) (Class<?>) PersistentLinkedQueue.class,
            Header.FIELDS, PersistentLinkedQueue::new);

    private volatile LinkedElements<E> elements;

    private PersistentLinkedQueue(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty queue. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentLinkedQueue<E> create(ObjectHeap objects, Codec<E> codec) {
        return objects.run(() -> {
            long turn = Turn.create(objects.heap());
            return (PersistentLinkedQueue<E>) make(TYPE, objects,
                    range -> range.setLong(Header.ROOT_AT, turn), codec);
        });
    }

    /** The queue of that handle, which was made with the same codec. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentLinkedQueue<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return (PersistentLinkedQueue<E>) open(TYPE.type(), objects, handle, codec);
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
        return inTransaction(() -> {
            requireSome();
            return poll();
        });
    }

    @Override
    public E peek() {
        return elements().peekFirst();
    }

    @Override
    public E element() {
        requireSome();
        return peek();
    }

    @Override
    protected void trace(Tracer tracer) {
        elements().trace(tracer);
    }

    @Override
    LinkedElements<E> elements() {
        handle();
        if (elements == null) {
            synchronized (this) {
                if (elements == null) {
                    elements = new LinkedElements<>(this, new Links(objects().heap(), block()),
                            new Cells<>(objects().heap(), codec()));
                }
            }
        }
        return elements;
    }

    private void requireSome() {
        if (isEmpty()) {
            throw new NoSuchElementException("the queue is empty");
        }
    }
}
