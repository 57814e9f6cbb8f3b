package io.entresol.collections.internal.views;

import io.entresol.collections.Tracer;

/** What a collection is to what it holds. */
public interface Contents {
    /** Tells what it is made of and leads to. */
    void trace(Tracer tracer);
}
