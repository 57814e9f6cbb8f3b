package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertThrows;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.infinispan.Cache;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.CacheException;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ParserRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.testng.annotations.Test;

/** Caches whose store is configured in XML, by the class, and in what a server writes itself. */
@Test(groups = "unit", testName = "infinispan.ConfigurationTest")
public class ConfigurationTest extends FolderTest {
    private String xml(String store) {
        return """
                <infinispan>
                  <cache-container>
                    <global-state><persistent-location path="%s"/></global-state>
                    <local-cache name="flash">
                      <encoding media-type="application/x-protostream"/>
                      <memory max-count="100"/>
                      <persistence>%s</persistence>
                    </local-cache>
                  </cache-container>
                </infinispan>
                """.formatted(folder, store);
    }

    private static ConfigurationBuilderHolder parse(String xml) {
        return new ParserRegistry().parse(xml);
    }

    private static EntresolStoreConfiguration only(Configuration configuration) {
        return (EntresolStoreConfiguration) configuration.persistence().stores().get(0);
    }

    public void whatIsWrittenIsReadAgain() {
        String store = """
                <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                    devices="/dev/a,/dev/b" selection="stripe" capacity="2GiB" memory="300MB"
                    durability="periodic:100" compression="zstd" preload="true"
                    recovery="true" recovery-timeout="3m" recovery-missing="replicated">
                  <write-behind modification-queue-size="77"/>
                </entresol-store>""";
        ConfigurationBuilder builder =
                parse(xml(store)).getNamedConfigurationBuilders().get("flash");
        Configuration read = builder.build();
        String written = new ParserRegistry().serialize("flash", read);
        assertTrue(written.contains("urn:infinispan:config:store:entresol:16.0"), written);
        Configuration again = new ParserRegistry().parse(written)
                .getNamedConfigurationBuilders().get("flash").build();
        for (Configuration each : new Configuration[] {read, again}) {
            EntresolStoreConfiguration found = only(each);
            assertEquals(found.get(EntresolStoreConfiguration.DEVICES), "/dev/a,/dev/b");
            assertEquals(found.get(EntresolStoreConfiguration.SELECTION), "stripe");
            assertEquals(found.get(EntresolStoreConfiguration.CAPACITY), "2GiB");
            assertEquals(found.get(EntresolStoreConfiguration.MEMORY), "300MB");
            assertEquals(found.get(EntresolStoreConfiguration.DURABILITY), "periodic:100");
            assertEquals(found.get(EntresolStoreConfiguration.COMPRESSION), "zstd");
            assertEquals(found.get(EntresolStoreConfiguration.RECOVERY), "true");
            assertEquals(found.get(EntresolStoreConfiguration.RECOVERY_TIMEOUT), "3m");
            assertEquals(found.get(EntresolStoreConfiguration.RECOVERY_MISSING), "replicated");
            assertTrue(found.preload());
            assertEquals(found.async().modificationQueueSize(), 77);
        }
    }

    public void mistakesAreNamedWhenTheCacheIsConfigured() {
        for (String mistake : new String[] {"capacity=\"much\"", "durability=\"forever\"",
                "compression=\"gzip\"", "selection=\"any\"", "devices=\"a\" path=\"b\"",
                "shared=\"true\"", "recovery=\"perhaps\"", "recovery-timeout=\"soon\"",
                "recovery-missing=\"ignore\""}) {
            String store = "<entresol-store xmlns=\"urn:infinispan:config:store:entresol:16.0\" "
                    + mistake + "/>";
            CacheConfigurationException refused = expectThrows(CacheConfigurationException.class,
                    () -> parse(xml(store)).getNamedConfigurationBuilders().get("flash").build());
            String said = refused.toString() + Arrays.toString(refused.getSuppressed());
            String name = mistake.substring(0, mistake.indexOf('='));
            assertTrue(said.contains(name.equals("devices") ? "path" : name), said);
        }
        assertThrows(Exception.class, () -> parse(xml("<entresol-store colour=\"red\"/>")));
    }

