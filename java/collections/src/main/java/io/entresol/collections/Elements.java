package io.entresol.collections;

import io.entresol.heap.TransactionalMemoryBlock;
import java.util.Arrays;
import java.util.StringJoiner;

/** Blocks that are a header and cells, one after another. */
final class Elements {
    /** Of a longer array nobody reads more. */
    private static final int SHOWN_MAX = 100;

    private Elements() {
    }

    static <T extends PersistentObject> T create(
            ObjectType<T> type, ObjectHeap objects, Object... elements) {
        return objects.run(() -> {
            long[] cells = new long[elements.length];
            for (int index = 0; index < cells.length; index++) {
                cells[index] = Cell.of(objects, elements[index]);
            }
            return type.create(objects, offset(cells.length), range -> {
                for (int index = 0; index < cells.length; index++) {
                    range.setLong(offset(index), cells[index]);
                }
            });
        });
    }

    static <T> T get(PersistentObject object, long offset) {
        ObjectHeap objects = object.objects();
        return objects.read(() -> Cell.value(objects, object.block().getLong(offset)));
    }

    static void set(PersistentObject object, long offset, Object element) {
        ObjectHeap objects = object.objects();
        objects.run(() -> object.block().setLong(offset, Cell.of(objects, element)));
    }

    static Object[] copy(PersistentObject object) {
        ObjectHeap objects = object.objects();
        return objects.read(() -> {
            Object[] copy = new Object[count(object.block())];
            for (int index = 0; index < copy.length; index++) {
                copy[index] = Cell.value(objects, object.block().getLong(offset(index)));
            }
            return copy;
        });
    }

    /** The first elements, for people; arrays that lead back to one of themselves are not followed. */
    static String shown(PersistentElements array) {
        int length = array.length();
        StringJoiner shown = new StringJoiner(", ", "[", "]");
        for (int index = 0; index < Math.min(length, SHOWN_MAX); index++) {
            Object element = get(array, offset(index));
            shown.add(element instanceof PersistentElements inner
                    ? inner.getClass().getSimpleName() + " of " + inner.length()
                    : element instanceof byte[] bytes ? Arrays.toString(bytes)
                    : String.valueOf(element));
        }
        if (length > SHOWN_MAX) {
            shown.add("... " + length + " elements");
        }
        return shown.toString();
    }

    static void trace(TransactionalMemoryBlock block, Tracer tracer) {
        for (int index = 0; index < count(block); index++) {
            Cell.trace(block.getLong(offset(index)), tracer);
        }
    }

    static int count(TransactionalMemoryBlock block) {
        return (int) ((block.size() - PersistentObject.HEADER_BYTES) / Cell.BYTES);
    }

    static long offset(int index) {
        return PersistentObject.HEADER_BYTES + (long) index * Cell.BYTES;
    }
}
