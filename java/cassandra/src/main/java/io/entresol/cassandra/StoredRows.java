package io.entresol.cassandra;

import com.google.common.collect.AbstractIterator;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.util.ArrayDeque;
import java.util.Queue;
import org.apache.cassandra.db.rows.Row;

/**
 * Rows of a range of a partition. Some are read ahead, so that a short range holds nothing once it
 * was begun, even if nobody closes it.
 */
final class StoredRows extends AbstractIterator<Row> implements AutoCloseable {
    private static final int READ_AHEAD = 64;

    private final PartitionReader reader;
    private final Queue<Row> ready = new ArrayDeque<>();
    private TableCursor cursor;
    private Head head = Head.NONE;

    StoredRows(PartitionReader reader, TableRange range) {
        this.reader = reader;
        cursor = reader.source.table().scanUnfolded(range);
        fill();
    }

    /** The partition's head, if the range begins with it. */
    Head head() {
        return head;
    }

    @Override
    protected Row computeNext() {
        if (ready.isEmpty()) {
            fill();
        }
        return ready.isEmpty() ? endOfData() : ready.remove();
    }

    @Override
    public void close() {
        if (cursor != null) {
            cursor.close();
            cursor = null;
        }
    }

    private void fill() {
        while (cursor != null && ready.size() < READ_AHEAD) {
            if (!cursor.next()) {
                close();
                return;
            }
            byte[] key = cursor.key();
            if (key[reader.prefix.length] == RowKey.HEAD) {
                head = reader.source.folding().head(cursor);
            } else {
                Row row = reader.source.folding().row(cursor, reader.clustering(key));
                if (row != null) {
                    ready.add(row);
                }
            }
        }
    }
}
