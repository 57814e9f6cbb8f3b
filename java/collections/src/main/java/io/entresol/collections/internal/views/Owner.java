package io.entresol.collections.internal.views;

import io.entresol.collections.ObjectHeap;
import java.util.function.Supplier;

/** The persistent object that a view shows. */
public interface Owner {
    /** The heap it lives in. */
    ObjectHeap objects();

    /** Refuses an object whose making was undone. */
    void requireMade();

    /** Runs {@code body}, which reads what the heap must not use again meanwhile. */
    <T> T looked(Supplier<T> body);
}
