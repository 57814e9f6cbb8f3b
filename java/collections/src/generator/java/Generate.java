import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Writes the classes that differ in a type or a number only: boxes and arrays of the primitives,
 * and tuples. Run by the build before it compiles: {@code java Generate.java FOLDER}.
 */
public final class Generate {
    private static final int LARGEST_TUPLE = 22;

    private static final List<Primitive> PRIMITIVES = List.of(
            new Primitive("boolean", "Boolean", "Boolean", 1),
            new Primitive("byte", "Byte", "Byte", 1),
            new Primitive("char", "Character", "Char", 2),
            new Primitive("short", "Short", "Short", 2),
            new Primitive("int", "Integer", "Int", 4),
            new Primitive("long", "Long", "Long", 8),
            new Primitive("float", "Float", "Float", 4),
            new Primitive("double", "Double", "Double", 8));

    private static final String BOX = """
            package io.entresol.collections;

            /** A {@code @type@} that never changes. */
            public final class Persistent@Box@ extends PersistentBox<@Box@> {
                static final ObjectType<Persistent@Box@> TYPE =
                        ObjectType.of(Persistent@Box@.class, "value @type@", Persistent@Box@::new);

                private Persistent@Box@(ObjectHeap objects, long handle) {
                    super(objects, handle);
                }

                /** Makes one of that value. */
                public static Persistent@Box@ of(ObjectHeap objects, @type@ value) {
                    return TYPE.create(objects, HEADER_BYTES + @bytes@,
                            range -> range.set@Access@(HEADER_BYTES, value));
                }

                /** The value. */
                public @type@ @type@Value() {
                    return block().get@Access@(HEADER_BYTES);
                }

                @Override
                public @Box@ value() {
                    return @type@Value();
                }
            }
            """;

    private static final String ARRAY = """
            package io.entresol.collections;

            /** @What@ */
            public final class @Class@ extends PersistentElements {
                static final ObjectType<@Class@> TYPE =
                        ObjectType.of(@Class@.class, "elements @type@", @Class@::new);

                private @Class@(ObjectHeap objects, long handle) {
                    super(objects, handle, @bytes@);
                }

                /** Makes one with those elements. */
                public static @Class@ of(ObjectHeap objects, @type@... elements) {
                    return TYPE.create(objects, bytes(elements.length, @bytes@), range -> {
                        for (int index = 0; index < elements.length; index++) {
                            range.set@Access@(offset(index, @bytes@), elements[index]);
                        }
                    });
                }
            @Changes@
                /** The element at {@code index}. */
                public @type@ get(int index) {
                    return block().get@Access@(at(index));
                }

                /** A copy of all elements. */
                public @type@[] toArray() {
                    @type@[] copy = new @type@[length()];
                    for (int index = 0; index < copy.length; index++) {
                        copy[index] = block().get@Access@(offset(index, @bytes@));
                    }
                    return copy;
                }
            @Value@
                @Override
                Class<?> elementType() {
                    return @type@.class;
                }

                @Override
                boolean isMutable() {
                    return @mutable@;
                }
            }
            """;

    private static final String ARRAY_CHANGES = """

                /** Makes one with so many elements, all of them zero. */
                public static @Class@ create(ObjectHeap objects, int length) {
                    return TYPE.create(objects, bytes(length, @bytes@), range -> { });
                }

                /** Changes the element at {@code index}. */
                public void set(int index, @type@ element) {
                    block().set@Access@(at(index), element);
                }
            """;

    private static final String ARRAY_VALUE = """

                @Override
                public boolean equals(Object other) {
                    return other instanceof @Class@
                            && java.util.Arrays.equals(toArray(), ((@Class@) other).toArray());
                }

                @Override
                public int hashCode() {
                    return java.util.Arrays.hashCode(toArray());
                }
            """;

