package io.entresol;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;

/**
 * Entries by their keys, of 1 byte to 64 KiB; values have up to 64 MiB. Methods whose names end in
 * {@code Async} never wait for the device; stages that depend on their outcome run in the executor
 * of the options. Operations on one key that overlap in time happen in any order, but a write comes
 * after every {@code clearAsync} that began before it. Thread-safe.
 */
public abstract class Entries {
    private static final int GET = 1;
    private static final int PUT = 2;
    private static final int REMOVE = 3;
    private static final int TOUCH = 4;
    private static final int CONTAINS = 5;

    final Engine engine;
    final long place;

    Entries(Engine engine, long place) {
        this.engine = engine;
        this.place = place;
    }

    /** The entry of a key, if there is one. */
    public final CompletionStage<Optional<Entry>> getAsync(byte[] key) {
        return engine.submit(row(key), GET).thenApply(outcome -> found(key, outcome));
    }

    /** The same; what follows the outcome runs in that executor. */
    public final CompletionStage<Optional<Entry>> getAsync(byte[] key, Executor executor) {
        return engine.submit(row(key), GET, executor).thenApply(outcome -> found(key, outcome));
    }

    /** The value of a key; null if there is none. */
    public final byte[] get(byte[] key) {
        Outcome outcome = engine.run(row(key), GET);
        return outcome.kind() == Outcome.FOUND ? outcome.value() : null;
    }

    /** The entry of a key, if there is one. */
    public final Optional<Entry> entry(byte[] key) {
        return found(key, engine.run(row(key), GET));
    }

    /** Puts an entry; its version, or nothing if the condition does not hold. */
    public final CompletionStage<Optional<Long>> putAsync(byte[] key, byte[] value,
            PutOptions options) {
        return engine.submit(row(key, value, options), PUT).thenApply(Entries::stored);
    }

    /** Puts what remains of a buffer, which may be used again on return; as above. */
    public final CompletionStage<Optional<Long>> putAsync(ByteBuffer key, ByteBuffer value,
            PutOptions options) {
        return engine.submit(row(key, value, options), PUT).thenApply(Entries::stored);
    }

    /** Puts what remains of buffers, one after another, as a value; as above. */
    public final CompletionStage<Optional<Long>> putAsync(ByteBuffer key, List<ByteBuffer> value,
            PutOptions options) {
        return engine.submit(row(key, value, options), PUT).thenApply(Entries::stored);
    }

    /** Puts an entry; its version. */
    public final CompletionStage<Long> putAsync(byte[] key, byte[] value) {
        return engine.submit(row(key, value, PutOptions.DEFAULT), PUT)
                .thenApply(Outcome::number);
    }

    /** Puts an entry; its version. */
    public final long put(byte[] key, byte[] value) {
        return engine.run(row(key, value, PutOptions.DEFAULT), PUT).number();
    }

    /** Puts an entry; its version, or nothing if the condition does not hold. */
    public final Optional<Long> put(byte[] key, byte[] value, PutOptions options) {
        return stored(engine.run(row(key, value, options), PUT));
    }

    /** Puts what remains of a buffer; as above. */
    public final Optional<Long> put(ByteBuffer key, ByteBuffer value, PutOptions options) {
        return stored(engine.run(row(key, value, options), PUT));
    }

    /** Removes an entry; whether there was one. */
    public final CompletionStage<Boolean> removeAsync(byte[] key) {
        return engine.submit(row(key), REMOVE)
                .thenApply(outcome -> outcome.kind() == Outcome.REMOVED);
    }

    /** Removes an entry; whether there was one. */
    public final boolean remove(byte[] key) {
        return engine.run(row(key), REMOVE).kind() == Outcome.REMOVED;
    }

    /** Removes an entry if it is of that version; whether it was. */
    public final CompletionStage<Boolean> removeAsync(byte[] key, long version) {
        Rows.Row row = row(key);
        row.set(10, 3);
        row.set(11, version);
        return engine.submit(row, REMOVE)
                .thenApply(outcome -> outcome.kind() == Outcome.REMOVED);
    }

    /** Whether there is an entry. */
    public final CompletionStage<Boolean> containsAsync(byte[] key) {
        return engine.submit(row(key), CONTAINS)
                .thenApply(outcome -> outcome.kind() == Outcome.FOUND);
    }

