package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every way into the native library, on every Java, does the same and says nothing beside it. */
class PathsTest {
    /** Of the transcript, so that runs on different versions of Java are compared too. */
    private static final int EXPECTED = -194937357;

    @TempDir
    Path folder;

    @Test
    void allPathsGiveOneResultAndNoWarning() throws Exception {
        // They wait for the disk more than they work: at once.
        Map<String, CompletableFuture<ChildJvm>> children = ChildJvm.paths().stream().collect(
                Collectors.toMap(path -> path, path -> CompletableFuture.supplyAsync(
                        () -> transcript(path))));
        for (String path : children.keySet()) {
            ChildJvm child = children.get(path).join();
            assertEquals("", child.err, path);
            assertEquals(0, child.status);
            assertEquals(EXPECTED, child.out.hashCode(), () -> path + " wrote\n" + child.out);
        }
    }

    private ChildJvm transcript(String path) {
        String heap = folder.resolve("heap-" + path).toString();
        try {
            return ChildJvm.run(folder,
                    ChildJvm.command(path, quiet(path), Transcript.class, heap));
        } catch (IOException | InterruptedException failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** By JNI a newer Java warns of sun.misc.Unsafe, as the guide says, unless it is allowed. */
    private static List<String> quiet(String path) {
        boolean warns = "jni".equals(path) && Runtime.version().feature() >= 23;
        return warns ? List.of("--sun-misc-unsafe-memory-access=allow") : List.of();
    }

    /** Uses everything that goes through the library or touches memory, and prints what it finds. */
    static final class Transcript {
        private static final Random RANDOM = new Random(11);

        private Transcript() {
        }

        public static void main(String[] arguments) {
            for (int kind = 0; kind < 3; kind++) {
                String path = arguments[0] + kind;
                try (AnyHeap heap = create(kind, path)) {
                    blocks(heap.allocateMemoryBlock(512));
                    blocks(heap.allocateCompactMemoryBlock(512));
                    failures(heap, heap.allocateMemoryBlock(64));
                    tree(heap);
                }
                try (AnyHeap heap = open(kind, path)) {
                    print("reopened", () -> heap.check() + (heap.getRoot() > 0));
                    RadixTree tree = RadixTree.open(heap, heap.getRoot());
                    print("entries", tree::size);
                }
            }
            pool(arguments[0] + "-pool");
        }

        private static AnyHeap create(int kind, String path) {
            switch (kind) {
                case 0:
                    return Heap.createHeap(path, Heaps.BYTES);
                case 1:
                    return PersistentHeap.createHeap(path, Heaps.BYTES);
                default:
                    return TransactionalHeap.createHeap(path, Heaps.BYTES);
            }
        }

        private static AnyHeap open(int kind, String path) {
            switch (kind) {
                case 0:
                    return Heap.openHeap(path);
                case 1:
                    return PersistentHeap.openHeap(path);
                default:
                    return TransactionalHeap.openHeap(path);
            }
        }

        private static void blocks(AnyMemoryBlock block) {
            block.setByte(1, (byte) -7);
            block.setShort(3, (short) -300);
            block.setChar(5, '\uabcd');
            block.setInt(7, -70_000);
            block.setLong(11, Long.MIN_VALUE + 3);
            block.setFloat(19, 1.5f);
            block.setDouble(23, -2.25);
            block.setBoolean(31, true);
            block.setIntRelease(32, 5);
            block.setIntVolatile(36, 6);
            block.setLongRelease(40, 7);
            block.setLongVolatile(48, 8);
            print("numbers", () -> block.getByte(1) + " " + block.getShort(3) + " "
                    + (int) block.getChar(5) + " " + block.getInt(7) + " " + block.getLong(11)
                    + " " + block.getFloat(19) + " " + block.getDouble(23) + " "
                    + block.getBoolean(31) + " " + block.getIntAcquire(32) + " "
                    + block.getIntVolatile(36) + " " + block.getLongAcquire(40) + " "
                    + block.getLongVolatile(48));
            print("swaps", () -> block.compareAndSetInt(32, 5, 9) + " "
                    + block.compareAndSetInt(32, 5, 9) + " " + block.getAndAddInt(36, 4) + " "
                    + block.compareAndSetLong(40, 7, -1) + " " + block.getAndAddLong(48, -9));
            byte[] bytes = new byte[100];
            RANDOM.nextBytes(bytes);
            block.copyFromArray(bytes, 10, 64, 50);
            block.copyFromByteBuffer(ByteBuffer.wrap(bytes, 20, 30).slice(), 128);
            ByteBuffer direct = ByteBuffer.allocateDirect(40);
            direct.put(bytes, 0, 40).flip();
            block.copyFromByteBuffer(direct, 192);
            block.copyFrom(block, 64, 80, 40);
            block.setMemory((byte) 3, 300, 17);
            block.withRange(320, 16, range -> {
                range.setLong(328, 77);
            });
            byte[] all = new byte[512];
            block.copyToArray(0, all, 0, 512);
            print("bytes", () -> java.util.Arrays.hashCode(all));
            print("buffer", () -> block.asByteBuffer(64, 64).getInt(4));
        }

        private static void failures(AnyHeap heap, AnyMemoryBlock block) {
            print("outside", () -> block.getLong(57));
            print("overflow", () -> block.getLong(Long.MAX_VALUE - 3));
            print("no handle", () -> heap.memoryBlockFromHandle(-1));
            print("no room", () -> heap.allocateMemory(1L << 40));
            print("no map", () -> RadixTree.open(heap, block.handle()));
            print("an abort", () -> Transaction.create(heap, () -> {
                RadixTree.create(heap).put(new byte[1], 1, -1);
                throw new IllegalArgumentException("on purpose");
            }));
            block.freeMemory();
            print("freed", () -> block.getLong(0));
        }

        private static void tree(AnyHeap heap) {
            RadixTree tree = RadixTree.create(heap);
            heap.setRoot(tree.handle());
            long sum = 0;
            for (int step = 0; step < 3000; step++) {
                byte[] key = new byte[RANDOM.nextInt(4)];
                RANDOM.nextBytes(key);
                sum = sum * 31 + (step % 3 == 0 ? tree.remove(key, -1) : tree.put(key, step, -1));
                sum += tree.get(new byte[] {key.length == 0 ? 0 : key[0]}, -2);
            }
            try (RadixTree.Cursor cursor = tree.range(new byte[] {5}, true, null, false, true)) {
                while (cursor.next()) {
                    sum = sum * 31 + cursor.value() + java.util.Arrays.hashCode(cursor.key());
                }
            }
            long result = sum;
            print("map", () -> tree.size() + " " + result);
        }

        private static void pool(String path) {
            try (MemoryPool pool = MemoryPool.createPool(path, 1 << 20)) {
                pool.setLong(8, 99);
                pool.flush(0, 64);
                pool.setMemoryNT((byte) 4, 100, 10);
                print("pool", () -> pool.getLong(8) + " " + pool.getInt(102) + " " + pool.size());
            }
        }

        private static void print(String what, Supplier<Object> value) {
            try {
                System.out.println(what + ": " + value.get());
            } catch (RuntimeException failure) {
                // Sentences name handles and paths, which are the heap's business.
                System.out.println(what + ": " + failure.getClass().getSimpleName());
            }
        }
    }
}
