package io.entresol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Gets of several rows against single ones; {@code entresol.seed}, printed, chooses the keys. */
class TableGetsTest {
    private static final long MIB = 1 << 20;
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int KEYS = 2_000;

    @TempDir
    Path folder;

    private Store open() {
        return Store.open(StoreOptions.on(folder.resolve("data")).capacity(96 * MIB)
                .memory(48 * MIB).orderedTables(16 * MIB).waitingChanges(100_000)
                .durability(Durability.MEMORY));
    }

    private static byte[] key(int number) {
        return String.format("row %05d", number).getBytes(UTF_8);
    }

    /** The last part is the value. */
    private static byte[] last(TableRow row) {
        return row.parts() == 0 ? MergeFunction.KEEP : row.part(row.parts() - 1);
    }

    private static void fill(List<OrderedTable> tables, Random random) {
        for (int number = 0; number < KEYS; number++) {
            OrderedTable table = tables.get(number % 2);
            // Some are larger than a page, and records of their own.
            byte[] value = new byte[random.nextInt(100) == 0 ? 100_000 : random.nextInt(300)];
            random.nextBytes(value);
            if (number % 5 > 0) {
                table.put(key(number), value);
            }
            if (number % 7 == 0) {
                table.add(key(number), new byte[] {(byte) number});
            }
        }
    }

    @Test
    void severalGetsAnswerAsSingleOnesInTheOrderOfTheirKeysAlsoAfterReopening() {
        System.out.println("gets of tables: -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        for (int life = 0; life < 2; life++) {
            try (Store store = open(); TableGets gets = store.gets()) {
                List<OrderedTable> tables = List.of(store.table("even"), store.table("odd"));
                tables.forEach(table -> table.merge(TableGetsTest::last));
                if (life == 0) {
                    fill(tables, random);
                }
                for (int round = 0; round < 100; round++) {
                    check(gets.clear(), tables, random);
                }
            }
        }
    }

    private static void check(TableGets gets, List<OrderedTable> tables, Random random) {
        int count = random.nextInt(10) == 0 ? 1_000 : random.nextInt(5);
        List<byte[]> keys = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            keys.add(key(random.nextInt(KEYS)));
            ByteBuffer direct = ByteBuffer.allocateDirect(9).put(keys.get(index)).flip();
            gets.add(tables.get(index % 2), direct);
            assertEquals(0, direct.position());
        }
        assertEquals(count, gets.size());
        int found = gets.read();
        List<byte[]> odd = tables.get(1).getAll(keys);
        for (int index = 0; index < count; index++) {
            byte[] key = keys.get(index);
            byte[] single = tables.get(index % 2).get(key);
            assertArrayEquals(single, gets.value(index));
            found -= gets.row(index) == null ? 0 : 1;
            assertArrayEquals(tables.get(1).get(key), odd.get(index));
            if (gets.row(index) != null) {
                assertArrayEquals(key, gets.row(index).key());
                int parts = gets.row(index).parts();
                assertEquals(tables.get(index % 2).read(key, TableRow::parts), parts);
            }
        }
        assertEquals(0, found);
    }

    @Test
    void rowsAreReadWhereTheyLieUntilKeysAreAdded() {
        try (Store store = open()) {
            OrderedTable heads = store.table("heads");
            OrderedTable rows = store.table("rows");
            heads.put(key(1), "head".getBytes(UTF_8));
            rows.put(key(1), "row".getBytes(UTF_8));
            TableGets gets = store.gets().add(heads, key(1)).add(rows, key(2)).add(rows, key(1));
            assertThrows(IllegalStateException.class, () -> gets.row(0));
            assertEquals(2, gets.read());
            TableRow head = gets.row(0);
            TableRow row = gets.row(2);
            assertNotNull(head);
            assertNull(gets.row(1));
            assertNull(gets.value(1));
            assertEquals("head", UTF_8.decode(head.baseSlice()).toString());
            assertEquals("row", UTF_8.decode(row.baseSlice()).toString());
            assertTrue(row.baseSlice().isReadOnly());
            assertThrows(IndexOutOfBoundsException.class, () -> gets.row(3));
            // The same keys again, as they are now.
            rows.put(key(2), "new".getBytes(UTF_8));
            assertEquals(3, gets.read());
            assertArrayEquals("new".getBytes(UTF_8), gets.value(1));
            gets.add(rows, key(3));
            assertThrows(IllegalStateException.class, () -> gets.value(0));
            assertEquals(0, gets.clear().read());
            assertEquals(List.of(), rows.getAll(List.of()));
            gets.close();
            gets.close();
        }
    }

    @Test
    void whatIsNoKeyOfTheStoreIsRefused() {
        Path other = folder.resolve("other");
        Store store = open();
        OrderedTable table = store.table("t");
        try (Store foreign = Store.open(StoreOptions.on(other).capacity(64 * MIB)
                .orderedTables(4 * MIB))) {
            OrderedTable elsewhere = foreign.table("t");
            assertThrows(IllegalArgumentException.class, () -> store.gets().add(elsewhere, key(1)));
        }
        for (byte[] wrong : new byte[][] {{}, new byte[70_000]}) {
            StoreException refused = assertThrows(StoreException.class,
                    () -> table.getAll(List.of(key(1), wrong)));
            assertEquals(StoreException.Kind.INVALID, refused.kind());
            assertTrue(refused.getMessage().contains(wrong.length + " bytes"));
        }
        store.close();
        StoreException closed =
                assertThrows(StoreException.class, () -> table.getAll(List.of(key(1))));
        assertEquals(StoreException.Kind.POISONED, closed.kind());
    }
}
