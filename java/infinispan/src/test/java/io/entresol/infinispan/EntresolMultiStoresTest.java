package io.entresol.infinispan;

import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;
import org.infinispan.persistence.MultiStoresFunctionalTest;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** Infinispan's own tests of nodes that come back, each with its old store, without recovery. */
@Test(groups = "unit", testName = "infinispan.EntresolMultiStoresTest")
public class EntresolMultiStoresTest
        extends MultiStoresFunctionalTest<EntresolStoreConfigurationBuilder> {
    private String folder;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
    }

    @AfterClass(alwaysRun = true)
    protected void removeFolder() {
        Util.recursiveFileRemove(folder);
    }

    @Override
    protected EntresolStoreConfigurationBuilder buildCacheStoreConfig(
            PersistenceConfigurationBuilder builder, String node) {
        return builder.addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder + "/" + node).capacity("64MiB").memory("32MiB");
    }
}
