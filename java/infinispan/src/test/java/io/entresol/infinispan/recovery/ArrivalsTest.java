package io.entresol.infinispan.recovery;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertThrows;
import static org.testng.Assert.assertTrue;

import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import io.reactivex.rxjava3.core.Flowable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.time.ControlledTimeService;
import org.infinispan.commons.time.TimeService;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.marshall.persistence.impl.MarshalledEntryUtil;
import org.infinispan.notifications.cachelistener.CacheNotifier;
import org.infinispan.notifications.cachelistener.event.TopologyChangedEvent;
import org.infinispan.test.TestingUtil;
import org.infinispan.topology.CacheTopology;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/** Entries that come from other nodes into a store, without any cluster. */
@Test(groups = "unit", testName = "infinispan.ArrivalsTest")
public class ArrivalsTest {
    private static final long MIB = 1 << 20;
    private static final byte[] KEY = bytes("key");
    /** Of a cluster within this process. */
    private static final String STACK = """
            <config xmlns="urn:org:jgroups">
              <SHARED_LOOPBACK/><SHARED_LOOPBACK_PING/>
              <pbcast.NAKACK2/><UNICAST3/><pbcast.STABLE/><pbcast.GMS/>
            </config>
            """;

    private final ControlledTimeService time = new ControlledTimeService();
    private String folder;
    private Store store;
    private Arrivals arrivals;
    private Arrivals.Settling settling;

    @BeforeMethod(alwaysRun = true)
    protected void open() throws IOException {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        Files.createDirectories(Path.of(folder));
        store = Store.open(StoreOptions.on(Path.of(folder, "data")).capacity(64 * MIB)
                .memory(64 * MIB));
        AdvancedCache<?, ?> cache = mock(AdvancedCache.class);
        doAnswer(call -> settling = call.getArgument(0))
                .when(cache).addListener(any());
        arrivals = Arrivals.into(cache, store::partition, Arrivals.Kept.NOTHING);
        arrivals.own(IntSets.immutableSet(0)).toCompletableFuture().join();
    }

    @AfterMethod(alwaysRun = true)
    protected void close() {
        store.close();
        Util.recursiveFileRemove(folder);
    }

    public void whileASegmentComesWhatUsersDidStays() {
        store.partition(0).put(KEY, bytes("of a user"));
        come(0, KEY, "older");
        assertEquals(text(KEY), "of a user");
        store.partition(0).remove(KEY);
        arrivals.removing(0, KEY);
        come(0, KEY, "older");
        assertNull(text(KEY));
        come(0, bytes("other"), "value");
        assertEquals(text(bytes("other")), "value");
    }

    public void nothingIsWantedOfASegmentThatUsersClearedWhileItCame() {
        arrivals.clearing();
        come(0, KEY, "older");
        assertEquals(store.count(), 0);
    }

    /** It was taken for a segment that users had cleared: flash kept the value that had lost. */
    public void whatAMergeResolvedReplacesWhatTheStoreHas() {
        settle();
        come(0, bytes("other"), "resolved");
        assertEquals(store.partition(0).count(), 1);
        store.partition(0).put(KEY, bytes("lost"));
        come(0, KEY, "resolved");
        assertEquals(text(KEY), "resolved");
    }

    public void whatUsersClearedBeforeAllWasHereDoesNotCountAfterwards() {
        arrivals.clearing();
        settle();
        come(0, KEY, "resolved");
        assertEquals(text(KEY), "resolved");
    }

    /**
     * A node that was alone noted each key that users removed until another one joined: Java's heap
     * grew by them.
     */
    public void whatUsersRemoveIsNotNotedWhereNothingComes() {
        settle();
        arrivals.own(IntSets.immutableSet(1)).toCompletableFuture().join();
        arrivals.removing(1, KEY);
        come(1, KEY, "resolved");
        assertEquals(store.partition(1).count(), 1);
    }

    public void nothingIsNotedInAClusterOfOne() throws Exception {
        alone((cache, flash) -> {
            cache.put("key", "value");
            cache.remove("key");
            come(cache, flash, "resolved");
            assertTrue(has(cache, flash));
        });
    }