    /** Whether there is an entry. */
    public final boolean contains(byte[] key) {
        return engine.run(row(key), CONTAINS).kind() == Outcome.FOUND;
    }

    /**
     * Changes when an entry ends, in milliseconds since 1970, 0: never; whether there is one. It
     * has a new version then.
     */
    public final CompletionStage<Boolean> touchAsync(byte[] key, long expires) {
        return engine.submit(touchRow(key, expires), TOUCH)
                .thenApply(outcome -> outcome.kind() == Outcome.TOUCHED);
    }

    /** Changes when an entry ends, which makes it a new version of it; whether there is one. */
    public final boolean touch(byte[] key, long expires) {
        return engine.run(touchRow(key, expires), TOUCH).kind() == Outcome.TOUCHED;
    }

    /** How many entries there are, ended ones that nobody has found yet included. Reads nothing. */
    public abstract long count();

    /** Removes all entries: at once for every reader, durable when it is done. */
    public abstract CompletionStage<Void> clearAsync();

    /** Removes all entries: at once for every reader, durable on return. */
    public final void clear() {
        engine.await(clearAsync().toCompletableFuture());
    }

    /**
     * The entries, in no order, read as a subscriber asks for them; a subscriber each reads anew.
     * Those that are there from its beginning to its end come, those that change meanwhile may.
     */
    public final Flow.Publisher<Entry> scan() {
        return scan(Contents.ENTRIES);
    }

    /** The same, or their keys alone. */
    public abstract Flow.Publisher<Entry> scan(Contents contents);

    /** What a scan gives. */
    public enum Contents {
        /** Keys and values. */
        ENTRIES,
        /** Keys; the values are empty. */
        KEYS
    }

    /** Space in the low 16 bits, partition in the next. */
    static long place(int space, int partition) {
        if ((space | partition) >>> 16 != 0) {
            throw new IllegalArgumentException("space " + space + ", partition " + partition
                    + "; expected 0 to 65535 each");
        }
        return (long) partition << 16 | space;
    }

    /** A moment before 1970 would be read as one that never comes. */
    static void checkEnd(long at) {
        if (at < 0) {
            throw new IllegalArgumentException(
                    "an end at " + at + " ms; expected 0 or more, since 1970");
        }
    }

    final CompletionStage<Void> job(int job) {
        return engine.begin(job, place).thenApply(outcome -> null);
    }

    private Rows.Row row(byte[] key) {
        Rows.Row row = engine.row(key.length);
        row.set(3, place);
        row.append(4, key);
        return row;
    }

    private Rows.Row row(byte[] key, byte[] value, PutOptions options) {
        Rows.Row row = engine.row((long) key.length + value.length);
        row.append(4, key);
        row.append(6, value);
        return withOptions(row, options);
    }

    private Rows.Row row(ByteBuffer key, ByteBuffer value, PutOptions options) {
        return row(key, List.of(value), options);
    }

    private Rows.Row row(ByteBuffer key, List<ByteBuffer> value, PutOptions options) {
        long length = key.remaining();
        for (ByteBuffer part : value) {
            length += part.remaining();
        }
        Rows.Row row = engine.row(length);
        row.append(4, key);
        row.append(6, value);
        return withOptions(row, options);
    }

    private Rows.Row withOptions(Rows.Row row, PutOptions options) {
        row.set(3, place);
        row.set(8, options.expires);
        row.set(9, options.label | options.idleSeconds << 32);
        row.set(10, options.condition);
        row.set(11, options.version);
        row.set(12, options.level);
        row.set(13, options.period);
        return row;
    }

    private Rows.Row touchRow(byte[] key, long expires) {
        checkEnd(expires);
        Rows.Row row = row(key);
        row.set(8, expires);
        return row;
    }

    private static Optional<Entry> found(byte[] key, Outcome outcome) {
        return outcome.kind() == Outcome.FOUND
                ? Optional.of(new Entry(key, outcome.value(), outcome.number(), outcome.label(),
                        outcome.expires()))
                : Optional.empty();
    }

    private static Optional<Long> stored(Outcome outcome) {
        return outcome.kind() == Outcome.STORED
                ? Optional.of(outcome.number())
                : Optional.empty();
    }
}
