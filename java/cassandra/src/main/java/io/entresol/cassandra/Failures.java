package io.entresol.cassandra;

import io.entresol.StoreException;
import java.util.function.Supplier;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.io.FSReadError;
import org.apache.cassandra.io.FSWriteError;
import org.apache.cassandra.io.sstable.CorruptSSTableException;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.JVMStabilityInspector;

/** What failures of a store are to Cassandra, whose policies for disks then apply. */
final class Failures {
    private Failures() {
    }

    /** Reads; a failure is one of a disk. */
    static <T> T reading(TableMetadata metadata, Supplier<T> read) {
        try {
            return read.get();
        } catch (DamagedRow damaged) {
            JVMStabilityInspector.inspectThrowable(damaged);
            throw new CorruptSSTableException(damaged, place(metadata));
        } catch (StoreException failed) {
            JVMStabilityInspector.inspectThrowable(failed);
            switch (failed.kind()) {
                case CORRUPT -> throw new CorruptSSTableException(failed, place(metadata));
                case IO, POISONED, DEVICE -> throw new FSReadError(failed, place(metadata));
                default -> throw failed;
            }
        }
    }

    /** Writes; a failure of the device is one of the commit log, whose place the store takes. */
    static void writing(TableMetadata metadata, Runnable write) {
        try {
            write.run();
        } catch (StoreException failed) {
            switch (failed.kind()) {
                case IO, POISONED, DEVICE -> {
                    CommitLog.handleCommitError("The store of " + metadata + " failed", failed);
                    throw new FSWriteError(failed, place(metadata));
                }
                default -> throw failed;
            }
        }
    }

    private static String place(TableMetadata metadata) {
        return "entresol store, table " + metadata;
    }
}
