package io.entresol.cassandra;

import java.util.List;
import java.util.Map;

/** A store of this node, as an operator sees it: {@code io.entresol.cassandra:type=Store}. */
public interface StoreMXBean {
    /** The device or file. */
    String getDevices();

    /** The figures of the store since it was opened, by their names. */
    Map<String, Double> getFigures();

    /** The tables whose rows are in the store. */
    List<String> getTables();

    /** Why the last sweep of merges let changes of rows wait; empty if it did not. */
    String getHeldBack();

    /** Rows of tables that the schema does not know; they are kept until they are cleared. */
    List<String> getUnknown();

    /** Removes rows that {@link #getUnknown} names. */
    void clear(String unknown);

    /** Walks over a table for what may be purged, at once; how many rows and heads it found. */
    long purge(String keyspace, String table);

    /** Removes the partitions of ranges that this node does not own; how many. */
    long cleanup(String keyspace, String table);

    /** Moves the rows of a table's SSTables into the store; how many SSTables went. */
    int absorb(String keyspace, String table);
}
