package io.entresol;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.NativeTables;
import io.entresol.heap.engine.Text;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** What the ordered tables of one store share: memory, merge functions, the thread of merges. */
final class Tables {
    final Pages pages = new Pages();
    private final Engine engine;
    private final Merges merges;
    /** By the names of their tables, one char a byte. */
    private final ConcurrentHashMap<String, MergeFunction> functions = new ConcurrentHashMap<>();

    Tables(Engine engine) {
        this.engine = engine;
        merges = new Merges(engine, pages);
    }

    /** The table of a name. */
    OrderedTable open(byte[] name) {
        check();
        try (Text text = new Text(name)) {
            long address = StoreException.checked(
                    NativeTables.tableOpen(engine.address(), text.address(), text.length()));
            return new OrderedTable(this, name, address);
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** The table of a name that keeps counts. */
    OrderedTable openCounted(byte[] name) {
        check();
        try (Text text = new Text(name)) {
            long address = StoreException.checked(NativeTables.tableOpenCounted(
                    engine.address(), text.address(), text.length()));
            return new OrderedTable(this, name, address);
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /**
     * Writes a batch; the number of the condition that does not hold, -1 if all hold.
     *
     * @param words where the request goes
     */
    long write(Pages.Page words, long batch, long length, Durability level) {
        check();
        words.setLong(0, batch);
        words.setLong(Long.BYTES, length);
        words.setLong(2 * Long.BYTES, level == null ? 0 : level.level);
        words.setLong(3 * Long.BYTES, level == null ? 0 : level.milliseconds);
        words.setLong(4 * Long.BYTES, 0);
        try {
            long written = StoreException.checked(
                    NativeTables.tablesWrite(engine.address(), words.address(0)));
            return written > 0 ? -1 : words.longWord(4 * Long.BYTES);
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** Gets the rows that the words at an address ask for; how many there are. */
    long get(long words) {
        check();
        try {
            return StoreException.checked(NativeTables.tablesGet(engine.address(), words));
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** Why merges let changes wait. */
    Optional<String> heldBack() {
        try {
            long text = StoreException.checked(NativeTables.tablesHeldBack(engine.address()));
            return text == 0 ? Optional.empty() : Optional.of(Failure.text(text));
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** Figures of each table in memory. */
    List<TableFigures> figures() {
        try {
            return TableFigures.of(Failure.text(
                    StoreException.checked(NativeTables.tablesFigures(engine.address()))));
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** The function of a table, by its name as {@link #key} gives it; null if it has none. */
    MergeFunction function(String name) {
        return functions.isEmpty() ? null : functions.get(name);
    }

    /** Gives a table its function. */
    void setFunction(OrderedTable table, String name, long address, MergeFunction function) {
        check();
        functions.put(name, function);
        long number = merges.add(table.toString(), function);
        StoreException.checked(NativeTables.tableMerge(
                address, number, function.foldsAllRows() ? 1 : 0));
    }

    /** A call from within a merge would wait for that very merge. */
    void check() {
        if (merges.isCaller()) {
            throw new IllegalStateException("a merge function used the store's tables; expected a"
                    + " function of the row alone");
        }
    }

    static String key(byte[] name) {
        return new String(name, StandardCharsets.ISO_8859_1);
    }
}
