package io.entresol.heap;

import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;

/** Transactional methods of blocks of a persistent heap, regular or compact. */
abstract class PersistentBlock extends AnyMemoryBlock {
    PersistentBlock(PersistentHeap heap, boolean compact) {
        super(heap, compact);
    }

    @Override
    public PersistentHeap heap() {
        return (PersistentHeap) super.heap();
    }

    /** Stores a byte in a transaction. */
    public void transactionalSetByte(long offset, byte value) {
        logged(offset, 1, range -> range.setByte(offset, value));
    }

    /** Stores a short in a transaction. */
    public void transactionalSetShort(long offset, short value) {
        logged(offset, 2, range -> range.setShort(offset, value));
    }

    /** Stores a char in a transaction. */
    public void transactionalSetChar(long offset, char value) {
        logged(offset, 2, range -> range.setChar(offset, value));
    }

    /** Stores a int in a transaction. */
    public void transactionalSetInt(long offset, int value) {
        logged(offset, 4, range -> range.setInt(offset, value));
    }

    /** Stores a long in a transaction. */
    public void transactionalSetLong(long offset, long value) {
        logged(offset, 8, range -> range.setLong(offset, value));
    }

    /** Stores a float in a transaction. */
    public void transactionalSetFloat(long offset, float value) {
        logged(offset, 4, range -> range.setFloat(offset, value));
    }

    /** Stores a double in a transaction. */
    public void transactionalSetDouble(long offset, double value) {
        logged(offset, 8, range -> range.setDouble(offset, value));
    }

    /** Copies from another block in a transaction. */
    public void transactionalCopyFromMemoryBlock(
            AnyMemoryBlock source, long sourceOffset, long offset, long length) {
        source.requireValid();
        source.span(sourceOffset, length);
        logged(offset, length, range -> range.copyFrom(source, sourceOffset, offset, length));
    }

    /** Copies from an array in a transaction. */
    public void transactionalCopyFromArray(byte[] array, int index, long offset, int length) {
        requireValid();
        Objects.checkFromIndexSize(index, length, array.length);
        logged(offset, length, range -> range.copyFromArray(array, index, offset, length));
    }

    /** Sets bytes in a transaction. */
    public void transactionalSetMemory(byte value, long offset, long length) {
        logged(offset, length, range -> range.setMemory(value, offset, length));
    }

    /** Gives {@code body} a window to write to in a transaction. */
    public <T> T transactionalWithRange(long offset, long length, Function<Range, T> body) {
        return loggedRange(offset, length, body);
    }

    /** Gives {@code body} a window to write to in a transaction. */
    public void transactionalWithRange(long offset, long length, Consumer<Range> body) {
        loggedRange(offset, length, of(body));
    }

    /** Frees it, in a transaction (the current one, or one of its own) or at once. */
    public void free(boolean transactional) {
        freeIn(transactional);
    }
}
