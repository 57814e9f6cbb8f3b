package io.entresol;

/**
 * A cache on flash: as a {@link Store}, but it may lose any entry at any time to make room for
 * others. It never returns an older value than the latest.
 */
public final class Cache extends Opened {
    private Cache(Engine engine) {
        super(engine);
    }

    /** Opens the cache on a device, or makes one. Waits for the device. */
    public static Cache open(StoreOptions options) {
        return new Cache(Engine.open(options.with("reclaim", "cache")));
    }
}
