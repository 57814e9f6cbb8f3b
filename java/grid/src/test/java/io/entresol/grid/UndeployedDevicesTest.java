package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.junit.jupiter.api.Test;

/** What is on the device of a cache that was undeployed. */
class UndeployedDevicesTest extends SavingContainer {
    /**
     * A node that withdrew had stopped the cache: nobody emptied its device, and the next cache on
     * it answered with entries of the former.
     */
    @Test
    void entriesOfACacheThatIsUndeployedWhereItIsStoppedAreNotInTheNextOne() throws Exception {
        Configuration onDevice = onDevice(folder.resolve("device"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice).put("key", "value");
            manager.getCache("first").stop();
            manager.getCache("first").start();
            assertEquals("value", manager.getCache("first").get("key"));
            manager.getCache("first").stop();
            manager.administration().removeCache("first");
            Cache<String, String> next = manager.administration().createCache("second", onDevice);
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            next.put("key", "newer");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
        // One that could not start, as the device is the second's, has nothing on it.
        Files.writeString(folder.resolve("caches.xml"),
                Endpoints.xml(Map.of("second", onDevice, "third", onDevice)));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertFalse(manager.isRunning("third"));
            manager.administration().removeCache("third");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
    }

    /** A request by REST or the console removes no file, and the next of the name had them. */
    @Test
    void entriesOfACacheThatIsRemovedWhereItIsStoppedAreNotInTheNextOfItsName() throws Exception {
        Path noted = folder.resolve("entresol.undeployed.devices");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", stored()).put("key", "value");
            manager.getCache("first").stop();
            manager.administration().removeCache("first");
            Cache<String, String> next = manager.administration().createCache("first", stored());
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            assertEquals("", Files.readString(noted).strip());
            next.stop();
            manager.administration().removeCache("first");
            assertTrue(Files.readString(noted).contains("first"));
            DeployedCaches.of(manager).orElseThrow().sweep("first");
            assertEquals("", Files.readString(noted).strip(), "of a file that is not there");
        }
    }

    /**
     * Infinispan empties a store and then closes it: one that could not be emptied stayed open, its
     * device in use and its entries on it.
     */
    @Test
    void aDeviceThatTakesNoWritesIsFreeOnceItsCacheIsUndeployedAndLaterEmptied()
            throws Exception {
        Configuration onDevice = onDevice(folder.resolve("device"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice).put("key", "value");
            // Less than the store's first write; what a node notes is smaller.
            limitFiles("16384");
            try {
                manager.administration().removeCache("first");
            } finally {
                limitFiles("unlimited");
            }
            Cache<String, String> next = manager.administration().createCache("second", onDevice);
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            next.put("key", "newer");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
    }

    /** Of a list of devices the next one is there; a cache that is opened on it has its entries. */
    @Test
    void whatIsNotedOfADeviceThatTakesNoWritesIsTheOneThatWasOpened() throws Exception {
        Path device = folder.resolve("device");
        Path spare = folder.resolve("spare");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice(device));
            manager.administration().removeCache("first");
            Cache<String, String> second =
                    manager.administration().createCache("second", onDevice(spare));
            second.put("key", "value");
            second.stop();
            manager.administration().createCache("third", onDevices(device + "," + spare));
            Files.delete(device);
            limitFiles("16384");
            try {
                manager.administration().removeCache("third");
            } finally {
                limitFiles("unlimited");
            }
            second.start();
            assertEquals("value", second.get("key"));
        }
    }

    /** As a file system that has no room for a file's next bytes. */
    private static void limitFiles(String bytes) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid",
                "" + ProcessHandle.current().pid(), "--fsize=" + bytes + ":unlimited")
                .inheritIO().start();
        assertEquals(0, limit.waitFor(), "prlimit");
    }

    private static Configuration onDevice(Path device) {
        return onDevices(device.toString());
    }

    private static Configuration onDevices(String devices) {
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().passivation(false)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .devices(devices).capacity("64MiB").memory("32MiB");
        return stored.build();
    }
}
