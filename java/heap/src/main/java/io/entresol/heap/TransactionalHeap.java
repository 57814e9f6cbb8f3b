package io.entresol.heap;

import java.util.function.Consumer;

/**
 * A heap whose stores are part of a transaction: the current one of the thread, or one of their
 * own.
 */
public final class TransactionalHeap extends AnyHeap {
    private TransactionalHeap(HeapFile file, HeapOptions options) {
        super(Kind.TRANSACTIONAL, file, options);
    }

    /** Creates a heap in a folder, that grows up to the room of its file system. */
    public static synchronized TransactionalHeap createHeap(String path) {
        return createHeap(path, HeapOptions.DEFAULT);
    }

    /** Creates a heap in a folder, that grows up to the limit of {@code options}. */
    public static synchronized TransactionalHeap createHeap(String path, HeapOptions options) {
        return (TransactionalHeap) HeapFile.createGrowable(
                path, Kind.TRANSACTIONAL, options, file -> new TransactionalHeap(file, options));
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized TransactionalHeap createHeap(String path, long size) {
        return createHeap(path, size, HeapOptions.DEFAULT);
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized TransactionalHeap createHeap(
            String path, long size, HeapOptions options) {
        return (TransactionalHeap) HeapFile.createSized(
                path, size, Kind.TRANSACTIONAL, options, file -> new TransactionalHeap(file,
                options));
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized TransactionalHeap openHeap(String path) {
        return openHeap(path, HeapOptions.DEFAULT);
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized TransactionalHeap openHeap(String path, HeapOptions options) {
        return (TransactionalHeap) HeapFile.open(
                path, Kind.TRANSACTIONAL, options, file -> new TransactionalHeap(file, options));
    }

    /** Opens the heap at {@code path}, as the first programs for LLPL did. */
    public static synchronized TransactionalHeap getHeap(String path) {
        return openHeap(path);
    }

    /** Opens the heap at {@code path}, or creates one of {@code size} bytes if none is there. */
    public static synchronized TransactionalHeap getHeap(String path, long size) {
        return exists(path) ? openHeap(path) : createHeap(path, size);
    }

    @Override
    public TransactionalMemoryBlock allocateMemoryBlock(long size) {
        return new TransactionalMemoryBlock(this, allocate(size, false, true), size);
    }

    @Override
    public TransactionalMemoryBlock allocateMemoryBlock(long size, Consumer<Range> initializer) {
        requireInitializer(initializer);
        return Transaction.create(this, () -> {
            TransactionalMemoryBlock block = allocateMemoryBlock(size);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public TransactionalCompactMemoryBlock allocateCompactMemoryBlock(long size) {
        return new TransactionalCompactMemoryBlock(this, allocate(size, true, true), size);
    }

    @Override
    public TransactionalCompactMemoryBlock allocateCompactMemoryBlock(
            long size, Consumer<Range> initializer) {
        requireInitializer(initializer);
        return Transaction.create(this, () -> {
            TransactionalCompactMemoryBlock block = allocateCompactMemoryBlock(size);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public TransactionalAccessor createAccessor() {
        requireOpen();
        return new TransactionalAccessor(this);
    }

    @Override
    public TransactionalCompactAccessor createCompactAccessor() {
        requireOpen();
        return new TransactionalCompactAccessor(this);
    }

    @Override
    public TransactionalMemoryBlock memoryBlockFromHandle(long handle) {
        return new TransactionalMemoryBlock(this, handle);
    }

    /**
     * The regular block of that handle, to be read, which another thread may have freed since the
     * caller's {@link #readGuard} or cursor began: a strict heap does not ask whether it is live.
     */
    public TransactionalMemoryBlock guardedMemoryBlock(long handle) {
        return TransactionalMemoryBlock.kept(this, handle);
    }

    @Override
    public TransactionalCompactMemoryBlock compactMemoryBlockFromHandle(long handle) {
        return new TransactionalCompactMemoryBlock(this, handle);
    }
}
