package io.entresol.cassandra.node;

import java.math.BigInteger;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A node that is made.
 *
 * @param number of the node, from 1 on
 * @param nodes how many there are
 * @param capacity bytes of the store
 */
record NodePlan(NodeFolder folder, int number, int nodes, Ports ports, Memory memory,
        long capacity) {
    private static final long MEBIBYTE = 1 << 20;
    private static final long MOST_JOURNAL = 256;
    private static final long LEAST_CAPACITY = 256;
    private static final long LARGE_HEAP = 2048;

    NodePlan {
        if (capacity < LEAST_CAPACITY * MEBIBYTE) {
            throw new NodeException("--capacity is " + capacity / MEBIBYTE
                    + " MiB; expected " + LEAST_CAPACITY + " MiB or more");
        }
    }

    /** What the templates of the configuration leave open. */
    Map<String, String> values() {
        long mebibytes = capacity / MEBIBYTE;
        Map<String, String> values = new LinkedHashMap<>();
        values.put("token", token());
        values.put("seed", "127.0.0.1:" + ports.storage());
        values.put("address", ports.address());
        values.put("storage_port", "" + ports.storage());
        values.put("cql_port", "" + ports.cql());
        values.put("jmx_port", "" + ports.jmx());
        values.put("store", folder.store().toString());
        values.put("capacity", mebibytes + "MiB");
        values.put("store_memory", memory.storeMebibytes() + "MiB");
        values.put("journal", Math.min(MOST_JOURNAL, mebibytes / 16) + "MiB");
        values.put("heap", memory.heapMebibytes() + "m");
        values.put("collector", memory.heapMebibytes() < LARGE_HEAP ? "UseSerialGC" : "UseG1GC");
        return values;
    }

    /** The nodes own equal parts of the ring. */
    private String token() {
        BigInteger part = BigInteger.ONE.shiftLeft(Long.SIZE).divide(BigInteger.valueOf(nodes));
        return BigInteger.valueOf(Long.MIN_VALUE)
                .add(part.multiply(BigInteger.valueOf(number - 1))).add(BigInteger.ONE).toString();
    }
}