    /** A purge left nothing, and an older value that another node sent took its place. */
    public void whatEndsWhileItsSegmentComesIsNotReplacedByWhatIsOlder() throws Exception {
        alone((cache, flash) -> {
            IntSet segment = IntSets.immutableSet(TestingUtil.getSegmentForKey("key", cache));
            CacheTopology rebalance = mock(CacheTopology.class);
            when(rebalance.getReadConsistentHash()).thenReturn(mock(ConsistentHash.class));
            when(rebalance.getWriteConsistentHash()).thenReturn(mock(ConsistentHash.class));
            TestingUtil.extractComponent(cache, CacheNotifier.class)
                    .notifyTopologyChanged(rebalance, rebalance, 9, true)
                    .toCompletableFuture().join();
            flash.removeSegments(segment).toCompletableFuture().join();
            flash.addSegments(segment).toCompletableFuture().join();
            cache.put("key", "newer", 5, TimeUnit.MILLISECONDS);
            time.advance(10);
            assertEquals((long) Flowable.fromPublisher(flash.purgeExpired()).count()
                    .blockingGet(), 1);
            come(cache, flash, "older");
            assertFalse(has(cache, flash));
        });
    }

    /** The thread's next write, of a user in another cache, was taken for what another node sent. */
    public void whatIsRefusedAsItComesSaysNothingOfTheNextWrite() throws Exception {
        alone((cache, flash) -> {
            try (Stream<Path> files = Files.walk(Path.of(folder, "alone"))) {
                for (Path file : files.filter(Files::isRegularFile).toList()) {
                    Files.delete(file);
                }
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
            flash.isAvailable().toCompletableFuture().join();
            assertThrows(CompletionException.class, () -> come(cache, flash, "value"));
            assertFalse(arrivals.comes());
        });
    }

    private void alone(BiConsumer<Cache<String, String>, EntresolStore<String, String>> use)
            throws IOException {
        Path stack = Files.writeString(Path.of(folder, "stack.xml"), STACK);
        GlobalConfigurationBuilder global = GlobalConfigurationBuilder.defaultClusteredBuilder();
        global.transport().addProperty("configurationFile", stack.toString());
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.clustering().cacheMode(CacheMode.DIST_SYNC);
        stored.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder).capacity("64MiB").memory("64MiB");
        try (DefaultCacheManager alone = new DefaultCacheManager(global.build())) {
            alone.defineConfiguration("alone", stored.build());
            TestingUtil.replaceComponent(alone, TimeService.class, time, true);
            Cache<String, String> cache = alone.getCache("alone");
            use.accept(cache, TestingUtil.getFirstStore(cache));
        }
    }

    private static void come(Cache<String, String> cache, EntresolStore<String, String> flash,
            String value) {
        flash.ignoreCommandWithFlags(FlagBitSets.PUT_FOR_STATE_TRANSFER);
        flash.write(TestingUtil.getSegmentForKey("key", cache),
                MarshalledEntryUtil.create("key", value, cache)).toCompletableFuture().join();
    }

    private static boolean has(Cache<String, String> cache, EntresolStore<String, String> flash) {
        return flash.containsKey(TestingUtil.getSegmentForKey("key", cache), "key")
                .toCompletableFuture().join();
    }

    public void whatUsersRemoveIsNotedOfASegmentThatComesInARebalance() {
        settle();
        rebalance();
        arrivals.own(IntSets.immutableSet(1)).toCompletableFuture().join();
        arrivals.removing(1, KEY);
        come(1, KEY, "older");
        assertEquals(store.partition(1).count(), 0);
    }

    public void whatComesToANodeThatDoesNotOwnItIsLeftOut() {
        come(1, KEY, "value");
        arrivals.disown(IntSets.immutableSet(0)).toCompletableFuture().join();
        come(0, KEY, "value");
        settle();
        come(0, KEY, "value");
        assertEquals(store.count(), 0);
    }

    /** As Infinispan does: the flags, then the write. */
    private void come(int segment, byte[] key, String value) {
        arrivals.expect(FlagBitSets.PUT_FOR_STATE_TRANSFER);
        assertTrue(arrivals.comes());
        arrivals.put(segment, key, List.of(ByteBuffer.wrap(bytes(value))))
                .toCompletableFuture().join();
    }

    /** A topology in which all owners have what they own. */
    private void settle() {
        ConsistentHash hash = mock(ConsistentHash.class);
        install(hash, hash);
    }

    /** A topology in which some are written to that are not read from yet. */
    private void rebalance() {
        install(mock(ConsistentHash.class), mock(ConsistentHash.class));
    }

    private void install(ConsistentHash read, ConsistentHash written) {
        TopologyChangedEvent<?, ?> event = mock(TopologyChangedEvent.class);
        when(event.isPre()).thenReturn(true);
        when(event.getReadConsistentHashAtEnd()).thenReturn(read);
        when(event.getWriteConsistentHashAtEnd()).thenReturn(written);
        settling.topologyChanged(event);
    }

    private String text(byte[] key) {
        byte[] found = store.partition(0).get(key);
        return found == null ? null : new String(found, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
