package io.entresol.collections;

import io.entresol.heap.Range;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * The description of a class of persistent objects for a heap: the class's name in heaps, the
 * fields of its blocks, and how to make a Java object for a handle. A class has it in a static
 * field {@code TYPE}, where heaps that meet the name look for it:
 *
 * <pre>
 * static final ObjectType&lt;Point&gt; TYPE =
 *         ObjectType.of(Point.class, "x long, y long", Point::new);
 * </pre>
 *
 * The class chooses the text of the fields, separated by commas. A heap keeps this text with the
 * first object of the type, and later refuses a class with other fields, unless the class only
 * added fields at the end.
 */
public final class ObjectType<T extends PersistentObject> {
    private final Class<T> type;
    private final Class<?> declared;
    private final String name;
    private final String fields;
    private final Maker<T> maker;

    private ObjectType(
            Class<T> type, Class<?> declared, String name, String fields, Maker<T> maker) {
        this.type = type;
        this.declared = declared;
        this.name = name;
        this.fields = fields;
        this.maker = maker;
    }

    /** Makes the Java object of a handle; it is not to look at the object's bytes. */
    public interface Maker<T extends PersistentObject> {
        /** The Java object. */
        T make(ObjectHeap objects, long handle);
    }

    /** A type that goes by the name of its class. */
    public static <T extends PersistentObject> ObjectType<T> of(
            Class<T> type, String fields, Maker<T> maker) {
        return new ObjectType<>(type, type, type.getName(), fields, maker);
    }

    /** A type that goes by a name of its own and whose objects are those of {@code declared}. */
    public static <T extends PersistentObject> ObjectType<T> of(
            Class<T> type, Class<?> declared, String name, String fields, Maker<T> maker) {
        return new ObjectType<>(type, declared, Objects.requireNonNull(name), fields, maker);
    }

    /** The name in heaps. */
    public String name() {
        return name;
    }

    /** The fields, in the order in which they lie in a block. */
    public String fields() {
        return fields;
    }

    /** The class that programs use: of the objects, or what the objects implement. */
    public Class<?> declared() {
        return declared;
    }

    /**
     * Makes an object with a block of {@code bytes} bytes, header included; {@code initializer}
     * fills what is behind the header, which is zero. Part of the current transaction or one of its
     * own.
     */
    public T create(ObjectHeap objects, long bytes, Consumer<Range> initializer) {
        return objects.create(this, bytes, initializer);
    }

    @Override
    public String toString() {
        return name;
    }

    Class<T> type() {
        return type;
    }

    T make(ObjectHeap objects, long handle) {
        return maker.make(objects, handle);
    }
}
