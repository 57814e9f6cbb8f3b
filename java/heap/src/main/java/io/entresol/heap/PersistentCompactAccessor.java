package io.entresol.heap;

import java.util.function.Consumer;
import java.util.function.Function;

/** An accessor of compact allocations of a persistent heap. */
public final class PersistentCompactAccessor extends AnyAccessor {
    PersistentCompactAccessor(PersistentHeap heap) {
        super(heap, true);
    }

    @Override
    public PersistentHeap heap() {
        return (PersistentHeap) super.heap();
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
    public void freeMemory(boolean transactional) {
        freeIn(transactional);
    }
}
