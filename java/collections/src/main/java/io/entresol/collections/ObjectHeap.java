package io.entresol.collections;

import io.entresol.heap.HeapOptions;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Range;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * A transactional heap whose every block belongs to a persistent object. Objects are kept as long
 * as the directory or a live Java object leads to them.
 *
 * <p>Threads may share it. Transactions do not isolate, as those of the heap below do not. A change
 * of radix trees or an allocation of blocks needs a transaction. Code that reads a handle in the
 * heap and turns it into an object does both in {@link #read} or in a transaction. Garbage
 * collection waits for these and for nothing else.
 */
public final class ObjectHeap implements AutoCloseable {
    /** {@code objects}, 1: the first bytes of the root block, with the version of the layout. */
    private static final long MAGIC = 0x0173_7463_656a_626fL;
    private static final long DIRECTORY_AT = 8;
    private static final long TYPES_AT = 16;
    private static final long ROOT_BYTES = 24;
    private static final long TYPE_AT = 0;

    /** One for each heap, so that there is one Java object for each persistent one. */
    private static final Map<TransactionalHeap, WeakReference<ObjectHeap>> ALL =
            new WeakHashMap<>();

    private final TransactionalHeap heap;
    private final ReentrantReadWriteLock lock;
    private final Proxies proxies = new Proxies();
    private final TypeTable types;
    private final ObjectDirectory directory;
    private final Codec<Object> any;
    private final Codecs codecs = new Codecs(this);

    private ObjectHeap(TransactionalHeap heap) {
        this.heap = heap;
        this.lock = heap.transactionLock();
        if (heap.getRoot() == 0) {
            format(heap);
        }
        TransactionalMemoryBlock root = heap.memoryBlockFromHandle(heap.getRoot());
        if (root.size() != ROOT_BYTES || root.getLong(0) != MAGIC) {
            throw new IllegalArgumentException(heap + " is no heap of objects: its root is not one"
                    + " that ObjectHeap made");
        }
        this.types = new TypeTable(heap, root.getLong(TYPES_AT));
        this.directory = new ObjectDirectory(this, root.getLong(DIRECTORY_AT));
        this.any = new AnyCodec(this);
    }

    /** Creates a heap of {@code bytes} bytes in a new file, or up to that in a folder. */
    public static ObjectHeap create(String path, long bytes) {
        return create(path, bytes, HeapOptions.DEFAULT);
    }

    /** Creates a heap of {@code bytes} bytes in a new file, or up to that in a folder. */
    public static ObjectHeap create(String path, long bytes, HeapOptions options) {
        return of(TransactionalHeap.createHeap(path, bytes, options));
    }

    /** Opens a heap; the same object if it is open already. */
    public static ObjectHeap open(String path) {
        return open(path, HeapOptions.DEFAULT);
    }

    /** Opens a heap; the same object if it is open already. */
    public static ObjectHeap open(String path, HeapOptions options) {
        return of(TransactionalHeap.openHeap(path, options));
    }

    /** The objects of a heap that has no root yet, or one that this method gave it. */
    public static ObjectHeap of(TransactionalHeap heap) {
        synchronized (ALL) {
            WeakReference<ObjectHeap> known = ALL.get(heap);
            ObjectHeap objects = known == null ? null : known.get();
            if (objects == null) {
                objects = new ObjectHeap(heap);
                ALL.put(heap, new WeakReference<>(objects));
            }
            return objects;
        }
    }

    /** The heap below. */
    public TransactionalHeap heap() {
        return heap;
    }

    /** The names that objects are found by. */
    public ObjectDirectory directory() {
        return directory;
    }

    /** Runs {@code body} in a transaction, or as part of the thread's current one. */
    public void run(Runnable body) {
        Transaction.create(heap, body);
    }

    /** Runs {@code body} in a transaction, or as part of the thread's current one. */
    public <T> T run(Supplier<T> body) {
        return Transaction.create(heap, body);
    }

    /**
     * As {@link #run(Supplier)}, but where the transaction would wait in a circle with another one,
     * say for the directory, it is undone and {@code body} runs again: what that does outside the
     * heap must bear being done more than once.
     */
    public <T> T runRepeatable(Supplier<T> body) {
        return Transaction.repeatable(heap, body);
    }

    /** Runs {@code body}, which changes nothing, with no garbage collection beside it. */
    public <T> T read(Supplier<T> body) {
        lock.readLock().lock();
        try {
            return body.get();
        } finally {
            lock.readLock().unlock();
        }
    }

    /**
     * References to objects of {@code type}, 8 bytes each; null is 0. Another class of objects is a
     * {@link ClassCastException}.
     */
    public <T> Codec<T> reference(Class<T> type) {
        return new ReferenceCodec<>(this, type);
    }

    /**
     * Values of any of these classes, told apart by their first byte: the boxes of Java's
     * primitives, String, byte[], UUID, persistent objects; and null.
     */
    public Codec<Object> any() {
        return any;
    }

    /** The object of a handle, the same one while it is alive in Java; null of 0. */
    @SuppressWarnings("unchecked")
    public <T> T object(long handle) {
        if (handle == 0) {
            return null;
        }
        return (T) read(() -> proxies.get(handle, this::make));
    }

    /**
     * Frees what neither the directory nor a Java object that is alive leads to, circles included.
     * Transactions and reads of other threads wait meanwhile. A crash in between does no harm.
     */
    public Collected collect() {
        if (lock.getReadHoldCount() > 0) {
            throw new IllegalStateException("garbage cannot be collected inside a transaction");
        }
        lock.writeLock().lock();
        try {
            GarbageCollection collection = new GarbageCollection(heap, this::existing);
            List<PersistentObject> alive = proxies.alive();
            alive.forEach(object -> collection.object(object.handle()));
            collection.block(heap.getRoot());
            directory.trace(collection);
            collection.mark();
            // Last: a type whose class has more fields by now is entered anew when one is met.
            types.trace(collection);
            Reference.reachabilityFence(alive);
            return collection.sweep();
        } finally {
            lock.writeLock().unlock();
        }
    }

    /** Closes the heap. Objects of it must not be used any more. */
    @Override
    public void close() {
        heap.close();
    }

    @Override
    public String toString() {
        return "ObjectHeap on " + heap;
    }

    /** The codecs that collections of this heap were made with. */
    Codecs codecs() {
        return codecs;
    }

    /** The handle of an object of this heap; others are refused. */
    long handleOf(Object object) {
        if (!(object instanceof PersistentObject)) {
            throw new IllegalArgumentException(
                    object.getClass().getName() + " is no class of persistent objects");
        }
        PersistentObject persistent = (PersistentObject) object;
        if (persistent.objects() != this) {
            throw new IllegalArgumentException("an object of " + persistent.objects()
                    + " cannot be led to from " + this);
        }
        return persistent.handle();
    }

    <T extends PersistentObject> T create(
            ObjectType<T> type, long bytes, Consumer<Range> initializer) {
        return run(() -> {
            int number = types.number(type);
            long handle = heap.allocateMemoryBlock(bytes, range -> {
                range.setInt(TYPE_AT, number);
                initializer.accept(range);
            }).handle();
            Object making = new Object();
            PersistentObject made =
                    proxies.born(handle, making, fresh -> type.make(this, fresh));
            heap.whenSettled(() -> proxies.settle(handle, making),
                    () -> proxies.forget(handle, making));
            return type.type().cast(made);
        });
    }

    /** The Java object of a handle, or one for the moment. */
    private PersistentObject existing(long handle) {
        PersistentObject alive = proxies.find(handle);
        return alive == null ? make(handle) : alive;
    }

    private PersistentObject make(long handle) {
        int number = heap.memoryBlockFromHandle(handle).getInt(TYPE_AT);
        return types.type(number).make(this, handle);
    }

    private static void format(TransactionalHeap heap) {
        Transaction.create(heap, () -> {
            long directory = RadixTree.create(heap).handle();
            long types = RadixTree.create(heap).handle();
            heap.setRoot(heap.allocateMemoryBlock(ROOT_BYTES, range -> {
                range.setLong(0, MAGIC);
                range.setLong(DIRECTORY_AT, directory);
                range.setLong(TYPES_AT, types);
            }).handle());
        });
    }
}
