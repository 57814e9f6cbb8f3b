package io.entresol.compare.cassandra;

import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.MoreExecutors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** Statements of one client to one node, many under way at a time. */
final class Load {
    private final Rows rows;
    private final Session session;
    private final int inFlight;
    private final Semaphore free;
    private final PreparedStatement read;
    private final PreparedStatement insert;
    private final List<PreparedStatement> updates = new ArrayList<>();
    private final SplittableRandom random = new SplittableRandom(42);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    /** Each write has a value of its own. */
    private long version;

    Load(Rows rows, Session session, int inFlight) {
        this.rows = rows;
        this.session = session;
        this.inFlight = inFlight;
        free = new Semaphore(inFlight);
        String table = Rows.KEYSPACE + "." + Rows.TABLE;
        read = session.prepare("SELECT c0, c1, c2, c3 FROM " + table + rows.where());
        String keys = rows.clustered() == 0 ? "k" : "k, t";
        insert = session.prepare("INSERT INTO " + table + " (c0, c1, c2, c3, " + keys
                + ") VALUES (?, ?, ?, ?, " + keys.replaceAll("[kt]", "?") + ")");
        for (int column = 0; column < Rows.COLUMNS; column++) {
            updates.add(session.prepare(
                    "UPDATE " + table + " SET c" + column + " = ?" + rows.where()));
        }
    }

    /** Writes all rows, in an order of their numbers, which is one of no meaning to nodes. */
    void insertAll() {
        for (int row = 0; row < rows.count(); row++) {
            send(insert(row), null, null);
        }
        await();
    }

    /** Writes a column of all rows. */
    void updateAll(int column) {
        version++;
        for (int row = 0; row < rows.count(); row++) {
            BoundStatement update = updates.get(column).bind()
                    .setBytesUnsafe(0, rows.value(row, column, version));
            send(named(update, 1, row), null, null);
        }
        await();
    }

    /** Overwrites random rows, all alike; the bytes of their keys and values. */
    long overwrite(long count) {
        long bytes = 0;
        for (long turn = 0; turn < count; turn++) {
            int row = random.nextInt(rows.count());
            bytes += rows.bytes(row);
            send(insert(row), null, null);
        }
        await();
        return bytes;
    }

    /** Reads and overwrites random rows as fast as they are answered; how many. */
    long play(double seconds, int readsOfHundred, Histogram reads) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long count = 0;
        while (System.nanoTime() < end) {
            int row = random.nextInt(rows.count());
            boolean reading = random.nextInt(100) < readsOfHundred;
            send(reading ? read(row) : insert(row), reading ? row : null,
                    reading ? reads : null);
            count++;
        }
        await();
        return count;
    }

    /**
     * Reads and overwrites at a rate, whether the node is ready or not: what is asked late has
     * waited since its moment.
     */
    void pace(double seconds, int readsASecond, Histogram reads) {
        long begin = System.nanoTime();
        long count = (long) (seconds * readsASecond);
        long gap = 1_000_000_000L / readsASecond;
        for (long turn = 0; turn < count; turn++) {
            long due = begin + turn * gap;
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            int row = random.nextInt(rows.count());
            sendAt(due, read(row), row, reads);
            send(insert(random.nextInt(rows.count())), null, null);
        }
        await();
    }

    private BoundStatement insert(int row) {
        version++;
        BoundStatement statement = insert.bind();
        for (int column = 0; column < Rows.COLUMNS; column++) {
            statement.setBytesUnsafe(column, rows.value(row, column, version));
        }
        return named(statement, Rows.COLUMNS, row);
    }

    private BoundStatement read(int row) {
        return named(read.bind(), 0, row);
    }

    private BoundStatement named(BoundStatement statement, int at, int row) {
        statement.setString(at, rows.key(row));
        if (rows.clustered() > 0) {
            statement.setInt(at + 1, rows.clustering(row));
        }
        return statement;
    }

    private void send(BoundStatement statement, Integer row, Histogram latencies) {
        free.acquireUninterruptibly();
        begin(System.nanoTime(), statement, row, latencies);
    }

    private void sendAt(long due, BoundStatement statement, Integer row, Histogram latencies) {
        free.acquireUninterruptibly();
        begin(due, statement, row, latencies);
    }

    private void begin(long since, BoundStatement statement, Integer row, Histogram latencies) {
        if (failure.get() != null) {
            throw new IllegalStateException("a statement failed", failure.get());
        }
        Futures.addCallback(session.executeAsync(statement), new FutureCallback<ResultSet>() {
            @Override
            public void onSuccess(ResultSet result) {
                try {
                    if (row != null) {
                        check(row, result.one());
                    }
                    if (latencies != null) {
                        latencies.recordValue(Math.max(1, (System.nanoTime() - since) / 1000));
                    }
                } catch (RuntimeException wrong) {
                    failure.compareAndSet(null, wrong);
                }
                free.release();
            }

            @Override
            public void onFailure(Throwable refused) {
                failure.compareAndSet(null, refused);
                free.release();
            }
        }, MoreExecutors.directExecutor());
    }

    private void check(int number, Row row) {
        if (row == null) {
            throw new IllegalStateException("row " + number + " is absent");
        }
        for (int column = 0; column < Rows.COLUMNS; column++) {
            rows.check(number, column, row.getBytesUnsafe(column));
        }
    }

    private void await() {
        free.acquireUninterruptibly(inFlight);
        free.release(inFlight);
        if (failure.get() != null) {
            throw new IllegalStateException("a statement failed", failure.get());
        }
    }

    static Histogram latencies() {
        return new ConcurrentHistogram(100_000_000, 3);
    }

    static double median(List<Double> values) {
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return Arrays.stream(sorted).skip(sorted.length / 2).findFirst().orElse(Double.NaN);
    }
}
