package io.entresol.collections;

import java.util.Objects;

/** Operations on whole arrays; each is a transaction, or part of the thread's current one. */
public final class PersistentArrays {
    private PersistentArrays() {
    }

    /** An array of the same class with the first elements; zero or null beyond what is there. */
    public static <A extends PersistentElements> A copyOf(A array, int length) {
        return part(array, 0, Math.min(array.length(), length), length);
    }

    /** An array of the same class with the elements from {@code from} to before {@code to}. */
    public static <A extends PersistentElements> A copyOfRange(A array, int from, int to) {
        if (from > to) {
            throw new IllegalArgumentException(from + " > " + to);
        }
        Objects.checkFromToIndex(from, Math.max(from, array.length()), array.length());
        return part(array, from, Math.min(array.length(), to) - from, to - from);
    }

    /**
     * Copies elements between arrays of one element type, as {@link System#arraycopy} does; the
     * ranges may overlap. An immutable target is an {@link IllegalArgumentException}.
     */
    public static void arrayCopy(PersistentElements source, int from, PersistentElements target,
            int to, int length) {
        if (source.elementType() != target.elementType()) {
            throw new ArrayStoreException(source.elementType().getSimpleName() + " elements into"
                    + " an array of " + target.elementType().getSimpleName());
        }
        if (!target.isMutable()) {
            throw new IllegalArgumentException("the elements of a "
                    + target.getClass().getSimpleName() + " never change");
        }
        if (source.objects() != target.objects()) {
            throw new IllegalArgumentException("the arrays are in different heaps, "
                    + source.objects() + " and " + target.objects());
        }
        Objects.checkFromIndexSize(from, length, source.length());
        Objects.checkFromIndexSize(to, length, target.length());
        if (length > 0) {
            int each = source.elementBytes();
            source.objects().run(() -> target.block().copyFrom(source.block(),
                    PersistentElements.offset(from, each), PersistentElements.offset(to, each),
                    (long) length * each));
        }
    }

    /** The elements' bytes in the machine's order; of arrays of primitives. */
    public static byte[] toByteArray(PersistentElements array) {
        requirePrimitive(array.elementType());
        byte[] bytes = new byte[Math.multiplyExact(array.length(), array.elementBytes())];
        if (bytes.length > 0) {
            array.block().copyToArray(PersistentObject.HEADER_BYTES, bytes, 0, bytes.length);
        }
        return bytes;
    }

    /** An array of primitives, of class {@code type}, of bytes that {@link #toByteArray} gave. */
    public static <A extends PersistentElements> A fromByteArray(
            ObjectHeap objects, Class<A> type, byte[] bytes) {
        ObjectType<?> made = Types.of(type);
        return objects.run(() -> {
            A array = type.cast(made.create(objects, PersistentObject.HEADER_BYTES + bytes.length,
                    range -> {
                        if (bytes.length > 0) {
                            range.copyFromArray(
                                    bytes, 0, PersistentObject.HEADER_BYTES, bytes.length);
                        }
                    }));
            requirePrimitive(array.elementType());
            if (bytes.length % array.elementBytes() != 0) {
                throw new IllegalArgumentException(bytes.length + " bytes are no whole number of "
                        + array.elementType().getSimpleName() + " elements");
            }
            return array;
        });
    }

    private static <A extends PersistentElements> A part(A array, int from, int count, int length) {
        int each = array.elementBytes();
        ObjectHeap objects = array.objects();
        ObjectType<?> type = Types.of(array.getClass());
        return objects.run(() -> {
            PersistentObject copy = type.create(
                    objects, PersistentElements.bytes(length, each), range -> {
                        if (count > 0) {
                            range.copyFrom(array.block(), PersistentElements.offset(from, each),
                                    PersistentObject.HEADER_BYTES, (long) count * each);
                        }
                    });
            @SuppressWarnings("unchecked")
            A same = (A) copy;
            return same;
        });
    }

    private static void requirePrimitive(Class<?> elementType) {
        if (!elementType.isPrimitive()) {
            throw new IllegalArgumentException("only arrays of primitives are bytes");
        }
    }
}
