package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.NativeBlocks;
import io.entresol.heap.engine.Text;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * A persistent heap: one file of allocations, each named by its handle, a number that restarts do
 * not change; 0 names none. Methods are safe to call from several threads; blocks and accessors
 * belong to one thread at a time.
 */
public abstract class AnyHeap implements AutoCloseable {
    /** Bytes of the smallest heap. */
    public static final long MINIMUM_HEAP_SIZE = 8L << 20;

    /** Bytes before the first of a regular allocation, which hold its size. */
    static final long HEADER_BYTES = 8;
    /** Up to here there is a size class for each multiple of {@link #STEP_BYTES}. */
    private static final long STEPPED_BYTES = 128;
    private static final long STEP_BYTES = 8;
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int IDLE_LOGS = 64;

    final Kind kind;
    /** Read by every access: one that begins after the heap was closed is refused. */
    volatile boolean open = true;

    private final HeapFile file;
    private final long address;
    private final long base;
    private final HeapOptions options;
    private final Lifetimes lifetimes;
    private final Object arena = Memory.arena();
    private final ThreadLocal<Work> current = new ThreadLocal<>();
    private final AtomicReferenceArray<UndoLog> idle = new AtomicReferenceArray<>(IDLE_LOGS);
    /** Of a raw heap; null in others. */
    private final GoingOn going;
    final Uncollected cursors = new Uncollected();
    private final long firstHandle;
    private volatile long bytes;
    /** Made when somebody asks for it, so that others do not pay. */
    private volatile ReentrantReadWriteLock transactions;

    AnyHeap(Kind kind, HeapFile file, HeapOptions options) {
        this.kind = kind;
        this.file = file;
        this.options = options;
        this.address = file.address();
        this.base = Native.heapBase(address);
        this.bytes = Native.heapBytes(address);
        this.firstHandle = Native.heapFirst(address);
        this.going = kind == Kind.RAW ? new GoingOn(this) : null;
        this.lifetimes = options.strict ? new Lifetimes() : null;
        long opened = address;
        // Not when it is closed: other threads may be in the middle of an access.
        CLEANER.register(this, () -> {
            Native.heapRelease(opened);
            file.released();
        });
    }

    /** Whether a heap is at {@code path}: a file, or a folder that a growable heap is in. */
    public static boolean exists(String path) {
        if (path == null) {
            throw new IllegalArgumentException("the path of a heap must not be null");
        }
        return HeapFile.exists(path);
    }

    /** Removes the file of a heap that is not open; whether there was one. */
    public static boolean delete(String path) {
        return HeapFile.remove(path);
    }

    static int removePool(String path) {
        return HeapFile.remove(path) ? 0 : -1;
    }

    /** Bytes of the allocation that may be used, without the header of a regular one. */
    static long getUsableSize(MemoryAccessor accessor) {
        AnyHeap heap = accessor.heap();
        return Native.heapUsable(heap.address, accessor.handle()) - accessor.headerBytes();
    }

    /** Handles lie below this; it grows when a growable heap does. */
    public long size() {
        requireOpen();
        long now = Native.heapBytes(address);
        bytes = now;
        return now;
    }

    /** Bytes that the heap may grow to. */
    public long limit() {
        requireOpen();
        return Native.heapLimit(address);
    }

    /** The application's entry: 0 until it is set. */
    public long getRoot() {
        requireOpen();
        Work work = work();
        return work == null ? committedRoot() : work.root();
    }

    /** Sets the root, in the current transaction or one of its own. */
    public void setRoot(long handle) {
        requireOpen();
        Work work = work();
        if (work != null) {
            work.setRoot(handle);
        } else {
            checked(Native.heapSetRoot(address, handle));
        }
    }

    /** Runs {@code body}, in a transaction if the heap is transactional. */
    public void execute(Runnable body) {
        execute(() -> {
            body.run();
            return null;
        });
    }

    /** Runs {@code body}, in a transaction if the heap is transactional. */
    public <T> T execute(Supplier<T> body) {
        requireOpen();
        return kind == Kind.TRANSACTIONAL ? Transaction.create(this, body) : body.get();
    }

    /**
     * Gives allocations of {@code size} bytes a size class of their own, without waste; false
     * if there are no more such classes. The class stays with the heap.
     */
    public boolean registerAllocationSize(long size, boolean compact) {
        requireOpen();
        if (size <= 0) {
            return false;
        }
        long whole = compact ? size : size + HEADER_BYTES;
        if (whole <= STEPPED_BYTES) {
            return whole % STEP_BYTES == 0;
        }
        return checked(Native.heapRegister(address, whole)) != 0;
    }

