package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemoryPoolTest {
    @TempDir
    Path folder;

    @Test
    void storesAreThereAfterReopening() {
        String path = folder.resolve("pool").toString();
        MemoryPool pool = MemoryPool.createPool(path, 1 << 20);
        pool.setLong(0, 42);
        pool.setMemoryNT((byte) 3, 8, 8);
        pool.copyFromByteArrayNT(new byte[] {1, 2, 3}, 1, 16, 2);
        ByteBuffer direct = ByteBuffer.allocateDirect(8).put(0, (byte) 9).limit(4);
        pool.copyFromByteBufferNT(direct, 32);
        pool.copyFromPool(0, 40, 8);
        pool.flush(0, 64);
        pool.close();
        assertThrows(IllegalStateException.class, () -> pool.getByte(0));
        try (MemoryPool again = MemoryPool.openPool(path)) {
            assertEquals(1 << 20, again.size());
            assertEquals(42, again.getLong(0));
            assertEquals(0x0303030303030303L, again.getLong(8));
            assertEquals(2, again.getByte(16));
            assertEquals(9, again.getByte(32));
            assertEquals(42, again.getLong(40));
            ByteBuffer target = ByteBuffer.allocateDirect(16);
            again.copyToByteBuffer(16, target, 2);
            assertEquals(2, target.position());
            byte[] array = new byte[2];
            again.copyToByteArray(16, array, 0, 2);
            assertArrayEquals(new byte[] {2, 3}, array);
            assertThrows(IndexOutOfBoundsException.class, () -> again.getLong((1 << 20) - 7));
            assertThrows(IndexOutOfBoundsException.class,
                    () -> again.setMemory((byte) 0, Long.MAX_VALUE, 2));
        }
        assertTrue(MemoryPool.exists(path));
        assertThrows(MemoryPoolException.class, () -> MemoryPool.createPool(path, 4096));
        assertThrows(IllegalArgumentException.class, () -> MemoryPool.createPool(path + 2, 0));
        assertThrows(IllegalArgumentException.class, () -> MemoryPool.openPool(path + 2));
    }
}
