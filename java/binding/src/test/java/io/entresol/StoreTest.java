package io.entresol;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class StoreTest {
    private static final long MIB = 1 << 20;
    /** For what would otherwise never end. */
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @TempDir
    Path folder;

    private StoreOptions options() {
        return StoreOptions.on(folder.resolve("data")).capacity(64 * MIB).memory(64 * MIB);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] value(long seed, int length) {
        byte[] value = new byte[length];
        new Random(seed).nextBytes(value);
        return value;
    }

    @Test
    void entriesAreThereUntilRemovedAndAfterReopening() {
        long version;
        try (Store store = Store.open(options())) {
            assertNull(store.get(bytes("absent")));
            version = store.put(bytes("key"), bytes("value"));
            store.put(bytes("gone"), bytes("value"));
            assertArrayEquals(bytes("value"), store.get(bytes("key")));
            assertTrue(store.contains(bytes("key")));
            assertTrue(store.remove(bytes("gone")));
            assertFalse(store.remove(bytes("gone")));
            assertFalse(store.contains(bytes("gone")));
            assertEquals(1, store.count());
        }
        try (Store store = Store.open(options())) {
            Entry entry = store.entry(bytes("key")).orElseThrow();
            assertArrayEquals(bytes("value"), entry.value());
            assertEquals(version, entry.version());
            assertEquals(1, store.count());
        }
    }

    @Test
    void aStoreGrowsToTheCapacityThatItIsOpenedWith() {
        long before;
        try (Store store = Store.open(options())) {
            store.put(bytes("key"), bytes("value"));
            before = store.statistics().capacityBytes();
        }
        try (Store store = Store.open(options().capacity(128 * MIB))) {
            assertArrayEquals(bytes("value"), store.get(bytes("key")));
            assertEquals(before + 64 * MIB, store.statistics().capacityBytes());
        }
    }

    @Test
    void keysAndValuesOfAllSizesComeBack() {
        try (Store store = Store.open(options())) {
            for (int length : new int[] {0, 1, 7, 8, 4096, 20_000, 70_000, 1 << 20, 9 << 20}) {
                byte[] key = value(length, Math.min(Math.max(length, 1), 64 << 10));
                byte[] value = value(length + 1, length);
                store.put(key, value);
                assertArrayEquals(value, store.get(key), "length " + length);
                ByteBuffer direct = ByteBuffer.allocateDirect(length + 2);
                direct.position(1);
                direct.put(value).position(1).limit(length + 1);
                byte[] padded = new byte[key.length + 3];
                System.arraycopy(key, 0, padded, 2, key.length);
                ByteBuffer slice = ByteBuffer.wrap(padded, 2, key.length);
                assertTrue(store.put(slice, direct, PutOptions.DEFAULT).isPresent());
                assertEquals(1, direct.position());
                assertArrayEquals(value, store.get(key), "length " + length);
                assertTrue(store.remove(key));
            }
        }
    }

    @Test
    void whatIsOutsideTheLimitsIsRefusedWithASentence() {
        try (Store store = Store.open(options())) {
            StoreException empty =
                    assertThrows(StoreException.class, () -> store.put(bytes(""), bytes("v")));
            assertEquals(StoreException.Kind.INVALID, empty.kind());
            assertTrue(empty.getMessage().contains("a key of 0 bytes"), empty.getMessage());
            byte[] longKey = new byte[(64 << 10) + 1];
            CompletableFuture<?> failed = store.getAsync(longKey).toCompletableFuture();
            CompletionException wrapped = assertThrows(CompletionException.class, failed::join);
            assertInstanceOf(StoreException.class, wrapped.getCause());
            assertThrows(IllegalArgumentException.class, () -> store.space(1 << 16));
            assertThrows(IllegalArgumentException.class, () -> store.partition(-1));
        }
        StoreException small = assertThrows(
                StoreException.class, () -> Store.open(options().memory(1)));
        assertTrue(small.getMessage().contains("a memory cap of 1 bytes"), small.getMessage());
        assertThrows(IllegalArgumentException.class, () -> Durability.parse("forever"));
    }

    @Test
    void aPutWithAConditionHappensOnlyWhereItHolds() {
        try (Store store = Store.open(options())) {
            byte[] key = bytes("key");
            assertTrue(store.put(key, bytes("1"), PutOptions.DEFAULT.ifPresent()).isEmpty());
            long first = store.put(key, bytes("2"), PutOptions.DEFAULT.ifAbsent()).orElseThrow();
            assertTrue(store.put(key, bytes("3"), PutOptions.DEFAULT.ifAbsent()).isEmpty());
            Optional<Long> next = store.put(key, bytes("4"), PutOptions.DEFAULT.ifVersion(first));
            assertTrue(store.put(key, bytes("5"), PutOptions.DEFAULT.ifVersion(first)).isEmpty());
            assertArrayEquals(bytes("4"), store.get(key));
            assertFalse(store.removeAsync(key, first).toCompletableFuture().join());
            assertTrue(store.removeAsync(key, next.orElseThrow()).toCompletableFuture().join());
        }
    }

    @Test
    void entriesEndByTheClockThatWasGiven() {
        AtomicLong now = new AtomicLong(1_000);
        try (Store store = Store.open(options().clock(now::get))) {
            byte[] key = bytes("key");
            store.put(key, bytes("v"), PutOptions.DEFAULT.expires(2_000).label(7));
            Entry entry = store.entry(key).orElseThrow();
            assertEquals(2_000, entry.expires());
            assertEquals(7, entry.label());
            now.set(1_999);
            assertTrue(store.contains(key));
            assertTrue(store.touch(key, 3_000));
            now.set(2_999);
            assertTrue(store.contains(key));
            now.set(3_000);
            assertNull(store.get(key));
            assertFalse(store.touch(key, 9_000));
        }
    }

    /** An entry that was to end before 1970 never did. */
    @Test
    void anEndOrAnIdleTimeBelowZeroIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> PutOptions.DEFAULT.expires(-1));
        assertThrows(IllegalArgumentException.class, () -> PutOptions.DEFAULT.idle(-1));
        try (Store store = Store.open(options())) {
            byte[] key = bytes("key");
            store.put(key, bytes("v"), PutOptions.DEFAULT.expires(0).idle(0));
            assertThrows(IllegalArgumentException.class, () -> store.touch(key, -1));
            assertThrows(IllegalArgumentException.class, () -> store.touchAsync(key, -1));
            assertEquals(0, store.entry(key).orElseThrow().expires());
        }
    }

    @Test
    void spacesAndPartitionsAreCountedScannedAndDroppedByThemselves() {
        try (Store store = Store.open(options())) {
            for (int number = 0; number < 2_000; number++) {
                byte[] key = bytes("key " + number);
                store.partition(number % 10).put(key, bytes("default"));
                store.space(3).partition(number % 10).put(key, bytes("third"));
            }
            assertEquals(2_000, store.count());
            assertEquals(200, store.space(3).partition(4).count());
            store.space(3).partition(4).clear();
            assertEquals(1_800, store.space(3).count());
            assertEquals(0, store.space(3).partition(4).count());
            assertEquals(200, store.partition(4).count());
            assertNull(store.space(3).partition(4).get(bytes("key 4")));
            int[] wanted = {1, 4, 9};
            List<Entry> scanned =
                    Collecting.all(store.space(3).scan(wanted, Entries.Contents.ENTRIES), 7);
            assertEquals(400, scanned.stream().map(e -> new String(e.key())).distinct().count());
            assertTrue(scanned.stream().allMatch(e -> new String(e.value()).equals("third")));
            store.space(3).clear();
            assertEquals(List.of(), Collecting.all(store.space(3).scan(), 1));
            List<Entry> keys = Collecting.all(store.scan(Entries.Contents.KEYS), Long.MAX_VALUE);
            assertEquals(2_000, keys.size());
            assertTrue(keys.stream().allMatch(e -> e.value().length == 0));
        }
    }

    @Test
    void aScanGivesNoMoreThanWasAskedForAndEndsWhenItIsCancelled() {
        try (Store store = Store.open(options())) {
            for (int number = 0; number < 1_000; number++) {
                store.put(bytes("key " + number), value(number, 100));
            }
            Collecting collecting = new Collecting(0);
            store.scan().subscribe(collecting);
            collecting.subscription.request(5);
            collecting.await(5);
            store.sync();
            assertEquals(5, collecting.entries().size());
            collecting.subscription.request(300);
            collecting.await(305);
            collecting.subscription.cancel();
            collecting.subscription.request(100);
            store.sync();
            assertEquals(305, collecting.entries().size());
            assertFalse(collecting.ended());
            Collecting wrong = new Collecting(0);
            store.scan().subscribe(wrong);
            wrong.subscription.request(0);
            wrong.awaitEnd();
            assertInstanceOf(IllegalArgumentException.class, wrong.failure());
        }
    }

    @Test
    void manyReadsInFlightComeFromTheDeviceAtEveryDurability() {
        for (String level : List.of("memory", "process", "flushed", "periodic:50", "synced")) {
            Durability durability = Durability.parse(level);
            StoreOptions options = options().durability(durability).cached(0).reformat();
            try (Store store = Store.open(options)) {
                List<CompletionStage<?>> puts = new ArrayList<>();
                for (int number = 0; number < 3_000; number++) {
                    puts.add(store.putAsync(bytes("key " + number), value(number, 10_000)));
                }
                puts.forEach(put -> put.toCompletableFuture().join());
                List<CompletionStage<Optional<Entry>>> gets = new ArrayList<>();
                for (int number = 0; number < 3_000; number++) {
                    gets.add(store.getAsync(bytes("key " + number)));
                }
                for (int number = 0; number < 3_000; number++) {
                    Entry entry = gets.get(number).toCompletableFuture().join().orElseThrow();
                    assertArrayEquals(value(number, 10_000), entry.value(), level + number);
                }
                assertTrue(store.statistics().flashHits() > 100, store.statistics().json());
                assertFalse(store.statistics().poisoned());
            }
        }
    }

    @Test
    void eachFigureHasANameAndAValue() {
        try (Store store = Store.open(options())) {
            store.put(bytes("key"), value(1, 100));
            StoreStatistics figures = store.statistics();
            for (String name : figures.names()) {
                assertTrue(figures.value(name) >= 0, name);
            }
            assertEquals(1, figures.value("puts"));
            assertEquals(0, figures.value("poisoned"));
            assertEquals(figures.writeAmplification(), figures.value("write_amplification"));
            assertFalse(StoreStatistics.isGauge("puts"));
            assertTrue(StoreStatistics.isGauge("entries"));
            assertEquals(0, figures.oldestPendingIoSeconds());
            assertTrue(StoreStatistics.isGauge("oldest_pending_io_seconds"));
            assertThrows(IllegalArgumentException.class, () -> figures.value("none"));
        }
    }

    @Test
    void whatWasBegunHasAnOutcomeWhenTheStoreCloses() {
        Store store = Store.open(options().durability(Durability.SYNCED));
        List<CompletableFuture<?>> puts = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            puts.add(store.putAsync(bytes("key " + number), value(number, 3_000))
                    .toCompletableFuture());
        }
        CompletableFuture<?> synced = store.syncAsync().toCompletableFuture();
        store.close();
        store.close();
        puts.forEach(CompletableFuture::join);
        synced.join();
        StoreException late = assertThrows(StoreException.class, () -> store.get(bytes("key 1")));
        assertEquals(StoreException.Kind.POISONED, late.kind());
        assertTrue(late.getMessage().contains("closed"), late.getMessage());
        assertThrows(StoreException.class, store::statistics);
        assertThrows(StoreException.class, store::count);
        try (Store again = Store.open(options())) {
            assertEquals(500, again.count());
        }
    }

    /** The second of two threads that close a store returned at once, its device still in use. */
    @Test
    void whoeverClosesAStoreMayOpenItAgainWhoeverElseClosesIt() throws Exception {
        for (int round = 0; round < 20; round++) {
            Store store = Store.open(options());
            for (int number = 0; number < 50; number++) {
                store.put(bytes("key " + number), value(number, 100_000));
            }
            CyclicBarrier both = new CyclicBarrier(2);
            CompletableFuture<Void> other = CompletableFuture.runAsync(() -> closed(store, both));
            closed(store, both);
            try (Store again = Store.open(options())) {
                assertEquals(50, again.count());
            }
            other.join();
        }
    }

    private static void closed(Store store, CyclicBarrier both) {
        try {
            both.await();
        } catch (InterruptedException | BrokenBarrierException failure) {
            throw new AssertionError(failure);
        }
        store.close();
    }

    /** Their refusals waited to be reaped, and a store that is closed reaps no more. */
    @Test
    void whatIsBegunAfterTheCloseIsRefusedAndNotWaitedFor() {
        Store store = Store.open(options());
        store.put(bytes("key"), bytes("value"));
        store.close();
        assertClosed(store::sync);
        assertClosed(store::clear);
        assertClosed(store.partition(1)::clear);
        Collecting scan = new Collecting(1);
        assertTimeoutPreemptively(PATIENCE, () -> {
            store.scan().subscribe(scan);
            scan.awaitEnd();
        });
        assertInstanceOf(StoreException.class, scan.failure());
        assertTrue(store.syncAsync().toCompletableFuture().isCompletedExceptionally());
        assertTrue(store.clearAsync().toCompletableFuture().isCompletedExceptionally());
    }

    private static void assertClosed(Executable call) {
        StoreException refused = assertTimeoutPreemptively(PATIENCE,
                () -> assertThrows(StoreException.class, call));
        assertEquals(StoreException.Kind.POISONED, refused.kind());
        assertTrue(refused.getMessage().contains("closed"), refused.getMessage());
    }

    @Test
    void aFullStoreRefusesWritesAndGoesOnReading() {
        try (Store store = Store.open(options().shards(1))) {
            StoreException full = assertThrows(StoreException.class, () -> {
                for (int number = 0; number < 8_000; number++) {
                    store.put(bytes("key " + number), value(number, 16_000));
                }
            });
            assertEquals(StoreException.Kind.FULL, full.kind());
            assertArrayEquals(value(0, 16_000), store.get(bytes("key 0")));
            store.clear();
            store.put(bytes("key"), bytes("value"));
        }
    }

    @Test
    void aCacheMakesRoomByItself() {
        try (Cache cache = Cache.open(options())) {
            for (int number = 0; number < 8_000; number++) {
                cache.put(bytes("key " + number), value(number, 16_000));
            }
            assertArrayEquals(value(7_999, 16_000), cache.get(bytes("key 7999")));
            long present = 0;
            for (int number = 0; number < 8_000; number++) {
                byte[] found = cache.get(bytes("key " + number));
                if (found != null) {
                    assertArrayEquals(value(number, 16_000), found);
                    present++;
                }
            }
            assertTrue(present > 500 && present < 8_000, present + " entries are left");
        }
    }

    @Test
    void encryptedStoresOpenWithTheirKeyAlone() {
        StoreOptions encrypted = options().encryptionKey(new byte[32]);
        try (Store store = Store.open(encrypted)) {
            store.put(bytes("key"), bytes("value"));
        }
        byte[] other = new byte[32];
        other[31] = 1;
        StoreException wrong = assertThrows(
                StoreException.class, () -> Store.open(options().encryptionKey(other)));
        assertEquals(StoreException.Kind.WRONG_KEY, wrong.kind());
        try (Store store = Store.open(encrypted.compression(Compression.ZSTD))) {
            assertArrayEquals(bytes("value"), store.get(bytes("key")));
            StoreException twice = assertThrows(
                    StoreException.class, () -> Store.open(encrypted));
            assertEquals(StoreException.Kind.DEVICE, twice.kind());
        }
    }

    /** The part before the comma was opened, or the file of instance 0. */
    @Test
    void aPathThatWouldBeReadAsAListOfDevicesIsRefused() {
        for (String name : List.of("a,b", "a{n}", "a ")) {
            String told = assertThrows(IllegalArgumentException.class,
                    () -> StoreOptions.on(Path.of("/tmp", name))).getMessage();
            assertTrue(told.startsWith("/tmp/" + name + ": "), told);
        }
    }

    @Test
    void aBlockingCallWhereOutcomesAreToldIsRefused() {
        StoreOptions direct = options().executor(Runnable::run).durability(Durability.SYNCED);
        try (Store store = Store.open(direct)) {
            CompletableFuture<Thread> refused = store.putAsync(bytes("key"), bytes("value"))
                    .thenApply(version -> {
                        Thread current = Thread.currentThread();
                        if (current.getName().equals("entresol outcomes")) {
                            assertThrows(IllegalStateException.class,
                                    () -> store.put(bytes("other"), bytes("value")));
                        }
                        return current;
                    })
                    .toCompletableFuture();
            refused.join();
        }
    }

    /** One such ended the thread that reaps, and with it every outcome that was yet to come. */
    @Test
    void anExecutorThatFailsHoldsUpNoOutcome() {
        for (Throwable failure : List.of(new IllegalStateException("no"), new AssertionError())) {
            StoreOptions failing = options().durability(Durability.SYNCED).executor(task -> {
                throw StoreTest.<RuntimeException>unchecked(failure);
            });
            try (Store store = Store.open(failing)) {
                for (int number = 0; number < 3; number++) {
                    byte[] key = bytes("key " + number);
                    assertTimeoutPreemptively(PATIENCE, () ->
                            store.putAsync(key, bytes("value")).toCompletableFuture().join());
                }
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable failure) throws T {
        throw (T) failure;
    }
}
