package io.entresol.heap.engine;

import java.lang.invoke.MethodHandle;

/**
 * The native library's flash stores; as {@link Native}. Requests and outcomes are rows of words in
 * native memory, which {@code entresol.h} draws.
 */
public final class NativeStore {
    private static final boolean FFM = "ffm".equals(Native.path());

    private static final MethodHandle STORE_OPEN = function("entresol_store_open", 2);
    private static final MethodHandle STORE_SUBMIT = function("entresol_store_submit", 3);
    private static final MethodHandle STORE_REAP = function("entresol_store_reap", 2);
    private static final MethodHandle STORE_BEGIN = function("entresol_store_begin", 4);
    private static final MethodHandle STORE_COUNT = function("entresol_store_count", 3);
    private static final MethodHandle STORE_STATISTICS = function("entresol_store_statistics", 1);
    private static final MethodHandle STORE_CLOSE = function("entresol_store_close", 1);
    private static final MethodHandle STORE_RELEASE = function("entresol_store_release", 1);
    private static final MethodHandle STORE_SWEEP = function("entresol_store_sweep", 2);
    private static final MethodHandle SCAN_OPEN = function("entresol_scan_open", 5);
    private static final MethodHandle SCAN_NEXT = function("entresol_scan_next", 5);
    private static final MethodHandle SCAN_CLOSE = function("entresol_scan_close", 1);

    private NativeStore() {
    }

    /** Opens a store, or makes it, as lines of {@code name=value} say; its address. */
    public static long open(long options, long length) {
        return FFM ? Ffm.call(STORE_OPEN, options, length) : Jni.storeOpen(options, length);
    }

    /** Begins requests; how many were answered at once, which the first word of each tells. */
    public static long submit(long store, long requests, long count) {
        return FFM
                ? Ffm.call(STORE_SUBMIT, store, requests, count)
                : Jni.storeSubmit(store, requests, count);
    }

    /** Waits for outcomes; how many, 0 once closed. Address and bytes go to {@code out}. */
    public static long reap(long store, long out) {
        return FFM ? Ffm.call(STORE_REAP, store, out) : Jni.storeReap(store, out);
    }

    /** Begins a job: 1 a sync, 2 dropping a partition, 3 dropping a space. */
    public static long begin(long store, long token, long job, long argument) {
        return FFM
                ? Ffm.call(STORE_BEGIN, store, token, job, argument)
                : Jni.storeBegin(store, token, job, argument);
    }

    /** Entries of a partition, or of the whole space if {@code whole} is not 0. */
    public static long count(long store, long place, long whole) {
        return FFM
                ? Ffm.call(STORE_COUNT, store, place, whole)
                : Jni.storeCount(store, place, whole);
    }

    /** Text: figures as JSON. */
    public static long statistics(long store) {
        return FFM ? Ffm.call(STORE_STATISTICS, store) : Jni.storeStatistics(store);
    }

    /** Closes a store once all that was begun is finished. */
    public static long close(long store) {
        return FFM ? Ffm.call(STORE_CLOSE, store) : Jni.storeClose(store);
    }

    /** Releases a store's address. */
    public static long release(long store) {
        return FFM ? Ffm.call(STORE_RELEASE, store) : Jni.storeRelease(store);
    }

    /** Removes write buffers of stores whose files in the folder are gone; how many files. */
    public static long sweep(long folder, long length) {
        return FFM ? Ffm.call(STORE_SWEEP, folder, length) : Jni.storeSweep(folder, length);
    }

    /** A scan of so many partitions, of all if {@code count} is below 0; its address. */
    public static long scanOpen(long store, long space, long partitions, long count,
            long keysOnly) {
        return FFM
                ? Ffm.call(SCAN_OPEN, store, space, partitions, count, keysOnly)
                : Jni.scanOpen(store, space, partitions, count, keysOnly);
    }

    /** Begins reading about {@code limit} entries. */
    public static long scanNext(long store, long scan, long token, long limit, long now) {
        return FFM
                ? Ffm.call(SCAN_NEXT, store, scan, token, limit, now)
                : Jni.scanNext(store, scan, token, limit, now);
    }

    /** Releases a scan. */
    public static long scanClose(long scan) {
        return FFM ? Ffm.call(SCAN_CLOSE, scan) : Jni.scanClose(scan);
    }

    private static MethodHandle function(String name, int longs) {
        return FFM ? Ffm.function(name, longs) : null;
    }
}