    /** Allocates a regular block of zeros; its handle. */
    public long allocateMemory(long size) {
        return allocate(size, false, kind == Kind.TRANSACTIONAL);
    }

    /** Allocates a compact block of zeros; its handle. */
    public long allocateCompactMemory(long size) {
        return allocate(size, true, kind == Kind.TRANSACTIONAL);
    }

    /** Allocates a regular block of zeros. */
    public abstract AnyMemoryBlock allocateMemoryBlock(long size);

    /** Allocates a regular block that {@code initializer} fills. */
    public abstract AnyMemoryBlock allocateMemoryBlock(long size, Consumer<Range> initializer);

    /** Allocates a compact block of zeros. */
    public abstract AnyMemoryBlock allocateCompactMemoryBlock(long size);

    /** Allocates a compact block that {@code initializer} fills. */
    public abstract AnyMemoryBlock allocateCompactMemoryBlock(
            long size, Consumer<Range> initializer);

    /** An accessor of regular blocks, which names none yet. */
    public abstract AnyAccessor createAccessor();

    /** An accessor of compact blocks, which names none yet. */
    public abstract AnyAccessor createCompactAccessor();

    /** The regular block of that handle. */
    public abstract AnyMemoryBlock memoryBlockFromHandle(long handle);

    /** The compact block of that handle. */
    public abstract AnyMemoryBlock compactMemoryBlockFromHandle(long handle);

    /** Everything committed before is durable on return, whatever its level. */
    public void sync() {
        requireOpen();
        checked(Native.heapSync(address));
    }

    /** Lets the heap have {@code bytes} bytes, at most {@link #limit}. */
    public void grow(long bytes) {
        requireOpen();
        checked(Native.heapGrow(address, bytes));
    }

    /** Gives free room at the end back to the file system; bytes left. */
    public long shrink() {
        requireOpen();
        checked(Native.heapShrink(address));
        return size();
    }

    /** Writes what is committed to a new file that can be opened as a heap. */
    public void backup(String path) {
        requireOpen();
        try (Text text = new Text(path)) {
            checked(Native.heapBackup(address, text.address(), text.length()));
        }
    }

    /** What is wrong with the heap, in words; the empty string if nothing is. */
    public String check() {
        requireOpen();
        return Failure.text(checked(Native.heapCheck(address)));
    }

    /** What the medium holds when a commit returns, in words. */
    public String durability() {
        requireOpen();
        return Failure.text(checked(Native.heapDurability(address)));
    }

    /** Figures of the heap and its use since it was opened. */
    public HeapStatistics statistics() {
        requireOpen();
        return HeapStatistics.of(address);
    }

    /** Whether {@code handle} names an allocation. */
    public boolean isLive(long handle) {
        requireOpen();
        return handle > 0 && Native.heapIsLive(address, handle) == 1;
    }

    /** Whether every store is refused. */
    public final boolean isReadOnly() {
        return options.readOnly;
    }

    /**
     * A lock whose read side every transaction that begins after this call holds until its end. Who
     * holds the write side is alone with what is committed, but for changes that a map or a block
     * makes outside any transaction.
     */
    public final ReentrantReadWriteLock transactionLock() {
        requireOpen();
        synchronized (idle) {
            if (transactions == null) {
                transactions = new ReentrantReadWriteLock();
            }
            return transactions;
        }
    }

    /**
     * Runs one of the two when it is known what became of the thread's current transaction, or of
     * the inner one that it is in: {@code undone} after the stores were undone, {@code committed}
     * after the outermost commit. Outside a transaction {@code committed} runs at once. Neither may
     * use the transaction or throw.
     */
    public final void whenSettled(Runnable committed, Runnable undone) {
        Work work = work();
        if (work == null) {
            committed.run();
        } else {
            work.whenSettled(committed, undone);
        }
    }

    /**
     * Gives the handles of all live blocks, those of maps included, as they are while this runs.
     * {@code visit} may free the block it is given.
     */
    public final void forEachBlock(LongConsumer visit) {
        requireOpen();
        BlockList.forEach(this, checked(NativeBlocks.ofHeap(address)), visit);
    }

