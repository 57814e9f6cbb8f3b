package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;

import java.io.Serializable;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import javax.cache.Cache;
import javax.cache.CacheManager;
import javax.cache.configuration.FactoryBuilder;
import javax.cache.configuration.MutableCacheEntryListenerConfiguration;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.event.CacheEntryCreatedListener;
import javax.cache.event.CacheEntryEvent;
import javax.cache.event.CacheEntryRemovedListener;
import javax.cache.event.CacheEntryUpdatedListener;
import javax.cache.integration.CacheLoader;
import javax.cache.integration.CacheWriter;
import javax.cache.integration.CacheWriterException;
import javax.cache.integration.CompletionListenerFuture;
import javax.cache.processor.EntryProcessorResult;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.jcache.embedded.JCacheManager;
import org.infinispan.jcache.embedded.JCachingProvider;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryCreated;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryModified;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryRemoved;
import org.infinispan.notifications.cachelistener.event.CacheEntryCreatedEvent;
import org.infinispan.notifications.cachelistener.event.CacheEntryModifiedEvent;
import org.infinispan.notifications.cachelistener.event.CacheEntryRemovedEvent;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

/**
 * JCache over flash answers as JCache in memory, though memory has room for two entries.
 *
 * <p>Infinispan's JCache asks no store for most operations: a cache of 100 entries in memory and
 * 1,000 on flash answered for 100, for none after a restart, and {@code putIfAbsent} replaced the
 * others.
 */
@Test(groups = "unit", testName = "infinispan.JCacheTest")
public class JCacheTest extends FolderTest {
    private static final String SEED = System.getenv("ENTRESOL_SEED");
    private static final int KEYS = 12;
    private static final int STEPS = 3_000;
    /** A value that the writer does not take for some keys. */
    private static final String REFUSED = "v3";

    /** What lies behind the two caches. */
    private static final class Outside implements CacheLoader<String, String>,
            CacheWriter<String, String>, Serializable {
        private static final long serialVersionUID = 1;
        private final Map<String, String> entries = new ConcurrentHashMap<>();
        private final List<String> asked = new ArrayList<>();

        private synchronized void note(String call) {
            asked.add(call);
        }

        @Override
        public String load(String key) {
            note("load " + key);
            return entries.get(key);
        }

        @Override
        public Map<String, String> loadAll(Iterable<? extends String> keys) {
            Map<String, String> found = new HashMap<>();
            keys.forEach(key -> found.put(key, load(key)));
            return found;
        }

        @Override
        public void write(Cache.Entry<? extends String, ? extends String> entry) {
            if (entry.getValue().equals(REFUSED) && entry.getKey().startsWith("k1")) {
                throw new CacheWriterException("refused");
            }
            note("write " + entry.getKey() + "=" + entry.getValue());
            entries.put(entry.getKey(), entry.getValue());
        }

        @Override
        public void writeAll(Collection<Cache.Entry<? extends String, ? extends String>> all) {
            all.forEach(this::write);
        }

        @Override
        public void delete(Object key) {
            note("delete " + key);
            entries.remove(key);
        }

        @Override
        public void deleteAll(Collection<?> keys) {
            keys.forEach(this::delete);
        }
    }

    /** Events of a cache, in the order in which it tells them. */
    private static final class Told implements CacheEntryCreatedListener<String, String>,
            CacheEntryUpdatedListener<String, String>, CacheEntryRemovedListener<String, String>,
            Serializable {
        private static final long serialVersionUID = 1;
        private final List<String> events = new ArrayList<>();

        private synchronized void note(
                Iterable<CacheEntryEvent<? extends String, ? extends String>> all) {
            all.forEach(event -> events.add(event.getEventType() + " " + event.getKey() + " "
                    + event.getValue()));
        }

        @Override
        public void onCreated(
                Iterable<CacheEntryEvent<? extends String, ? extends String>> all) {
            note(all);
        }

        @Override
        public void onUpdated(
                Iterable<CacheEntryEvent<? extends String, ? extends String>> all) {
            note(all);
        }

        @Override
        public void onRemoved(
                Iterable<CacheEntryEvent<? extends String, ? extends String>> all) {
            note(all);
        }

        /** Of one operation: those of several keys come in any order. */
        synchronized List<String> take() {
            List<String> taken = new ArrayList<>(events);
            events.clear();
            taken.sort(null);
            return taken;
        }
    }

