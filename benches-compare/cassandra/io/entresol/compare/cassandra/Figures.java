package io.entresol.compare.cassandra;

/**
 * What a node had used at a moment, or between two.
 *
 * @param nanos of time
 * @param processor microseconds of the processor
 * @param reads of devices
 * @param bytesRead from devices
 * @param bytesWritten to devices
 */
record Figures(long nanos, double processor, long reads, long bytesRead, long bytesWritten) {
    Figures since(Figures before) {
        return new Figures(nanos - before.nanos, processor - before.processor,
                reads - before.reads, bytesRead - before.bytesRead,
                bytesWritten - before.bytesWritten);
    }
}
