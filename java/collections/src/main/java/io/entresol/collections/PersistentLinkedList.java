package io.entresol.collections;

import java.util.Deque;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * A list in a heap that is quick to change at both ends and where an iterator stands, and slow to
 * find an index in. Every method is a transaction or part of the thread's current one. Iterators
 * fail fast. Threads may share it, as far as indices make sense then.
 */
public final class PersistentLinkedList<E> extends PersistentList<E> implements Deque<E> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentLinkedList<?>> TYPE = ObjectType.of(
            (Class<PersistentLinkedList<?>>) (Class<?>) PersistentLinkedList.class, Header.FIELDS,
            PersistentLinkedList::new);

    private volatile LinkedElements<E> elements;

    private PersistentLinkedList(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty list. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentLinkedList<E> create(ObjectHeap objects, Codec<E> codec) {
        return objects.run(() -> {
            long turn = Turn.create(objects.heap());
            return (PersistentLinkedList<E>) make(TYPE, objects,
                    range -> range.setLong(Header.ROOT_AT, turn), codec);
        });
    }

    /** The list of that handle, which was made with the same codec. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentLinkedList<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return (PersistentLinkedList<E>) open(TYPE.type(), objects, handle, codec);
    }

    @Override
    public void addFirst(E element) {
        elements().addFirst(element);
    }

    @Override
    public void addLast(E element) {
        elements().addLast(element);
    }

    @Override
    public boolean offerFirst(E element) {
        addFirst(element);
        return true;
    }

    @Override
    public boolean offerLast(E element) {
        addLast(element);
        return true;
    }

    @Override
    public E removeFirst() {
        return inTransaction(() -> {
            requireSome();
            return pollFirst();
        });
    }

    @Override
    public E removeLast() {
        return inTransaction(() -> {
            requireSome();
            return pollLast();
        });
    }

    @Override
    public E pollFirst() {
        return elements().pollFirst();
    }

    @Override
    public E pollLast() {
        return elements().pollLast();
    }

    @Override
    public E getFirst() {
        requireSome();
        return peekFirst();
    }

    @Override
    public E getLast() {
        requireSome();
        return peekLast();
    }

    @Override
    public E peekFirst() {
        return elements().peekFirst();
    }

    @Override
    public E peekLast() {
        return elements().peekLast();
    }

    @Override
    public boolean removeFirstOccurrence(Object element) {
        return remove(element);
    }

    @Override
    public boolean removeLastOccurrence(Object element) {
        return inTransaction(() -> {
            int index = lastIndexOf(element);
            if (index >= 0) {
                remove(index);
            }
            return index >= 0;
        });
    }

    @Override
    public boolean offer(E element) {
        return offerLast(element);
    }

    @Override
    public E remove() {
        return removeFirst();
    }

    @Override
    public E poll() {
        return pollFirst();
    }

    @Override
    public E element() {
        return getFirst();
    }

    @Override
    public E peek() {
        return peekFirst();
    }

    @Override
    public void push(E element) {
        addFirst(element);
    }

    @Override
    public E pop() {
        return removeFirst();
    }

    @Override
    public Iterator<E> descendingIterator() {
        return elements().descendingIterator();
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
            throw new NoSuchElementException("the list is empty");
        }
    }
}
