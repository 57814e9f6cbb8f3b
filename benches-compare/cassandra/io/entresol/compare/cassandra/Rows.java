package io.entresol.compare.cassandra;

import java.nio.ByteBuffer;

/**
 * The rows of the table: what each has follows from its number, so that whoever reads it can tell.
 *
 * @param count of rows
 * @param least bytes of a row's values
 * @param most bytes of a row's values
 * @param clustered rows of a partition; 0 for a table without clusterings
 */
record Rows(int count, int least, int most, int clustered) {
    static final String KEYSPACE = "compare";
    static final String TABLE = "rows";
    static final int COLUMNS = 4;

    String create(String more) {
        String key = clustered == 0 ? "k text PRIMARY KEY" : "k text, t int";
        String clustering = clustered == 0 ? "" : ", PRIMARY KEY (k, t)";
        return "CREATE TABLE " + KEYSPACE + "." + TABLE + " (" + key
                + ", c0 blob, c1 blob, c2 blob, c3 blob" + clustering
                + ") WITH gc_grace_seconds = 864000" + more;
    }

    /** The condition that names a row. */
    String where() {
        return clustered == 0 ? " WHERE k = ?" : " WHERE k = ? AND t = ?";
    }

    /** Bytes of all keys and values. */
    long bytes() {
        long bytes = 0;
        for (int row = 0; row < count; row++) {
            bytes += bytes(row);
        }
        return bytes;
    }

    /** Bytes of a row's key and values. */
    int bytes(int row) {
        int clustering = clustered == 0 ? 0 : Integer.BYTES;
        return key(row).length() + clustering + COLUMNS * columnBytes(row);
    }

    String key(int row) {
        int partition = clustered == 0 ? row : row / clustered;
        return "user" + Long.toHexString(mix(partition) | Long.MIN_VALUE);
    }

    int clustering(int row) {
        return row % clustered;
    }

    /** A column's value: its beginning tells row and column, the rest is noise of this version. */
    ByteBuffer value(int row, int column, long version) {
        byte[] value = new byte[columnBytes(row)];
        ByteBuffer words = ByteBuffer.wrap(value);
        words.putLong(mark(row, column));
        long noise = mix(row + (version << 40));
        while (words.remaining() >= Long.BYTES) {
            noise = mix(noise + column);
            words.putLong(noise);
        }
        return ByteBuffer.wrap(value);
    }

    /** Complains if a value is not one of this row and column. */
    void check(int row, int column, ByteBuffer value) {
        if (value == null || value.remaining() != columnBytes(row)
                || value.getLong(value.position()) != mark(row, column)) {
            throw new IllegalStateException("column " + column + " of row " + row + " is "
                    + (value == null ? "absent" : value.remaining() + " bytes") + "; expected the "
                    + columnBytes(row) + " that were written");
        }
    }

    private static long mark(int row, int column) {
        return mix(row * 31L + column);
    }

    private int columnBytes(int row) {
        int span = most - least + 1;
        return Math.max(Long.BYTES,
                (least + (int) Long.remainderUnsigned(mix(row ^ 0x5EED), span)) / COLUMNS);
    }

    static long mix(long number) {
        long z = number + 0x9E3779B97F4A7C15L;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }
}
