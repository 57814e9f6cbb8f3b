package io.entresol.collections.internal.blocks;

import io.entresol.collections.Codec;
import io.entresol.collections.Tracer;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;

/** Values in blocks of their own: the number of bytes (4), the bytes. Words are their handles. */
public final class Cells<V> implements Values<V> {
    private static final long BYTES_AT = Integer.BYTES;

    private final TransactionalHeap heap;
    private final Codec<V> codec;

    public Cells(TransactionalHeap heap, Codec<V> codec) {
        this.heap = heap;
        this.codec = codec;
    }

    @Override
    public long keep(V value) {
        if (value == null && !codec.takesNull()) {
            throw new NullPointerException("the codec `" + codec.name() + "` takes no null");
        }
        byte[] bytes = codec.encode(value);
        return heap.allocateMemoryBlock(BYTES_AT + bytes.length, range -> {
            range.setInt(0, bytes.length);
            if (bytes.length > 0) {
                range.copyFromArray(bytes, 0, BYTES_AT, bytes.length);
            }
        }).handle();
    }

    @Override
    public V read(long word) {
        return codec.decode(bytes(word));
    }

    @Override
    public boolean refers(long word) {
        boolean[] refers = {false};
        codec.references(bytes(word), handle -> refers[0] = true);
        return refers[0];
    }

    @Override
    public void release(long word) {
        heap.memoryBlockFromHandle(word).free();
    }

    @Override
    public void trace(long word, Tracer tracer) {
        tracer.block(word);
        codec.references(bytes(word), tracer::object);
    }

    private byte[] bytes(long word) {
        TransactionalMemoryBlock cell = heap.guardedMemoryBlock(word);
        byte[] bytes = new byte[cell.getInt(0)];
        if (bytes.length > 0) {
            cell.copyToArray(BYTES_AT, bytes, 0, bytes.length);
        }
        return bytes;
    }
}
