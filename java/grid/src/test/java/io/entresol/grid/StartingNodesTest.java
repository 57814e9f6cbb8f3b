package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.CustomStoreConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.globalstate.ConfigurationStorage;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.remoting.transport.Transport;
import org.infinispan.remoting.transport.jgroups.JGroupsTransport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes of one process: the second acts on the progress of the first. */
class StartingNodesTest {
    private static final String STACK = """
            <config xmlns="urn:org:jgroups">
              <SHARED_LOOPBACK bind_addr="127.0.0.1" diag.enabled="false"/>
              <SHARED_LOOPBACK_PING/>
              <MERGE3 min_interval="500" max_interval="1500"/>
              <FD_ALL3 timeout="20000" interval="5000"/>
              <VERIFY_SUSPECT2 timeout="500"/>
              <pbcast.NAKACK2 use_mcast_xmit="false"/>
              <UNICAST3/>
              <pbcast.STABLE/>
              <pbcast.GMS print_local_addr="false" join_timeout="1000"/>
              <UFC max_credits="4M"/>
              <MFC max_credits="4M"/>
              <FRAG4/>
            </config>
            """;

    @TempDir
    Path folder;

    private final String cluster = UUID.randomUUID().toString();

    /**
     * A deployment waits in a write of Infinispan's until all nodes have opened the store. After
     * fifteen seconds it failed, and left a name that nobody had and nobody could have.
     */
    @Test
    void aDeploymentWaitsForStoresThatTakeLongToOpenAndAnUndeploymentForIt() throws Exception {
        try (DefaultCacheManager first = node("a"); DefaultCacheManager second = node("b")) {
            first.start();
            second.start();
            // What another node waits in can be parsed all the same.
            DeployedCaches.of(second).orElseThrow().take("first",
                    Endpoints.xml(Map.of("first", new ConfigurationBuilder().build())));
            TestGrid.await(() -> second.isRunning("first"), "it was not taken");
            for (DefaultCacheManager node : List.of(first, second)) {
                AdvancedCache<?, ?> state = GlobalComponentRegistry.componentOf(node,
                        GlobalConfigurationManager.class).getStateCache().getAdvancedCache();
                long hour = TimeUnit.HOURS.toMillis(1);
                assertTrue(state.getRpcManager().getSyncRpcOptions().timeout() > hour);
                assertTrue(state.getCacheConfiguration().locking().lockAcquisitionTimeout() > hour);
            }
        }
    }

    /** Those that the first had not come to, it took for undeployed. */
    @Test
    void aNodeForgetsNoCacheThatOneWhichDiesInItsStartHadNotComeTo() throws Exception {
        ConfigurationBuilder slow = new ConfigurationBuilder();
        slow.persistence().addStore(CustomStoreConfigurationBuilder.class)
                .customStoreClass(SlowStore.class);
        for (String node : List.of("a", "b")) {
            Path file = folder.resolve(node + "/caches.xml");
            Files.createDirectories(file.getParent());
            Files.writeString(file, Endpoints.xml(Map.of("first", slow.build(),
                    "second", plain(), "third", plain())));
        }
        SlowStore.begin(folder.resolve("slow/file"));
        try (DefaultCacheManager first = node("a"); DefaultCacheManager second = node("b")) {
            CompletableFuture<Void> dies = CompletableFuture.runAsync(first::start);
            SlowStore.starts.await();
            CompletableFuture<Void> starting = CompletableFuture.runAsync(second::start);
            TestGrid.await(() -> DeployedCaches.of(second).isPresent(), "it did not come up");
            ((JGroupsTransport) GlobalComponentRegistry.componentOf(first, Transport.class))
                    .getChannel().close();
            SlowStore.end.countDown();
            starting.join();
            assertEquals(List.of("first", "second", "third"), saved("b"));
            for (String name : saved("b")) {
                assertTrue(second.isRunning(name), name);
            }
            dies.handle((done, failure) -> null).join();
        }
    }

    /** A cluster that has no caches was taken for one that has not come to them. */
    @Test
    void theOnlyCacheThatIsRemovedWhileANodeIsAwayDoesNotComeBackWithIt() throws Exception {
        try (DefaultCacheManager first = node("a")) {
            first.start();
            try (DefaultCacheManager second = node("b")) {
                second.start();
                first.administration().createCache("first", plain());
                assertEquals(List.of("first"), saved("b"));
            }
            first.administration().removeCache("first");
            try (DefaultCacheManager again = node("b")) {
                again.start();
                assertFalse(again.cacheExists("first"));
                assertFalse(first.cacheExists("first"));
                assertEquals(List.of(), saved("b"));
            }
        }
    }

    /** What the cluster keeps of its caches is not filled again then: one node lacked them all. */
    @Test
    void nodesOfAClusterThatWasStoppedHaveItsCachesAgain() throws Exception {
        try (DefaultCacheManager first = node("a"); DefaultCacheManager second = node("b")) {
            first.start();
            second.start();
            first.administration().createCache("first", plain());
            first.shutdownAllCaches();
        }
        try (DefaultCacheManager first = node("a"); DefaultCacheManager second = node("b")) {
            CompletableFuture<Void> starting = CompletableFuture.runAsync(first::start);
            second.start();
            starting.join();
            assertEquals(List.of("first"), saved("a"));
            assertEquals(List.of("first"), saved("b"));
        }
    }

    private DefaultCacheManager node(String name) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.transport().defaultTransport().clusterName(cluster).nodeName(name)
                .addProperty(JGroupsTransport.CONFIGURATION_STRING, STACK);
        global.globalState().enable().persistentLocation(folder.resolve(name).toString())
                .configurationStorage(ConfigurationStorage.CUSTOM)
                .configurationStorageSupplier(DeployedCaches::new);
        return new DefaultCacheManager(global.build(), false);
    }

    private static Configuration plain() {
        return new ConfigurationBuilder().build();
    }

    private List<String> saved(String node) throws IOException {
        String text = Files.readString(folder.resolve(node + "/caches.xml"));
        return Stream.of("first", "second", "third")
                .filter(name -> text.contains("\"" + name + "\"")).toList();
    }
}
