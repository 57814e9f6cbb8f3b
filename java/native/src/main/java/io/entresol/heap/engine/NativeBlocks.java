package io.entresol.heap.engine;

/** The native library's lists of blocks; as {@link Native}. */
public final class NativeBlocks {
    private NativeBlocks() {
    }

    /** The live blocks of a heap; the list's address. */
    public static long ofHeap(long heap) {
        return Jni.blocksOfHeap(heap);
    }

    /** The blocks of a radix tree, which must not change meanwhile; the list's address. */
    public static long ofTree(long heap, long handle) {
        return Jni.blocksOfTree(heap, handle);
    }

    /** Puts the next handles to {@code out}, {@code count} at most; how many, 0 at the end. */
    public static long next(long blocks, long out, long count) {
        return Jni.blocksNext(blocks, out, count);
    }

    /** Releases a list. */
    public static long close(long blocks) {
        return Jni.blocksClose(blocks);
    }
}
