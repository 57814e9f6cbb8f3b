package io.entresol.collections;

/**
 * Takes from a persistent object the blocks that it owns and the objects that it leads to, so that
 * garbage collection keeps them. Blocks that no object names are freed.
 */
public interface Tracer {
    /** A plain block, regular or compact, that the object owns; 0 is none. */
    void block(long handle);

    /** Another persistent object; 0 is none. */
    void object(long handle);

    /**
     * A radix tree that the object owns, with its nodes and leaves; 0 is none. What the values of
     * its entries lead to is to be told besides.
     */
    void tree(long handle);
}
