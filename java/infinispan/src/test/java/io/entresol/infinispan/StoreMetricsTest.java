package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;

import java.util.Set;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import javax.management.ObjectName;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.testng.annotations.Test;

/** The published figures of stores; a node's metrics are tested with the grid. */
@Test(groups = "unit", testName = "infinispan.StoreMetricsTest")
public class StoreMetricsTest extends FolderTest {
    private final MBeanServer beans = MBeanServerFactory.newMBeanServer();
    public void aStoreIsInJmxWhileItsCacheRunsAndCountsStatistics() throws Exception {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.jmx().enabled(true).domain("of.this.test")
                .mBeanServerLookup(properties -> beans);
        try (DefaultCacheManager container = new DefaultCacheManager(global.build())) {
            container.defineConfiguration("quiet", configuration(false));
            container.getCache("quiet").put(1, "one");
            assertEquals(found("quiet"), Set.of());
            container.defineConfiguration("told", configuration(true));
            Cache<Integer, String> cache = container.getCache("told");
            ObjectName bean = found("told").iterator().next();
            assertEquals(beans.getAttribute(bean, "puts"), 0.0);
            cache.put(1, "one");
            cache.put(2, "two");
            assertEquals(beans.getAttribute(bean, "puts"), 2.0);
            assertEquals(beans.getAttribute(bean, "poisoned"), 0.0);
            assertTrue((double) beans.getAttribute(bean, "index_bytes") > 0);
            assertEquals(beans.getAttributes(bean, new String[] {"puts", "no"}).size(), 1);
            assertTrue(beans.getMBeanInfo(bean).getAttributes().length > 30);
            cache.stop();
            assertFalse(beans.isRegistered(bean));
            assertEquals(found("told"), Set.of());
        }
    }

    private Set<ObjectName> found(String cache) throws Exception {
        return beans.queryNames(new ObjectName("of.this.test:type=Cache,name="
                + ObjectName.quote(cache + "(local)") + ",component=EntresolStore,*"), null);
    }

    private Configuration configuration(boolean statistics) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.statistics().enabled(statistics);
        return flash(builder).build();
    }
}
