package io.entresol.cassandra;

import io.entresol.OrderedTable;
import io.entresol.TableBatch;
import io.entresol.TableRow;
import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.function.Consumer;

/**
 * The parts of a row, oldest first. A part that is larger than an ordered table takes is in several
 * pieces, which one batch adds one after another: so all of them are there after a crash, or none,
 * and nothing is between them. A reader beside the writer may meet the first ones alone; they do not
 * count until the last one is there. A piece is flags (1 byte), the bytes of the whole part (4, in
 * the first piece alone), and bytes of the part. For one thread.
 */
final class Parts {
    /** Flags of a value: a piece of one, and the first one. */
    static final int PIECE = 16;
    static final int FIRST = 32;
    /** Bytes of the largest part that a table takes. */
    private static final int PART_BYTES_MAX = 8191;
    private static final int HEAD_BYTES = 1 + Integer.BYTES;

    private final TableRow row;
    private int read;
    private ByteBuffer whole;

    /** The parts of a row, which has to stay as it is. */
    Parts(TableRow row) {
        this.row = row;
    }

    /** Whether a writer is still adding the last part of a row. */
    static boolean areUnfinished(TableRow row) {
        int count = row.parts();
        if (count == 0 || (flags(row.partSlice(count - 1)) & PIECE) == 0) {
            return false;
        }
        Parts parts = new Parts(row);
        while (parts.hasNext()) {
            parts.next();
        }
        return parts.read < count;
    }

    boolean hasNext() {
        if (whole == null && read < row.parts()) {
            ByteBuffer part = row.partSlice(read);
            if ((flags(part) & PIECE) == 0) {
                whole = part;
                read++;
            } else {
                whole = joined(part);
            }
        }
        return whole != null;
    }

    /** The next part, whole; where it lies, if it is in one piece. */
    ByteBuffer next() {
        if (!hasNext()) {
            throw new NoSuchElementException("parts of a row with " + row.parts());
        }
        ByteBuffer next = whole;
        whole = null;
        return next;
    }

    /** The part whose first piece is the next one; null if its last piece is not there. */
    private ByteBuffer joined(ByteBuffer first) {
        if (flags(first) != (PIECE | FIRST) || first.remaining() < HEAD_BYTES) {
            throw new DamagedRow("a piece of a part has flags " + flags(first) + " and "
                    + first.remaining() + " bytes; expected the first piece of the part");
        }
        int bytes = first.getInt(first.position() + 1);
        int pieces = 1;
        long found = first.remaining() - HEAD_BYTES;
        while (found < bytes && read + pieces < row.parts()) {
            ByteBuffer piece = row.partSlice(read + pieces++);
            if (flags(piece) != PIECE) {
                throw new DamagedRow("the pieces of a part have " + found + " bytes; expected "
                        + bytes);
            }
            found += piece.remaining() - 1;
        }
        if (found < bytes) {
            return null;
        }
        if (found > bytes) {
            throw new DamagedRow("the pieces of a part have " + found + " bytes; expected " + bytes);
        }
        ByteBuffer all = ByteBuffer.allocate(bytes);
        all.put(first.duplicate().position(first.position() + HEAD_BYTES));
        for (int piece = 1; piece < pieces; piece++) {
            ByteBuffer next = row.partSlice(read + piece);
            all.put(next.duplicate().position(next.position() + 1));
        }
        read += pieces;
        return all.flip();
    }

    /** Adds a part to a row, in pieces if it is large. */
    static void add(TableBatch batch, OrderedTable table, byte[] key, ByteBuffer part) {
        ByteBuffer to = ByteBuffer.wrap(key);
        if (part.remaining() <= PART_BYTES_MAX) {
            batch.add(table, to, part);
        } else {
            cut(part, piece -> batch.add(table, to, piece));
        }
    }

    /** Cuts a part into pieces. Each is valid until the next one. */
    static void cut(ByteBuffer part, Consumer<ByteBuffer> pieces) {
        ByteBuffer from = part.duplicate();
        ByteBuffer piece = ByteBuffer.allocate(PART_BYTES_MAX);
        piece.put((byte) (PIECE | FIRST)).putInt(from.remaining());
        while (from.hasRemaining()) {
            int end = from.position() + Math.min(piece.remaining(), from.remaining());
            piece.put(from.duplicate().limit(end));
            from.position(end);
            pieces.accept(piece.flip());
            piece.clear().put((byte) PIECE);
        }
    }

    private static int flags(ByteBuffer value) {
        return value.get(value.position()) & 0xFF;
    }
}
