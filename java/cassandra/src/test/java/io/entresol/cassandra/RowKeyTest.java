package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class RowKeyTest {
    private static final int KEYS = 2_000;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
        LocalNode.execute("CREATE TABLE IF NOT EXISTS %s.keys (k blob PRIMARY KEY)"
                + " WITH memtable = 'entresol'");
    }

    /** With and without bytes that are escaped; also of a buffer that is a part of a larger one. */
    @Test
    void partitionsHaveTheBytesByWhichCassandraComparesThem() {
        var metadata = LocalNode.table("keys").metadata();
        Random random = new Random(42);
        for (int turn = 0; turn < KEYS; turn++) {
            byte[] bytes = new byte[2 + random.nextInt(40)];
            random.nextBytes(bytes);
            if (random.nextBoolean()) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(2);
            }
            ByteBuffer part = ByteBuffer.wrap(bytes, 1, random.nextInt(bytes.length - 1)).slice();
            DecoratedKey key = metadata.partitioner.decorateKey(part);
            byte[] prefix = RowKey.partition(key);
            assertArrayEquals(
                    ByteSourceInverse.readBytes(key.asComparableBytes(RowKey.VERSION)), prefix);
            RowKey.Owner owner = RowKey.owner(RowKey.of(prefix, RowKey.HEAD), metadata);
            assertEquals(key, owner.key());
            assertArrayEquals(prefix, owner.prefix());
        }
    }
}
