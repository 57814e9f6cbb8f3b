package io.entresol;

import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/** How a store or cache is opened; immutable, each method gives a changed copy. */
public final class StoreOptions {
    private final Map<String, String> lines;
    final Executor executor;
    final LongSupplier clock;

    private StoreOptions(Map<String, String> lines, Executor executor, LongSupplier clock) {
        this.lines = lines;
        this.executor = executor;
        this.clock = clock;
    }

    /**
     * On a file or block device; a file is made if {@link #capacity} is given. Its path must not
     * have what means something else in a list of devices: a comma, <code>{n}</code>, or blanks at
     * its ends.
     */
    public static StoreOptions on(Path device) {
        String path = device.toString();
        if (path.contains(",") || path.contains("{n}") || !path.strip().equals(path)) {
            throw new IllegalArgumentException(path + ": ',' stands between devices, '{n}' for a"
                    + " number, and blanks at the ends are ignored; choose a path without them");
        }
        return onDevices(path);
    }

    /** On the first that exists of several devices, with commas between. */
    public static StoreOptions onDevices(String devices) {
        return new StoreOptions(Map.of(), ForkJoinPool.commonPool(), () -> 0)
                .with("devices", devices);
    }

    /** All devices are used, as a stripe. */
    public StoreOptions striped() {
        return with("selection", "stripe");
    }

    /** The number that stands for {@code {n}} in the names of devices. */
    public StoreOptions instance(int number) {
        return with("instance", number);
    }

    /** Bytes of a file that is made; a store that is there grows to so many, and never shrinks. */
    public StoreOptions capacity(long bytes) {
        return with("capacity", bytes);
    }

    /** One cap for index, write buffers and cached entries, in bytes. */
    public StoreOptions memory(long bytes) {
        return with("memory", bytes);
    }

    /** Bytes of cached entries at most; 0: none are cached. Else what the memory leaves over. */
    public StoreOptions cached(long bytes) {
        return with("cache", bytes);
    }

    /** What an acknowledged write survives. */
    public StoreOptions durability(Durability level) {
        return with("durability", level);
    }

    /** Writes are answered at once, and reach their durability soon after. */
    public StoreOptions writeBehind() {
        return with("write-mode", "behind");
    }

    /** How values are compressed. */
    public StoreOptions compression(Compression compression) {
        return with("compression", compression.name().toLowerCase(java.util.Locale.ROOT));
    }

    /** Values are encrypted with this key of 32 bytes; for the life of the store. */
    public StoreOptions encryptionKey(byte[] key) {
        return with("encryption-key", HexFormat.of().formatHex(key));
    }

    /** Logs side by side, each with a lock and write buffers; for the life of the store. */
    public StoreOptions shards(int count) {
        return with("shards", count);
    }

    /** Bytes of a segment, a power of two from 64 KiB to 8 MiB; for the life of the store. */
    public StoreOptions segment(int bytes) {
        return with("segment", bytes);
    }

    /**
     * The store has ordered tables, whose journal takes so many bytes of the device, at most a
     * quarter; 64 MiB suit most. Give it at every opening of such a store. Not for caches.
     */
    public StoreOptions orderedTables(long journalBytes) {
        return with("journal", journalBytes);
    }

    /**
     * Bytes of changes of ordered tables that wait in memory for a merge, at most; else 32 MiB. More
     * of them means fewer bytes written: five percent of the rows are a good share.
     */
    public StoreOptions waitingChanges(long bytes) {
        return with("tables-waiting", bytes);
    }

    /**
     * Bits of memory for each row of ordered tables, up to 32, by which gets of keys that have no row
     * read nothing. With 10 about one such get in a hundred reads; 0, unless given, is for none.
     */
    public StoreOptions absentKeyBits(int bits) {
        return with("tables-filter-bits", bits);
    }

    /** A folder in memory for the write buffers that outlive the process. */
    public StoreOptions bufferDirectory(Path folder) {
        return with("buffer-directory", folder);
    }

    /** A store is made over whatever the device holds. */
    public StoreOptions reformat() {
        return with("mode", "reformat");
    }

    /** The store that is there is opened, and nothing is written. */
    public StoreOptions readOnly() {
        return with("mode", "read-only");
    }

    /** A cache writes so many bytes to the device a second at most, 0 for no limit; stores fail to open. */
    public StoreOptions writeBudget(long bytesPerSecond) {
        return with("write-budget", bytesPerSecond);
    }

    /** Where what follows an outcome runs; else in the common pool. */
    public StoreOptions executor(Executor executor) {
        return new StoreOptions(lines, executor, clock);
    }

    /** What tells the time, in milliseconds since 1970; else the system's clock. */
    public StoreOptions clock(LongSupplier clock) {
        return new StoreOptions(lines, executor, clock);
    }

    /** As the native library reads them. */
    String text() {
        return lines.entrySet().stream()
                .map(line -> line.getKey() + "=" + line.getValue())
                .collect(Collectors.joining("\n"));
    }

    StoreOptions with(String name, Object value) {
        String text = value.toString();
        if (text.indexOf('\n') >= 0) {
            throw new IllegalArgumentException(
                    "option " + name + ": expected one line, found '" + text + "'");
        }
        Map<String, String> changed = new LinkedHashMap<>(lines);
        changed.put(name, text);
        return new StoreOptions(changed, executor, clock);
    }
}
