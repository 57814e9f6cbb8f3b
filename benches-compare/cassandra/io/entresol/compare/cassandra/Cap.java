package io.entresol.compare.cassandra;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * The control groups of a node: its memory, page cache included, and its reads of devices. Version
 * 1 or 2; where none can be made nothing is capped, and the report says so.
 */
final class Cap implements AutoCloseable {
    private static final Path ROOT = Path.of("/sys/fs/cgroup");
    private static final long MEBIBYTE = 1 << 20;
    private static final long MOST = (1L << 32) - 1;

    private final Path memory;
    private final Path devices;
    private final boolean isSecond;

    private Cap(Path memory, Path devices, boolean isSecond) {
        this.memory = memory;
        this.devices = devices;
        this.isSecond = isSecond;
    }

    /** Groups with a name; null where the system has none to give. */
    static Cap of(String name) {
        Path memory = ROOT.resolve("memory").resolve(name);
        Path devices = ROOT.resolve("blkio").resolve(name);
        try {
            if (Files.isDirectory(memory.getParent())) {
                Files.createDirectories(memory);
                Files.createDirectories(devices);
                count(devices);
                return new Cap(memory, devices, false);
            }
            Path both = Files.createDirectories(ROOT.resolve(name));
            return Files.exists(both.resolve("memory.max")) && Files.exists(both.resolve("io.stat"))
                    ? new Cap(both, both, true) : null;
        } catch (IOException refused) {
            return null;
        }
    }

    /** Newer kernels count only where something limits: as many reads as there can be. */
    private static void count(Path group) throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/sys/block"))) {
            for (Path device : all.toList()) {
                String number = Files.readString(device.resolve("dev")).strip();
                try {
                    Files.writeString(group.resolve("blkio.throttle.read_iops_device"),
                            number + " " + MOST);
                } catch (IOException without) {
                    // A device that nothing limits.
                }
            }
        }
    }

    /** Where a process writes its number to be in the groups. */
    List<Path> entrances() {
        Path first = memory.resolve("cgroup.procs");
        return isSecond ? List.of(first) : List.of(first, devices.resolve("cgroup.procs"));
    }

    /**
     * Bytes that nothing but the processes gives back: heap, stacks, write buffers in /dev/shm,
     * classes, which Cassandra locks, and what the kernel has for them.
     */
    long own() {
        Path figures = memory.resolve("memory.stat");
        long kernel = isSecond ? line(figures, "kernel")
                : number(memory.resolve("memory.kmem.usage_in_bytes"));
        return line(figures, "inactive_anon") + line(figures, "active_anon")
                + line(figures, "unevictable") + kernel;
    }

    /** Caps all bytes; the page cache gives way at once. */
    void set(long bytes) {
        try {
            Path limit = memory.resolve(isSecond ? "memory.max" : "memory.limit_in_bytes");
            // The first version refuses a cap that it does not reach at the first try.
            for (int tries = 20; tries > 0; tries--) {
                try {
                    Files.writeString(limit, "" + bytes);
                    return;
                } catch (IOException busy) {
                    if (tries == 1) {
                        throw busy;
                    }
                    Thread.sleep(200);
                }
            }
        } catch (IOException | InterruptedException failed) {
            throw new IllegalStateException("cannot cap the memory of " + memory + " at "
                    + bytes / MEBIBYTE + " MiB", failed);
        }
    }

    void lift() {
        try {
            Files.writeString(memory.resolve(isSecond ? "memory.max" : "memory.limit_in_bytes"),
                    isSecond ? "max" : "-1");
        } catch (IOException failed) {
            throw new IllegalStateException("cannot lift the cap of " + memory, failed);
        }
    }

    /** Reads of devices, and bytes that they read, so far. */
    long[] reads() {
        try {
            long[] reads = new long[2];
            if (isSecond) {
                for (String line : Files.readAllLines(devices.resolve("io.stat"))) {
                    for (String word : line.split(" ")) {
                        String[] pair = word.split("=");
                        reads[0] += pair[0].equals("rios") ? Long.parseLong(pair[1]) : 0;
                        reads[1] += pair[0].equals("rbytes") ? Long.parseLong(pair[1]) : 0;
                    }
                }
                return reads;
            }
            List<String> files =
                    List.of("blkio.throttle.io_serviced", "blkio.throttle.io_service_bytes");
            for (int figure = 0; figure < 2; figure++) {
                for (String line : Files.readAllLines(devices.resolve(files.get(figure)))) {
                    String[] words = line.split(" ");
                    reads[figure] += words.length == 3 && words[1].equals("Read")
                            ? Long.parseLong(words[2]) : 0;
                }
            }
            return reads;
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static long number(Path file) {
        try {
            return Long.parseLong(Files.readString(file).strip());
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static long line(Path file, String name) {
        try {
            for (String line : Files.readAllLines(file)) {
                String[] words = line.strip().split(" ");
                if (words[0].equals(name)) {
                    return Long.parseLong(words[words.length - 1]);
                }
            }
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
        throw new IllegalStateException(file + " has no " + name);
    }

    /** Removes the groups; a process that has ended is in them for a moment more. */
    @Override
    public void close() throws InterruptedException {
        for (Path group : List.of(memory, devices)) {
            for (int tries = 50; tries > 0; tries--) {
                try {
                    Files.deleteIfExists(group);
                    break;
                } catch (IOException busy) {
                    Thread.sleep(100);
                }
            }
        }
    }
}
