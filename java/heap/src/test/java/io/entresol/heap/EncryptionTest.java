package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EncryptionTest {
    private static final String WORDS = "nobody reads this in the file";

    @TempDir
    Path folder;

    @Test
    void anEncryptedHeapOpensWithItsKeyAndHoldsNothingInTheClear() throws IOException {
        for (boolean encrypted : new boolean[] {false, true}) {
            HeapOptions options = encrypted ? keyed(1) : HeapOptions.DEFAULT;
            Path file = folder.resolve("heap-" + encrypted);
            PersistentHeap heap =
                    PersistentHeap.createHeap(file.toString(), Heaps.BYTES, options);
            byte[] bytes = WORDS.getBytes(StandardCharsets.UTF_8);
            PersistentMemoryBlock block = heap.allocateMemoryBlock(bytes.length);
            block.copyFromArray(bytes, 0, 0, bytes.length);
            heap.setRoot(block.handle());
            heap.close();
            assertEquals(!encrypted, holds(file, WORDS), "the words are looked for as they are");
            try (PersistentHeap again = PersistentHeap.openHeap(file.toString(), options)) {
                byte[] found = new byte[bytes.length];
                again.memoryBlockFromHandle(again.getRoot()).copyToArray(0, found, 0, found.length);
                assertEquals(WORDS, new String(found, StandardCharsets.UTF_8));
                assertEquals("", again.check());
            }
        }
    }

    @Test
    void unflushedStoresOfAnEncryptedRawHeapReachTheFileOnClose() {
        String file = Heaps.at(folder);
        Heap heap = Heap.createHeap(file, Heaps.BYTES, keyed(1));
        MemoryBlock block = heap.allocateMemoryBlock(1 << 20);
        block.setLong((1 << 20) - 8, 42);
        heap.setRoot(block.handle());
        heap.close();
        try (Heap again = Heap.openHeap(file, keyed(1))) {
            MemoryBlock found = again.memoryBlockFromHandle(again.getRoot());
            assertEquals(42, found.getLong((1 << 20) - 8));
            found.setLong(0, 7);
        }
        try (Heap again = Heap.openHeap(file, keyed(1))) {
            assertEquals(7, again.memoryBlockFromHandle(again.getRoot()).getLong(0));
        }
    }

    @Test
    void aKeyThatDoesNotFitIsRefused() {
        String file = Heaps.at(folder);
        TransactionalHeap.createHeap(file, Heaps.BYTES, keyed(1)).close();
        refused("another key", () -> TransactionalHeap.openHeap(file, keyed(2)));
        refused("is encrypted", () -> TransactionalHeap.openHeap(file));
        TransactionalHeap.openHeap(file, keyed(1)).close();
        String plain = folder.resolve("plain").toString();
        TransactionalHeap.createHeap(plain, Heaps.BYTES).close();
        refused("not encrypted", () -> TransactionalHeap.openHeap(plain, keyed(1)));
        HeapOptions stores = keyed(1).medium(Medium.BYTES);
        String third = folder.resolve("third").toString();
        refused("word by word", () -> TransactionalHeap.createHeap(third, Heaps.BYTES, stores));
        assertFalse(Files.exists(Path.of(third)));
        assertThrows(
                IllegalArgumentException.class, () -> HeapOptions.DEFAULT.key(new byte[16]));
    }

    private static void refused(String why, org.junit.jupiter.api.function.Executable opening) {
        String sentence = assertThrows(HeapException.class, opening).getMessage();
        assertTrue(sentence.contains(why), sentence);
    }

    private static HeapOptions keyed(int of) {
        byte[] key = new byte[32];
        Arrays.fill(key, (byte) of);
        return HeapOptions.DEFAULT.key(key);
    }

    private static boolean holds(Path file, String words) throws IOException {
        String text = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
        return text.contains(words);
    }
}
