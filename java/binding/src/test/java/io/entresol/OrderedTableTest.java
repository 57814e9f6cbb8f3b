package io.entresol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Ordered tables against a map; {@code entresol.seed}, printed, chooses the operations. */
class OrderedTableTest {
    private static final long MIB = 1 << 20;
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int THREADS = 6;
    private static final int TURNS = 1_500;
    private static final int KEYS = 300;
    /** A part that ends its row. */
    private static final byte[] END = {'-'};

    @TempDir
    Path folder;

    private StoreOptions options() {
        return StoreOptions.on(folder.resolve("data")).capacity(96 * MIB).memory(48 * MIB)
                .orderedTables(16 * MIB).waitingChanges(200_000).durability(Durability.MEMORY);
    }

    @Test
    void eachTableHasFiguresOfItsOwn() {
        try (Store store = Store.open(options())) {
            assertEquals(List.of(), store.tableFigures());
            byte[] other = {-1, 0};
            store.table("one").put(bytes("key"), new byte[7]);
            store.table(other).put(bytes("a"), new byte[1]);
            store.table(other).put(bytes("b"), new byte[1]);
            Map<String, TableFigures> found = new TreeMap<>();
            store.tableFigures().forEach(table -> found.put(Arrays.toString(table.name()), table));
            assertEquals(2, found.size());
            TableFigures one = found.get(Arrays.toString(bytes("one")));
            assertEquals(List.of(1L, 10L), List.of(one.changes(), one.changeBytes()));
            TableFigures two = found.get(Arrays.toString(other));
            assertEquals(List.of(2L, 4L, 2L), List.of(two.changes(), two.changeBytes(),
                    two.waitingChanges()));
            assertEquals(List.of(0L, 0L), List.of(two.pagesWritten(), two.pageBytes()));
            assertTrue(two.memoryBytes() > 0 && two.writeAmplification() == 0, two.toString());
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    private static NavigableMap<byte[], byte[]> map() {
        return new TreeMap<>(Arrays::compareUnsigned);
    }

    /** Writes parts one behind the other; one of them ends the row so far. */
    private static byte[] append(TableRow row) {
        byte[] value = row.base();
        for (int part = 0; part < row.parts(); part++) {
            value = appended(value, row.part(part));
        }
        return value;
    }

    private static byte[] appended(byte[] before, byte[] part) {
        if (Arrays.equals(part, END)) {
            return null;
        }
        byte[] base = before == null ? new byte[0] : before;
        byte[] all = Arrays.copyOf(base, base.length + part.length);
        System.arraycopy(part, 0, all, base.length, part.length);
        return all;
    }

    /** One thread's keys, and what they should hold. */
    private static final class Work {
        private final Store store;
        private final List<OrderedTable> tables;
        private final List<NavigableMap<byte[], byte[]>> models;
        private final Random random;
        private final byte thread;

        Work(Store store, List<NavigableMap<byte[], byte[]>> models, int thread) {
            this.store = store;
            this.models = models;
            this.thread = (byte) (thread * 40);
            tables = List.of(store.table("first"), store.table("second"));
            random = new Random(SEED * 31 + thread);
        }

        void run(int turns) {
            try (TableBatch batch = store.batch()) {
                for (int turn = 0; turn < turns; turn++) {
                    switch (random.nextInt(6)) {
                        case 0 -> checkSome();
                        case 1 -> putOne();
                        case 2 -> conditional(batch.clear());
                        default -> write(batch.clear());
                    }
                }
            }
        }

        private byte[] key() {
            byte[] number = bytes(String.format("%03d", random.nextInt(KEYS)));
            return ByteBuffer.allocate(4).put(thread).put(number).array();
        }

        private byte[] value() {
            byte[] value = new byte[random.nextInt(200)];
            random.nextBytes(value);
            return value;
        }

        private void putOne() {
            byte[] key = key();
            byte[] value = value();
            ByteBuffer direct = ByteBuffer.allocateDirect(value.length + 1).put(0, new byte[] {7});
            direct.position(1).put(value).position(1);
            tables.get(0).put(ByteBuffer.wrap(key), direct);
            models.get(0).put(key, value);
        }

        private void write(TableBatch batch) {
            for (int count = 1 + random.nextInt(8); count > 0; count--) {
                int table = random.nextInt(2);
                byte[] key = key();
                byte[] value = random.nextInt(10) == 0 ? END : value();
                Map<byte[], byte[]> model = models.get(table);
                switch (random.nextInt(4)) {
                    case 0 -> {
                        batch.remove(tables.get(table), key);
                        model.remove(key);
                    }
                    case 1 -> {
                        batch.put(tables.get(table), key, value);
                        model.put(key, value);
                    }
                    default -> {
                        batch.add(tables.get(table), key, value);
                        byte[] now = appended(model.get(key), value);
                        if (now == null) {
                            model.remove(key);
                        } else {
                            model.put(key, now);
                        }
                    }
                }
            }
            assertTrue(batch.write(random.nextInt(50) == 0 ? Durability.SYNCED : null));
        }

        private void conditional(TableBatch batch) {
            byte[] key = key();
            byte[] value = value();
            byte[] before = models.get(1).get(key);
            boolean holds = random.nextBoolean();
            if (before == null) {
                batch = holds ? batch.ifAbsent(tables.get(1), key)
                        : batch.ifPresent(tables.get(1), key);
            } else {
                batch = holds ? batch.ifValue(tables.get(1), key, before)
                        : batch.ifAbsent(tables.get(1), key);
            }
            assertEquals(holds, batch.put(tables.get(1), key, value).write());
            assertEquals(holds ? -1 : 0, batch.refused());
            if (holds) {
                models.get(1).put(key, value);
            }
        }

        void checkSome() {
            int table = random.nextInt(2);
            NavigableMap<byte[], byte[]> model = models.get(table);
            byte[] key = key();
            assertArrayEquals(model.get(key), tables.get(table).get(key));
            byte[] low = key();
            byte[] high = key();
            TableRange range = TableRange.ALL.from(low).below(high).pageBytes(1 << 10);
            if (Arrays.compareUnsigned(low, high) > 0) {
                assertFalse(tables.get(table).scan(range).next());
                return;
            }
            NavigableMap<byte[], byte[]> expected = model.subMap(low, true, high, false);
            if (random.nextBoolean()) {
                expected = expected.descendingMap();
                range = range.descending();
            }
            int limit = random.nextInt(40);
            check(expected, tables.get(table).scan(range.limit(limit)), limit);
        }

        static void check(Map<byte[], byte[]> expected, TableCursor cursor, int limit) {
            try (cursor) {
                int rows = 0;
                for (Map.Entry<byte[], byte[]> row : expected.entrySet()) {
                    if (rows++ == limit) {
                        break;
                    }
                    assertTrue(cursor.next(), "row " + rows);
                    assertArrayEquals(row.getKey(), cursor.key());
                    assertArrayEquals(row.getValue(), cursor.value());
                }
                assertFalse(cursor.next());
            }
        }

        void checkAll() {
            for (int table = 0; table < 2; table++) {
                TableRange own = TableRange.startingWith(new byte[] {thread});
                check(models.get(table), tables.get(table).scan(own), Integer.MAX_VALUE);
                check(models.get(table).descendingMap(),
                        tables.get(table).scan(own.descending()), Integer.MAX_VALUE);
            }
        }
    }

    @Test
    void rowsAreThoseOfAMapForManyThreadsAndAfterReopening() throws Exception {
        System.out.println("ordered tables: -Dentresol.seed=" + SEED);
        List<List<NavigableMap<byte[], byte[]>>> models = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
            models.add(List.of(map(), map()));
        }
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        for (int life = 0; life < 3; life++) {
            try (Store store = Store.open(options())) {
                for (String name : List.of("first", "second")) {
                    store.table(name).merge(OrderedTableTest::append);
                }
                List<Future<?>> works = new ArrayList<>();
                for (int thread = 0; thread < THREADS; thread++) {
                    Work work = new Work(store, models.get(thread), thread);
                    works.add(threads.submit(() -> {
                        work.checkAll();
                        work.run(TURNS);
                        work.checkAll();
                    }));
                }
                for (Future<?> work : works) {
                    work.get();
                }
                assertEquals(Optional.empty(), store.heldBack());
            }
        }
        threads.shutdown();
    }

    @Test
    void aRowIsReadWhereItLies() {
        try (Store store = Store.open(options())) {
            OrderedTable table = store.table("t");
            table.put(bytes("key"), bytes("base"));
            table.add(bytes("key"), bytes("one"));
            table.add(bytes("key"), bytes("three"));
            StoreException unfolded =
                    assertThrows(StoreException.class, () -> table.get(bytes("key")));
            assertTrue(unfolded.getMessage().contains("merge function"), unfolded.getMessage());
            assertEquals("key=base+one+three", table.read(bytes("key"), row -> {
                byte[] copy = "....base".getBytes(UTF_8);
                row.copyKey(copy, 0);
                row.copyBase(copy, 4);
                assertEquals("key.base", new String(copy, UTF_8));
                assertTrue(row.partSlice(1).isReadOnly());
                assertEquals("three", UTF_8.decode(row.partSlice(1)).toString());
                assertThrows(IndexOutOfBoundsException.class, () -> row.part(2));
                assertThrows(IndexOutOfBoundsException.class, () -> row.copyKey(copy, 6));
                return UTF_8.decode(row.keySlice()) + "=" + UTF_8.decode(row.baseSlice())
                        + "+" + new String(row.part(0), UTF_8) + "+"
                        + new String(row.part(1), UTF_8);
            }));
            assertNull(table.read(bytes("nobody"), TableRow::base));
            try (TableCursor cursor = store.table("t").scanUnfolded(TableRange.ALL)) {
                assertTrue(cursor.next());
                assertEquals(2, cursor.parts());
                assertFalse(cursor.next());
            }
            table.merge(row -> bytes("folded"));
            assertArrayEquals(bytes("folded"), store.table("t").get(bytes("key")));
        }
    }

    @Test
    void rowsEndAsTheirFunctionSays() {
        AtomicInteger seen = new AtomicInteger();
        MergeFunction ends = new MergeFunction() {
            @Override
            public byte[] fold(TableRow row) {
                seen.incrementAndGet();
                return row.base()[0] == 'x' ? null : KEEP;
            }

            @Override
            public boolean foldsAllRows() {
                return true;
            }
        };
        try (Store store = Store.open(options())) {
            OrderedTable table = store.table("t");
            table.merge(ends);
            try (TableBatch batch = store.batch()) {
                for (int number = 0; number < 4000; number++) {
                    byte[] key = bytes(String.format("%05d", number));
                    batch.put(table, key, bytes((number % 3 == 0 ? "x" : "y") + number));
                    if (number % 50 == 49) {
                        batch.write();
                        batch.clear();
                    }
                }
            }
            assertNull(table.get(bytes("00000")));
            try (TableCursor rows = table.scan(TableRange.ALL.limit(10))) {
                for (int number : new int[] {1, 2, 4, 5, 7, 8, 10, 11, 13, 14}) {
                    assertTrue(rows.next());
                    assertArrayEquals(bytes("y" + number), rows.value());
                }
                assertFalse(rows.next());
            }
        }
        assertTrue(seen.get() > 3000, seen.get() + " rows");
        try (Store store = Store.open(options())) {
            OrderedTable table = store.table("t");
            assertNull(table.read(bytes("00000"), TableRow::base), "merged at the close");
            assertArrayEquals(bytes("y1"), table.get(bytes("00001")));
        }
    }

    @Test
    void aFunctionThatThrowsHoldsItsLeafBackAndWritersAreToldWhy() {
        StoreOptions options = options().waitingChanges(30_000);
        byte[] part = new byte[300];
        int[] written = {0};
        try (Store store = Store.open(options)) {
            OrderedTable table = store.table("bad");
            table.merge(row -> {
                throw new IllegalStateException("out of order");
            });
            StoreException refused = assertThrows(StoreException.class, () -> {
                for (; written[0] < 1000; written[0]++) {
                    table.add(bytes("key " + written[0] % 20), part);
                }
            });
            assertEquals(StoreException.Kind.BUSY, refused.kind());
            for (String told : List.of(refused.getMessage(), store.heldBack().orElseThrow())) {
                assertTrue(told.contains("out of order") && told.contains("`bad`"), told);
            }
            // Reads go on, and the function may be replaced.
            assertEquals(Integer.valueOf(written[0] / 20),
                    table.read(bytes("key 19"), TableRow::parts));
            table.merge(OrderedTableTest::append);
            for (int more = 0; more < 200; more++) {
                table.add(bytes("key " + (written[0]++ % 20)), part);
            }
            assertEquals(Optional.empty(), store.heldBack());
        }
        try (Store store = Store.open(options)) {
            OrderedTable table = store.table("bad");
            table.merge(OrderedTableTest::append);
            for (int key = 0; key < 20; key++) {
                int parts = (written[0] + 19 - key) / 20;
                assertEquals(parts * part.length, table.get(bytes("key " + key)).length, "" + key);
            }
        }
    }

    @Test
    void valuesLargerThanPagesComeBackByGetsAndScans() {
        int[] sizes = {10, 600, 9_000, 100_000, 2_000_000};
        try (Store store = Store.open(options())) {
            OrderedTable table = store.table("t");
            for (int number = 0; number < sizes.length; number++) {
                table.put(bytes("key " + number), filled(sizes[number], number));
            }
            assertLarge(table, sizes);
            // Smaller and larger than before.
            for (int number = 0; number < sizes.length; number++) {
                int size = sizes[sizes.length - 1 - number];
                table.put(bytes("key " + number), filled(size, number));
            }
        }
        int[] reversed = {2_000_000, 100_000, 9_000, 600, 10};
        try (Store store = Store.open(options())) {
            assertLarge(store.table("t"), reversed);
        }
    }

    private static byte[] filled(int size, int number) {
        byte[] value = new byte[size];
        Arrays.fill(value, (byte) number);
        return value;
    }

    private static void assertLarge(OrderedTable table, int[] sizes) {
        for (int number = 0; number < sizes.length; number++) {
            assertArrayEquals(filled(sizes[number], number), table.get(bytes("key " + number)));
        }
        try (TableCursor rows = table.scan(TableRange.ALL)) {
            for (int number = 0; number < sizes.length; number++) {
                assertTrue(rows.next());
                assertArrayEquals(filled(sizes[number], number), rows.value());
            }
            assertFalse(rows.next());
        }
    }

    @Test
    void aFunctionThatUsesTheStoreIsRefused() {
        try (Store store = Store.open(options().waitingChanges(10_000))) {
            OrderedTable table = store.table("t");
            table.merge(row -> table.get(bytes("other")));
            assertThrows(StoreException.class, () -> {
                for (int number = 0; number < 1000; number++) {
                    table.add(bytes("key"), new byte[100]);
                }
            });
            String told = store.heldBack().orElseThrow();
            assertTrue(told.contains("a merge function used the store's tables"), told);
            table.drop();
            assertNull(table.get(bytes("key")));
        }
    }

    @Test
    void whatIsOutsideTheLimitsIsRefusedWithASentence() throws Exception {
        Store store = Store.open(options());
        OrderedTable table = store.table("t");
        assertInvalid("0 bytes", () -> table.get(new byte[0]));
        assertInvalid("0 bytes", () -> table.put(new byte[0], bytes("v")));
        assertInvalid("70000 bytes", () -> table.get(new byte[70_000]));
        assertInvalid("70000 bytes", () -> table.put(new byte[70_000], bytes("v")));
        assertInvalid("name has 0 bytes", () -> store.table(""));
        assertInvalid("without a change", () -> store.batch().write());
        assertInvalid("a batch of", () -> {
            try (TableBatch large = store.batch()) {
                for (int number = 0; number < 4000; number++) {
                    large.put(table, bytes("key" + number), new byte[500]);
                }
                large.write();
            }
        });
        assertThrows(NullPointerException.class, () -> table.get((byte[]) null));
        assertThrows(NullPointerException.class, () -> table.put(bytes("k"), null));
        assertThrows(IllegalArgumentException.class, () -> TableRange.ALL.pageBytes(1));
        assertThrows(IllegalArgumentException.class, () -> TableRange.ALL.limit(-1));
        StoreOptions plain = StoreOptions.on(folder.resolve("plain")).capacity(64 * MIB);
        try (Store other = Store.open(plain.orderedTables(4 * MIB))) {
            OrderedTable foreign = other.table("t");
            assertThrows(IllegalArgumentException.class,
                    () -> store.batch().put(foreign, bytes("k"), bytes("v")));
        }
        try (Store other = Store.open(plain)) {
            assertInvalid("no journal", () -> other.table("t"));
        }
        TableCursor open = table.scan(TableRange.ALL);
        store.close();
        for (Runnable late : new Runnable[] {() -> table.get(bytes("k")),
                () -> table.put(bytes("k"), bytes("v")), open::next, table::drop,
                () -> table.merge(row -> null), () -> store.table("t"), store::heldBack}) {
            StoreException closed = assertThrows(StoreException.class, late::run);
            assertEquals(StoreException.Kind.POISONED, closed.kind());
            assertTrue(closed.getMessage().contains("closed"), closed.getMessage());
        }
    }

    private static void assertInvalid(String said, Runnable call) {
        StoreException refused = assertThrows(StoreException.class, call::run);
        assertEquals(StoreException.Kind.INVALID, refused.kind());
        assertTrue(refused.getMessage().contains(said), refused.getMessage());
    }

    @Test
    void callsUnderWayEndWhenTheStoreIsClosed() throws Exception {
        Store store = Store.open(options().durability(Durability.SYNCED));
        OrderedTable table = store.table("t");
        AtomicInteger acknowledged = new AtomicInteger();
        List<Future<Integer>> writers = new ArrayList<>();
        ExecutorService threads = Executors.newFixedThreadPool(40);
        for (int thread = 0; thread < 40; thread++) {
            byte first = (byte) thread;
            writers.add(threads.submit(() -> {
                for (int number = 0;; number++) {
                    byte[] key = ByteBuffer.allocate(5).put(first).putInt(number).array();
                    try {
                        table.put(key, key);
                    } catch (StoreException closed) {
                        assertTrue(closed.getMessage().contains("closed"), closed.getMessage());
                        return number;
                    }
                    acknowledged.incrementAndGet();
                }
            }));
        }
        while (acknowledged.get() < 400) {
            Thread.onSpinWait();
        }
        store.close();
        try (Store again = Store.open(options())) {
            for (int thread = 0; thread < 40; thread++) {
                TableRange own = TableRange.startingWith(new byte[] {(byte) thread});
                int rows = 0;
                try (TableCursor cursor = again.table("t").scan(own)) {
                    for (; cursor.next(); rows++) {
                        assertArrayEquals(cursor.key(), cursor.value());
                    }
                }
                int told = writers.get(thread).get();
                assertTrue(rows == told || rows == told + 1, rows + " rows of " + told);
            }
        }
        threads.shutdown();
    }
}
