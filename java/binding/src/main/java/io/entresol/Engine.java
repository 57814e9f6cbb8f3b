package io.entresol;

import io.entresol.Rows.Row;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.NativeStore;
import io.entresol.heap.engine.Text;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * An open native store and the thread that reaps outcomes. Values in memory are answered in the
 * call. Reads and syncs complete a future later, in the executor, so that the work that follows one
 * outcome does not delay other outcomes.
 *
 * <p>The address is released once nothing refers to the engine: calls during and after a close find
 * a store that refuses, and never freed memory.
 */
final class Engine {
    private static final Cleaner CLEANER = Cleaner.create();
    /** Added to operations that may wait for the device in the call. */
    private static final int WAITS = 16;

    private final long store;
    private final Executor executor;
    private final LongSupplier clock;
    private final Rows rows;
    private final AtomicLong tokens = new AtomicLong();
    /** By token who waits, or what became of it, whichever came first. */
    private final ConcurrentHashMap<Long, Object> meeting = new ConcurrentHashMap<>();
    private final Thread reaper;
    private final Tables tables = new Tables(this);
    /** Held by who closes, so that others return once it is done. */
    private final ReentrantLock closing = new ReentrantLock();
    private boolean closed;
    /** Why outcomes are reaped no more, if that is so before the store was closed. */
    private volatile StoreException broken;

    /** Who waits for an outcome, and where it is told. */
    private record Waiting(CompletableFuture<Outcome> future, Executor executor) {
        void tell(Outcome outcome) {
            if (executor == null) {
                finish(outcome);
                return;
            }
            try {
                executor.execute(() -> finish(outcome));
            } catch (RuntimeException | Error refused) {
                // An executor that was shut down, or has no thread: better here than never.
                finish(outcome);
            }
        }

        private void finish(Outcome outcome) {
            if (outcome.kind() == Outcome.FAILED) {
                future.completeExceptionally(outcome.failure());
            } else {
                future.complete(outcome);
            }
        }
    }

    private Engine(long store, Rows rows, StoreOptions options) {
        this.store = store;
        this.rows = rows;
        executor = options.executor;
        clock = options.clock;
        reaper = new Thread(this::reap, "entresol outcomes");
        reaper.setDaemon(true);
    }

    static Engine open(StoreOptions options) {
        long store;
        try (Text text = new Text(options.text())) {
            store = StoreException.checked(NativeStore.open(text.address(), text.length()));
        }
        Rows rows = new Rows();
        Engine engine = new Engine(store, rows, options);
        CLEANER.register(engine, () -> {
            NativeStore.release(store);
            rows.close();
        });
        engine.reaper.start();
        return engine;
    }

    /** The native store, which is there as long as the engine is reachable. */
    long address() {
        return store;
    }

    /** What ordered tables of the store share. */
    Tables tables() {
        return tables;
    }

    /** Memory for a request with so many bytes of key and value. */
    Row row(long length) {
        return rows.take(length);
    }

    /** Begins the request in {@code row}, and takes the row back. What follows runs anywhere. */
    CompletableFuture<Outcome> submit(Row row, int operation) {
        return submit(row, operation, executor);
    }

    /** The same, and waits for the outcome: gets read the device in the caller's thread. */
    Outcome run(Row row, int operation) {
        return await(submit(row, Callers.mayWait() ? operation | WAITS : operation, null));
    }

    /** Begins a job. */
    CompletableFuture<Outcome> begin(int job, long place) {
        long token = tokens.incrementAndGet();
        try {
            StoreException.checked(NativeStore.begin(store, token, job, place));
        } catch (StoreException refused) {
            return CompletableFuture.failedFuture(refused);
        } finally {
            Reference.reachabilityFence(this);
        }
        return waiting(token, executor);
    }

    /** Opens a scan; its address. */
    long scan(int space, int[] partitions, boolean keysOnly) {
        int count = partitions == null ? -1 : partitions.length;
        long bytes = Math.max(8, 2L * Math.max(count, 0));
        long numbers = StoreException.checked(Native.bufferAllocate(bytes));
        try {
            for (int index = 0; index < count; index++) {
                Memory.putShort(numbers + 2L * index, (short) partitions[index]);
            }
            return StoreException.checked(
                    NativeStore.scanOpen(store, space, numbers, count, keysOnly ? 1 : 0));
        } finally {
            Native.bufferFree(numbers, bytes);
            Reference.reachabilityFence(this);
        }
    }

    /** Begins to read the next page of a scan. */
    CompletableFuture<Outcome> page(long scan, int limit) {
        long token = tokens.incrementAndGet();
        try {
            StoreException.checked(
                    NativeStore.scanNext(store, scan, token, limit, clock.getAsLong()));
        } finally {
            Reference.reachabilityFence(this);
        }
        return waiting(token, executor);
    }