    private static final String TUPLE = """
            package io.entresol.collections;

            /** @What@ */
            public final class @Class@<@Types@> extends PersistentTuple {
                static final ObjectType<@Class@<?@More@>> TYPE = type();

                private @Class@(ObjectHeap objects, long handle) {
                    super(objects, handle);
                }

                /** Makes one of those elements: persistent objects, values, or null. */
                public static <@Types@> @Class@<@Types@> of(
                        ObjectHeap objects, @Parameters@) {
                    @SuppressWarnings("unchecked")
                    @Class@<@Types@> made = (@Class@<@Types@>) create(TYPE, objects, @Arguments@);
                    return made;
                }
            @Accessors@
                @SuppressWarnings({"unchecked", "rawtypes"})
                private static ObjectType<@Class@<?@More@>> type() {
                    return (ObjectType) ObjectType.of(@Class@.class, "@size@ elements",
                            (objects, handle) -> new @Class@<>(objects, handle));
                }
            }
            """;

    private static final String TUPLE_GET = """

                /** Element @n@. */
                public T@n@ _@n@() {
                    return element(@n@);
                }
            """;

    private static final String TUPLE_SET = """

                /** Changes element @n@. */
                public void _@n@(T@n@ element) {
                    element(@n@, element);
                }
            """;

    private Generate() {
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0], "io", "entresol", "collections");
        Files.createDirectories(folder);
        for (Primitive primitive : PRIMITIVES) {
            write(folder, "Persistent" + primitive.box, primitive.in(BOX));
            String name = primitive.access + "Array";
            write(folder, "Persistent" + name, primitive.in(array("Persistent" + name, true)));
            write(folder, "PersistentImmutable" + name,
                    primitive.in(array("PersistentImmutable" + name, false)));
        }
        for (int size = 1; size <= LARGEST_TUPLE; size++) {
            write(folder, "PersistentTuple" + size, tuple("PersistentTuple" + size, size, true));
            write(folder, "PersistentImmutableTuple" + size,
                    tuple("PersistentImmutableTuple" + size, size, false));
        }
    }

    private static String array(String name, boolean mutable) {
        return ARRAY.replace("@Changes@\n", mutable ? ARRAY_CHANGES + "\n" : "\n")
                .replace("@Value@\n", mutable ? "\n" : ARRAY_VALUE + "\n")
                .replace("@What@", mutable
                        ? "Elements of type {@code @type@}, a fixed number of them."
                        : "Elements of type {@code @type@} that never change; equal ones are equal.")
                .replace("@mutable@", String.valueOf(mutable))
                .replace("@Class@", name);
    }

    private static String tuple(String name, int size, boolean mutable) {
        StringBuilder accessors = new StringBuilder();
        for (int number = 1; number <= size; number++) {
            String both = mutable ? TUPLE_GET + TUPLE_SET : TUPLE_GET;
            accessors.append(both.replace("@n@", String.valueOf(number)));
        }
        String many = size == 1 ? "One element" : size + " elements, each of its own type";
        return TUPLE.replace("@Accessors@\n", accessors + "\n")
                .replace("@What@", many + (mutable ? "." : ", that never change."))
                .replace("@Class@", name)
                .replace("@More@", ", ?".repeat(size - 1))
                .replace("@Types@", joined(size, "T%d"))
                .replace("@Parameters@", joined(size, "T%1$d e%1$d"))
                .replace("@Arguments@", joined(size, "e%d"))
                .replace("@size@", String.valueOf(size));
    }

    private static String joined(int size, String format) {
        return IntStream.rangeClosed(1, size).mapToObj(format::formatted)
                .collect(Collectors.joining(", "));
    }

    private static void write(Path folder, String name, String text) throws IOException {
        Path file = folder.resolve(name + ".java");
        // An unchanged file keeps its time, so that nothing is compiled again.
        if (!Files.exists(file) || !Files.readString(file).equals(text)) {
            Files.writeString(file, text);
        }
    }

    private record Primitive(String type, String box, String access, int bytes) {
        String in(String template) {
            return template.replace("@type@", type).replace("@Box@", box)
                    .replace("@Access@", access).replace("@bytes@", String.valueOf(bytes));
        }
    }
}
