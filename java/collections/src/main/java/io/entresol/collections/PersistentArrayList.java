package io.entresol.collections;

import io.entresol.heap.RadixTree;
import java.util.RandomAccess;

/**
 * A list in a heap with quick access by index. Its elements lie in chunks, so that adding at the
 * end moves nothing; adding and removing elsewhere moves the words behind. Every method is a
 * transaction or part of the thread's current one. Iterators fail fast. Threads may share it, as
 * far as indices make sense then.
 */
public final class PersistentArrayList<E> extends PersistentList<E> implements RandomAccess {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentArrayList<?>> TYPE = ObjectType.of(
            (Class<PersistentArrayList<?>>) (Class<?>) PersistentArrayList.class, Header.FIELDS,
            PersistentArrayList::new);

    private volatile ArrayElements<E> elements;

    private PersistentArrayList(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty list. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentArrayList<E> create(ObjectHeap objects, Codec<E> codec) {
        return objects.run(() -> {
            long tree = RadixTree.create(objects.heap()).handle();
            return (PersistentArrayList<E>) make(TYPE, objects,
                    range -> range.setLong(Header.ROOT_AT, tree), codec);
        });
    }

    /** The list of that handle, which was made with the same codec. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentArrayList<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return (PersistentArrayList<E>) open(TYPE.type(), objects, handle, codec);
    }

    @Override
    protected void trace(Tracer tracer) {
        elements().trace(tracer);
    }

    @Override
    ArrayElements<E> elements() {
        handle();
        if (elements == null) {
            synchronized (this) {
                if (elements == null) {
                    elements = new ArrayElements<>(this, new Chunks(objects().heap(), block()),
                            new Cells<>(objects().heap(), codec()));
                }
            }
        }
        return elements;
    }
}