    long count(long place, boolean whole) {
        try {
            return StoreException.checked(NativeStore.count(store, place, whole ? 1 : 0));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    StoreStatistics statistics() {
        try {
            long text = StoreException.checked(NativeStore.statistics(store));
            return new StoreStatistics(io.entresol.heap.engine.Failure.text(text));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    Optional<String> segments(int groups) {
        try {
            long text = StoreException.checked(NativeStore.segments(store, groups));
            return text == 0 ? Optional.empty()
                    : Optional.of(io.entresol.heap.engine.Failure.text(text));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Waits for an outcome, whose failure is thrown. */
    <T> T await(CompletableFuture<T> future) {
        if (Thread.currentThread() == reaper && !future.isDone()) {
            throw new IllegalStateException("a blocking call in the thread that would end it: give"
                    + " the store an executor other than one that runs in the caller's thread");
        }
        try {
            return future.join();
        } catch (CompletionException failure) {
            if (failure.getCause() instanceof StoreException cause) {
                cause.addSuppressed(new Throwable("waited for here"));
                throw cause;
            }
            throw failure;
        }
    }

    /** Finishes what was begun, and closes. Whoever finds it being closed waits until it is. */
    void close() {
        closing.lock();
        try {
            if (!closed) {
                closed = true;
                StoreException.checked(NativeStore.close(store));
            }
        } finally {
            closing.unlock();
            Reference.reachabilityFence(this);
        }
    }

    /** The same; what follows runs in that executor; if it is null, in the thread that reaps. */
    CompletableFuture<Outcome> submit(Row row, int operation, Executor executor) {
        long token = tokens.incrementAndGet();
        boolean answered;
        Outcome outcome = null;
        try {
            row.set(0, operation);
            row.set(1, token);
            row.set(2, clock.getAsLong());
            long place = row.outcome();
            StoreException.checked(NativeStore.submit(store, row.address(), 1));
            answered = row.isAnswered();
            if (answered) {
                outcome = Outcome.read(place, List.of());
            }
        } finally {
            rows.give(row);
            Reference.reachabilityFence(this);
        }
        if (!answered) {
            return waiting(token, executor);
        }
        return outcome.kind() == Outcome.FAILED
                ? CompletableFuture.failedFuture(outcome.failure())
                : CompletableFuture.completedFuture(outcome);
    }

    private CompletableFuture<Outcome> waiting(long token, Executor executor) {
        CompletableFuture<Outcome> future = new CompletableFuture<>();
        Waiting waiting = new Waiting(future, executor);
        Object early = meeting.putIfAbsent(token, waiting);
        if (early != null) {
            meeting.remove(token);
            waiting.tell((Outcome) early);
        } else if (broken != null) {
            future.completeExceptionally(broken);
        }
        return future;
    }

    private void reap() {
        long out = Native.bufferAllocate(2 * Long.BYTES);
        Page page = new Page();
        try {
            while (true) {
                long records = StoreException.checked(NativeStore.reap(store, out));
                if (records == 0) {
                    end(new StoreException(StoreException.Kind.POISONED, "the store was closed"
                            + " before it told what became of this: open it again to see"));
                    return;
                }
                long at = Memory.getLong(out);
                for (long left = records; left > 0; left--) {
                    Outcome outcome = page.read(at);
                    if (outcome != null) {
                        meet(Outcome.token(at), outcome);
                    }
                    at += Outcome.bytes(at);
                }
            }
        } catch (Throwable failure) {
            end(failure);
        } finally {
            Native.bufferFree(out, 2 * Long.BYTES);
            Reference.reachabilityFence(this);
        }
    }

    /** What is reaped, until all of an outcome is there: entries of a page come before its end. */
    private static final class Page {
        private List<Entry> entries = new ArrayList<>();
        private Outcome failed;

        /**
         * The outcome that the record at an address ends; null if it is one of several. An answer
         * that Java has no room for fails alone: others wait for theirs.
         */
        Outcome read(long at) {
            boolean ends = Outcome.kind(at) != Outcome.ENTRY;
            Outcome outcome = null;
            try {
                outcome = failed == null ? Outcome.read(at, entries) : null;
                if (outcome != null && !ends) {
                    entries.add(outcome.entry());
                }
            } catch (OutOfMemoryError full) {
                entries = new ArrayList<>();
                failed = Outcome.withoutRoom(full);
            }
            if (!ends) {
                return null;
            }
            outcome = failed == null ? outcome : failed;
            failed = null;
            entries = entries.isEmpty() ? entries : new ArrayList<>();
            return outcome;
        }
    }

    /** Outcomes are reaped no more: nobody is to wait for one. */
    private void end(Throwable failure) {
        StoreException told = failure instanceof StoreException known ? known
                : StoreException.defect("outcomes of the store are told no more, since one could"
                        + " not be: " + failure + "; close the store and open it again", failure);
        broken = told;
        meeting.values().forEach(waiting -> {
            if (waiting instanceof Waiting someone) {
                someone.future().completeExceptionally(told);
            }
        });
    }

    private void meet(long token, Outcome outcome) {
        Object waiting = meeting.putIfAbsent(token, outcome);
        if (waiting != null) {
            meeting.remove(token);
            ((Waiting) waiting).tell(outcome);
        }
    }
}