    /** A cache, what is told of it, and what lies behind it. */
    private record Side(Cache<String, String> cache, Told told, Outside outside, boolean loads) {
        static Side of(Cache<String, String> cache, Outside outside, boolean loads) {
            Told told = new Told();
            cache.registerCacheEntryListener(new MutableCacheEntryListenerConfiguration<>(
                    new FactoryBuilder.SingletonFactory<>(told), null, false, true));
            return new Side(cache, told, outside, loads);
        }

        /**
         * All that the operation did. Of several keys at once no events: Infinispan takes the value
         * that an event says was there from memory, which two entries may have left meanwhile.
         */
        String does(Operation operation, boolean withEvents) {
            String result;
            try {
                result = String.valueOf(operation.of(cache));
            } catch (Exception failure) {
                result = failure.getClass().getName();
            }
            List<String> asked;
            synchronized (outside) {
                asked = new ArrayList<>(outside.asked);
                outside.asked.clear();
            }
            asked.sort(null);
            List<String> events = told.take();
            return result + (withEvents ? ", events " + events : "") + ", asked " + asked;
        }

        Map<String, String> content() {
            Map<String, String> all = new TreeMap<>();
            cache.forEach(entry -> all.put(entry.getKey(), entry.getValue()));
            return all;
        }
    }

    private interface Operation {
        Object of(Cache<String, String> cache) throws Exception;
    }

    /** Operations with keys and values that a seed chose. */
    private record Chosen(Random random) {
        private static final int KINDS = 24;
        private static final int LOADS = 22;
        private static final Set<Integer> OF_SEVERAL = Set.of(5, 10, 20, 22, 23);

        String key() {
            return "k" + random.nextInt(KEYS);
        }

        String value() {
            return "v" + random.nextInt(4);
        }

        private Set<String> keys() {
            Set<String> some = new LinkedHashSet<>();
            for (int left = random.nextInt(4); left >= 0; left--) {
                some.add(key());
            }
            return some;
        }

        private Map<String, String> entries() {
            Map<String, String> some = new TreeMap<>();
            keys().forEach(key -> some.put(key, value()));
            return some;
        }

        Operation next(int kind) {
            return switch (kind) {
                case 0, 1, 2 -> on(key(), Cache::get);
                case 3, 4 -> on(key(), Cache::containsKey);
                case 5 -> {
                    Set<String> some = keys();
                    yield cache -> new TreeMap<>(cache.getAll(some));
                }
                case 6, 7, 8 -> change(key(), value(), (cache, key, value) -> {
                    cache.put(key, value);
                    return null;
                });
                case 9 -> change(key(), value(), Cache::getAndPut);
                case 10 -> {
                    Map<String, String> some = entries();
                    yield cache -> {
                        cache.putAll(some);
                        return null;
                    };
                }
                case 11, 12 -> change(key(), value(), Cache::putIfAbsent);
                default -> nextThatRemoves(kind);
            };
        }

