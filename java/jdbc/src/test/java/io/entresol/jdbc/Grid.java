package io.entresol.jdbc;

import io.entresol.StoreStatistics;
import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;

/** A container of caches on flash, with an index in memory. */
final class Grid implements AutoCloseable {
    final DefaultCacheManager manager;

    Grid(Path folder) {
        this(folder, "256MiB", IndexStartupMode.NONE);
    }

    Grid(Path folder, String capacity, IndexStartupMode mode) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder().nonClusteredDefault();
        global.globalState().enable().persistentLocation(folder.toString());
        global.serialization().addContextInitializer(new SchemaImpl());
        manager = new DefaultCacheManager(global.build());
        define("people", capacity, mode, "sample.Person");
        define("purchases", "64MiB", mode, "sample.Purchase");
        define("numbered", "64MiB", mode, "sample.Person");
        define("both", "64MiB", mode, "sample.Person", "sample.Purchase");
    }

    private void define(String name, String capacity, IndexStartupMode mode, String... types) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.encoding().mediaType(MediaType.APPLICATION_PROTOSTREAM);
        builder.memory().maxCount(100);
        builder.indexing().enable().storage(IndexStorage.LOCAL_HEAP).startupMode(mode)
                .addIndexedEntities(types);
        builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .capacity(capacity).memory("64MiB");
        manager.defineConfiguration(name, builder.build());
    }

    <K, V> Cache<K, V> cache(String name) {
        return manager.getCache(name);
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
