package io.entresol.collections;

import io.entresol.heap.RadixTree;
import io.entresol.heap.TransactionalHeap;
import java.util.Arrays;
import java.util.function.LongFunction;

/**
 * One garbage collection: it marks all blocks that the roots lead to, then frees every other block.
 * Nothing else runs on the heap meanwhile. Its marks are in Java. It changes the heap only by
 * transactions that free garbage, so a crash between them costs only another collection.
 */
final class GarbageCollection implements Tracer {
    /** Blocks freed in one transaction. */
    private static final int FREED_TOGETHER = 256;

    private final TransactionalHeap heap;
    private final LongFunction<PersistentObject> proxy;
    private final HandleSet marked = new HandleSet();
    private long[] waiting = new long[1024];
    private int waitingCount;
    private long objects;
    private final long[] garbage = new long[FREED_TOGETHER];
    private int garbageCount;
    private long freed;

    /** {@code proxy} gives a Java object for a handle. */
    GarbageCollection(TransactionalHeap heap, LongFunction<PersistentObject> proxy) {
        this.heap = heap;
        this.proxy = proxy;
    }

    @Override
    public void block(long handle) {
        if (handle != 0) {
            marked.add(handle);
        }
    }

    @Override
    public void object(long handle) {
        if (handle == 0 || !marked.add(handle)) {
            return;
        }
        if (waitingCount == waiting.length) {
            waiting = Arrays.copyOf(waiting, waitingCount * 2);
        }
        waiting[waitingCount++] = handle;
    }

    @Override
    public void tree(long handle) {
        if (handle != 0) {
            RadixTree.forEachBlock(heap, handle, this::block);
        }
    }

    /** Follows what was told so far to its end. */
    void mark() {
        while (waitingCount > 0) {
            objects++;
            proxy.apply(waiting[--waitingCount]).trace(this);
        }
    }

    /** Frees what is not marked. */
    Collected sweep() {
        long before = heap.statistics().liveBytes();
        heap.forEachBlock(handle -> {
            if (!marked.contains(handle)) {
                garbage[garbageCount++] = handle;
                if (garbageCount == FREED_TOGETHER) {
                    free();
                }
            }
        });
        free();
        long kept = heap.statistics().liveBytes();
        return new Collected(objects, marked.size(), kept, freed, before - kept);
    }

    private void free() {
        heap.execute(() -> {
            for (int index = 0; index < garbageCount; index++) {
                heap.compactMemoryBlockFromHandle(garbage[index]).free();
            }
        });
        freed += garbageCount;
        garbageCount = 0;
    }
}
