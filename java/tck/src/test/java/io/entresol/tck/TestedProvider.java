package io.entresol.tck;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.function.Function;
import javax.cache.CacheManager;
import org.infinispan.commons.marshall.JavaSerializationMarshaller;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.jcache.embedded.JCacheManager;
import org.infinispan.jcache.embedded.JCachingProvider;

/**
 * Infinispan's provider whose caches are on flash, with as many entries in memory as {@code
 * entresol.tck.entries} says: 0 stands for any number, -1 for no flash. The entries of a cache go
 * with it, because the kit gives each of its tests an empty cache.
 */
public final class TestedProvider extends JCachingProvider {
    private static final int ENTRIES = Integer.getInteger("entresol.tck.entries");
    /** No test has more caches at a time. */
    private static final int IN_USE = 32;
    private static final Deque<Path> FOLDERS = new ArrayDeque<>();

    @Override
    protected CacheManager createCacheManager(ClassLoader loader, URI uri,
            Properties properties) {
        Properties ours = new Properties();
        ours.putAll(properties);
        Consumer<GlobalConfigurationBuilder> serializing = global -> global.serialization()
                .marshaller(new JavaSerializationMarshaller()).allowList()
                .addRegexps("org\\.jsr107\\..*", "domain\\..*", "java\\..*", "\\[.*");
        ours.put(JCacheManager.GLOBAL_CONFIGURATION_CONSUMER, serializing);
        if (ENTRIES >= 0) {
            Function<String, Configuration> onFlash = TestedProvider::onFlash;
            ours.put(JCacheManager.CACHE_CONFIGURATION_FUNCTION, onFlash);
        }
        return super.createCacheManager(loader, uri, ours);
    }

    private static Configuration onFlash(String cache) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.persistence().addStore(EntresolStoreConfigurationBuilder.class).purgeOnStartup(true)
                .path(folder()).capacity("40MiB").memory("32MiB");
        if (ENTRIES > 0) {
            builder.memory().maxCount(ENTRIES);
        }
        return builder.build();
    }

    /** Each cache has its own: two managers may have caches of the same name. */
    private static synchronized String folder() {
        try {
            Path folder = Files.createTempDirectory(Path.of("target").toAbsolutePath(), "caches");
            FOLDERS.addLast(folder);
            if (FOLDERS.size() > IN_USE) {
                Util.recursiveFileRemove(FOLDERS.removeFirst().toFile());
            }
            return folder.toString();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
