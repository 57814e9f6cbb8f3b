package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.BackupConfiguration.BackupStrategy;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.xsite.AbstractMultipleSitesTest;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/**
 * Two sites whose caches are on flash, of one node each. Without a global state a node that stops
 * leaves the same as a killed node: entries, but not the versions that it gave.
 */
@Test(groups = "functional", testName = "infinispan.SiteVersionsTest")
public class SiteVersionsTest extends AbstractMultipleSitesTest {
    private static final int CHANGES = 5;

    private final String folder = CommonsTestingUtil.tmpDirectory(getClass());

    @BeforeClass(alwaysRun = true)
    @Override
    public void createBeforeClass() {
        Util.recursiveFileRemove(folder);
        super.createBeforeClass();
    }

    @AfterClass(alwaysRun = true)
    @Override
    protected void destroy() {
        super.destroy();
        Util.recursiveFileRemove(folder);
    }

    @Override
    protected int defaultNumberOfNodes() {
        return 1;
    }

    @Override
    protected ConfigurationBuilder defaultConfigurationForSite(int site) {
        ConfigurationBuilder builder = super.defaultConfigurationForSite(site);
        builder.sites().addBackup().site(siteName(1 - site)).strategy(BackupStrategy.ASYNC);
        builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder + "/" + site).capacity("64MiB").memory("32MiB");
        return builder;
    }

    /**
     * Clients of Hot Rod want no old value unless they say so. The change had an older version than
     * the entry at the other site, which dropped it: the sites differed for good.
     */
    public void aChangeOfWhatIsOnFlashAloneReachesTheOtherSiteAfterAKill() {
        Map<String, BiConsumer<AdvancedCache<String, String>, String>> changes = Map.of(
                "put", (cache, key) -> cache.put(key, "changed"),
                "put with others", (cache, key) -> cache.putAll(Map.of(key, "changed")),
                "removed", (cache, key) -> cache.remove(key));
        for (int killed = 0; killed < 2; killed++) {
            for (int site = 0; site < 2; site++) {
                for (String change : changes.keySet()) {
                    for (int number = 0; number < CHANGES; number++) {
                        cache(site, 0).put(key(site, killed, change), "value " + number);
                    }
                    awaitEverywhere(key(site, killed, change), "value " + (CHANGES - 1));
                }
            }
            stopSite(killed);
            restartSite(killed);
            for (int site = 0; site < 2; site++) {
                Cache<String, String> cache = cache(killed, 0);
                for (var change : changes.entrySet()) {
                    String key = key(site, killed, change.getKey());
                    change.getValue().accept(cache.getAdvancedCache()
                            .withFlags(Flag.IGNORE_RETURN_VALUES), key);
                    awaitEverywhere(key, change.getKey().equals("removed") ? null : "changed");
                }
            }
        }
    }

    private static String key(int site, int killed, String change) {
        return "of site " + site + ", " + change + " by " + killed;
    }

    private void awaitEverywhere(String key, String value) {
        for (int site : List.of(0, 1)) {
            Cache<String, String> cache = cache(site, 0);
            eventually(() -> key + " at site " + site + " is " + cache.get(key),
                    () -> Objects.equals(cache.get(key), value));
        }
    }
}
