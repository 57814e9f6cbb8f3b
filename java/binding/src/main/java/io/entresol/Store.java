package io.entresol;

import io.entresol.heap.engine.NativeStore;
import io.entresol.heap.engine.Text;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

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

    /** The ordered table of a name in UTF-8; as {@link #table(byte[])}. */
    public OrderedTable table(String name) {
        return table(name.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The ordered table of a name of 1 byte to 2 KiB. It comes into being with its first row; keep
     * what this gives. The store must have been opened with {@link StoreOptions#orderedTables}.
     */
    public OrderedTable table(byte[] name) {
        return engine.tables().open(name);
    }

    /** The counted table of a name in UTF-8; as {@link #countedTable(byte[])}. */
    public OrderedTable countedTable(String name) {
        return countedTable(name.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The ordered table of a name, which keeps counts: {@link OrderedTable#count},
     * {@link OrderedTable#rank} and {@link OrderedTable#at} are for it alone. Its merges read each
     * leaf that they change. {@link #table} opens it as well. A table that was made without counts
     * stays so, also when it is dropped: a {@link StoreException} of kind
     * {@link StoreException.Kind#INVALID} says so.
     */
    public OrderedTable countedTable(byte[] name) {
        return engine.tables().openCounted(name);
    }

    /** An empty batch for rows of the store's ordered tables. */
    public TableBatch batch() {
        return new TableBatch(engine.tables());
    }

    /** Gets of several rows of the store's ordered tables, to be read by one call; none at first. */
    public TableGets gets() {
        return new TableGets(engine.tables());
    }

    /**
     * Why the last sweep of merges let changes of ordered tables wait, as where a merge function
     * threw; nothing if it let none wait. Changes that wait for long fill memory and journal.
     */
    public Optional<String> heldBack() {
        return engine.tables().heldBack();
    }

    /** Figures of each ordered table that is in memory, since it came there. */
    public List<TableFigures> tableFigures() {
        return engine.tables().figures();
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
