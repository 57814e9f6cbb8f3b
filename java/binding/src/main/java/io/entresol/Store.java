package io.entresol;

import io.entresol.heap.engine.NativeStore;
import io.entresol.heap.engine.Text;
import java.nio.file.Path;

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

    /**
     * Removes from memory the write buffers of stores that were killed in the folder and whose
     * files were deleted since: they outlive the process for the next opening, and nobody opens
     * those any more. How many files of buffers.
     */
    public static long sweepBuffers(Path folder) {
        try (Text text = new Text(folder.toAbsolutePath().toString())) {
            return StoreException.checked(NativeStore.sweep(text.address(), text.length()));
        }
    }
}
