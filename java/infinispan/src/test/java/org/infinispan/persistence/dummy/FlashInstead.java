package org.infinispan.persistence.dummy;

import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.persistence.spi.InitializationContext;

/** A store on a file of its own, open as long as anything uses it, with a count of its calls. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class FlashInstead {
    private final Map<String, AtomicInteger> counted = new ConcurrentHashMap<>();
    private final String folder;
    private EntresolStore store;
    private IntSet segments;
    private int users;
    private long last;

    FlashInstead(String name) {
        folder = CommonsTestingUtil.tmpDirectory(FlashInstead.class.getSimpleName(), name);
    }

    synchronized CompletionStage<Void> start(InitializationContext context,
            boolean segmented, IntSet all) {
        if (users++ > 0) {
            return CompletableFuture.completedFuture(null);
        }
        segments = all;
        new File(folder).mkdirs();
        store = new EntresolStore();
        return store.start(configured(context, segmented));
    }

    /** Removes the file as well if nobody can name it any more. */
    synchronized CompletionStage<Void> stop(boolean remove) {
        if (--users > 0) {
            return CompletableFuture.completedFuture(null);
        }
        last = count();
        CompletionStage<Void> stopped = store.stop();
        store = null;
        return remove ? stopped.thenRun(this::remove) : stopped;
    }

    void remove() {
        Util.recursiveFileRemove(folder);
    }

    synchronized EntresolStore store() {
        return store;
    }

    /** Entries, those that ended too; of a store that is not open as it was left. */
    synchronized long entries() {
        return store == null ? last : count();
    }

    private long count() {
        return (Long) store.approximateSize(segments).toCompletableFuture().join();
    }

    AtomicInteger counted(String method) {
        return counted.computeIfAbsent(method, unknown -> new AtomicInteger());
    }

    void clearCounted() {
        counted.values().forEach(count -> count.set(0));
    }

    /** The same context with a configuration of our store. */
    private InitializationContext configured(InitializationContext context, boolean segmented) {
        EntresolStoreConfiguration ours = (EntresolStoreConfiguration) new ConfigurationBuilder()
                .persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .devices(Path.of(folder, "store").toString()).capacity("40MiB").memory("32MiB")
                .segmented(segmented).build().persistence().stores().get(0);
        return (InitializationContext) Proxy.newProxyInstance(
                InitializationContext.class.getClassLoader(),
                new Class<?>[] {InitializationContext.class}, (proxy, method, arguments) ->
                        method.getName().equals("getConfiguration") ? ours
                                : method.invoke(context, arguments));
    }
}
