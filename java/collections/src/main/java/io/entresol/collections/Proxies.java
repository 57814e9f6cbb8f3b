package io.entresol.collections;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;

/** The Java objects of a heap that are alive, by handle: one each. */
final class Proxies {
    private final ConcurrentHashMap<Long, Entry> entries = new ConcurrentHashMap<>();
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

    /** The object of that handle is no more. */
    void forget(long handle) {
        Entry entry = entries.remove(handle);
        PersistentObject gone = entry == null ? null : entry.get();
        if (gone != null) {
            gone.undo();
        }
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
