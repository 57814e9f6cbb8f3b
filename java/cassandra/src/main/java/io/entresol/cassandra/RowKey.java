package io.entresol.cassandra;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;
import org.apache.cassandra.utils.bytecomparable.ByteComparable.Version;
import org.apache.cassandra.utils.bytecomparable.ByteSource;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;

/**
 * Keys in the ordered table of a Cassandra table. A key is the partition's token and key in
 * Cassandra's byte-comparable form, whose last byte is a terminator, then a kind, then the
 * byte-comparable clustering of a row. So keys compare as Cassandra compares what they stand for,
 * and the rows of a partition are one range, its head the first of them.
 */
final class RowKey {
    /** The kind of the record of all that a partition has beside rows. */
    static final byte HEAD = 0;
    /** The kind of rows. */
    static final byte ROW = 1;
    /** No key has this kind: it ends the range of a partition. */
    static final byte END = 2;
    static final Version VERSION = Version.OSS50;
    /** What a key without such a byte ends with. */
    private static final byte ESCAPE = 0;
    /** A token, and what stands before it and after it. */
    private static final int TOKEN_BYTES = 1 + Long.BYTES + 1;

    private RowKey() {
    }

    /** What the keys of a partition begin with. */
    static byte[] partition(DecoratedKey key) {
        ByteBuffer own = key.getKey();
        if (!(key.getToken() instanceof Murmur3Partitioner.LongToken) || hasZero(own)) {
            return bytes(key);
        }
        // The same without a call for each byte: a token, and a key without a byte to be escaped.
        int length = own.remaining();
        byte[] prefix = new byte[TOKEN_BYTES + length + 2];
        ByteBuffer to = ByteBuffer.wrap(prefix).put((byte) ByteSource.NEXT_COMPONENT)
                .putLong((long) key.getToken().getTokenValue() ^ Long.MIN_VALUE)
                .put((byte) ByteSource.NEXT_COMPONENT);
        ByteBufferUtil.copyBytes(own, own.position(), to, to.position(), length);
        prefix[TOKEN_BYTES + length] = ESCAPE;
        prefix[TOKEN_BYTES + length + 1] = (byte) ByteSource.TERMINATOR;
        return prefix;
    }

    private static boolean hasZero(ByteBuffer bytes) {
        for (int at = bytes.position(); at < bytes.limit(); at++) {
            if (bytes.get(at) == 0) {
                return true;
            }
        }
        return false;
    }

    /** The place before or after a position of the ring, between partitions. */
    static byte[] bound(PartitionPosition position, boolean before) {
        return bytes(position.asComparableBound(before));
    }

    /** The key of a kind of record of a partition. */
    static byte[] of(byte[] partition, byte kind) {
        byte[] key = Arrays.copyOf(partition, partition.length + 1);
        key[partition.length] = kind;
        return key;
    }

    /** The key of a row, or the place of a bound among the rows. */
    static byte[] row(byte[] partition, TableMetadata metadata, ClusteringPrefix<?> clustering) {
        byte[] tail = bytes(metadata.comparator.asByteComparable(clustering));
        byte[] key = Arrays.copyOf(partition, partition.length + 1 + tail.length);
        key[partition.length] = ROW;
        System.arraycopy(tail, 0, key, partition.length + 1, tail.length);
        return key;
    }

    /** A partition as a record's key tells it. */
    record Owner(DecoratedKey key, byte[] prefix) {
        /** Whether a record belongs to it. */
        boolean owns(byte[] key) {
            return key.length > prefix.length
                    && Arrays.equals(prefix, 0, prefix.length, key, 0, prefix.length);
        }
    }

    /** Whose record it is. */
    static Owner owner(byte[] key, TableMetadata metadata) {
        Counted bytes = new Counted(key, 0);
        DecoratedKey decorated =
                BufferDecoratedKey.fromByteComparable(version -> bytes, VERSION, metadata.partitioner);
        return new Owner(decorated, Arrays.copyOf(key, bytes.at));
    }

    /** The clustering behind a partition's prefix and the kind, as bytes to be decoded. */
    static ByteComparable clustering(byte[] key, int prefixLength) {
        int from = prefixLength + 1;
        return ByteComparable.fixedLength(key, from, key.length - from);
    }

    private static byte[] bytes(ByteComparable comparable) {
        return ByteSourceInverse.readBytes(comparable.asComparableBytes(VERSION));
    }

    /** Bytes of an array that knows how many were taken. */
    private static final class Counted implements ByteSource {
        private final byte[] bytes;
        private int at;

        Counted(byte[] bytes, int at) {
            this.bytes = bytes;
            this.at = at;
        }

        @Override
        public int next() {
            return at < bytes.length ? bytes[at++] & 0xFF : END_OF_STREAM;
        }
    }
}