    /**
     * Puts were acknowledged that a full store then refused: of 40,000 entries 29,926 were gone,
     * and each had a stack of its own in the log.
     */
    public void aCacheWhosePutsAreNotWrittenBeforeTheyAreAcknowledgedDoesNotStart()
            throws Exception {
        String store = "<entresol-store xmlns=\"urn:infinispan:config:store:entresol:16.0\""
                + " capacity=\"64MiB\" memory=\"32MiB\"/>";
        String written = xml(store).replace("name=\"flash\"", "name=\"passivating\"");
        String passivating = written
                .replace("<persistence>", "<persistence passivation=\"true\">");
        try (DefaultCacheManager container = new DefaultCacheManager(parse(passivating), false)) {
            String said = sentences(
                    expectThrows(CacheException.class, container::start));
            assertTrue(said.contains("passivation=\"true\""), said);
            assertTrue(said.contains("Set <persistence passivation=\"false\">"), said);
        }
        try (DefaultCacheManager container = new DefaultCacheManager(parse(written))) {
            container.getCache("passivating").put("key", "value");
        }
    }

    /** They named constants of Java's, or bytes where a time was meant, or were taken. */
    public void whatIsExpectedIsSaidInTheWordsOfTheConfiguration() {
        String[][] mistakes = {
            {"compression=\"gzip\"", "expected none, lz4 or zstd"},
            {"recovery-missing=\"ignore\"", "expected refuse, replicated or lose"},
            {"capacity=\"-1\"", "expected a size such as 512MiB or 10GiB"},
            {"capacity=\"much\"", "expected a size such as 512MiB or 10GiB"},
            {"memory=\"0\"", "expected a size such as 512MiB or 10GiB"},
            {"recovery-timeout=\"soon\"", "expected a time such as 30s or 5m"},
            {"recovery-timeout=\"-5\"", "expected a time such as 30s or 5m"},
            {"selection=\"any\"", "expected search or stripe"},
            {"selection=\"stripe\"", "expected devices"},
        };
        for (String[] mistake : mistakes) {
            String store = "<entresol-store xmlns=\"urn:infinispan:config:store:entresol:16.0\" "
                    + mistake[0] + "/>";
            CacheConfigurationException refused = expectThrows(CacheConfigurationException.class,
                    () -> parse(xml(store)).getNamedConfigurationBuilders().get("flash").build());
            String said = refused + Arrays.toString(refused.getSuppressed());
            assertTrue(said.contains(mistake[1]), said);
        }
    }

    public void theExampleOfTheGuideIsACacheOnFlash() throws Exception {
        String guide = Files.readString(Path.of("../../docs/guides/infinispan.md"));
        int start = guide.indexOf("```xml\n") + 7;
        String example = guide.substring(start, guide.indexOf("```", start))
                .replace("/var/lib/infinispan", folder + "/guide");
        try (DefaultCacheManager manager = new DefaultCacheManager(parse(example), true)) {
            Cache<String, String> cache = manager.getCache("flash");
            cache.put("key", "value");
            cache.getAdvancedCache().getDataContainer().clear();
            assertEquals(cache.get("key"), "value");
            assertTrue(Files.exists(Path.of(folder, "guide")));
        }
    }

    public void entriesAreThereAfterTheContainerStartedAnew() throws Exception {
        String store = """
                <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                    capacity="64MiB" memory="64MiB" durability="synced"/>""";
        int count = 3_000;
        try (DefaultCacheManager manager = new DefaultCacheManager(parse(xml(store)), true)) {
            Cache<String, String> cache = manager.getCache("flash");
            for (int number = 0; number < count; number++) {
                cache.put("key " + number, "value " + number);
            }
            cache.put("mortal", "value", 1, TimeUnit.DAYS);
            assertEquals(cache.size(), count + 1);
            cache.remove("key 7");
        }
        try (DefaultCacheManager manager = new DefaultCacheManager(parse(xml(store)), true)) {
            Cache<String, String> cache = manager.getCache("flash");
            assertEquals(cache.size(), count);
            assertFalse(cache.containsKey("key 7"));
            assertEquals(cache.get("mortal"), "value");
            for (int number = 0; number < count; number++) {
                assertEquals(cache.get("key " + number), number == 7 ? null : "value " + number);
            }
            cache.clear();
            assertEquals(cache.size(), 0);
        }
    }

