package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.Text;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * The file of an open heap, and all such files of this process by their paths, so that a second
 * open gives the same heap. A path is a file, a folder with the file of a growable heap, or a list
 * of parts in the form of PMDK. Such parts are one growable file here, in place of the first part.
 */
final class HeapFile {
    /** A growable heap's file in its folder. */
    static final String IN_FOLDER = "heap.entresol";

    private static final String DEVICES = "/dev/dax";
    private static final long GROWABLE_FIRST = 32L << 20;
    private static final ConcurrentHashMap<String, AnyHeap> OPEN = new ConcurrentHashMap<>();
    /** Heaps that are closed and have their address space still, and pools. */
    static final Uncollected CLOSED = new Uncollected();

    static {
        Runtime.getRuntime().addShutdownHook(
                new Thread(() -> OPEN.values().forEach(HeapFile::keep), "entresol-heap-exit"));
    }

    private final String path;
    /** Among the open ones; where links of the path led when it was opened. */
    private final String canonical;
    private final long address;
    private volatile boolean closed;

    private HeapFile(String path, String canonical, long address) {
        this.path = path;
        this.canonical = canonical;
        this.address = address;
    }

    /** What makes a heap object of a file. */
    interface Maker {
        AnyHeap make(HeapFile file);
    }

    static synchronized AnyHeap createGrowable(
            String given, Kind kind, HeapOptions options, Maker maker) {
        requirePath(given);
        if (given.startsWith(DEVICES)) {
            throw new HeapException("Failed to create heap. " + given + " is a device, and a heap"
                    + " is a file: make a file system on the device, and a heap there");
        }
        Path folder = Path.of(given);
        if (given.isEmpty() || !Files.isDirectory(folder)) {
            throw new HeapException("Failed to create heap. " + given + " is no folder; a heap"
                    + " without a size needs one");
        }
        long limit = options.limit != 0 ? options.limit : folder.toFile().getTotalSpace();
        return createInFolder(folder, kind, limit, options, maker);
    }

    static synchronized AnyHeap createSized(
            String given, long size, Kind kind, HeapOptions options, Maker maker) {
        requirePath(given);
        if (given.startsWith(DEVICES)) {
            throw new IllegalArgumentException(given + " is a device, and a heap is a file");
        }
        Path path = Path.of(given);
        if (size == 0 && Files.isRegularFile(path)) {
            Parts parts = Parts.read(path);
            return create(parts.first, kind, GROWABLE_FIRST, parts.bytes, options, maker);
        }
        if (given.isEmpty() || size < AnyHeap.MINIMUM_HEAP_SIZE) {
            throw new HeapException("Failed to create heap. " + given + " with " + size
                    + " bytes: the smallest heap has " + AnyHeap.MINIMUM_HEAP_SIZE);
        }
        if (Files.isDirectory(path)) {
            return createInFolder(path, kind, size, options, maker);
        }
        if (Files.exists(path)) {
            throw new HeapException("Failed to create heap. " + given + " exists");
        }
        Path parent = path.toAbsolutePath().getParent();
        if (parent == null || !Files.isDirectory(parent)) {
            throw new HeapException("Failed to create heap. There is no folder " + parent);
        }
        requireSpace(parent, size, given);
        return create(given, kind, size, Math.max(options.limit, size), options, maker);
    }

    static synchronized AnyHeap open(String given, Kind kind, HeapOptions options, Maker maker) {
        requirePath(given);
        String file = fileOf(given);
        AnyHeap known = known(canonical(file));
        if (known != null) {
            if (known.kind != kind) {
                throw new HeapException("Failed to open heap. " + given + " is open as a "
                        + known.kind + " heap, not as a " + kind + " one");
            }
            return known;
        }
        if (given.isEmpty() || !new File(file).exists()) {
            throw new HeapException("Failed to open heap. There is none at " + given);
        }
        try (Text text = new Text(file); Text label = new Text(kind.label());
                Text key = keyOf(options)) {
            long flags = options.readOnly ? 1 : 0;
            long address = withRoom(() -> Native.heapOpen(text.address(), text.length(),
                    label.address(), flags, options.durability.code(), options.argument,
                    options.medium.ordinal(), key == null ? 0 : key.address()));
            return register(given, file, address, maker, "open");
        }
    }

    /** The heap that is open at a path; one that is being closed is waited for. */
    private static AnyHeap known(String canonical) {
        AnyHeap known = OPEN.get(canonical);
        try {
            while (known != null && !known.open) {
                HeapFile.class.wait();
                known = OPEN.get(canonical);
            }
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            throw new HeapException("Failed to open heap. " + canonical + " is being closed, and"
                    + " the wait for that was interrupted", interrupt);
        }
        return known;
    }

    static boolean exists(String given) {
        return !given.isEmpty() && Files.isRegularFile(Path.of(fileOf(given)));
    }

    static synchronized boolean remove(String given) {
        String file = fileOf(given);
        if (OPEN.containsKey(canonical(file))) {
            throw new IllegalStateException(given + " is open; close it first");
        }
        return !given.isEmpty() && new File(file).delete();
    }

    long address() {
        return address;
    }

    String path() {
        return path;
    }

    /** {@code stores} makes those durable that were never flushed; then the file is closed. */
    void close(LongSupplier stores) {
        synchronized (HeapFile.class) {
            if (closed) {
                return;
            }
            closed = true;
        }
        CLOSED.added();
        try {
            long persisted = stores.getAsLong();
            long result = Native.heapClose(address);
            for (long each : new long[] {persisted, result}) {
                if (each < 0) {
                    throw new HeapException("Failed to close heap. " + path + ": "
                            + Failure.of(each).sentence());
                }
            }
        } finally {
            synchronized (HeapFile.class) {
                OPEN.remove(canonical);
                HeapFile.class.notifyAll();
            }
        }
    }

