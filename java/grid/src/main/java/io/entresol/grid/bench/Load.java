package io.entresol.grid.bench;

import io.entresol.grid.GridException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Threads that put and get entries of one size; keys are numbers, and a value begins with its key's
 * number, so that a wrong one is noticed.
 *
 * @param threads number of threads, each with keys of its own unless it chooses among all keys
 * @param perThread operations of each thread
 * @param valueBytes length of each value
 * @param seed seed of values and choices
 * @param shown seconds between two lines about the running load; 0: no lines
 */
record Load(int threads, int perThread, int valueBytes, long seed, long shown) {
    /** What a thread does one after another. */
    private interface Work {
        void perform(Door.Connection connection, int thread, Round.Share share) throws IOException;
    }

    /** Each thread puts its keys in order. */
    Round write(Door door) {
        return run("write", door, (connection, thread, share) -> {
            byte[] value = value(thread);
            for (int at = 0; at < perThread; at++) {
                put(connection, (long) thread * perThread + at, value, share);
            }
        });
    }

    /** Each thread gets its keys in order. */
    Round read(Door door) {
        return run("read", door, (connection, thread, share) -> {
            for (int at = 0; at < perThread; at++) {
                get(connection, (long) thread * perThread + at, share);
            }
        });
    }

    /** Each thread takes any of the keys; so many percent of the operations are puts. */
    Round mix(Door door, long keys, int writes) {
        return run("mix", door, (connection, thread, share) -> {
            Random random = new Random(seed + thread);
            byte[] value = value(thread);
            for (int at = 0; at < perThread; at++) {
                long key = (long) (random.nextDouble() * keys);
                if (random.nextInt(100) < writes) {
                    put(connection, key, value, share);
                } else {
                    get(connection, key, share);
                }
            }
        });
    }

    private void put(Door.Connection connection, long key, byte[] value, Round.Share share)
            throws IOException {
        ByteBuffer.wrap(value).putLong(key);
        long start = System.nanoTime();
        connection.put(key(key), value);
        share.wrote(System.nanoTime() - start);
    }

    private void get(Door.Connection connection, long key, Round.Share share) throws IOException {
        long start = System.nanoTime();
        byte[] found = connection.get(key(key));
        share.read(System.nanoTime() - start);
        if (found == null || found.length != valueBytes
                || ByteBuffer.wrap(found).getLong() != key) {
            throw new GridException("key " + key + " has "
                    + (found == null ? "no value" : "a wrong value of " + found.length + " bytes")
                    + "; expected its own of " + valueBytes + " bytes");
        }
    }

    private Round run(String name, Door door, Work work) {
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try (Meter meter = Meter.show(name, shown)) {
            List<Callable<Round.Share>> calls = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int number = thread;
                calls.add(() -> {
                    try (Door.Connection connection = door.connect()) {
                        Round.Share share = new Round.Share(meter);
                        long start = System.nanoTime();
                        work.perform(connection, number, share);
                        return share.took(System.nanoTime() - start);
                    }
                });
            }
            long start = System.nanoTime();
            List<Round.Share> shares = new ArrayList<>();
            for (Future<Round.Share> share : executor.invokeAll(calls)) {
                shares.add(share.get());
            }
            return Round.of(shares, System.nanoTime() - start);
        } catch (ExecutionException failure) {
            throw new GridException("a thread of the load failed: "
                    + failure.getCause().getMessage(), failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GridException("the load was interrupted", interrupted);
        } finally {
            executor.shutdownNow();
        }
    }

    private byte[] value(int thread) {
        byte[] value = new byte[valueBytes];
        new Random(seed * 31 + thread).nextBytes(value);
        return value;
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }
}