    /**
     * A cache of the name that was deployed with less did not start on a node that was away: it was
     * told that its file had the size that was asked for.
     */
    public void aStoreIsOpenedAtItsSizeWhereLessIsConfigured() throws Exception {
        String store = """
                <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                    path="shrinks" capacity="%s" memory="64MiB"/>""";
        for (String capacity : new String[] {"96MiB", "64MiB"}) {
            try (DefaultCacheManager manager = new DefaultCacheManager(
                    parse(xml(store.formatted(capacity))), true)) {
                Cache<String, String> cache = manager.getCache("flash");
                assertEquals(cache.putIfAbsent("key", "value"),
                        capacity.equals("64MiB") ? "value" : null);
            }
        }
    }

    /** It was told to make the device empty, where nothing was wrong with it. */
    public void aStoreOnNamedDevicesIsOpenedAtItsSizeWhereLessIsConfigured() throws Exception {
        for (String selection : new String[] {"search", "stripe"}) {
            String store = """
                    <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                        devices="%s" selection="%s" capacity="%s" memory="64MiB"/>""";
            String devices = folder + "/" + selection + "-a," + folder + "/" + selection + "-b";
            String before = null;
            for (String capacity : new String[] {"96MiB", "64MiB", "96MiB"}) {
                try (DefaultCacheManager manager = new DefaultCacheManager(
                        parse(xml(store.formatted(devices, selection, capacity))), true)) {
                    Cache<String, String> cache = manager.getCache("flash");
                    assertEquals(cache.put("key", capacity), before);
                    before = capacity;
                }
            }
        }
    }

    public void aFolderThatCannotHoldAStoreIsNamedWithWhy() throws Exception {
        Path file = Files.writeString(
                Files.createDirectories(Path.of(folder)).resolve("file"), "no folder");
        String[][] mistakes = {
            {folder + "/one,two", "its store cannot be on " + folder + "/one,two/"},
            {file.toString(), "cannot make the folder " + file},
        };
        for (String[] mistake : mistakes) {
            String store = """
                    <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                        path="%s" capacity="64MiB" memory="64MiB"/>""".formatted(mistake[0]);
            try (DefaultCacheManager manager = new DefaultCacheManager()) {
                manager.defineConfiguration("flash", parse(xml(store))
                        .getNamedConfigurationBuilders().get("flash").build());
                String said = sentences(
                        expectThrows(Exception.class, () -> manager.getCache("flash")));
                assertTrue(said.contains("cache flash: " + mistake[1]), said);
            }
        }
    }

    /** Other caches of the node start all the same. */
    public void aStoreThatCannotBeOpenedNamesItsDeviceAndWhatToDo() throws Exception {
        Path small = Path.of(folder, "small");
        Files.createDirectories(small.getParent());
        Files.write(small, new byte[1 << 20]);
        String[][] mistakes = {
            {"/dev/entresol-missing", "/dev/entresol-missing"},
            {small.toString(), "is not extended"},
            {folder + "/no/such/folder/file", "see that the device is there"},
        };
        for (String[] mistake : mistakes) {
            String store = """
                    <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                        devices="%s" capacity="64MiB" memory="64MiB"/>""".formatted(mistake[0]);
            try (DefaultCacheManager manager = new DefaultCacheManager()) {
                manager.defineConfiguration("flash", parse(xml(store))
                        .getNamedConfigurationBuilders().get("flash").build());
                String said = sentences(
                        expectThrows(Exception.class, () -> manager.getCache("flash")));
                assertTrue(said.contains("cache flash: the store on " + mistake[0])
                        && said.contains(mistake[1]), said);
                manager.defineConfiguration("other", new ConfigurationBuilder().build());
                manager.getCache("other").put("key", "value");
            }
        }
    }
}
