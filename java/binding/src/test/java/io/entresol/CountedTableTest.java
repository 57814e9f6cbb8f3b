package io.entresol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Counts and ranks against a map; {@code entresol.seed}, printed, chooses the operations. */
class CountedTableTest {
    private static final long MIB = 1 << 20;
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int KEYS = 3_000;
    /** A part that ends its row. */
    private static final String END = "-";

    @TempDir
    Path folder;

    private StoreOptions options() {
        return StoreOptions.on(folder.resolve("data")).capacity(96 * MIB).memory(48 * MIB)
                .orderedTables(16 * MIB).waitingChanges(200_000).durability(Durability.MEMORY);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    /** Writes parts one behind the other; one of them ends the row so far. */
    private static byte[] append(TableRow row) {
        if (row.parts() == 0) {
            return MergeFunction.KEEP;
        }
        String value = row.hasBase() ? new String(row.base(), UTF_8) : null;
        for (int part = 0; part < row.parts(); part++) {
            String text = new String(row.part(part), UTF_8);
            value = text.equals(END) ? null : value == null ? text : value + text;
        }
        return value == null ? null : bytes(value);
    }

    private static String key(int number) {
        return String.format("row %05d", number);
    }

    private static void change(OrderedTable table, TreeMap<String, Boolean> model, Random random) {
        String key = key(random.nextInt(KEYS));
        switch (random.nextInt(8)) {
            case 0:
                table.remove(bytes(key));
                model.remove(key);
                break;
            case 1:
            case 2:
                // It has a value that ends.
                table.put(bytes(key), bytes("a value"));
                table.add(bytes(key), bytes(END));
                model.remove(key);
                break;
            case 3:
                table.add(bytes(key), bytes("more"));
                model.put(key, true);
                break;
            default:
                table.put(bytes(key), bytes("a value of " + key));
                model.put(key, true);
                break;
        }
    }

    private static void check(OrderedTable table, TreeMap<String, Boolean> model, Random random) {
        assertEquals(model.size(), table.count(TableRange.ALL));
        String low = key(random.nextInt(KEYS));
        String high = key(random.nextInt(KEYS));
        int between = low.compareTo(high) < 0 ? model.subMap(low, high).size() : 0;
        assertEquals(between, table.count(TableRange.ALL.from(bytes(low)).below(bytes(high))));
        assertEquals(model.headMap(low).size(), table.rank(bytes(low)));
        List<String> keys = new ArrayList<>(model.keySet());
        int rank = random.nextInt(keys.size());
        assertArrayEquals(bytes(keys.get(rank)), table.at(rank));
        assertNull(table.at(keys.size()));
        List<String> found = new ArrayList<>();
        TableRange range = TableRange.ALL.descending().limit(700).pageBytes(1 << 10);
        try (TableCursor cursor = table.scanFrom(rank, range)) {
            while (cursor.next()) {
                found.add(new String(cursor.key(), UTF_8));
            }
        }
        List<String> expected = new ArrayList<>(keys.subList(Math.max(0, rank - 699), rank + 1));
        Collections.reverse(expected);
        assertEquals(expected, found);
    }

    @Test
    void countsAndRanksAreThoseOfAMapAlsoAfterReopening() {
        System.out.println("counted tables: -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        TreeMap<String, Boolean> model = new TreeMap<>();
        for (int life = 0; life < 3; life++) {
            try (Store store = Store.open(options())) {
                OrderedTable table = store.countedTable("scores");
                table.merge(CountedTableTest::append);
                for (int turn = 0; turn < 4_000; turn++) {
                    change(table, model, random);
                    if (turn % 500 == 499) {
                        check(table, model, random);
                    }
                }
                check(table, model, random);
            }
            try (Store store = Store.open(options())) {
                OrderedTable table = store.table("scores");
                table.merge(CountedTableTest::append);
                check(table, model, random);
            }
        }
    }

    @Test
    void aRowWhosePartsFoldIntoNoneDoesNotCount() {
        try (Store store = Store.open(options())) {
            OrderedTable table = store.countedTable("t");
            table.merge(CountedTableTest::append);
            table.put(bytes("a"), bytes("1"));
            table.add(bytes("b"), bytes("2"));
            table.add(bytes("c"), bytes(END));
            assertEquals(2, table.count(TableRange.ALL));
            table.add(bytes("a"), bytes(END));
            assertEquals(1, table.count(TableRange.ALL));
            assertArrayEquals(bytes("b"), table.at(0));
            table.drop();
            assertEquals(0, table.count(TableRange.ALL));
        }
    }

    @Test
    void aTableThatKeepsNoCountsSaysSo() {
        try (Store store = Store.open(options())) {
            OrderedTable plain = store.table("plain");
            plain.put(bytes("key"), bytes("value"));
            StoreException refused =
                    assertThrows(StoreException.class, () -> plain.count(TableRange.ALL));
            assertEquals(StoreException.Kind.INVALID, refused.kind());
            assertTrue(refused.getMessage().contains("`plain` keeps no counts"), refused::toString);
            assertThrows(StoreException.class, () -> plain.at(0));
            assertThrows(StoreException.class, () -> store.countedTable("plain"));
            OrderedTable counted = store.countedTable("counted");
            assertThrows(IllegalArgumentException.class, () -> counted.at(-1));
            TableRange bounds = TableRange.ALL.from(bytes("a"));
            assertThrows(IllegalArgumentException.class, () -> counted.scanFrom(0, bounds));
            try (TableCursor none = counted.scanFrom(7, TableRange.ALL)) {
                assertFalse(none.next());
            }
        }
    }

    @Test
    void anEstimateIsAsFarOffAsItSaysAtMost() {
        for (int life = 0; life < 2; life++) {
            try (Store store = Store.open(options())) {
                OrderedTable table = store.table("plain");
                if (life == 0) {
                    assertEquals(new RowEstimate(0, OptionalLong.of(0)),
                            table.estimate(TableRange.ALL));
                    for (int number = 0; number < KEYS; number++) {
                        table.put(bytes(key(number)), bytes("a value"));
                    }
                }
                TableRange range = TableRange.ALL.from(bytes(key(500))).below(bytes(key(2_500)));
                RowEstimate some = table.estimate(range);
                long error = some.error().orElseThrow();
                assertTrue(Math.abs(some.rows() - 2_000) <= error, some.toString());
                assertTrue(error < 1_500, some.toString());
            }
        }
    }
}