        private Operation nextThatRemoves(int kind) {
            String other = value();
            return switch (kind) {
                case 13 -> on(key(), Cache::remove);
                case 14 -> change(key(), value(), Cache::remove);
                case 15 -> on(key(), Cache::getAndRemove);
                case 16 -> change(key(), value(), Cache::replace);
                case 17 -> change(key(), value(),
                        (cache, key, value) -> cache.replace(key, value, other));
                case 18 -> change(key(), value(), Cache::getAndReplace);
                case 19 -> change(key(), value(), (cache, key, value) ->
                        cache.invoke(key, (entry, none) -> processed(entry, value)));
                case 20 -> {
                    Set<String> some = keys();
                    yield cache -> results(cache.invokeAll(some,
                            (entry, none) -> processed(entry, other)));
                }
                case 21 -> on(key(), JCacheTest::removeWhileIterating);
                case LOADS -> {
                    Set<String> some = keys();
                    boolean replaces = random.nextBoolean();
                    yield cache -> loadAll(cache, some, replaces);
                }
                default -> nextOfAll();
            };
        }

        private Operation nextOfAll() {
            Set<String> some = keys();
            int which = random.nextInt(8);
            return cache -> {
                if (which == 0) {
                    cache.clear();
                } else if (which == 1) {
                    cache.removeAll();
                } else {
                    cache.removeAll(some);
                }
                return null;
            };
        }

        private static Operation on(String key, Read read) {
            return cache -> read.of(cache, key);
        }

        private static Operation change(String key, String value, Change change) {
            return cache -> change.of(cache, key, value);
        }
    }

    private interface Read {
        Object of(Cache<String, String> cache, String key) throws Exception;
    }

    private interface Change {
        Object of(Cache<String, String> cache, String key, String value) throws Exception;
    }

    private static String processed(
            javax.cache.processor.MutableEntry<String, String> entry, String value) {
        String before = entry.exists() + " " + entry.getValue();
        if (value.equals("v0")) {
            entry.remove();
        } else if (!value.equals("v1")) {
            entry.setValue(value);
        }
        return before;
    }

    private static Map<String, Object> results(Map<String, EntryProcessorResult<String>> all) {
        Map<String, Object> results = new TreeMap<>();
        all.forEach((key, result) -> results.put(key, result.get()));
        return results;
    }

    private static Object removeWhileIterating(Cache<String, String> cache, String key) {
        Set<String> seen = new TreeSet<>();
        Iterator<Cache.Entry<String, String>> all = cache.iterator();
        while (all.hasNext()) {
            Cache.Entry<String, String> entry = all.next();
            seen.add(entry.getKey() + "=" + entry.getValue());
            if (entry.getKey().equals(key)) {
                all.remove();
            }
        }
        return seen;
    }

    private static Object loadAll(Cache<String, String> cache, Set<String> keys,
            boolean replaces) throws InterruptedException {
        CompletionListenerFuture loaded = new CompletionListenerFuture();
        cache.loadAll(keys, replaces, loaded);
        try {
            return loaded.get();
        } catch (ExecutionException failure) {
            return failure.getCause().getClass();
        }
    }

    @DataProvider
    public Object[][] behind() {
        return new Object[][] {
            {"nothing", false, false, false}, {"loader", true, false, false},
            {"reads", true, true, false}, {"reads-and-writes", true, true, true},
            {"writes", true, false, true},
        };
    }

    @Test(dataProvider = "behind")
    public void answersAsInMemory(String name, boolean outside, boolean reads, boolean writes) {
        Function<String, Configuration> configured = cache -> cache.equals(name)
                ? flash().memory().maxCount(2).build() : new ConfigurationBuilder().build();
        Properties properties = new Properties();
        properties.put(JCacheManager.CACHE_CONFIGURATION_FUNCTION, configured);
        try (JCachingProvider provider = new JCachingProvider()) {
            CacheManager caches = provider.getCacheManager(
                    URI.create(name), getClass().getClassLoader(), properties);
            compare(side(caches, name, outside, reads, writes),
                    side(caches, name + "-in-memory", outside, reads, writes));
        }
    }

