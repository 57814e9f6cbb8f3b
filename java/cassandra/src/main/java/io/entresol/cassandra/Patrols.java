package io.entresol.cassandra;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Walks over all tables of a store, one after the other and around again, at a steady rate, in a
 * thread of its own. Thread-safe.
 */
final class Patrols implements AutoCloseable {
    private static final Logger LOGGER = LoggerFactory.getLogger(Patrols.class);
    private static final long REST_MILLIS = TimeUnit.MINUTES.toMillis(1);
    private static final long CLOSE_MILLIS = TimeUnit.SECONDS.toMillis(30);
    private static final long MARK_MILLIS = TimeUnit.SECONDS.toMillis(10);
    /** A rest is not worth it for less. */
    private static final int STRIDE_BYTES = 1 << 20;

    private final long bytesPerSecond;
    private final Set<EntresolMemtable> memtables = ConcurrentHashMap.newKeySet();
    private final Thread thread;
    private final Runnable mark;
    private long walked;
    private long marked = System.nanoTime();

    /**
     * @param mark is called every ten seconds
     */
    Patrols(long bytesPerSecond, Runnable mark) {
        this.mark = mark;
        this.bytesPerSecond = bytesPerSecond;
        thread = new Thread(this::run, "entresol patrol");
        thread.setDaemon(true);
        thread.start();
    }

    void add(EntresolMemtable memtable) {
        memtables.add(memtable);
    }

    void remove(EntresolMemtable memtable) {
        memtables.remove(memtable);
    }

    Set<EntresolMemtable> memtables() {
        return memtables;
    }

    @Override
    public void close() {
        thread.interrupt();
        try {
            thread.join(CLOSE_MILLIS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** The walk was called off. */
    private static final class CalledOff extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    private void run() {
        try {
            while (true) {
                rest(REST_MILLIS);
                memtables.forEach(this::tend);
            }
        } catch (CalledOff closed) {
            // The store is about to close.
        }
    }

    private void tend(EntresolMemtable memtable) {
        try {
            if (memtable.endIfOrphaned()) {
                return;
            }
            long parts = new Patrol(memtable, memtable.purge(), this::pace).walk();
            if (parts > 0) {
                LOGGER.info("Purging in {} rows and heads of {}", parts, memtable.metadata());
            }
        } catch (CalledOff closed) {
            throw closed;
        } catch (RuntimeException failed) {
            if (memtables.contains(memtable)) {
                LOGGER.warn("The patrol left {}: it goes on with other tables", memtable.metadata(),
                        failed);
            }
        }
    }

    private void pace(long bytes) {
        walked += bytes;
        if (walked >= STRIDE_BYTES) {
            rest(walked * 1000 / bytesPerSecond);
            walked = 0;
        }
    }

    private void mark() {
        long now = System.nanoTime();
        if (now - marked >= TimeUnit.MILLISECONDS.toNanos(MARK_MILLIS)) {
            marked = now;
            try {
                mark.run();
            } catch (RuntimeException failed) {
                LOGGER.warn("What is done now and then failed, and is tried again", failed);
            }
        }
    }

    private void rest(long millis) {
        try {
            for (long left = millis; left > 0; left -= MARK_MILLIS) {
                Thread.sleep(Math.min(left, MARK_MILLIS));
                mark();
            }
        } catch (InterruptedException closed) {
            throw new CalledOff();
        }
    }
}
