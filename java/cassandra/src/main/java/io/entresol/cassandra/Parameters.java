package io.entresol.cassandra;

import io.entresol.Compression;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.cassandra.config.DataStorageSpec;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.exceptions.ConfigurationException;

/**
 * What a memtable configuration of {@code cassandra.yaml} says.
 *
 * @param devices where the store is: a file, or block devices with commas between
 * @param capacity bytes of a file that is made
 * @param memory the cap of the store's memory, in bytes
 * @param waiting bytes of memory for changes that wait for their leaf
 * @param journal bytes of the store for the journal of changes
 * @param patrol bytes that the patrol walks over in a second
 * @param keyFile the file with the key of an encrypted store; empty for none
 * @param writesLog the commit log has all writes, too, and keeps what was acknowledged
 */
record Parameters(String devices, long capacity, long memory, long waiting, long journal,
        long patrol, Compression compression, String keyFile, boolean writesLog) {
    private static final long MEBIBYTE = 1 << 20;

    /** Takes what it knows out of a map; the rest is unknown to Cassandra, too. */
    static Parameters of(Map<String, String> map) {
        String devices = map.remove("store_devices");
        long memory = bytes("store_memory", taken(map, "store_memory", "512MiB"));
        Parameters parameters = new Parameters(devices == null ? besideData() : devices,
                bytes("store_capacity", taken(map, "store_capacity", "10GiB")), memory,
                part("pending_memory", taken(map, "pending_memory", "5%"), memory),
                bytes("journal_size", taken(map, "journal_size", "256MiB")),
                rate(taken(map, "patrol_throughput", "2MiB/s")),
                compression(taken(map, "compression", "none")),
                taken(map, "encryption_key_file", ""),
                writesLog(taken(map, "commit_log", "skip")));
        return parameters;
    }

    /** The key of an encrypted store; null for none. */
    byte[] encryptionKey() {
        if (keyFile.isEmpty()) {
            return null;
        }
        try {
            return Files.readAllBytes(Path.of(keyFile));
        } catch (java.io.IOException unreadable) {
            throw new ConfigurationException("encryption_key_file: " + unreadable, unreadable);
        }
    }

    private static String besideData() {
        return Path.of(DatabaseDescriptor.getAllDataFileLocations()[0]).toAbsolutePath()
                .resolveSibling("entresol.store").toString();
    }

    private static String taken(Map<String, String> map, String name, String otherwise) {
        String value = map.remove(name);
        return value == null ? otherwise : value.strip();
    }

    private static long bytes(String name, String text) {
        try {
            return new DataStorageSpec.LongBytesBound(text).toBytes();
        } catch (RuntimeException malformed) {
            throw new ConfigurationException(
                    name + ": " + text + "; expected a size such as 64MiB", malformed);
        }
    }

    private static boolean writesLog(String text) {
        if (!text.equals("skip") && !text.equals("write")) {
            throw new ConfigurationException("commit_log: " + text + "; expected skip or write");
        }
        return text.equals("write");
    }

    private static long rate(String text) {
        if (!text.endsWith("/s")) {
            throw new ConfigurationException(
                    "patrol_throughput: " + text + "; expected a rate such as 2MiB/s");
        }
        return Math.max(1, bytes("patrol_throughput", text.substring(0, text.length() - 2)));
    }

    /** A size, or a part of another one such as {@code 5%}. */
    private static long part(String name, String text, long whole) {
        if (!text.endsWith("%")) {
            return bytes(name, text);
        }
        try {
            int percent = Integer.parseInt(text.substring(0, text.length() - 1).strip());
            if (percent >= 1 && percent <= 50) {
                return Math.max(MEBIBYTE, whole / 100 * percent);
            }
        } catch (NumberFormatException malformed) {
            // Said below.
        }
        throw new ConfigurationException(
                name + ": " + text + "; expected 1% to 50%, or a size such as 64MiB");
    }

    private static Compression compression(String name) {
        for (Compression compression : Compression.values()) {
            if (compression.name().equalsIgnoreCase(name)) {
                return compression;
            }
        }
        throw new ConfigurationException("compression: " + name + "; expected one of "
                + Arrays.stream(Compression.values())
                        .map(one -> one.name().toLowerCase(java.util.Locale.ROOT))
                        .collect(Collectors.joining(", ")));
    }
}
