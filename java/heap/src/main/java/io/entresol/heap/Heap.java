package io.entresol.heap;

import java.util.function.Consumer;

/**
 * A heap with plain stores: the application flushes them, or logs them in transactions first.
 * Stores that were never flushed reach the file when the heap is closed or the JVM ends.
 */
public final class Heap extends AnyHeap {
    private Heap(HeapFile file, HeapOptions options) {
        super(Kind.RAW, file, options);
    }

    /** Creates a heap in a folder, that grows up to the room of its file system. */
    public static synchronized Heap createHeap(String path) {
        return createHeap(path, HeapOptions.DEFAULT);
    }

    /** Creates a heap in a folder, that grows up to the limit of {@code options}. */
    public static synchronized Heap createHeap(String path, HeapOptions options) {
        return (Heap) HeapFile.createGrowable(
                path, Kind.RAW, options, file -> new Heap(file, options));
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized Heap createHeap(String path, long size) {
        return createHeap(path, size, HeapOptions.DEFAULT);
    }

    /** Creates a heap of {@code size} bytes in a new file, or up to that in a folder. */
    public static synchronized Heap createHeap(
            String path, long size, HeapOptions options) {
        return (Heap) HeapFile.createSized(
                path, size, Kind.RAW, options, file -> new Heap(file, options));
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized Heap openHeap(String path) {
        return openHeap(path, HeapOptions.DEFAULT);
    }

    /** Opens a heap; the same object if it is open already. */
    public static synchronized Heap openHeap(String path, HeapOptions options) {
        return (Heap) HeapFile.open(
                path, Kind.RAW, options, file -> new Heap(file, options));
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
    public static synchronized Heap getHeap(String path) {
        return openHeap(path);
    }

    /** Opens the heap at {@code path}, or creates one of {@code size} bytes if none is there. */
    public static synchronized Heap getHeap(String path, long size) {
        return exists(path) ? openHeap(path) : createHeap(path, size);
    }

    @Override
    public MemoryBlock allocateMemoryBlock(long size) {
        return allocateMemoryBlock(size, false);
    }

    @Override
    public MemoryBlock allocateMemoryBlock(long size, Consumer<Range> initializer) {
        return allocateMemoryBlock(size, false, initializer);
    }

    /** Allocates a regular block of zeros, in a transaction or at once. */
    public MemoryBlock allocateMemoryBlock(long size, boolean transactional) {
        return new MemoryBlock(this, allocate(size, false, transactional), size);
    }

    /** Allocates a regular block that {@code initializer} fills, in a transaction or at once. */
    public MemoryBlock allocateMemoryBlock(
            long size, boolean transactional, Consumer<Range> initializer) {
        requireInitializer(initializer);
        if (!transactional) {
            MemoryBlock block = allocateMemoryBlock(size, false);
            initialize(block, size, false, initializer);
            return block;
        }
        return Transaction.create(this, () -> {
            MemoryBlock block = allocateMemoryBlock(size, true);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public CompactMemoryBlock allocateCompactMemoryBlock(long size) {
        return allocateCompactMemoryBlock(size, false);
    }

    @Override
    public CompactMemoryBlock allocateCompactMemoryBlock(long size, Consumer<Range> initializer) {
        return allocateCompactMemoryBlock(size, false, initializer);
    }

    /** Allocates a compact block of zeros, in a transaction or at once. */
    public CompactMemoryBlock allocateCompactMemoryBlock(long size, boolean transactional) {
        return new CompactMemoryBlock(this, allocate(size, true, transactional), size);
    }

    /** Allocates a compact block that {@code initializer} fills, in a transaction or at once. */
    public CompactMemoryBlock allocateCompactMemoryBlock(
            long size, boolean transactional, Consumer<Range> initializer) {
        requireInitializer(initializer);
        if (!transactional) {
            CompactMemoryBlock block = allocateCompactMemoryBlock(size, false);
            initialize(block, size, false, initializer);
            return block;
        }
        return Transaction.create(this, () -> {
            CompactMemoryBlock block = allocateCompactMemoryBlock(size, true);
            initialize(block, size, true, initializer);
            return block;
        });
    }

    @Override
    public Accessor createAccessor() {
        requireOpen();
        return new Accessor(this);
    }

    @Override
    public CompactAccessor createCompactAccessor() {
        requireOpen();
        return new CompactAccessor(this);
    }

    @Override
    public MemoryBlock memoryBlockFromHandle(long handle) {
        return new MemoryBlock(this, handle);
    }

    @Override
    public CompactMemoryBlock compactMemoryBlockFromHandle(long handle) {
        return new CompactMemoryBlock(this, handle);
    }
}
