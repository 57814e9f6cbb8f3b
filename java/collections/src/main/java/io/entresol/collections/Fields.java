package io.entresol.collections;

import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;

/**
 * The fields of an object that an annotation made persistent, by their offset; used by the classes
 * that the compiler writes. If an object is older than a field of its class, another block holds
 * the field from its first store on. Reads make no native call.
 */
public final class Fields {
    /** Where an object keeps the handle of the block for fields that it was made without. */
    private static final long MORE_AT = PersistentObject.HEADER_BYTES;

    /** Where the first field may lie. */
    public static final long FIRST_AT = MORE_AT + Long.BYTES;

    private final ObjectHeap objects;
    private final TransactionalMemoryBlock block;
    private final long own;
    private final long all;

    /** The fields in {@code block}, which takes {@code all} bytes when it is made now. */
    public Fields(ObjectHeap objects, TransactionalMemoryBlock block, long all) {
        this.objects = objects;
        this.block = block;
        this.own = block.size();
        this.all = all;
    }

    /** Loads a byte. */
    public byte getByte(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getByte(in(at));
    }

    /** Loads a boolean. */
    public boolean getBoolean(long at) {
        return getByte(at) != 0;
    }

    /** Loads a short. */
    public short getShort(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getShort(in(at));
    }

    /** Loads a char. */
    public char getChar(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getChar(in(at));
    }

    /** Loads an int. */
    public int getInt(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getInt(in(at));
    }

    /** Loads a long. */
    public long getLong(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getLong(in(at));
    }

    /** Loads a float. */
    public float getFloat(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getFloat(in(at));
    }

    /** Loads a double. */
    public double getDouble(long at) {
        TransactionalMemoryBlock found = holding(at);
        return found == null ? 0 : found.getDouble(in(at));
    }

    /** Loads anything else. */
    public <T> T get(long at) {
        return objects.read(() -> Cell.value(objects, getLong(at)));
    }

    /** Stores a byte. */
    public void setByte(long at, byte value) {
        made(at).setByte(in(at), value);
    }

    /** Stores a boolean. */
    public void setBoolean(long at, boolean value) {
        made(at).setBoolean(in(at), value);
    }

    /** Stores a short. */
    public void setShort(long at, short value) {
        made(at).setShort(in(at), value);
    }

    /** Stores a char. */
    public void setChar(long at, char value) {
        made(at).setChar(in(at), value);
    }

    /** Stores an int. */
    public void setInt(long at, int value) {
        made(at).setInt(in(at), value);
    }

    /** Stores a long. */
    public void setLong(long at, long value) {
        made(at).setLong(in(at), value);
    }

    /** Stores a float. */
    public void setFloat(long at, float value) {
        made(at).setFloat(in(at), value);
    }

    /** Stores a double. */
    public void setDouble(long at, double value) {
        made(at).setDouble(in(at), value);
    }

    /** Stores anything else. */
    public void set(long at, Object value) {
        objects.run(() -> setLong(at, Cell.of(objects, value)));
    }

    /** Tells what a field of anything leads to. */
    public void trace(long at, Tracer tracer) {
        Cell.trace(getLong(at), tracer);
    }

    /** Tells the block for more fields. */
    public void trace(Tracer tracer) {
        tracer.block(block.getLong(MORE_AT));
    }

    private long in(long at) {
        return at < own ? at : at - own;
    }

    /** The block that holds a field; null if none does yet. */
    private TransactionalMemoryBlock holding(long at) {
        if (at < own) {
            return block;
        }
        long more = block.getLong(MORE_AT);
        if (more == 0) {
            return null;
        }
        TransactionalMemoryBlock found = heap().memoryBlockFromHandle(more);
        return at - own < found.size() ? found : null;
    }

    /** The block for a field that is stored to. */
    private TransactionalMemoryBlock made(long at) {
        TransactionalMemoryBlock found = holding(at);
        // The heap first and then the monitor, as whoever is in a transaction takes them.
        return found != null ? found : objects.read(() -> madeAlone(at));
    }

    /**
     * Makes the block, unless another thread did meanwhile. The first one is committed by itself:
     * stores of other threads to it must not go when the transaction that met the field is undone.
     * A longer one has what this transaction stored to the shorter one, and ends as that does.
     */
    private synchronized TransactionalMemoryBlock madeAlone(long at) {
        TransactionalMemoryBlock found = holding(at);
        if (found != null) {
            return found;
        }
        return block.getLong(MORE_AT) == 0
                ? Transaction.apart(heap(), this::longer) : Transaction.create(heap(), this::longer);
    }

    private TransactionalMemoryBlock longer() {
        TransactionalMemoryBlock made = heap().allocateMemoryBlock(all - own);
        long before = block.getLong(MORE_AT);
        if (before != 0) {
            TransactionalMemoryBlock old = heap().memoryBlockFromHandle(before);
            made.copyFrom(old, 0, 0, old.size());
        }
        block.setLong(MORE_AT, made.handle());
        return made;
    }

    private TransactionalHeap heap() {
        return objects.heap();
    }
}
