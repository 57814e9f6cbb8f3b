package io.entresol;

/**
 * A store on flash: the index in memory, values on a device, a cache of hot entries in memory. It
 * loses no acknowledged entry, within the durability asked for; when it is full it refuses writes.
 */
public final class Store extends Opened {
    private Store(Engine engine) {
        super(engine);
    }

    /** Opens the store on a device, or makes one; recovers after a crash. Waits for the device. */
    public static Store open(StoreOptions options) {
        return new Store(Engine.open(options.with("reclaim", "store")));
    }
}
