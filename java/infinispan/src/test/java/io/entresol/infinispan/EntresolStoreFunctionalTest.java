package io.entresol.infinispan;

import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;
import org.infinispan.persistence.BaseStoreFunctionalTest;
import org.testng.Assert;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** Infinispan's own tests of caches that have a store. */
@Test(groups = "unit", testName = "infinispan.EntresolStoreFunctionalTest")
public class EntresolStoreFunctionalTest extends BaseStoreFunctionalTest {
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
    protected PersistenceConfigurationBuilder createCacheStoreConfig(
            PersistenceConfigurationBuilder persistence, String cacheName, boolean preload) {
        // Caches that are removed have a persistent location of their own below the folder.
        String below = cacheName.startsWith("testRemoveCache") ? null : folder;
        persistence.addStore(EntresolStoreConfigurationBuilder.class)
                .path(below).capacity("64MiB").memory("64MiB")
                .purgeOnStartup(false).preload(preload);
        return persistence;
    }

    /** Not with this store, which refuses it. */
    @Override
    public void testRemoveCacheWithPassivation() {
        Exception refused = Assert.expectThrows(Exception.class,
                super::testRemoveCacheWithPassivation);
        Assert.assertTrue(FolderTest.sentences(refused).contains("passivation=\"true\""));
    }
}
