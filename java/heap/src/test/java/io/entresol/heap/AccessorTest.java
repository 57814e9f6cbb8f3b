package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AccessorTest {
    @TempDir
    Path folder;
    private List<AnyHeap> heaps = List.of();

    @AfterEach
    void close() {
        heaps.forEach(AnyHeap::close);
    }

    private List<AnyHeap> all() {
        String base = folder.resolve("heap").toString();
        heaps = List.of(
                Heap.createHeap(base + 1, Heaps.BYTES),
                PersistentHeap.createHeap(base + 2, Heaps.BYTES),
                TransactionalHeap.createHeap(base + 3, Heaps.BYTES));
        return heaps;
    }

    @Test
    void allPrimitivesComeBackFromEveryOffset() {
        for (AnyHeap heap : all()) {
            for (AnyMemoryBlock block : List.of(
                    heap.allocateMemoryBlock(64), heap.allocateCompactMemoryBlock(64))) {
                for (int offset = 0; offset < 8; offset++) {
                    block.setByte(offset, (byte) -3);
                    assertEquals(-3, block.getByte(offset));
                    block.setShort(offset, Short.MIN_VALUE);
                    assertEquals(Short.MIN_VALUE, block.getShort(offset));
                    block.setChar(offset, '\u20ac');
                    assertEquals('\u20ac', block.getChar(offset));
                    block.setInt(offset, Integer.MIN_VALUE + 1);
                    assertEquals(Integer.MIN_VALUE + 1, block.getInt(offset));
                    block.setLong(offset, Long.MIN_VALUE + 2);
                    assertEquals(Long.MIN_VALUE + 2, block.getLong(offset));
                    block.setFloat(offset, -0.25f);
                    assertEquals(-0.25f, block.getFloat(offset));
                    block.setDouble(offset, Math.PI);
                    assertEquals(Math.PI, block.getDouble(offset));
                    block.setBoolean(offset, true);
                    assertTrue(block.getBoolean(offset));
                }
            }
        }
    }

    @Test
    void orderedAndAtomicAccessWorksInEveryKind() {
        for (AnyHeap heap : all()) {
            AnyMemoryBlock block = heap.allocateMemoryBlock(16);
            block.setLongRelease(0, 1);
            assertEquals(1, block.getLongAcquire(0));
            block.setLongVolatile(0, 2);
            assertEquals(2, block.getLongVolatile(0));
            assertTrue(block.compareAndSetLong(0, 2, 3));
            assertFalse(block.compareAndSetLong(0, 2, 4));
            assertEquals(3, block.getAndAddLong(0, 10));
            assertEquals(13, block.getLong(0));
            block.setIntRelease(8, 1);
            assertEquals(1, block.getIntAcquire(8));
            block.setIntVolatile(8, 5);
            assertEquals(5, block.getIntVolatile(8));
            assertTrue(block.compareAndSetInt(8, 5, 6));
            assertEquals(6, block.getAndAddInt(8, -1));
            assertEquals(5, block.getInt(8));
            assertThrows(IllegalArgumentException.class, () -> block.getLongVolatile(1));
        }
    }

    @Test
    void rangesThatOverflowAreOutOfBoundsAndNoCrash() {
        byte[] array = new byte[16];
        for (AnyHeap heap : all()) {
            for (AnyMemoryBlock block : List.of(
                    heap.allocateMemoryBlock(64), heap.allocateCompactMemoryBlock(64))) {
                for (long offset : new long[] {Long.MAX_VALUE - 3, Long.MAX_VALUE, -1,
                    Long.MIN_VALUE, 1L << 40, heap.size()}) {
                    assertThrows(IndexOutOfBoundsException.class,
                            () -> block.copyToArray(offset, array, 0, 8));
                    assertThrows(IndexOutOfBoundsException.class,
                            () -> block.copyFromArray(array, 0, offset, 8));
                    assertThrows(IndexOutOfBoundsException.class, () -> block.getLong(offset));
                    assertThrows(IndexOutOfBoundsException.class,
                            () -> block.setByte(offset, (byte) 1));
                    assertThrows(IndexOutOfBoundsException.class,
                            () -> block.setMemory((byte) 0, offset, Long.MAX_VALUE));
                    assertThrows(IndexOutOfBoundsException.class,
                            () -> block.withRange(offset, 8, range -> { }));
                }
                assertThrows(IndexOutOfBoundsException.class,
                        () -> block.copyToArray(0, array, 0, 0));
                assertThrows(IndexOutOfBoundsException.class,
                        () -> block.copyToArray(0, array, 12, 8));
                assertThrows(NullPointerException.class, () -> block.copyToArray(0, null, 0, 8));
            }
        }
    }

    @Test
    void slicesOfBuffersAreCopiedFromWhereTheyBegin() {
        byte[] bytes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        ByteBuffer direct = ByteBuffer.allocateDirect(10).put(bytes).position(3);
        ByteBuffer whole = ByteBuffer.wrap(bytes).position(3);
        for (AnyHeap heap : all()) {
            AnyMemoryBlock block = heap.allocateMemoryBlock(32);
            for (ByteBuffer buffer : List.of(whole.slice(), direct.slice(), whole.duplicate(),
                    whole.asReadOnlyBuffer(), direct.duplicate())) {
                int position = buffer.position();
                block.setMemory((byte) 99, 0, 32);
                block.copyFromByteBuffer(buffer, 1);
                assertEquals(position, buffer.position());
                byte[] copied = new byte[9];
                block.copyToArray(0, copied, 0, 9);
                assertArrayEquals(new byte[] {99, 3, 4, 5, 6, 7, 8, 9, 99}, copied);
            }
            ByteBuffer target = ByteBuffer.wrap(new byte[10]).position(2).slice();
            block.copyToByteBuffer(1, target, 3);
            assertEquals(3, target.position());
            assertEquals(5, target.array()[4]);
            assertThrows(ReadOnlyBufferException.class,
                    () -> block.copyToByteBuffer(1, target.asReadOnlyBuffer(), 1));
            block.copyFromByteBuffer(ByteBuffer.allocate(0), 1);
        }
    }

    @Test
    void buffersOverBlocksAreTheBlocksThemselves() {
        List<AnyHeap> kinds = all();
        AnyMemoryBlock raw = kinds.get(0).allocateMemoryBlock(16);
        raw.asByteBuffer(8, 8).put(0, (byte) 5);
        assertEquals(5, raw.getByte(8));
        AnyMemoryBlock logged = kinds.get(2).allocateMemoryBlock(16);
        ByteBuffer view = logged.asByteBuffer(0, 16);
        logged.setByte(3, (byte) 4);
        assertEquals(4, view.get(3));
        assertTrue(view.isReadOnly());
    }

    @Test
    void rangesAreWindowsThatEndWithTheirBody() {
        for (AnyHeap heap : all()) {
            AnyMemoryBlock block = heap.allocateMemoryBlock(64);
            Range[] kept = new Range[1];
            long sum = block.withRange(8, 16, (Range range) -> {
                kept[0] = range;
                range.setLong(8, 5);
                range.setInt(20, 6);
                assertThrows(IndexOutOfBoundsException.class, () -> range.setLong(17, 1));
                assertThrows(IndexOutOfBoundsException.class, () -> range.setLong(0, 1));
                return range.startOffset() + range.rangeLength();
            });
            assertEquals(24, sum);
            assertEquals(5, block.getLong(8));
            assertEquals(6, block.getInt(20));
            assertFalse(kept[0].isValid());
            assertEquals(-1, kept[0].startOffset());
            assertThrows(IllegalStateException.class, () -> kept[0].setLong(8, 1));
        }
    }

    @Test
    void accessorsMoveAndBlocksWithOneHandleAreEqual() {
        for (AnyHeap heap : all()) {
            AnyMemoryBlock one = heap.allocateMemoryBlock(8);
            AnyMemoryBlock two = heap.allocateMemoryBlock(8);
            one.setLong(0, 1);
            two.setLong(0, 2);
            AnyAccessor accessor = heap.createAccessor();
            assertFalse(accessor.isValid());
            assertThrows(IllegalStateException.class, () -> accessor.getLong(0));
            accessor.handle(one.handle());
            assertEquals(1, accessor.getLong(0));
            accessor.handle(two.handle());
            assertEquals(2, accessor.getLong(0));
            accessor.resetHandle();
            assertThrows(IllegalStateException.class, () -> accessor.getLong(0));
            AnyMemoryBlock same = heap.memoryBlockFromHandle(one.handle());
            assertEquals(one, same);
            assertEquals(one.hashCode(), same.hashCode());
            assertNotEquals(one, two);
        }
    }

    @Test
    void handlesThatCannotBeAreRefused() {
        for (AnyHeap heap : all()) {
            for (long handle : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE, heap.size()}) {
                assertThrows(IllegalArgumentException.class,
                        () -> heap.memoryBlockFromHandle(handle));
                assertThrows(IllegalArgumentException.class,
                        () -> heap.compactMemoryBlockFromHandle(handle));
            }
            for (long handle : new long[] {1, 8, 4096}) {
                assertThrows(RuntimeException.class,
                        () -> heap.memoryBlockFromHandle(handle).getByte(0));
                assertThrows(RuntimeException.class,
                        () -> heap.compactMemoryBlockFromHandle(handle).getByte(0));
            }
        }
    }

    @Test
    void freedBlocksRefuseUse() {
        for (AnyHeap heap : all()) {
            AnyMemoryBlock block = heap.allocateMemoryBlock(8);
            long handle = block.handle();
            AnyMemoryBlock other = heap.memoryBlockFromHandle(handle);
            block.freeMemory();
            assertFalse(block.isValid());
            assertThrows(IllegalStateException.class, () -> block.getByte(0));
            assertThrows(IllegalStateException.class, block::freeMemory);
            assertThrows(HeapException.class, other::freeMemory);
            assertFalse(heap.isLive(handle));
        }
    }

    @Test
    void aStrictHeapRefusesUseThroughEveryOtherObject() {
        HeapOptions strict = HeapOptions.DEFAULT.strict();
        try (TransactionalHeap heap =
                TransactionalHeap.createHeap(Heaps.at(folder), Heaps.BYTES, strict)) {
            TransactionalMemoryBlock block = heap.allocateMemoryBlock(8);
            TransactionalMemoryBlock other = heap.memoryBlockFromHandle(block.handle());
            other.setLong(0, 5);
            assertEquals(5, block.getLong(0));
            final long handle = block.handle();
            block.free();
            assertThrows(IllegalStateException.class, () -> other.getLong(0));
            assertThrows(IllegalStateException.class, other::free);
            assertThrows(IllegalStateException.class, () -> heap.memoryBlockFromHandle(handle));
            TransactionalMemoryBlock reused = heap.allocateMemoryBlock(8);
            reused.setLong(0, 6);
            assertThrows(IllegalStateException.class, () -> other.getLong(0));
            assertThrows(IllegalStateException.class,
                    () -> heap.memoryBlockFromHandle(reused.handle() + 8));
        }
    }

    @Test
    void aStrictHeapGoesByWhatBecameOfATransaction() {
        // A block whose free was undone was refused, and one whose allocation was undone not.
        HeapOptions strict = HeapOptions.DEFAULT.strict();
        try (TransactionalHeap heap =
                TransactionalHeap.createHeap(Heaps.at(folder), Heaps.BYTES, strict)) {
            TransactionalMemoryBlock block = heap.allocateMemoryBlock(64);
            TransactionalMemoryBlock other = heap.memoryBlockFromHandle(block.handle());
            List<TransactionalMemoryBlock> made = new ArrayList<>();
            Runnable undone = () -> {
                made.add(heap.allocateMemoryBlock(64));
                TransactionalMemoryBlock brief = heap.allocateMemoryBlock(64);
                made.add(heap.memoryBlockFromHandle(brief.handle()));
                brief.free();
                heap.memoryBlockFromHandle(other.handle()).free();
                assertThrows(IllegalStateException.class, () -> other.getLong(0));
                throw new IllegalArgumentException("undo");
            };
            assertThrows(IllegalArgumentException.class, () -> Transaction.create(heap, undone));
            Transaction.create(heap, () -> {
                assertThrows(IllegalArgumentException.class,
                        () -> Transaction.create(heap, undone));
                other.setLong(0, 7);
            });
            assertEquals(7, block.getLong(0));
            assertEquals(4, made.size());
            TransactionalMemoryBlock reused = heap.allocateMemoryBlock(64);
            for (TransactionalMemoryBlock gone : made) {
                assertThrows(IllegalStateException.class, () -> gone.setLong(0, 1));
            }
            assertEquals(0, reused.getLong(0));
            other.free();
            assertThrows(IllegalStateException.class, () -> block.getLong(0));
        }
    }

    @Test
    void aStrictHeapRefusesNoBlockWhoseHandleAnotherThreadHasJustFreed() throws Exception {
        // The free was counted once it was done, when the handle could be another block's.
        HeapOptions strict = HeapOptions.DEFAULT.strict().durability(Durability.NONE);
        try (PersistentHeap heap =
                PersistentHeap.createHeap(Heaps.at(folder), Heaps.BYTES, strict)) {
            Runnable rounds = () -> {
                for (int round = 0; round < 5000; round++) {
                    PersistentMemoryBlock block = heap.allocateMemoryBlock(64, false);
                    for (int read = 0; read < 50; read++) {
                        block.getLong(0);
                    }
                    block.free(false);
                }
            };
            FutureTask<Void> beside = new FutureTask<>(rounds, null);
            new Thread(beside).start();
            rounds.run();
            beside.get();
        }
    }
}
