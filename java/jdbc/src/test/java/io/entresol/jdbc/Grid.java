package io.entresol.jdbc;

import io.entresol.StoreStatistics;
import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.commons.time.DefaultTimeService;
import org.infinispan.commons.time.TimeService;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.factories.impl.BasicComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;

/** A container of caches on flash, with an index in memory. */
final class Grid implements AutoCloseable {
    private static final String MEMBER = """
            <infinispan>
              <jgroups>
                <stack name="tests" extends="tcp">
                  <TCP bind_addr="127.0.0.1" bind_port="%d" port_range="0" diag.enabled="false"
                      stack.combine="COMBINE"/>
                  <TCPPING initial_hosts="%s" port_range="0" stack.combine="REPLACE"
                      stack.position="MPING"/>
                  <FD_SOCK2 offset="100" stack.combine="COMBINE"/>
                </stack>
              </jgroups>
              <cache-container>
                <transport stack="tests" cluster="sql" node-name="node-%d"/>
                <serialization><context-initializer class="io.entresol.jdbc.SchemaImpl"/>
                </serialization>
                <global-state><persistent-location path="%s"/></global-state>
              </cache-container>
            </infinispan>
            """;

    /** A clock that goes on when it is told to, too. */
    static final class Clock extends DefaultTimeService {
        private final AtomicLong ahead = new AtomicLong();

        void advance(long milliseconds) {
            ahead.addAndGet(milliseconds);
        }

        @Override
        public long wallClockTime() {
            return super.wallClockTime() + ahead.get();
        }

        @Override
        public Instant instant() {
            return super.instant().plusMillis(ahead.get());
        }
    }

    /** Lifespan, ms, of what the cache {@code ending} is told nothing of. */
    static final long ENDS_AFTER = 60_000;

    final DefaultCacheManager manager;
    final Clock clock = new Clock();
    private final CacheMode spread;

    Grid(Path folder) {
        this(folder, "256MiB", IndexStartupMode.NONE);
    }

    Grid(Path folder, String capacity, IndexStartupMode mode) {
        this(alone(folder), capacity, mode, CacheMode.LOCAL);
    }

    /** A node of a cluster, whose members listen on the ports. */
    static Grid member(Path folder, int number, List<Integer> ports) throws IOException {
        StringBuilder members = new StringBuilder();
        for (int port : ports) {
            members.append(members.isEmpty() ? "" : ",").append("127.0.0.1[").append(port)
                    .append(']');
        }
        String xml = MEMBER.formatted(ports.get(number), members, number,
                folder.resolve("node-" + number));
        Grid grid = new Grid(new DefaultCacheManager(new ByteArrayInputStream(
                xml.getBytes(StandardCharsets.UTF_8)), true), "64MiB", IndexStartupMode.NONE,
                CacheMode.DIST_SYNC);
        grid.manager.getCache("people");
        grid.manager.getCache("purchases");
        return grid;
    }

    private static DefaultCacheManager alone(Path folder) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder().nonClusteredDefault();
        global.globalState().enable().persistentLocation(folder.toString());
        global.serialization().addContextInitializer(new SchemaImpl());
        return new DefaultCacheManager(global.build());
    }

    private Grid(DefaultCacheManager manager, String capacity, IndexStartupMode mode,
            CacheMode spread) {
        this.manager = manager;
        this.spread = spread;
        BasicComponentRegistry components =
                GlobalComponentRegistry.componentOf(manager, BasicComponentRegistry.class);
        components.replaceComponent(TimeService.class.getName(), clock, false);
        components.rewire();
        define("people", capacity, mode, "sample.Person");
        define("purchases", "64MiB", mode, "sample.Purchase");
        define("numbered", "64MiB", mode, "sample.Person");
        define("documents", "64MiB", mode, "sample.Person");
        define("typed", "64MiB", mode, "sample.Typed");
        define("both", "64MiB", mode, "sample.Person", "sample.Purchase");
        ConfigurationBuilder ending = builder("64MiB", mode, "sample.Person");
        ending.expiration().lifespan(ENDS_AFTER);
        manager.defineConfiguration("ending", ending.build());
    }

    /** A cache whose type the tests register. */
    void defineThings() {
        define("things", "64MiB", IndexStartupMode.NONE, "things.Thing");
    }

    private void define(String name, String capacity, IndexStartupMode mode, String... types) {
        manager.defineConfiguration(name, builder(capacity, mode, types).build());
    }

    private ConfigurationBuilder builder(String capacity, IndexStartupMode mode, String... types) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.encoding().mediaType(MediaType.APPLICATION_PROTOSTREAM);
        builder.clustering().cacheMode(spread);
        if (spread.isClustered()) {
            builder.clustering().hash().numOwners(2).numSegments(32);
        }
        builder.memory().maxCount(100);
        builder.indexing().enable().storage(IndexStorage.LOCAL_HEAP).startupMode(mode)
                .addIndexedEntities(types);
        builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .capacity(capacity).memory("64MiB");
        return builder;
    }

    <K, V> Cache<K, V> cache(String name) {
        return manager.getCache(name);
    }

    /** Does what Infinispan does from time to time: ends what has ended. */
    void reap(String name) {
        cache(name).getAdvancedCache().getExpirationManager().processExpiration();
    }

    /** What the flash store of a cache counted. */
    StoreStatistics statistics(String name) {
        PersistenceManager persistence = ComponentRegistry.componentOf(manager.getCache(name),
                PersistenceManager.class);
        return ((EntresolStore<?, ?>) persistence.getStores(EntresolStore.class).iterator().next())
                .statistics().orElseThrow();
    }

    Connection connect() throws SQLException {
        return Driver.connect(manager);
    }

    @Override
    public void close() {
        manager.stop();
    }
}
