package io.entresol.cassandra;

import io.entresol.TableRow;
import io.entresol.cassandra.Layouts.Known;
import io.entresol.cassandra.Layouts.Layout;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataInputPlus;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.net.MessagingService;

/**
 * Rows and heads as values of an ordered table. A value is flags (1 byte), the number of the layout
 * (a variable integer), the purge moment (4 bytes, if there is one), and the row as Cassandra's own
 * serializer writes it between nodes, without its clustering, which the key has. A head has its
 * deletions before its static row; the part that ends deletions has what a {@link Purge} has instead. For one state of the schema; thread-safe.
 *
 * <p>The purge moment is the least local deletion time of all tombstones and cells that expire: no
 * time passes for the value before.
 */
final class RowCodec {
    /** Of Cassandra's formats: it stays whatever Cassandra writes later. */
    static final int VERSION = MessagingService.VERSION_40;
    private static final int PURGE_MOMENT = 1;
    private static final int IS_HEAD = 2;
    private static final int HAS_STATIC = 4;
    /** A part of a head that ends deletions. */
    private static final int ENDS = 8;
    private static final int UNKNOWN = 0xF0;
    private static final long NEVER = EncodingStats.NO_STATS.minLocalDeletionTime;

    final Known known;

    RowCodec(Known known) {
        this.known = known;
    }

    /** Whether a value is one of a head. */
    static boolean isHead(ByteBuffer value) {
        return (value.get(value.position()) & IS_HEAD) != 0;
    }

    /** The purge moment of a value, in seconds since 1970; the largest number if it has none. */
    static long purgeMoment(ByteBuffer value) {
        if ((value.get(value.position()) & PURGE_MOMENT) == 0) {
            return Long.MAX_VALUE;
        }
        int at = value.position() + 1;
        while (value.get(at++) < 0) {
            // Bytes of the layout's number.
        }
        return Integer.toUnsignedLong(value.getInt(at));
    }

    /** The least purge moment of a record's base and parts. */
    static long purgeMoment(TableRow record) {
        long moment = record.hasBase() ? purgeMoment(record.baseSlice()) : Long.MAX_VALUE;
        for (Parts parts = new Parts(record); parts.hasNext();) {
            moment = Math.min(moment, purgeMoment(parts.next()));
        }
        return moment;
    }

    /** Appends the value of a row, with its clustering or with none. */
    void write(Row row, DataOutputBuffer out) {
        try (DataOutputBuffer whole = DataOutputBuffer.scratchBuffer.get()) {
            Layout layout = known.current();
            EncodingStats.Collector stats = new EncodingStats.Collector();
            if (!row.isEmpty()) {
                Rows.collectStats(row, stats);
            }
            begin(0, stats, out);
            boolean bare = row.clustering().size() == 0;
            SerializationHelper helper =
                    new SerializationHelper(bare ? layout.bare() : layout.header());
            UnfilteredSerializer.serializer.serialize(row, helper, whole, VERSION);
            int flags = UnfilteredSerializer.hasExtendedFlags(row) ? 2 : 1;
            int clustering = bare ? 0 : (int) Clustering.serializer.serializedSize(row.clustering(),
                    VERSION, layout.header().clusteringTypes());
            ByteBuffer bytes = whole.unsafeGetBufferAndFlip();
            out.write(bytes.duplicate().limit(flags));
            out.write(bytes.position(flags + clustering));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** Appends the value of a head. */
    void write(Head head, DataOutputBuffer out) {
        try {
            Layout layout = known.current();
            EncodingStats.Collector stats = new EncodingStats.Collector();
            head.collect(stats);
            boolean hasStatic = !head.staticRow().isEmpty();
            begin(IS_HEAD | (hasStatic ? HAS_STATIC : 0), stats, out);
            head.writeDeletions(layout.header(), out);
            if (hasStatic) {
                UnfilteredSerializer.serializer.serializeStaticRow(head.staticRow(),
                        new SerializationHelper(layout.header()), out, VERSION);
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** The part of a head that ends what may be purged in the head so far. */
    byte[] ending(Purge purge) {
        return ByteBuffer.allocate(1 + 3 * Long.BYTES).put((byte) (IS_HEAD | ENDS))
                .putLong(purge.now()).putLong(purge.before()).putLong(purge.maxTimestamp()).array();
    }

    /** A head after one more part. */
    Head after(Head head, ByteBuffer part, DeserializationHelper helper) {
        if ((part.get(part.position()) & ENDS) == 0) {
            return head.with(head(part, helper));
        }
        ByteBuffer words = part.duplicate().position(part.position() + 1);
        if (words.remaining() != 3 * Long.BYTES) {
            throw new DamagedRow("a part of " + known.metadata() + " that ends deletions has "
                    + part.remaining() + " bytes; expected " + (1 + 3 * Long.BYTES));
        }
        Purge purge = new Purge(words.getLong(), words.getLong(), words.getLong());
        return head.purged(purge, known.metadata());
    }

    /** The row that a value has. */
    Row row(ByteBuffer value, Clustering<?> clustering, DeserializationHelper helper) {
        return read(value, (flags, layout, in) -> {
            int rowFlags = in.readUnsignedByte();
            int extended = UnfilteredSerializer.readExtendedFlags(in, rowFlags);
            Row.Builder builder = BTreeRow.sortedBuilder();
            builder.newRow(clustering);
            return UnfilteredSerializer.serializer.deserializeRowBody(in,
                    layout.header(), helper, rowFlags, extended, builder);
        });
    }

    /** The head that a value has. */
    Head head(ByteBuffer value, DeserializationHelper helper) {
        return read(value, (flags, layout, in) -> {
            var deletion = Head.readDeletions(known.metadata(), in);
            Row row = (flags & HAS_STATIC) == 0 ? Rows.EMPTY_STATIC_ROW
                    : UnfilteredSerializer.serializer.deserializeStaticRow(in, layout.header(),
                            helper);
            return new Head(deletion, row);
        });
    }

    private void begin(int flags, EncodingStats.Collector stats, DataOutputBuffer out)
            throws IOException {
        long moment = stats.get().minLocalDeletionTime;
        out.writeByte(moment == NEVER ? flags : flags | PURGE_MOMENT);
        out.writeUnsignedVInt32(known.current().number());
        if (moment != NEVER) {
            out.writeInt((int) moment);
        }
    }

    private interface Reads<T> {
        T from(int flags, Layout layout, DataInputPlus in) throws IOException;
    }

    private <T> T read(ByteBuffer value, Reads<T> reads) {
        try (DataInputBuffer in = new DataInputBuffer(value, true)) {
            int flags = in.readUnsignedByte();
            if ((flags & UNKNOWN) != 0) {
                throw new DamagedRow("a value of " + known.metadata() + " has flags " + flags
                        + "; expected those below " + (ENDS << 1)
                        + ": a newer version may have written it");
            }
            Layout layout = known.numbered(in.readUnsignedVInt32());
            if ((flags & PURGE_MOMENT) != 0) {
                in.readInt();
            }
            return reads.from(flags, layout, in);
        } catch (IOException | IndexOutOfBoundsException cut) {
            throw new DamagedRow("a value of " + known.metadata() + " with "
                    + value.remaining() + " bytes is no row: " + cut, cut);
        }
    }
}