    /** Blocks that are freed while the guard is open keep their bytes until it is closed. */
    public ReadGuard readGuard() {
        requireOpen();
        return new ReadGuard(checked(Native.heapGuard(address)));
    }

    /**
     * Closes the heap: all stores reach the file, those included that were never flushed. Whatever
     * begins afterwards throws {@link IllegalStateException}; what other threads do meanwhile throws
     * or finds either the heap's bytes or zeros, and transactions of theirs are not committed. Does
     * nothing the second time. Throws and leaves the heap open while the system reads or writes a
     * buffer of it.
     */
    @Override
    public void close() {
        if (work() != null) {
            throw new IllegalStateException("the heap cannot be closed inside its transaction");
        }
        synchronized (this) {
            if (!open) {
                return;
            }
            Memory.close(arena);
            open = false;
        }
        file.close(this::keepStores);
    }

    /** Closes the heap and removes its file. */
    public void delete() {
        close();
        file.remove();
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + " " + file.path();
    }

    // What blocks, ranges and transactions need of their heap.

    final long address() {
        return address;
    }

    final long base() {
        return base;
    }

    /** No handle is lower. */
    final long firstHandle() {
        return firstHandle;
    }

    /** Bytes when it was last asked; {@link #size} asks. */
    final long knownBytes() {
        return bytes;
    }

    final Lifetimes lifetimes() {
        return lifetimes;
    }

    final void requireOpen() {
        if (!open) {
            throw new IllegalStateException(file.path() + ": the heap is closed");
        }
    }

    final void requireWritable() {
        if (options.readOnly) {
            throw new HeapException(file.path() + " is open for reading only");
        }
    }

    final Work work() {
        return current.get();
    }

    final Work requireWork(String what) {
        Work work = current.get();
        if (work == null) {
            throw new IllegalStateException(what + " needs a transaction");
        }
        return work;
    }

    final Work beginWork() {
        requireOpen();
        if (options.readOnly) {
            throw new TransactionException(file.path() + " is open for reading only");
        }
        UndoLog log = takeLog();
        Lock held = transactions == null ? null : transactions.readLock();
        if (held != null) {
            held.lock();
        }
        Work work = new Work(this, log, held);
        if (going != null) {
            going.begin(work);
        }
        current.set(work);
        return work;
    }

    /** Takes the thread's transaction away until {@link #resumeWork}; null if there is none. */
    final Work suspendWork() {
        Work work = current.get();
        current.remove();
        return work;
    }

    final void resumeWork(Work work) {
        if (work != null) {
            current.set(work);
        }
    }

    final void endWork(Work work) {
        current.remove();
        if (going != null) {
            going.end(work);
        }
        giveLog(work.log());
        work.settle();
    }

    /** An empty log; {@link #giveLog} takes it back. */
    final UndoLog takeLog() {
        int start = slot();
        UndoLog log = idle.getPlain(start);
        if (log != null && idle.compareAndSet(start, log, null)) {
            return log;
        }
        return new UndoLog();
    }

    final void giveLog(UndoLog log) {
        idle.setRelease(slot(), log);
    }

    /** Allocates; the handle. A regular block has its size in front. */
    final long allocate(long size, boolean compact, boolean transactional) {
        requireOpen();
        long header = compact ? 0 : size;
        long whole = compact ? size : size + HEADER_BYTES;
        if (size <= 0 || whole <= 0) {
            throw new HeapException("Failed to allocate memory of size " + size);
        }
        Work work = transactional ? work() : null;
        if (work != null) {
            return work.allocate(whole, header, size);
        }
        long handle = Native.heapAllocate(address, whole, header, Durability.DEFAULT.code());
        if (handle < 0 && cursors.reclaimAfter(handle)) {
            // Once: readers that go on by themselves close cursors all the time.
            requireOpen();
            handle = Native.heapAllocate(address, whole, header, Durability.DEFAULT.code());
        }
        if (handle < 0) {
            throw notAllocated(handle, size, compact);
        }
        return handle;
    }

    final void free(long handle, boolean transactional) {
        requireOpen();
        Work work = transactional ? work() : null;
        if (work != null) {
            work.free(handle);
            return;
        }
        long result = Native.heapFree(address, handle, Durability.DEFAULT.code());
        if (result < 0) {
            throw new HeapException(Failure.of(result).sentence());
        }
    }

