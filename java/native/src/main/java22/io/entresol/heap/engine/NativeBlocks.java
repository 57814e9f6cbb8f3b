package io.entresol.heap.engine;

import java.lang.invoke.MethodHandle;

/** The native library's lists of blocks; as {@link Native}. */
public final class NativeBlocks {
    private static final boolean FFM = "ffm".equals(Native.path());

    private static final MethodHandle BLOCKS_OF_HEAP = function("entresol_blocks_of_heap", 1);
    private static final MethodHandle BLOCKS_OF_TREE = function("entresol_blocks_of_tree", 2);
    private static final MethodHandle BLOCKS_NEXT = function("entresol_blocks_next", 3);
    private static final MethodHandle BLOCKS_CLOSE = function("entresol_blocks_close", 1);

    private NativeBlocks() {
    }

    /** The live blocks of a heap; the list's address. */
    public static long ofHeap(long heap) {
        if (!FFM) {
            return Jni.blocksOfHeap(heap);
        }
        try {
            return (long) BLOCKS_OF_HEAP.invokeExact(heap);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** The blocks of a radix tree, which must not change meanwhile; the list's address. */
    public static long ofTree(long heap, long handle) {
        if (!FFM) {
            return Jni.blocksOfTree(heap, handle);
        }
        try {
            return (long) BLOCKS_OF_TREE.invokeExact(heap, handle);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Puts the next handles to {@code out}, {@code count} at most; how many, 0 at the end. */
    public static long next(long blocks, long out, long count) {
        if (!FFM) {
            return Jni.blocksNext(blocks, out, count);
        }
        try {
            return (long) BLOCKS_NEXT.invokeExact(blocks, out, count);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    /** Releases a list. */
    public static long close(long blocks) {
        if (!FFM) {
            return Jni.blocksClose(blocks);
        }
        try {
            return (long) BLOCKS_CLOSE.invokeExact(blocks);
        } catch (Throwable failure) {
            throw Ffm.unexpected(failure);
        }
    }

    private static MethodHandle function(String name, int longs) {
        return FFM ? Ffm.function(name, longs) : null;
    }
}