    /** The heap is garbage, and its address space released. Takes no lock: who waits for it has it. */
    void released() {
        if (closed) {
            CLOSED.removed();
        }
    }

    void remove() {
        if (!new File(path).delete()) {
            throw new HeapException(path + " could not be removed");
        }
    }

    private static AnyHeap createInFolder(
            Path folder, Kind kind, long limit, HeapOptions options, Maker maker) {
        Path file = folder.resolve(IN_FOLDER);
        if (Files.exists(file)) {
            throw new HeapException("Failed to create heap. " + file + " exists");
        }
        requireSpace(folder, limit, folder.toString());
        long first = Math.min(GROWABLE_FIRST, limit);
        return create(file.toString(), kind, first, limit, options, maker);
    }

    private static AnyHeap create(String file, Kind kind, long bytes, long limit,
            HeapOptions options, Maker maker) {
        try (Text text = new Text(file); Text label = new Text(kind.label());
                Text key = keyOf(options)) {
            long address = withRoom(() -> Native.heapCreate(text.address(), text.length(), bytes,
                    limit, label.address(), options.durability.code(), options.argument,
                    options.medium.ordinal(), key == null ? 0 : key.address()));
            return register(file, file, address, maker, "create");
        }
    }

    /** What maps a file; again where there was no room, and closed ones that are garbage gave some. */
    static long withRoom(LongSupplier mapping) {
        long address = mapping.getAsLong();
        return address < 0 && CLOSED.reclaimAfter(address) ? mapping.getAsLong() : address;
    }

    private static Text keyOf(HeapOptions options) {
        return options.key == null ? null : new Text(options.key);
    }

    private static AnyHeap register(
            String given, String file, long address, Maker maker, String verb) {
        if (address < 0) {
            throw new HeapException("Failed to " + verb + " heap. " + given + ": "
                    + Failure.of(address).sentence());
        }
        String canonical = canonical(file);
        AnyHeap heap = maker.make(new HeapFile(file, canonical, address));
        OPEN.put(canonical, heap);
        return heap;
    }

    /** When the JVM ends: what was stored is kept, but nothing is unmapped under other threads. */
    private static void keep(AnyHeap heap) {
        heap.keepStores();
        Native.heapSync(heap.address());
    }

    private static void requirePath(String given) {
        if (given == null) {
            throw new IllegalArgumentException("the path of a heap must not be null");
        }
    }

    private static void requireSpace(Path folder, long bytes, String given) {
        long total = folder.toFile().getTotalSpace();
        if (bytes > total) {
            throw new HeapException("Failed to create heap. " + given + " with " + bytes
                    + " bytes: the file system has " + total);
        }
    }

    private static String fileOf(String given) {
        Path path = Path.of(given);
        if (given.isEmpty()) {
            return given;
        }
        if (Files.isDirectory(path)) {
            return path.resolve(IN_FOLDER).toString();
        }
        return Parts.isList(path) ? Parts.read(path).first : given;
    }

    private static String canonical(String path) {
        try {
            return new File(path).getCanonicalPath();
        } catch (IOException failure) {
            return new File(path).getAbsolutePath();
        }
    }

    /** A list of parts, as PMDK's tools write them: a line of {@code SIZE PATH} each. */
    private static final class Parts {
        private static final String FIRST_LINE = "PMEMPOOLSET";

        private final String first;
        private final long bytes;

        private Parts(String first, long bytes) {
            this.first = first;
            this.bytes = bytes;
        }

        static boolean isList(Path path) {
            if (!Files.isRegularFile(path)) {
                return false;
            }
            try (java.io.InputStream in = Files.newInputStream(path)) {
                byte[] start = in.readNBytes(FIRST_LINE.length());
                return FIRST_LINE.equals(new String(start,
                        java.nio.charset.StandardCharsets.ISO_8859_1));
            } catch (IOException failure) {
                return false;
            }
        }

        static Parts read(Path list) {
            if (!isList(list)) {
                throw new HeapException("Failed to create heap. " + list + " is no list of parts");
            }
            String first = null;
            long bytes = 0;
            for (String line : lines(list)) {
                String[] words = line.trim().split("\\s+");
                if (words.length == 2 && Character.isDigit(words[0].charAt(0))) {
                    bytes += bytes(words[0], list);
                    first = first == null ? words[1] : first;
                }
            }
            if (first == null) {
                throw new HeapException(list + " names no parts");
            }
            return new Parts(first, bytes);
        }

        private static List<String> lines(Path list) {
            try {
                return Files.readAllLines(list);
            } catch (IOException failure) {
                throw new HeapException("cannot read " + list, failure);
            }
        }

        private static long bytes(String size, Path list) {
            int digits = 0;
            while (digits < size.length() && Character.isDigit(size.charAt(digits))) {
                digits++;
            }
            long number = Long.parseLong(size.substring(0, digits));
            String unit = size.substring(digits).toUpperCase(java.util.Locale.ROOT)
                    .replace("IB", "").replace("B", "");
            if (unit.isEmpty()) {
                return number;
            }
            int power = unit.length() == 1 ? "KMGT".indexOf(unit) : -1;
            if (power < 0) {
                throw new HeapException(list + ": " + size + " is no size");
            }
            return number << (10 * (power + 1));
        }
    }
}
