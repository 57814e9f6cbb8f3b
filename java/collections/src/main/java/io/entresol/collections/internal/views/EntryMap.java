package io.entresol.collections.internal.views;

import io.entresol.collections.Codec;
import io.entresol.collections.ObjectHeap;
import io.entresol.collections.Tracer;
import io.entresol.collections.internal.blocks.Bounds;
import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.Values;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A map on entries in a heap. Every change is a transaction, or part of the thread's current one,
 * and nothing is kept in Java. A null value, if the codec allows it, acts as in {@code
 * java.util.HashMap}. A caller's functions run inside the transaction, while no other transaction
 * changes the map.
 */
public class EntryMap<K, V> extends AbstractMap<K, V>
        implements ConcurrentMap<K, V>, Contents {
    /** What an entry is that was gone when it was looked at. */
    private static final Entry<?, ?> GONE = new SimpleImmutableEntry<>(null, null);

    final Owner owner;
    final ObjectHeap objects;
    final Entries entries;
    final Codec<K> keys;
    final Values<V> values;

    public EntryMap(Owner owner, Entries entries, Codec<K> keys, Values<V> values) {
        this.owner = owner;
        this.objects = owner.objects();
        this.entries = entries;
        this.keys = keys;
        this.values = values;
    }

    /** What spliterators of the map's views tell of the order of entries. */
    int order() {
        return 0;
    }

    /** Whether a key with that encoding may be in this map. */
    boolean admits(byte[] key) {
        return true;
    }

    /** The map's entries in its order. */
    Entries.Walk walk() {
        owner.requireMade();
        return entries.walk(Bounds.ALL, false);
    }

    @Override
    public int size() {
        owner.requireMade();
        return (int) Math.min(entries.size(), Integer.MAX_VALUE);
    }

    @Override
    public boolean isEmpty() {
        return size() == 0;
    }

    @Override
    public boolean containsKey(Object key) {
        byte[] encoded = encoded(key);
        return admits(encoded) && entries.get(encoded) != 0;
    }

    @Override
    public boolean containsValue(Object value) {
        for (Entry<K, V> entry : entrySet()) {
            if (isSame(value, entry.getValue())) {
                return true;
            }
        }
        return false;
    }

    @Override
    public V get(Object key) {
        return getOrDefault(key, null);
    }

    @Override
    public V getOrDefault(Object key, V absent) {
        byte[] encoded = encoded(key);
        if (!admits(encoded)) {
            return absent;
        }
        return owner.looked(() -> {
            long word = entries.get(encoded);
            return word == 0 ? absent : values.read(word);
        });
    }

    @Override
    public V put(K key, V value) {
        byte[] encoded = inside(key);
        return objects.run((Supplier<V>) () -> store(encoded, value));
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> others) {
        objects.run(() -> super.putAll(others));
    }

    @Override
    public V remove(Object key) {
        byte[] encoded = encoded(key);
        return !admits(encoded) ? null : objects.run((Supplier<V>) () -> drop(encoded));
    }

    @Override
    public V putIfAbsent(K key, V value) {
        byte[] encoded = inside(key);
        return held(() -> {
            V found = read(entries.get(encoded));
            return found == null ? store(encoded, value) : found;
        });
    }

    @Override
    public boolean remove(Object key, Object value) {
        byte[] encoded = encoded(key);
        return admits(encoded) && held(() -> {
            boolean same = holds(encoded, value);
            if (same) {
                drop(encoded);
            }
            return same;
        });
    }

    @Override
    public boolean replace(K key, V old, V value) {
        byte[] encoded = encoded(key);
        return admits(encoded) && held(() -> {
            boolean same = holds(encoded, old);
            if (same) {
                store(encoded, value);
            }
            return same;
        });
    }

    @Override
    public V replace(K key, V value) {
        byte[] encoded = encoded(key);
        return !admits(encoded) ? null : held(() ->
                entries.get(encoded) != 0 ? store(encoded, value) : null);
    }

    @Override
    public void replaceAll(BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        objects.run(() -> {
            entries.hold();
            for (Entry<K, V> entry : entrySet()) {
                entry.setValue(function.apply(entry.getKey(), entry.getValue()));
            }
        });
    }

    @Override
    public V computeIfAbsent(K key, Function<? super K, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        byte[] encoded = inside(key);
        V present = get(key);
        return present != null ? present : held(() -> {
            V found = read(entries.get(encoded));
            return found != null ? found : given(encoded, function.apply(key));
        });
    }

    @Override
    public V computeIfPresent(
            K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        byte[] encoded = encoded(key);
        return !admits(encoded) ? null : held(() -> {
            V found = read(entries.get(encoded));
            return found == null ? null : result(encoded, function.apply(key, found));
        });
    }

    @Override
    public V compute(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        byte[] encoded = inside(key);
        return held(() ->
                result(encoded, function.apply(key, read(entries.get(encoded)))));
    }

    @Override
    public V merge(
            K key, V value, BiFunction<? super V, ? super V, ? extends V> function) {
        Objects.requireNonNull(function, "function");
        Objects.requireNonNull(value, "a value to merge must not be null");
        byte[] encoded = inside(key);
        return held(() -> {
            V found = read(entries.get(encoded));
            return result(encoded, found == null ? value : function.apply(found, value));
        });
    }

    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        Objects.requireNonNull(action, "action");
        for (Entry<K, V> entry : entrySet()) {
            action.accept(entry.getKey(), entry.getValue());
        }
    }

    @Override
    public void clear() {
        owner.requireMade();
        objects.run(() -> entries.clear(values::release));
    }

    @Override
    public AbstractSet<K> keySet() {
        return new Keys<>(this);
    }

    @Override
    public Collection<V> values() {
        return new ValueView<>(this);
    }

    @Override
    public Set<Entry<K, V>> entrySet() {
        return new EntrySet<>(this);
    }

    /** Whether it is a map with the same entries, as they are found here. */
    @Override
    public boolean equals(Object other) {
        if (other == this) {
            return true;
        }
        if (!(other instanceof Map<?, ?> others) || others.size() != size()) {
            return false;
        }
        try {
            return entrySet().containsAll(others.entrySet());
        } catch (ClassCastException | NullPointerException | IllegalArgumentException foreign) {
            // It has a key that could not be in this one.
            return false;
        }
    }

    @Override
    public int hashCode() {
        return entrySet().hashCode();
    }

    @Override
    public final void trace(Tracer tracer) {
        entries.trace(tracer);
        try (Entries.Walk walk = entries.walk(Bounds.ALL, false)) {
            Entries.Reader<byte[]> reader = (key, word) -> {
                keys.references(key, tracer::object);
                values.trace(word, tracer);
                return key;
            };
            while (walk.next(reader) != null) {
                // The reader tells all.
            }
        }
    }

    /** Runs {@code body} while no other transaction changes the map. */
    final <T> T held(Supplier<T> body) {
        return objects.run((Supplier<T>) () -> {
            entries.hold();
            return body.get();
        });
    }

    /**
     * Runs {@code body}, which removes entries that it looked at, while no other transaction
     * changes the map: what it looked at is what it removes.
     */
    final boolean alone(Supplier<Boolean> body) {
        return held(body);
    }

    final V store(byte[] key, V value) {
        long word = values.keep(value);
        long before = entries.put(key, word);
        return before == word ? read(word) : released(before);
    }

    final V drop(byte[] key) {
        return released(entries.remove(key));
    }

    /** Adds an element to the set that this map is; whether it was not there. */
    final boolean adds(K key) {
        long member = values.member();
        byte[] encoded = inside(key);
        return objects.run((Supplier<Boolean>) () -> entries.put(encoded, member) == 0);
    }

    /** Removes {@code key}; whether it was there. */
    final boolean removes(Object key) {
        byte[] encoded = encoded(key);
        return admits(encoded) && objects.run((Supplier<Boolean>) () -> {
            long word = entries.remove(encoded);
            released(word);
            return word != 0;
        });
    }

    @SuppressWarnings("unchecked")
    final byte[] encoded(Object key) {
        owner.requireMade();
        if (key == null && !keys.takesNull()) {
            throw new NullPointerException("the codec `" + keys.name() + "` takes no null");
        }
        // A key of another class is a ClassCastException of the codec, as the interface has it.
        return keys.encode((K) key);
    }

    final byte[] inside(K key) {
        byte[] encoded = encoded(key);
        if (!admits(encoded)) {
            throw new IllegalArgumentException("the key lies outside this part of the map");
        }
        return encoded;
    }

    /** The next entry of a walk; null at the end. */
    final Entry<K, V> next(Entries.Walk walk) {
        Entry<K, V> next;
        do {
            next = objects.read(() -> walk.next(this::entry));
        } while (next == GONE);
        return next;
    }

    /**
     * The entry of a walk. The walk may show what was removed since, and objects that it led to may
     * have been collected: where there are some, the entry is shown as it is now.
     */
    @SuppressWarnings("unchecked")
    private Entry<K, V> entry(byte[] key, long word) {
        boolean[] refers = {values.refers(word)};
        keys.references(key, handle -> refers[0] = true);
        long now = refers[0] ? entries.get(key) : word;
        return now == 0 ? (Entry<K, V>) GONE
                : new SimpleImmutableEntry<>(keys.decode(key), values.read(now));
    }

    /** Removes {@code key}; its entry, null if it was not there. */
    final Entry<K, V> take(K key) {
        long word = entries.remove(encoded(key));
        return word == 0 ? null : new SimpleImmutableEntry<>(key, released(word));
    }

    static <T> T required(T entry) {
        if (entry == null) {
            throw new NoSuchElementException("no element is left");
        }
        return entry;
    }

    /** A part of each entry, one after the other. */
    static <K, V, T> Iterator<T> parts(EntryMap<K, V> map, Function<Entry<K, V>, T> part) {
        Iterator<Entry<K, V>> entries = map.entrySet().iterator();
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return entries.hasNext();
            }

            @Override
            public T next() {
                return part.apply(entries.next());
            }

            @Override
            public void remove() {
                entries.remove();
            }
        };
    }

    /** Arrays of bytes are what they hold: each read makes another one. */
    static boolean isSame(Object left, Object right) {
        return Objects.deepEquals(left, right);
    }

    private V read(long word) {
        return word == 0 ? null : values.read(word);
    }

    private V released(long word) {
        V value = read(word);
        if (word != 0) {
            values.release(word);
        }
        return value;
    }

    private boolean holds(byte[] key, Object value) {
        long word = entries.get(key);
        return word != 0 && isSame(value, values.read(word));
    }

    /** Stores what a function gave, if it gave something. */
    private V given(byte[] key, V value) {
        if (value != null) {
            store(key, value);
        }
        return value;
    }

    private V result(byte[] key, V value) {
        if (value == null) {
            drop(key);
        } else {
            store(key, value);
        }
        return value;
    }

    /** The entries, one after the other. */
    private static final class EntryIterator<K, V> implements Iterator<Entry<K, V>> {
        private final EntryMap<K, V> map;
        private final Entries.Walk walk;
        private Entry<K, V> next;
        private Entry<K, V> last;

        EntryIterator(EntryMap<K, V> map) {
            this.map = map;
            this.walk = map.walk();
            this.next = read();
        }

        @Override
        public boolean hasNext() {
            return next != null;
        }

        @Override
        public Entry<K, V> next() {
            last = required(next);
            next = read();
            return new Written<>(map, last);
        }

        @Override
        public void remove() {
            if (last == null) {
                throw new IllegalStateException("no entry to remove");
            }
            map.remove(last.getKey());
            last = null;
        }

        private Entry<K, V> read() {
            return map.next(walk);
        }
    }

    /** An entry that writes through. */
    private static final class Written<K, V> extends SimpleEntry<K, V> {
        private static final long serialVersionUID = 1L;

        private final transient EntryMap<K, V> map;

        Written(EntryMap<K, V> map, Entry<K, V> entry) {
            super(entry);
            this.map = map;
        }

        @Override
        public V setValue(V value) {
            map.put(getKey(), value);
            return super.setValue(value);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Entry<?, ?> entry && isSame(getKey(), entry.getKey())
                    && isSame(getValue(), entry.getValue());
        }

        @Override
        public int hashCode() {
            return Sought.hash(getKey()) ^ Sought.hash(getValue());
        }
    }

    /** The entries of a map, as a view of it. */
    private static final class EntrySet<K, V> extends SetView<Entry<K, V>> {
        private final EntryMap<K, V> map;

        EntrySet(EntryMap<K, V> map) {
            super(map);
            this.map = map;
        }

        @Override
        public Iterator<Entry<K, V>> iterator() {
            return new EntryIterator<>(map);
        }

        @Override
        public boolean contains(Object entry) {
            if (!(entry instanceof Entry)) {
                return false;
            }
            byte[] key = map.encoded(((Entry<?, ?>) entry).getKey());
            return map.admits(key) && map.owner.looked(() ->
                    map.holds(key, ((Entry<?, ?>) entry).getValue()));
        }

        @Override
        public boolean remove(Object entry) {
            return entry instanceof Entry && map.remove(
                    ((Entry<?, ?>) entry).getKey(), ((Entry<?, ?>) entry).getValue());
        }
    }

    /** The keys of a map, as a view of it. */
    static class Keys<K> extends SetView<K> {
        private final EntryMap<K, ?> map;

        Keys(EntryMap<K, ?> map) {
            super(map);
            this.map = map;
        }

        @Override
        public boolean add(K key) {
            return map.adds(key);
        }

        @Override
        public Iterator<K> iterator() {
            return parts(map, Entry::getKey);
        }

        @Override
        public boolean contains(Object key) {
            return map.containsKey(key);
        }

        @Override
        public boolean remove(Object key) {
            return map.removes(key);
        }
    }
}
