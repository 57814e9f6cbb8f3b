package io.entresol.heap;

import java.util.function.Consumer;

/**
 * A heap whose stores are durable when they return, as far as its level of durability says. Methods
 * whose names say so make several stores durable together in a transaction.
 */
public final class PersistentHeap extends AnyHeap {
    private PersistentHeap(HeapFile file, HeapOptions options) {
        super(Kind.PERSISTENT, file, options);
    }

    /** Creates a heap in a folder, that grows up to the room of its file system. */
    public static synchronized PersistentHeap createHeap(String path) {
        return createHeap(path, HeapOptions.DEFAULT);
    }

    /** Creates a heap in a folder, that grows up to the limit of {@code options}. */
    public static synchronized PersistentHeap createHeap(String path, HeapOptions options) {
        return (PersistentHeap) HeapFile.createGrowable(
                path, Kind.PERSISTENT, options, file -> new PersistentHeap(file, options));
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized PersistentHeap createHeap(String path, long size) {
        return createHeap(path, size, HeapOptions.DEFAULT);
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized PersistentHeap createHeap(
            String path, long size, HeapOptions options) {
        return (PersistentHeap) HeapFile.createSized(
                path, size, Kind.PERSISTENT, options, file -> new PersistentHeap(file, options));
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized PersistentHeap openHeap(String path) {
        return openHeap(path, HeapOptions.DEFAULT);
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized PersistentHeap openHeap(String path, HeapOptions options) {
        return (PersistentHeap) HeapFile.open(
                path, Kind.PERSISTENT, options, file -> new PersistentHeap(file, options));
    }

    /** Allocates a regular block, in a transaction or at once; its handle. */
    public long allocateMemory(long size, boolean transactional) {
        return allocate(size, false, transactional);
    }

    /** Allocates a compact block, in a transaction or at once; its handle. */
    public long allocateCompactMemory(long size, boolean transactional) {
        return allocate(size, true, transactional);
    }

    /** Opens the heap at {@code path}, as the first programs for LLPL did. */
    public static synchronized PersistentHeap getHeap(String path) {
        return openHeap(path);
    }

    /** Opens the heap at {@code path}, or creates one of {@code size} bytes if none is there. */
    public static synchronized PersistentHeap getHeap(String path, long size) {
        return exists(path) ? openHeap(path) : createHeap(path, size);
    }

    @Override
    public PersistentMemoryBlock allocateMemoryBlock(long size) {
        return allocateMemoryBlock(size, false);
    }

    @Override
    public PersistentMemoryBlock allocateMemoryBlock(long size, Consumer<Range> initializer) {
        return allocateMemoryBlock(size, false, initializer);
    }

    /** Allocates a regular block of zeros, in a transaction or at once. */
    public PersistentMemoryBlock allocateMemoryBlock(long size, boolean transactional) {
        return new PersistentMemoryBlock(this, allocate(size, false, transactional), size);
    }

    /** Allocates a regular block that {@code initializer} fills, in a transaction or at once. */
    public PersistentMemoryBlock allocateMemoryBlock(
            long size, boolean transactional, Consumer<Range> initializer) {
        requireInitializer(initializer);
        if (!transactional) {
            PersistentMemoryBlock block = allocateMemoryBlock(size, false);
            initialize(block, size, false, initializer);
            return block;
        }
        return Transaction.create(this, () -> {
            PersistentMemoryBlock block = allocateMemoryBlock(size, true);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public PersistentCompactMemoryBlock allocateCompactMemoryBlock(long size) {
        return allocateCompactMemoryBlock(size, false);
    }

    @Override
    public PersistentCompactMemoryBlock allocateCompactMemoryBlock(
            long size, Consumer<Range> initializer) {
        return allocateCompactMemoryBlock(size, false, initializer);
    }

    /** Allocates a compact block of zeros, in a transaction or at once. */
    public PersistentCompactMemoryBlock allocateCompactMemoryBlock(
            long size, boolean transactional) {
        return new PersistentCompactMemoryBlock(this, allocate(size, true, transactional), size);
    }

    /** Allocates a compact block that {@code initializer} fills, in a transaction or at once. */
    public PersistentCompactMemoryBlock allocateCompactMemoryBlock(
            long size, boolean transactional, Consumer<Range> initializer) {
        requireInitializer(initializer);
        if (!transactional) {
            PersistentCompactMemoryBlock block = allocateCompactMemoryBlock(size, false);
            initialize(block, size, false, initializer);
            return block;
        }
        return Transaction.create(this, () -> {
            PersistentCompactMemoryBlock block = allocateCompactMemoryBlock(size, true);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public PersistentAccessor createAccessor() {
        requireOpen();
        return new PersistentAccessor(this);
    }

    @Override
    public PersistentCompactAccessor createCompactAccessor() {
        requireOpen();
        return new PersistentCompactAccessor(this);
    }

    @Override
    public PersistentMemoryBlock memoryBlockFromHandle(long handle) {
        return new PersistentMemoryBlock(this, handle);
    }

    @Override
    public PersistentCompactMemoryBlock compactMemoryBlockFromHandle(long handle) {
        return new PersistentCompactMemoryBlock(this, handle);
    }
}
