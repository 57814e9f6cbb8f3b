package io.entresol.compare.cassandra;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.memtable.SkipListMemtable;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * What a node reaches at best if a read takes one of the device: all rows are in the heap, and each
 * read of one reads a random page of a file beside, past the page cache, and looks at nothing of it.
 * Without these reads it is what the protocol lets a node reach whose rows are in memory.
 */
public final class FloorMemtable extends SkipListMemtable {
    private static final int PAGE = 4096;
    private static final ThreadLocal<ByteBuffer> BUFFER = ThreadLocal
            .withInitial(() -> ByteBuffer.allocateDirect(2 * PAGE).alignedSlice(PAGE).limit(PAGE));

    /** Whether reads read the device. */
    private static volatile boolean reads = true;

    private final FileChannel file;
    private final long pages;

    private FloorMemtable(AtomicReference<CommitLogPosition> lowerBound, TableMetadataRef metadata,
            Owner owner, FileChannel file) throws IOException {
        super(lowerBound, metadata, owner);
        this.file = file;
        pages = file.size() / PAGE;
    }

    /** Asked for by Cassandra, by this name. */
    public static Memtable.Factory factory(Map<String, String> parameters) {
        Path path = Path.of(parameters.remove("file"));
        return (lowerBound, metadata, owner) -> {
            try {
                return new FloorMemtable(lowerBound, metadata, owner, FileChannel.open(path,
                        StandardOpenOption.READ, ExtendedOpenOption.DIRECT));
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        };
    }

    /** Reads from now on are of the heap alone, in all tables. */
    static void stopReading() {
        reads = false;
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key, Slices slices, ColumnFilter columns,
            boolean reversed, SSTableReadsListener listener) {
        if (reads) {
            readPage();
        }
        return super.rowIterator(key, slices, columns, reversed, listener);
    }

    private void readPage() {
        try {
            long page = ThreadLocalRandom.current().nextLong(pages);
            if (file.read(BUFFER.get().clear().limit(PAGE), page * PAGE) != PAGE) {
                throw new IOException("page " + page + " of " + pages + " is not there");
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
