package io.entresol.compare;

import io.entresol.grid.bench.FloorStore;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.nio.file.Path;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.CustomStoreConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.rocksdb.configuration.RocksDBStoreConfigurationBuilder;

/** A kind of store behind a local cache. */
enum Contestant {
    /** What Infinispan itself takes: entries in a map in Java's heap. */
    FLOOR {
        @Override
        void configure(ConfigurationBuilder builder, Path folder, long bytes) {
            builder.persistence().addStore(CustomStoreConfigurationBuilder.class)
                    .customStoreClass(FloorStore.class);
        }
    },
    ENTRESOL {
        @Override
        void configure(ConfigurationBuilder builder, Path folder, long bytes) {
            builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                    .path(folder.toString()).capacity("" + Math.max(LEAST, ROOM * bytes))
                    .memory("" + STORE_MEMORY).durability("process");
        }
    },
    SIFS {
        @Override
        void configure(ConfigurationBuilder builder, Path folder, long bytes) {
            builder.persistence().addSoftIndexFileStore()
                    .dataLocation(folder.resolve("data").toString())
                    .indexLocation(folder.resolve("index").toString());
        }
    },
    ROCKSDB {
        @Override
        void configure(ConfigurationBuilder builder, Path folder, long bytes) {
            rocksdb(builder, folder);
        }
    },
    /** RocksDB with one column family for all segments: 256 of them keep their data in memory. */
    ROCKSDB_ONE {
        @Override
        void configure(ConfigurationBuilder builder, Path folder, long bytes) {
            rocksdb(builder, folder).segmented(false);
        }
    };

    /** Flash for each byte of data. */
    private static final long ROOM = 2;
    private static final long LEAST = 128 << 20;
    /** Index, buffers and cached values of Entresol's; the others have the page cache. */
    private static final long STORE_MEMORY = 64 << 20;
    private static final String CACHE = "compared";

    abstract void configure(ConfigurationBuilder builder, Path folder, long bytes);

    /** A container with one cache in `folder`, for so many bytes; so many entries are in its heap. */
    DefaultCacheManager open(Path folder, long bytes, long inHeap) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.globalState().enable().persistentLocation(folder.toString());
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.memory().maxCount(inHeap).persistence().passivation(false);
        configure(builder, folder, bytes);
        DefaultCacheManager manager = new DefaultCacheManager(global.build());
        manager.defineConfiguration(CACHE, builder.build());
        return manager;
    }

    private static RocksDBStoreConfigurationBuilder rocksdb(ConfigurationBuilder builder,
            Path folder) {
        return builder.persistence().addStore(RocksDBStoreConfigurationBuilder.class)
                .location(folder.resolve("data").toString())
                .expiredLocation(folder.resolve("expired").toString());
    }

    static String cache() {
        return CACHE;
    }
}
