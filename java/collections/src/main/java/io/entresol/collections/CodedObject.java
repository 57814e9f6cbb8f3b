package io.entresol.collections;

import io.entresol.heap.Range;
import io.entresol.heap.ReadGuard;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * A persistent object whose header names the codecs of what it holds. The Java object learns the
 * codecs from whoever makes or opens it, else from the names.
 */
abstract class CodedObject extends PersistentObject {
    private final int count;
    private volatile Codec<?>[] codecs;

    CodedObject(ObjectHeap objects, long handle, int count) {
        super(objects, handle);
        this.count = count;
    }

    /** Makes an object in a transaction; {@code words} fills the header's words. */
    static <T extends CodedObject> T make(ObjectType<T> type, ObjectHeap objects,
            Consumer<Range> words, Codec<?>... codecs) {
        String[] names = names(codecs);
        T made = type.create(objects, Header.bytes(names), range -> {
            words.accept(range);
            Header.write(range, names);
        });
        ((CodedObject) made).use(codecs);
        return made;
    }

    /** The object of a handle, which must have been made with these codecs. */
    static <T extends CodedObject> T open(
            Class<T> type, ObjectHeap objects, long handle, Codec<?>... codecs) {
        PersistentObject found = objects.object(handle);
        if (!type.isInstance(found)) {
            throw new IllegalArgumentException(handle + " is the handle of a "
                    + found.getClass().getName() + ", not of a " + type.getName());
        }
        found.handle();
        ((CodedObject) found).take(codecs);
        return type.cast(found);
    }

    /** One of the codecs. */
    @SuppressWarnings("unchecked")
    final <T> Codec<T> codec(int index) {
        Codec<?>[] known = codecs;
        if (known == null) {
            String[] names = Header.names(block(), count);
            known = new Codec<?>[count];
            for (int each = 0; each < count; each++) {
                known[each] = objects().codecs().named(names[each]);
            }
            codecs = known;
        }
        // The name in the header says so.
        return (Codec<T>) known[index];
    }

    /** Runs {@code body} in a transaction and gives what it returned. */
    final <T> T inTransaction(Supplier<T> body) {
        return objects().run(body);
    }

    /** Runs {@code body}, which reads what the heap must not use again meanwhile. */
    final <T> T looked(Supplier<T> body) {
        handle();
        return objects().read(() -> {
            try (ReadGuard guard = objects().heap().readGuard()) {
                return body.get();
            }
        });
    }

    private void take(Codec<?>[] given) {
        String[] stored = Header.names(block(), count);
        String[] names = names(given);
        for (int index = 0; index < count; index++) {
            if (!stored[index].equals(names[index])) {
                throw new IllegalArgumentException("collection " + handle() + " was made with the"
                        + " codec `" + stored[index] + "` and cannot be opened with `"
                        + names[index] + "`");
            }
        }
        use(given);
    }

    private void use(Codec<?>[] given) {
        codecs = given;
        for (Codec<?> codec : given) {
            objects().codecs().keep(codec);
        }
    }

    private static String[] names(Codec<?>[] codecs) {
        String[] names = new String[codecs.length];
        for (int index = 0; index < names.length; index++) {
            names[index] = codecs[index].name();
        }
        return names;
    }
}
