package io.entresol.collections;

import io.entresol.heap.RadixTree;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The names of a heap's objects: garbage collection keeps all objects that the directory leads to.
 * Threads may share it; each change is a transaction, or part of the thread's current one.
 */
public final class ObjectDirectory {
    private final ObjectHeap objects;
    private final RadixTree tree;

    ObjectDirectory(ObjectHeap objects, long handle) {
        this.objects = objects;
        this.tree = RadixTree.open(objects.heap(), handle);
    }

    /**
     * The object of that name; null if there is none. One of another class than {@code type} is a
     * {@link ClassCastException}.
     */
    public <T> T get(String name, Class<T> type) {
        byte[] key = key(name);
        Object found = objects.read(() -> objects.object(tree.get(key, 0)));
        if (found != null && !type.isInstance(found)) {
            throw new ClassCastException("the directory's `" + name + "` is of "
                    + found.getClass().getName() + ", not of " + type.getName());
        }
        return type.cast(found);
    }

    /** Lets {@code name} lead to {@code object}, and no more to what it led to before. */
    public void put(String name, Object object) {
        byte[] key = key(name);
        long handle = objects.handleOf(Objects.requireNonNull(object, "the object"));
        objects.run(() -> {
            tree.put(key, handle, 0);
        });
    }

    /** Removes a name; whether it was there. The object stays as long as something leads to it. */
    public boolean remove(String name) {
        byte[] key = key(name);
        return objects.run(() -> tree.remove(key, 0) != 0);
    }

    /** All names as they are now, in the order of their code points. */
    public List<String> names() {
        List<String> names = new ArrayList<>();
        try (RadixTree.Cursor all = tree.entries()) {
            while (all.next()) {
                names.add(new String(all.key(), StandardCharsets.UTF_8));
            }
        }
        return names;
    }

    void trace(Tracer tracer) {
        tracer.tree(tree.handle());
        try (RadixTree.Cursor all = tree.entries()) {
            while (all.next()) {
                tracer.object(all.value());
            }
        }
    }

    private static byte[] key(String name) {
        return Utf8.bytes(Objects.requireNonNull(name, "the name"));
    }
}
