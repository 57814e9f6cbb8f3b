package io.entresol.collections;

import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Chunks;
import io.entresol.collections.internal.views.ArrayElements;
import io.entresol.collections.internal.views.Contents;
import java.util.List;
import java.util.RandomAccess;

/**
 * A list in a heap with quick access by index. Its elements lie in chunks, so that adding at the
 * end moves nothing; adding and removing elsewhere moves the words behind. Every method is a
 * transaction or part of the thread's current one. Iterators fail fast. Threads may share it, as
 * far as indices make sense then.
 */
public final class PersistentArrayList<E> extends PersistentList<E> implements RandomAccess {
    /** What heaps know of the class. */
    static final ObjectType<PersistentArrayList<?>> TYPE =
            type(PersistentArrayList.class, PersistentArrayList::new);

    private PersistentArrayList(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty list. */
    public static <E> PersistentArrayList<E> create(ObjectHeap objects, Codec<E> codec) {
        return make(TYPE, objects, Chunks::empty, codec);
    }

    /** The list of that handle, which was made with the same codec. */
    public static <E> PersistentArrayList<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return open(TYPE, objects, handle, codec);
    }

    // What Java's lists have from Java 21 on, where this is a SequencedCollection.

    /** The same elements from the last to the first, as a view through which they can be changed. */
    public List<E> reversed() {
        return elements().reversed(this);
    }

    /** Adds an element before all others. */
    public void addFirst(E element) {
        add(0, element);
    }

    /** Adds an element behind all others. */
    public void addLast(E element) {
        add(element);
    }

    /** The first element; refused if there is none. */
    public E getFirst() {
        return elements().getFirst();
    }

    /** The last element; refused if there is none. */
    public E getLast() {
        return elements().getLast();
    }

    /** Removes the first element; refused if there is none. */
    public E removeFirst() {
        return elements().removeFirst();
    }

    /** Removes the last element; refused if there is none. */
    public E removeLast() {
        return elements().removeLast();
    }

    @Override
    ArrayElements<E> elements() {
        return contents();
    }

    @Override
    Contents read() {
        return new ArrayElements<E>(owner(), new Chunks(objects().heap(), block()),
                new Cells<>(objects().heap(), codec(0)));
    }
}
