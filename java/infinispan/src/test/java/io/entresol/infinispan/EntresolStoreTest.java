package io.entresol.infinispan;

import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.persistence.BaseNonBlockingStoreTest;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** Infinispan's own tests of a store by itself. */
@Test(groups = "unit", testName = "infinispan.EntresolStoreTest")
public class EntresolStoreTest extends BaseNonBlockingStoreTest {
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
    protected NonBlockingStore<Object, Object> createStore() {
        return new EntresolStore<>();
    }

    @Override
    protected Configuration buildConfig(ConfigurationBuilder builder) {
        return builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder).capacity("64MiB").memory("64MiB").build();
    }
}
