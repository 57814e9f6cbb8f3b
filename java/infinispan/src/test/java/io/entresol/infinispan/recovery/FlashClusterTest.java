package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.test.MultipleCacheManagersTest;
import org.infinispan.test.TestDataSCI;
import org.testng.annotations.AfterClass;

/** Tests of three nodes in one JVM, whose cache is on flash and has two owners of each entry. */
abstract class FlashClusterTest extends MultipleCacheManagersTest {
    static final int NODES = 3;

    private final String folder = CommonsTestingUtil.tmpDirectory(getClass());

    @Override
    protected void createCacheManagers() throws Throwable {
        for (int node = 0; node < NODES; node++) {
            GlobalConfigurationBuilder global = defaultGlobalConfigurationBuilder();
            global.globalState().enable().persistentLocation(folder + "/" + node);
            global.serialization().addContextInitializer(TestDataSCI.INSTANCE);
            ConfigurationBuilder builder = new ConfigurationBuilder();
            builder.clustering().cacheMode(CacheMode.DIST_SYNC).hash().numOwners(2);
            builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                    .capacity("40MiB").memory("32MiB");
            addClusterEnabledCacheManager(global, builder);
        }
        waitForClusterToForm();
    }

    @AfterClass(alwaysRun = true)
    @Override
    protected void destroy() {
        super.destroy();
        Util.recursiveFileRemove(folder);
    }
}
