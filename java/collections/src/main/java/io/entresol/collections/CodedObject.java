package io.entresol.collections;

import io.entresol.collections.internal.blocks.Header;
import io.entresol.collections.internal.views.Contents;
import io.entresol.collections.internal.views.Owner;
import io.entresol.heap.Range;
import io.entresol.heap.ReadGuard;
import io.entresol.heap.TransactionalHeap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A persistent object whose header names the codecs of its elements. The Java object gets the
 * codecs from the caller that makes or opens it, else by the names.
 */
abstract class CodedObject extends PersistentObject {
    private final int count;
    private volatile Codec<?>[] codecs;
    private volatile Contents contents;

    CodedObject(ObjectHeap objects, long handle, int count) {
        super(objects, handle);
        this.count = count;
    }

    /** The type of a class of collections, whatever they hold. */
    @SuppressWarnings("unchecked")
    static <T extends CodedObject> ObjectType<T> type(
            Class<? super T> type, ObjectType.Maker<T> maker) {
        return ObjectType.of((Class<T>) type, Header.FIELDS, maker);
    }

    /**
     * Makes an object in a transaction. {@code empty} makes what an object that holds nothing
     * consists of, and gives what fills the words of its header.
     */
    @SuppressWarnings("unchecked")
    static <T extends CodedObject> T make(ObjectType<? super T> type, ObjectHeap objects,
            Function<TransactionalHeap, Consumer<Range>> empty, Codec<?>... codecs) {
        requireOf(objects, codecs);
        String[] names = names(codecs);
        CodedObject made = objects.run(() -> {
            Consumer<Range> words = empty.apply(objects.heap());
            return (CodedObject) type.create(objects, Header.bytes(names), range -> {
                words.accept(range);
                Header.write(range, names);
            });
        });
        made.use(codecs);
        // It is what the codecs say.
        return (T) made;
    }

    /** The object of a handle, which must have been made with these codecs. */
    @SuppressWarnings("unchecked")
    static <T extends CodedObject> T open(
            ObjectType<? super T> type, ObjectHeap objects, long handle, Codec<?>... codecs) {
        requireOf(objects, codecs);
        PersistentObject found = objects.object(handle);
        if (!type.type().isInstance(found)) {
            throw new IllegalArgumentException(handle + " is the handle of "
                    + (found == null ? "nothing" : "a " + found.getClass().getName())
                    + ", not of a " + type);
        }
        found.handle();
        ((CodedObject) found).take(codecs);
        return (T) found;
    }

    /** What the object holds, on its block and with its codecs; asked for once. */
    abstract Contents read();

    /** What the object holds; refused if the object was undone. */
    @SuppressWarnings("unchecked")
    final <C extends Contents> C contents() {
        handle();
        if (contents == null) {
            synchronized (this) {
                if (contents == null) {
                    contents = read();
                }
            }
        }
        // A class knows what it reads.
        return (C) contents;
    }

    @Override
    protected final void trace(Tracer tracer) {
        contents().trace(tracer);
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

    /** The object, as what it holds knows it. */
    final Owner owner() {
        return new Owner() {
            @Override
            public ObjectHeap objects() {
                return CodedObject.this.objects();
            }

            @Override
            public void requireMade() {
                CodedObject.this.requireMade();
            }

            @Override
            public <T> T looked(Supplier<T> body) {
                requireMade();
                return objects().read(() -> {
                    try (ReadGuard guard = objects().heap().readGuard()) {
                        return body.get();
                    }
                });
            }
        };
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

    /** Handles of another heap's objects lead to nothing here, or to anything. */
    private static void requireOf(ObjectHeap objects, Codec<?>[] codecs) {
        for (Codec<?> codec : codecs) {
            ObjectHeap of = codec.heap();
            if (of != null && of != objects) {
                throw new IllegalArgumentException("the codec `" + codec.name() + "` is of " + of
                        + " and its objects cannot be in a collection of " + objects
                        + "; take the codec of that one");
            }
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
