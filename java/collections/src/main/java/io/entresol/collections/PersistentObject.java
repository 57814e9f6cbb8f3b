package io.entresol.collections;

import io.entresol.heap.TransactionalMemoryBlock;

/**
 * An object that lives in a heap; the Java object stands for it and has no state of its own. It
 * exists as long as the directory or a live Java object leads to it. It has at most one live Java
 * object, so that {@code ==} compares persistent objects.
 *
 * <p>Its block begins with {@value #HEADER_BYTES} bytes that name its type.
 */
public abstract class PersistentObject {
    /** Bytes of a block before those that are the class's own. */
    public static final long HEADER_BYTES = 8;

    private final ObjectHeap objects;
    private final TransactionalMemoryBlock block;
    private final long handle;
    private boolean undone;

    /** What a {@link ObjectType.Maker} calls; programs ask their {@link ObjectHeap} for objects. */
    protected PersistentObject(ObjectHeap objects, long handle) {
        this.objects = objects;
        this.handle = handle;
        this.block = objects.heap().memoryBlockFromHandle(handle);
    }

    /** The object's name in its heap, the same after a restart. */
    public final long handle() {
        requireMade();
        return handle;
    }

    /** The heap it lives in. */
    public final ObjectHeap objects() {
        return objects;
    }

    /** Whether {@code other} is the same persistent object. */
    public final boolean is(PersistentObject other) {
        return other != null && other.objects == objects && other.handle == handle;
    }

    /** Tells what the object owns and leads to; its own block is known. Changes nothing. */
    protected abstract void trace(Tracer tracer);

    /** The object's block; what is the class's own begins at {@link #HEADER_BYTES}. */
    protected final TransactionalMemoryBlock block() {
        requireMade();
        return block;
    }

    /** The object whose handle lies at {@code offset} of the block; null if it is 0. */
    protected final <T> T reference(long offset) {
        return objects.read(() -> objects.object(block().getLong(offset)));
    }

    /** The transaction that made the object was undone. */
    final void undo() {
        undone = true;
    }

    /** Refuses an object whose making was undone. */
    protected final void requireMade() {
        if (undone) {
            throw new IllegalStateException("the object was made in a transaction that was undone");
        }
    }
}