    public void whatTheLastStartLeftIsFound() {
        int entries = 1_000;
        Properties properties = new Properties();
        Function<String, Configuration> configured =
                cache -> flash().memory().maxCount(entries / 10).build();
        properties.put(JCacheManager.CACHE_CONFIGURATION_FUNCTION, configured);
        Set<String> keys = new LinkedHashSet<>();
        for (int key = 0; key < entries; key++) {
            keys.add("key" + key);
        }
        for (int start = 0; start < 2; start++) {
            try (JCachingProvider provider = new JCachingProvider()) {
                Cache<String, String> cache = provider.getCacheManager(URI.create("starts"),
                        getClass().getClassLoader(), properties).createCache(
                                "starts", new MutableConfiguration<>());
                if (start == 0) {
                    keys.forEach(key -> cache.put(key, "value"));
                }
                keys.forEach(key -> assertTrue(cache.containsKey(key), key));
                keys.forEach(key -> assertFalse(cache.putIfAbsent(key, "other"), key));
                keys.forEach(key -> assertEquals(cache.get(key), "value"));
                assertEquals(cache.getAll(keys).size(), entries);
            }
        }
    }

    /** A put that has loaded what it replaces was told as a creation. */
    public void listenersAreToldOfWhatIsOnFlashAloneAsOfWhatIsThere() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("told", flash().build());
            org.infinispan.Cache<String, String> cache = container.getCache("told");
            Events events = new Events();
            cache.addListener(events);
            cache.put("key", "first");
            cache.evict("key");
            cache.put("key", "second");
            cache.evict("key");
            cache.replace("key", "third");
            cache.evict("key");
            cache.remove("key");
            assertEquals(events.told, List.of("created", "first to second", "second to third",
                    "removed third"));
        }
    }

    /** What Infinispan tells afterwards. */
    @Listener
    public static final class Events {
        private final List<String> told = new ArrayList<>();

        /** Of a new entry. */
        @CacheEntryCreated
        public void created(CacheEntryCreatedEvent<String, String> event) {
            if (!event.isPre()) {
                told.add("created");
            }
        }

        /** Of another value. */
        @CacheEntryModified
        public void modified(CacheEntryModifiedEvent<String, String> event) {
            if (!event.isPre()) {
                told.add(event.getOldValue() + " to " + event.getNewValue());
            }
        }

        /** Of an entry that is gone. */
        @CacheEntryRemoved
        public void removed(CacheEntryRemovedEvent<String, String> event) {
            if (!event.isPre()) {
                told.add("removed " + event.getOldValue());
            }
        }
    }

    private static Side side(CacheManager caches, String name, boolean outside, boolean reads,
            boolean writes) {
        Outside entries = new Outside();
        for (int key = 0; key < KEYS; key += 2) {
            entries.entries.put("k" + key, "outside");
        }
        MutableConfiguration<String, String> configuration =
                new MutableConfiguration<String, String>().setReadThrough(reads)
                        .setWriteThrough(writes);
        if (outside) {
            configuration.setCacheLoaderFactory(new FactoryBuilder.SingletonFactory<>(entries));
        }
        if (writes) {
            configuration.setCacheWriterFactory(new FactoryBuilder.SingletonFactory<>(entries));
        }
        return Side.of(caches.createCache(name, configuration), entries, outside);
    }

    private void compare(Side flash, Side memory) {
        long seed = SEED == null ? 36 : Long.parseLong(SEED);
        Random random = new Random(seed);
        Chosen chosen = new Chosen(random);
        for (int step = 0; step < STEPS; step++) {
            int kind = random.nextInt(Chosen.KINDS);
            Operation operation = chosen.next(kind);
            if (kind == Chosen.LOADS && !flash.loads) {
                // In memory it forgets what it finds no loader for.
                continue;
            }
            String told = "ENTRESOL_SEED=" + seed + ", step " + step + ", kind " + kind;
            boolean ofOne = !Chosen.OF_SEVERAL.contains(kind);
            assertEquals(flash.does(operation, ofOne), memory.does(operation, ofOne), told);
            if (step % 10 == 0) {
                assertEquals(flash.content(), memory.content(), told);
            }
        }
    }
}
