package io.entresol.infinispan.recovery;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.infinispan.commons.util.IntSet;

/**
 * The segments that a node owns while its store is open, and what comes into them from other nodes.
 * By default nothing is told apart from what users write.
 */
public interface OwnedSegments extends AutoCloseable {
    /** Takes note of the flags of the command whose write follows. */
    default void expect(long flags) {
        // No flag matters.
    }

    /** Whether the write that is being done is of an entry that comes from another node. */
    default boolean comes() {
        return false;
    }

    /** Puts what comes from another node. */
    CompletionStage<Optional<Long>> put(int segment, byte[] key, List<ByteBuffer> value);

    /** A user is about to remove a key, or its entry has ended. */
    default void removing(int segment, byte[] key) {
        // What still comes of it counts.
    }

    /** A user is about to remove all keys. */
    default void clearing() {
        // What still comes counts.
    }

    /** The node owns these segments from now on. */
    CompletionStage<Void> own(IntSet segments);

    /** The node does not own these any more; they are dropped. */
    CompletionStage<Void> disown(IntSet segments);

    /** Before the store closes. */
    @Override
    default void close() {
        // Nobody asks for them.
    }
}
