package io.entresol.collections;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;

/** The live Java objects of a heap, by handle: one for each handle. */
final class Proxies {
    private final ConcurrentHashMap<Long, Entry> entries = new ConcurrentHashMap<>();
    /** What was born in transactions that go on, by handle: the newest. */
    private final ConcurrentHashMap<Long, Object> unsettled = new ConcurrentHashMap<>();
    private final ReferenceQueue<PersistentObject> dead = new ReferenceQueue<>();

    /** The Java object of a handle, made if there is none. */
    PersistentObject get(long handle, LongFunction<PersistentObject> make) {
        PersistentObject found = find(handle);
        if (found != null) {
            return found;
        }
        drain();
        PersistentObject made = make.apply(handle);
        Entry own = new Entry(made, dead);
        while (true) {
            Entry other = entries.putIfAbsent(handle, own);
            PersistentObject first = other == null ? made : other.get();
            if (first != null) {
                return first;
            }
            entries.remove(handle, other);
        }
    }

    /** The Java object of a handle; null if there is none. */
    PersistentObject find(long handle) {
        Entry entry = entries.get(handle);
        return entry == null ? null : entry.get();
    }

    /**
     * The Java object of a handle that was just allocated: one that is known by it was undone, and
     * its own transaction is yet to say so. {@code making} tells the two apart.
     */
    PersistentObject born(long handle, Object making, LongFunction<PersistentObject> make) {
        drain();
        PersistentObject made = make.apply(handle);
        entries.compute(handle, (same, stale) -> {
            undo(stale);
            unsettled.put(handle, making);
            return new Entry(made, dead);
        });
        return made;
    }

    /** The transaction that made the object is committed. */
    void settle(long handle, Object making) {
        unsettled.remove(handle, making);
    }

    /** The object that was born so is no more; another one may have its handle already. */
    void forget(long handle, Object making) {
        entries.compute(handle, (same, entry) -> {
            if (!unsettled.remove(handle, making)) {
                return entry;
            }
            undo(entry);
            return null;
        });
    }

    /** All that are alive. */
    List<PersistentObject> alive() {
        drain();
        List<PersistentObject> alive = new ArrayList<>();
        for (Entry entry : entries.values()) {
            PersistentObject object = entry.get();
            if (object != null) {
                alive.add(object);
            }
        }
        return alive;
    }

    private static void undo(Entry entry) {
        PersistentObject gone = entry == null ? null : entry.get();
        if (gone != null) {
            gone.undo();
        }
    }

    private void drain() {
        for (Entry entry = (Entry) dead.poll(); entry != null; entry = (Entry) dead.poll()) {
            entries.remove(entry.handle, entry);
        }
    }

    private static final class Entry extends WeakReference<PersistentObject> {
        private final long handle;

        Entry(PersistentObject object, ReferenceQueue<PersistentObject> dead) {
            super(object, dead);
            this.handle = object.handle();
        }
    }
}
