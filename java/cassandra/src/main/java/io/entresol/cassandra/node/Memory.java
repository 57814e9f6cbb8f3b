package io.entresol.cassandra.node;

import java.util.Locale;

/**
 * How a node's memory is divided.
 *
 * @param heapMebibytes Java's heap
 * @param storeMebibytes the cap of the store's memory
 */
record Memory(long heapMebibytes, long storeMebibytes) {
    private static final long MEBIBYTE = 1 << 20;
    /** What a JVM with Cassandra takes beside its heap: classes, code, threads, buffers. */
    private static final long JAVA_ITSELF = 384;
    /** Below it Cassandra is busy with collecting garbage. */
    private static final long LEAST_HEAP = 512;
    /** The rows are not in the heap, so more of it brings little. */
    private static final long MOST_HEAP = 8 << 10;
    private static final long LEAST = 1 << 10;

    /** A quarter for the heap, within its bounds; the store gets what Java leaves. */
    static Memory of(String option, String text) {
        long all = bytes(option, text) / MEBIBYTE;
        if (all < LEAST) {
            throw new NodeException(option + " is '" + text + "'; expected 1g or more: Cassandra"
                    + " itself takes " + (LEAST_HEAP + JAVA_ITSELF) + " MiB");
        }
        long heap = Math.min(MOST_HEAP, Math.max(LEAST_HEAP, all / 4));
        return new Memory(heap, all - JAVA_ITSELF - heap);
    }

    /** The bytes of a size such as {@code 512m} or {@code 4GiB}. */
    static long bytes(String option, String text) {
        String size = text.strip().toLowerCase(Locale.ROOT).replaceAll("i?b$", "");
        int units = size.isEmpty() ? -1 : "kmgt".indexOf(size.charAt(size.length() - 1));
        String digits = units < 0 ? size : size.substring(0, size.length() - 1).strip();
        if (!digits.matches("[0-9]{1,9}") || units < 0) {
            throw new NodeException(
                    option + " is '" + text + "'; expected a size such as 512m or 4GiB");
        }
        return Long.parseLong(digits) << 10 * (units + 1);
    }
}
