package io.entresol.collections;

import io.entresol.heap.TransactionalMemoryBlock;

/** Blocks that are a header and cells, one after another. */
final class Elements {
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
