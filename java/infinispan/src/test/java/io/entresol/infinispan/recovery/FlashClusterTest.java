package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.util.concurrent.atomic.AtomicInteger;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.configuration.internal.PrivateGlobalConfigurationBuilder;
import org.infinispan.test.MultipleCacheManagersTest;
import org.infinispan.test.TestDataSCI;
import org.testng.annotations.AfterClass;

/** Tests of three nodes in one JVM, whose cache is on flash and has two owners of each entry. */
abstract class FlashClusterTest extends MultipleCacheManagersTest {
    static final int NODES = 3;

    /** A class may be tested as several clusters, all of which are made before the first ends. */
    private static final AtomicInteger CLUSTERS = new AtomicInteger();

    private final String folder =
            CommonsTestingUtil.tmpDirectory(getClass()) + "/" + CLUSTERS.incrementAndGet();

    @Override
    protected void createCacheManagers() throws Throwable {
        for (int node = 0; node < NODES; node++) {
            GlobalConfigurationBuilder global = defaultGlobalConfigurationBuilder();
            global.addModule(PrivateGlobalConfigurationBuilder.class).serverMode(isServer());
            global.globalState().enable().persistentLocation(folder + "/" + node);
            global.serialization().addContextInitializer(TestDataSCI.INSTANCE);
            ConfigurationBuilder builder = new ConfigurationBuilder();
            // A server would keep bytes, whose owners are not those of the objects.
            builder.encoding().mediaType(MediaType.APPLICATION_OBJECT);
            builder.clustering().cacheMode(mode()).hash().numOwners(2);
            builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                    .capacity("40MiB").memory("32MiB");
            configure(builder);
            addClusterEnabledCacheManager(global, builder);
        }
        waitForClusterToForm();
    }

    CacheMode mode() {
        return CacheMode.DIST_SYNC;
    }

    /** What else a test wants of the cache. */
    void configure(ConfigurationBuilder builder) {}

    /** Whether it is as in a server, where commands take another way from node to node. */
    boolean isServer() {
        return false;
    }

    @AfterClass(alwaysRun = true)
    @Override
    protected void destroy() {
        super.destroy();
        Util.recursiveFileRemove(folder);
    }
}