    /** Runs {@code release} once: when {@code owner} is collected, or before, if it is cleaned. */
    static Cleaner.Cleanable attach(Object owner, Runnable release) {
        return CLEANER.register(owner, release);
    }

    /** The bytes at an address; the heap's memory stays until nobody has the buffer any more. */
    final ByteBuffer buffer(long from, int length) {
        ByteBuffer buffer = Memory.buffer(from, length, arena);
        CLEANER.register(buffer, () -> Reference.reachabilityFence(this));
        return kind == Kind.RAW && !isReadOnly() ? buffer : buffer.asReadOnlyBuffer();
    }

    /** The bytes at an address as a {@code MemorySegment}, which ends with the heap. */
    final Object segment(long from, long length) {
        Object segment = Memory.segment(from, length, arena);
        return kind == Kind.RAW && !isReadOnly() ? segment : Memory.readOnly(segment);
    }

    final void requireHandle(long handle) {
        requireOpen();
        if (handle < firstHandle || handle >= size()) {
            throw new IllegalArgumentException(handle + " is no handle: they lie between "
                    + firstHandle + " and " + size());
        }
    }

    final void requireInitializer(Consumer<Range> initializer) {
        if (initializer == null) {
            throw new IllegalArgumentException("the initializer of a block must not be null");
        }
    }

    /**
     * Lets {@code initializer} fill a new block, which then is logged or durable as a whole: one
     * that was not allocated in the current transaction is no part of it.
     */
    final void initialize(MemoryAccessor block, long size, boolean transactional,
            Consumer<Range> initializer) {
        long address = block.span(0, size);
        Range range = new Range(block, 0, size, address);
        Work work = transactional ? work() : null;
        if (work != null) {
            work.log().addBorn(address - base, size);
        }
        try {
            initializer.accept(range);
        } finally {
            range.end();
        }
        if (kind == Kind.PERSISTENT && work == null) {
            persist(address, size);
        }
    }

    /** Makes a range durable; what the current transaction logged of it waits for the commit. */
    final void persist(long from, long length) {
        Work work = work();
        if (work == null) {
            persistNow(from - base, length);
            return;
        }
        work.log().persistForeign(this, from - base, length);
    }

    /** At the end: makes durable what was never flushed; the native library's failure, or 0. */
    final long keepStores() {
        return going == null ? 0 : going.keepStores();
    }

    /** A change of a map, of which the end of the heap keeps no half. */
    final LongSupplier guarded(LongSupplier change) {
        return going == null ? change : going.guarded(change);
    }

    private void persistNow(long offset, long length) {
        checked(Native.heapPersist(address, offset, length, Durability.DEFAULT.code()));
    }

    final long committedRoot() {
        return Native.heapRoot(address);
    }

    /** {@code result} unless it is a failure. */
    final long checked(long result) {
        // Its memory must not be released under a native function.
        Reference.reachabilityFence(this);
        if (result < 0) {
            Failure failure = Failure.of(result);
            throw new HeapException(failure.sentence());
        }
        return result;
    }

    /**
     * The result of a change or view that {@code again} repeats as long as another transaction has
     * to end first.
     */
    final long awaited(long result, LongSupplier again) {
        long latest = cursors.reclaimAfter(result) ? again.getAsLong() : result;
        Patience patience = new Patience();
        while (latest < 0) {
            Failure failure = Failure.of(latest);
            if (failure.kind() == Failure.CIRCLE) {
                throw new ConflictException(failure.sentence());
            }
            if (failure.kind() != Failure.HELD) {
                throw new HeapException(failure.sentence());
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new HeapException(failure.sentence() + "; the wait for it was interrupted");
            }
            if (patience.isOver()) {
                throw new HeapException(failure.sentence() + ", and did not end within "
                        + Patience.LIMIT.toSeconds() + " s; abort this one and try again");
            }
            patience.pause();
            requireOpen();
            latest = again.getAsLong();
        }
        return latest;
    }

    final RuntimeException notAllocated(long result, long size, boolean compact) {
        Failure failure = Failure.of(result);
        String sentence = "Failed to allocate memory of size " + size + ": " + failure.sentence();
        return failure.kind() == Failure.FULL
                ? Defaults.full(this, compact, sentence) : new HeapException(sentence);
    }

    private static int slot() {
        long id = Thread.currentThread().getId();
        return (int) ((id * 0x9E3779B97F4A7C15L) >>> 58);
    }
}
