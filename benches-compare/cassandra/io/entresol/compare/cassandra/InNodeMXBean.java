package io.entresol.compare.cassandra;

/** What the comparison asks of a node, whose process it is in. */
public interface InNodeMXBean {
    /** The name under which a node has it. */
    String NAME = "io.entresol.compare:type=InNode";

    /**
     * Reads random rows by the node's own local reads, without the protocol, and checks them; how
     * many were read.
     */
    long read(int[] shape, int threads, long milliseconds, long seed);

    /**
     * Writes the memtable to an SSTable. Where nothing else compacts, one is made of all that came
     * since the last flush, some of which the node may have written by itself.
     */
    void flush();

    /** Makes one SSTable of all. */
    void compact();

    /** Has compactions begin by themselves, or not. */
    void compactBySelf(boolean bySelf);

    /** Compactions under way and to come. */
    int pending();

    /** How many SSTables the table has. */
    int sstables();

    /** Bytes of the table's SSTables. */
    long bytes();

    /** Of the floor: reads are of the heap alone from now on. */
    void stopReading();
}
