package io.entresol.infinispan.recovery;

import io.entresol.infinispan.Privileged;
import java.util.Optional;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Marks a cache that this node starts because another node has it and waits for all. This node
 * joins the existing cache, and never starts it empty.
 */
public final class Borrowed implements AutoCloseable {
    private static final Started<Borrowed> ALL = new Started<>();

    private final GlobalComponentRegistry container;
    private final String cache;
    private volatile boolean givenBack;

    private Borrowed(GlobalComponentRegistry container, String cache) {
        this.container = container;
        this.cache = cache;
    }

    /** Before the cache is started. */
    public static Borrowed begin(EmbeddedCacheManager manager, String cache) {
        Borrowed borrowed = new Borrowed(Privileged.getRegistry(manager), cache);
        ALL.add(borrowed.container, cache, borrowed);
        return borrowed;
    }

    /** The start waits no longer, and fails. */
    public void giveBack() {
        givenBack = true;
    }

    static Optional<Borrowed> find(EmbeddedCacheManager manager, String cache) {
        return ALL.find(manager, cache);
    }

    boolean isGivenBack() {
        return givenBack;
    }

    /** After the start. */
    @Override
    public void close() {
        ALL.remove(container, cache, this);
    }
}
