package io.entresol.collections;

import io.entresol.heap.RadixTree;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32C;

/**
 * The types of a heap, in a radix tree: {@code 'n'} and a name to the type's block, {@code '#'} and
 * a number (4 bytes, the highest first) to the same block. A type's number is used once and never
 * again.
 *
 * <p>A type is entered in a transaction of its own, which stays if the transaction that needed the
 * type is undone. So no transaction waits for the end of another because both met new types. Java
 * memory holds only committed types. The monitor is a leaf except for the tree, which nothing else
 * changes; the code that takes the monitor already keeps garbage collection away.
 */
final class TypeTable {
    private static final long NUMBER_AT = 0;
    private static final long DIGEST_AT = 4;
    private static final long NAME_BYTES_AT = 8;
    private static final long FIELDS_BYTES_AT = 12;
    private static final long TEXT_AT = 16;

    private final TransactionalHeap heap;
    private final RadixTree tree;
    /** Blocks of types by number. */
    private final Map<Integer, Long> blocks = new ConcurrentHashMap<>();
    private final Map<ObjectType<?>, Integer> numbers = new ConcurrentHashMap<>();
    private final Map<Integer, ObjectType<?>> types = new ConcurrentHashMap<>();

    TypeTable(TransactionalHeap heap, long handle) {
        this.heap = heap;
        this.tree = RadixTree.open(heap, handle);
        try (RadixTree.Cursor all = tree.entries()) {
            while (all.next()) {
                blocks.put(at(all.value()).getInt(NUMBER_AT), all.value());
            }
        }
    }

    void trace(Tracer tracer) {
        tracer.tree(tree.handle());
        try (RadixTree.Cursor all = tree.entries()) {
            while (all.next()) {
                tracer.block(all.value());
            }
        }
    }

    /** The number of a type, which is entered if it is not there. */
    int number(ObjectType<?> type) {
        Integer known = numbers.get(type);
        return known != null ? known : entered(type);
    }

    /** The type of a number that an object has. */
    ObjectType<?> type(int number) {
        ObjectType<?> known = types.get(number);
        return known != null ? known : found(number);
    }

    private synchronized int entered(ObjectType<?> type) {
        byte[] key = key(type.name());
        long block = Transaction.apart(heap, () -> {
            tree.hold();
            long handle = tree.get(key, 0);
            return handle == 0 ? enter(type, key) : compared(type, handle, key);
        });
        int number = at(block).getInt(NUMBER_AT);
        keep(type, number, block);
        return number;
    }

    private synchronized ObjectType<?> found(int number) {
        Long block = blocks.get(number);
        if (block == null) {
            throw new IllegalArgumentException(
                    "there is no object: " + Integer.toUnsignedString(number) + " is no type");
        }
        ObjectType<?> type = Types.named(name(at(block)), TypeTable.class);
        if (isSame(type, at(block)) || heap.isReadOnly()) {
            keep(type, number, block);
        } else {
            entered(type);
        }
        return type;
    }

    private void keep(ObjectType<?> type, int number, long block) {
        blocks.put(number, block);
        numbers.put(type, number);
        types.put(number, type);
    }

    /** The block of a new type. */
    private long enter(ObjectType<?> type, byte[] key) {
        int number = (int) (tree.size() / 2) + 1;
        long block = write(number, type.name(), type.fields());
        tree.put(key, block, 0);
        tree.put(key(number), block, 0);
        return block;
    }

    /** The block of a type that is there; its fields become those of the class. */
    private long compared(ObjectType<?> type, long handle, byte[] key) {
        TransactionalMemoryBlock block = at(handle);
        if (isSame(type, block)) {
            return handle;
        }
        int number = block.getInt(NUMBER_AT);
        long longer = write(number, type.name(), type.fields());
        tree.put(key, longer, 0);
        tree.put(key(number), longer, 0);
        block.free();
        return longer;
    }

    /** Whether a type has the fields of the heap, not more; throws if they are others. */
    private static boolean isSame(ObjectType<?> type, TransactionalMemoryBlock block) {
        String stored = fields(block);
        if (block.getInt(DIGEST_AT) != digest(stored)) {
            throw new IllegalStateException("the fields of type " + type.name()
                    + " in this heap do not match their digest");
        }
        String now = type.fields();
        boolean longer = stored.isEmpty() || now.startsWith(stored + ", ");
        if (!now.equals(stored) && !longer) {
            throw new IllegalStateException("objects of type " + type.name() + " in this heap have"
                    + " the fields `" + stored + "`, but the class now declares `" + now + "`:"
                    + " fields keep their name, type and order, and new ones go to the end");
        }
        return now.equals(stored);
    }

    private long write(int number, String name, String fields) {
        byte[] first = name.getBytes(StandardCharsets.UTF_8);
        byte[] second = fields.getBytes(StandardCharsets.UTF_8);
        byte[] text = ByteBuffer.allocate(first.length + second.length)
                .put(first).put(second).array();
        return heap.allocateMemoryBlock(TEXT_AT + text.length, range -> {
            range.setInt(NUMBER_AT, number);
            range.setInt(DIGEST_AT, digest(fields));
            range.setInt(NAME_BYTES_AT, first.length);
            range.setInt(FIELDS_BYTES_AT, second.length);
            range.copyFromArray(text, 0, TEXT_AT, text.length);
        }).handle();
    }

    private TransactionalMemoryBlock at(long handle) {
        return heap.memoryBlockFromHandle(handle);
    }

    private static String name(TransactionalMemoryBlock block) {
        return text(block, TEXT_AT, block.getInt(NAME_BYTES_AT));
    }

    private static String fields(TransactionalMemoryBlock block) {
        int from = block.getInt(NAME_BYTES_AT);
        return text(block, TEXT_AT + from, block.getInt(FIELDS_BYTES_AT));
    }

    private static String text(TransactionalMemoryBlock block, long offset, int length) {
        byte[] bytes = new byte[length];
        if (length > 0) {
            block.copyToArray(offset, bytes, 0, length);
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static int digest(String fields) {
        CRC32C digest = new CRC32C();
        digest.update(fields.getBytes(StandardCharsets.UTF_8));
        return (int) digest.getValue();
    }

    private static byte[] key(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + bytes.length).put((byte) 'n').put(bytes).array();
    }

    private static byte[] key(int number) {
        return ByteBuffer.allocate(1 + Integer.BYTES).put((byte) '#').putInt(number).array();
    }
}
