package io.entresol.collections;

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

    @Override
    ArrayElements<E> elements() {
        return contents();
    }

    @Override
    Contents read() {
        return new ArrayElements<E>(this);
    }
}
