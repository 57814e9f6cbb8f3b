package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.engine.Native;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HeapTest {
    @TempDir
    Path folder;

    @Test
    void thePathThatWasAskedForIsTheOneThatIsTaken() {
        String asked = System.getProperty("entresol.heap.native");
        boolean newer = Runtime.version().feature() >= 22;
        String expected = asked == null || asked.isEmpty() ? newer ? "ffm" : "jni" : asked;
        assertEquals(expected, Native.path());
    }

    @Test
    void whatIsCommittedIsThereAfterReopening() {
        TransactionalHeap heap = Heaps.transactional(folder);
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(100);
        block.setLong(0, 42);
        block.setDouble(92, 1.5);
        heap.setRoot(block.handle());
        heap.close();
        try (TransactionalHeap again = TransactionalHeap.openHeap(Heaps.at(folder))) {
            TransactionalMemoryBlock found = again.memoryBlockFromHandle(again.getRoot());
            assertEquals(100, found.size());
            assertEquals(42, found.getLong(0));
            assertEquals(1.5, found.getDouble(92));
            assertEquals("", again.check());
            assertFalse(again.durability().isEmpty());
        }
    }

    @Test
    void unflushedStoresOfARawHeapReachTheFileOnClose() {
        Heap heap = Heaps.raw(folder);
        MemoryBlock large = heap.allocateMemoryBlock(1 << 20);
        MemoryBlock small = heap.allocateMemoryBlock(24);
        for (long offset = 0; offset < large.size(); offset += 8) {
            large.setLong(offset, offset * 3);
        }
        small.setInt(20, -7);
        heap.setRoot(large.handle());
        final long handle = small.handle();
        heap.close();
        try (Heap again = Heap.openHeap(Heaps.at(folder))) {
            MemoryBlock found = again.memoryBlockFromHandle(again.getRoot());
            for (long offset = 0; offset < found.size(); offset += 8) {
                assertEquals(offset * 3, found.getLong(offset));
            }
            assertEquals(-7, again.memoryBlockFromHandle(handle).getInt(20));
        }
    }

    @Test
    void aHeapOpensAsItsOwnKindOnly() {
        Heaps.persistent(folder).close();
        assertThrows(HeapException.class, () -> TransactionalHeap.openHeap(Heaps.at(folder)));
        assertThrows(HeapException.class, () -> Heap.openHeap(Heaps.at(folder)));
        PersistentHeap heap = PersistentHeap.openHeap(Heaps.at(folder));
        assertSame(heap, PersistentHeap.openHeap(Heaps.at(folder)));
        assertThrows(HeapException.class, () -> Heap.openHeap(Heaps.at(folder)));
        heap.close();
    }

    @Test
    void aHeapOpenedThroughALinkThatIsGoneCanBeOpenedAgain() throws IOException {
        // What was closed stayed among the open ones, under the path that the link had led to.
        Path link = Files.createSymbolicLink(folder.resolve("link"), Files.createDirectory(
                folder.resolve("real")));
        TransactionalHeap heap =
                TransactionalHeap.createHeap(link.resolve("heap").toString(), Heaps.BYTES);
        Files.delete(link);
        heap.close();
        try (TransactionalHeap again = TransactionalHeap.openHeap(
                folder.resolve("real").resolve("heap").toString())) {
            assertEquals(0, again.getRoot());
        }
    }

    /** One in bytes that said so was taken for one in KiB. */
    @Test
    void sizesInAListOfPartsHaveTheUnitsThatTheyName() throws IOException {
        Path list = folder.resolve("list");
        String parts = "PMEMPOOLSET\n%s " + folder.resolve("first") + "\n1MiB /second\n";
        for (String size : List.of("64X", "64KM")) {
            Files.writeString(list, String.format(parts, size));
            assertThrows(HeapException.class, () -> Heap.createHeap(list.toString(), 0));
        }
        for (String size : List.of("67108864", "67108864B", "65536K", "65536kib", "64M")) {
            Files.writeString(list, String.format(parts, size));
            try (Heap heap = Heap.createHeap(list.toString(), 0)) {
                assertEquals(65L << 20, heap.limit(), size);
            }
            assertTrue(AnyHeap.delete(list.toString()));
        }
    }

    @Test
    void closingAndDeletingAreFinal() {
        TransactionalHeap heap = Heaps.transactional(folder);
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(8);
        heap.delete();
        heap.close();
        assertFalse(AnyHeap.exists(Heaps.at(folder)));
        assertThrows(IllegalStateException.class, () -> block.getLong(0));
        assertThrows(IllegalStateException.class, () -> heap.allocateMemory(8));
        assertThrows(IllegalStateException.class, heap::getRoot);
        assertThrows(HeapException.class, () -> TransactionalHeap.openHeap(Heaps.at(folder)));
    }

    @Test
    void manyHeapsMayFollowEachOther() {
        for (int round = 0; round < 40; round++) {
            TransactionalHeap heap = TransactionalHeap.createHeap(Heaps.at(folder), 8L << 20);
            heap.setRoot(heap.allocateMemory(64));
            heap.delete();
        }
    }

    @Test
    void aGrowableHeapGrowsInItsFolder() throws IOException {
        Path place = Files.createDirectory(folder.resolve("growable"));
        TransactionalHeap heap = TransactionalHeap.createHeap(place.toString(), 256L << 20);
        assertTrue(AnyHeap.exists(place.toString()));
        long before = heap.size();
        long handle = 0;
        for (int count = 0; count < 30; count++) {
            handle = heap.allocateMemory(4L << 20);
        }
        assertTrue(heap.size() > before, before + " bytes as before");
        TransactionalMemoryBlock last = heap.memoryBlockFromHandle(handle);
        last.setLong((4 << 20) - 8, 5);
        heap.close();
        heap = TransactionalHeap.openHeap(place.toString());
        assertEquals(5, heap.memoryBlockFromHandle(handle).getLong((4 << 20) - 8));
        heap.close();
        assertTrue(AnyHeap.delete(place.toString()));
    }

    @Test
    void pathsAndSizesThatCannotBeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> Heap.createHeap(null, Heaps.BYTES));
        assertThrows(IllegalArgumentException.class, () -> Heap.openHeap(null));
        assertThrows(IllegalArgumentException.class, () -> AnyHeap.exists(null));
        assertThrows(HeapException.class, () -> Heap.createHeap("", Heaps.BYTES));
        assertThrows(HeapException.class, () -> Heap.createHeap(Heaps.at(folder), 1 << 20));
        assertThrows(HeapException.class, () -> Heap.createHeap(Heaps.at(folder), -1));
        assertThrows(HeapException.class, () -> Heap.createHeap(Heaps.at(folder)));
        HeapException device =
                assertThrows(HeapException.class, () -> Heap.createHeap("/dev/dax0.0"));
        assertTrue(device.getMessage().contains("is a device"), device.getMessage());
        assertThrows(IllegalArgumentException.class,
                () -> Heap.createHeap("/dev/dax0.0", Heaps.BYTES));
        String nowhere = folder.resolve("no").resolve("heap").toString();
        assertThrows(HeapException.class, () -> Heap.createHeap(nowhere, Heaps.BYTES));
        long most = new File(folder.toString()).getTotalSpace();
        assertThrows(HeapException.class, () -> Heap.createHeap(Heaps.at(folder), most * 2));
        Heaps.raw(folder).close();
        assertThrows(HeapException.class, () -> Heap.createHeap(Heaps.at(folder), Heaps.BYTES));
    }

    @Test
    void allocationsFailWithTheirSizeAndFreeingMakesRoomAgain() {
        try (PersistentHeap heap = Heaps.persistent(folder)) {
            for (long size : new long[] {0, -1, 1L << 40, Long.MAX_VALUE}) {
                HeapException refused =
                        assertThrows(HeapException.class, () -> heap.allocateMemory(size));
                assertTrue(refused.getMessage().contains("" + size), refused.getMessage());
            }
            for (int round = 0; round < 20; round++) {
                PersistentMemoryBlock block = heap.allocateMemoryBlock(8L << 20, round % 2 == 0);
                assertEquals(0, block.getLong(12345));
                block.setLong(12345, 1);
                block.free(round % 2 == 0);
            }
        }
    }

    @Test
    void registeredSizesWasteNothing() {
        try (Heap heap = Heaps.raw(folder)) {
            assertTrue(heap.registerAllocationSize(1234, true));
            CompactMemoryBlock block = heap.allocateCompactMemoryBlock(1234);
            assertEquals(1234, AnyHeap.getUsableSize(block));
            assertFalse(heap.registerAllocationSize(-1, true));
        }
    }

    @Test
    void aReadOnlyHeapRefusesStores() {
        // Some were read back until the heap was closed, which then failed.
        HeapOptions options = HeapOptions.DEFAULT.readOnly();
        String base = Heaps.at(folder);
        filled(Heap.createHeap(base + 1, Heaps.BYTES));
        filled(PersistentHeap.createHeap(base + 2, Heaps.BYTES));
        filled(TransactionalHeap.createHeap(base + 3, Heaps.BYTES));
        assertNothingIsStored(Heap.openHeap(base + 1, options));
        assertNothingIsStored(PersistentHeap.openHeap(base + 2, options));
        assertNothingIsStored(TransactionalHeap.openHeap(base + 3, options));
    }

    private static void filled(AnyHeap heap) {
        AnyMemoryBlock block = heap.allocateMemoryBlock(64, range -> range.setLong(0, 7));
        heap.setRoot(block.handle());
        heap.close();
    }

    private static void assertNothingIsStored(AnyHeap heap) {
        try (heap) {
            AnyMemoryBlock block = heap.memoryBlockFromHandle(heap.getRoot());
            List<Runnable> stores = List.of(
                    () -> block.setLong(0, 8),
                    () -> block.setByte(0, (byte) 8),
                    () -> block.setLongRelease(0, 8),
                    () -> block.setIntVolatile(0, 8),
                    () -> block.compareAndSetLong(0, 7, 8),
                    () -> block.compareAndSetInt(0, 7, 8),
                    () -> block.getAndAddLong(0, 1),
                    () -> block.getAndAddInt(0, 1),
                    () -> block.copyFromArray(new byte[8], 0, 0, 8),
                    () -> block.copyFromByteBuffer(ByteBuffer.allocate(8), 0),
                    () -> block.copyFrom(block, 8, 0, 8),
                    () -> block.setMemory((byte) 8, 0, 8),
                    () -> block.withRange(0, 8, range -> {
                        range.setLong(0, 8);
                    }),
                    () -> heap.allocateMemory(8),
                    () -> heap.setRoot(8),
                    block::freeMemory);
            for (Runnable store : stores) {
                assertThrows(RuntimeException.class, store::run);
                assertEquals(7, block.getLong(0));
            }
            assertTrue(block.asByteBuffer(0, 8).isReadOnly());
        }
    }

    @Test
    void aBackupOpensAsAHeap() {
        String copy = folder.resolve("copy").toString();
        try (PersistentHeap heap = Heaps.persistent(folder)) {
            PersistentMemoryBlock block = heap.allocateMemoryBlock(8);
            block.setLong(0, 77);
            heap.setRoot(block.handle());
            heap.backup(copy);
        }
        try (PersistentHeap heap = PersistentHeap.openHeap(copy)) {
            assertEquals(77, heap.memoryBlockFromHandle(heap.getRoot()).getLong(0));
        }
    }

    @Test
    void statisticsCountCommitsAndRoom() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            long free = heap.statistics().freeBytes();
            assertTrue(heap.statistics().largestFreeBlock() <= free);
            long commits = heap.statistics().commits();
            heap.allocateMemory(1 << 20);
            assertTrue(heap.statistics().freeBytes() <= free - (1 << 20));
            assertTrue(heap.statistics().commits() > commits);
        }
    }
}
