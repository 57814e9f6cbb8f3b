package io.entresol.heap.engine;

/**
 * The native library's flash stores; as {@link Native}. Requests and outcomes are rows of words in
 * native memory, which {@code entresol.h} draws.
 */
public final class NativeStore {
    private NativeStore() {
    }

    /** Opens a store, or makes it, as lines of {@code name=value} say; its address. */
    public static long open(long options, long length) {
        return Jni.storeOpen(options, length);
    }

    /** Begins requests; how many were answered at once, which the first word of each tells. */
    public static long submit(long store, long requests, long count) {
        return Jni.storeSubmit(store, requests, count);
    }

    /** Waits for outcomes; how many, 0 once closed. Address and bytes go to {@code out}. */
    public static long reap(long store, long out) {
        return Jni.storeReap(store, out);
    }

    /** Begins a job: 1 a sync, 2 dropping a partition, 3 dropping a space. */
    public static long begin(long store, long token, long job, long argument) {
        return Jni.storeBegin(store, token, job, argument);
    }

    /** Entries of a partition, or of the whole space if {@code whole} is not 0. */
    public static long count(long store, long place, long whole) {
        return Jni.storeCount(store, place, whole);
    }

    /** Text: figures as JSON. */
    public static long statistics(long store) {
        return Jni.storeStatistics(store);
    }

    /** Closes a store once all that was begun is finished. */
    public static long close(long store) {
        return Jni.storeClose(store);
    }

    /** Releases a store's address. */
    public static long release(long store) {
        return Jni.storeRelease(store);
    }

    /** Removes write buffers of stores whose files in the folder are gone; how many files. */
    public static long sweep(long folder, long length) {
        return Jni.storeSweep(folder, length);
    }

    /** A scan of so many partitions, of all if {@code count} is below 0; its address. */
    public static long scanOpen(long store, long space, long partitions, long count,
            long keysOnly) {
        return Jni.scanOpen(store, space, partitions, count, keysOnly);
    }

    /** Begins reading about {@code limit} entries. */
    public static long scanNext(long store, long scan, long token, long limit, long now) {
        return Jni.scanNext(store, scan, token, limit, now);
    }

    /** Releases a scan. */
    public static long scanClose(long scan) {
        return Jni.scanClose(scan);
    }
}
