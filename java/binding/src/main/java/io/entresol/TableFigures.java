package io.entresol;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What is counted of an ordered table since it came into memory; sizes are in bytes. */
public final class TableFigures {
    private static final Pattern TABLE = Pattern.compile("\\{[^}]*}");
    private static final Pattern NAME = Pattern.compile("\"name\":\"([0-9a-f]*)\"");
    private static final Pattern FIGURE = Pattern.compile("\"([a-z_]+)\":([0-9]+)");

    private final byte[] name;
    private final Map<String, Long> figures = new LinkedHashMap<>();

    private TableFigures(String json) {
        Matcher named = NAME.matcher(json);
        if (!named.find()) {
            throw new IllegalArgumentException("figures of a table without its name: " + json);
        }
        name = HexFormat.of().parseHex(named.group(1));
        FIGURE.matcher(json).results().forEach(found ->
                figures.put(found.group(1), Long.parseLong(found.group(2))));
    }

    static List<TableFigures> of(String json) {
        List<TableFigures> all = new ArrayList<>();
        TABLE.matcher(json).results().forEach(table -> all.add(new TableFigures(table.group())));
        return all;
    }

    /** The name of the table. */
    public byte[] name() {
        return name.clone();
    }

    /** Changes that callers made. */
    public long changes() {
        return figure("changes");
    }

    /** Bytes of their keys and values. */
    public long changeBytes() {
        return figure("change_bytes");
    }

    /** Pages that merges wrote: leaves, delta pages, inner nodes. */
    public long pagesWritten() {
        return figure("pages_written");
    }

    /** Bytes of these. */
    public long pageBytes() {
        return figure("page_bytes");
    }

    /** Changes that wait to be merged into pages now. */
    public long waitingChanges() {
        return figure("waiting_changes");
    }

    /** Memory of the table and its inner nodes now, without changes that wait. */
    public long memoryBytes() {
        return figure("memory_bytes");
    }

    /** Bytes of pages for each byte that callers changed, without the journal; 0 at first. */
    public double writeAmplification() {
        return changeBytes() == 0 ? 0 : (double) pageBytes() / changeBytes();
    }

    private long figure(String of) {
        return figures.getOrDefault(of, 0L);
    }

    @Override
    public String toString() {
        return figures.toString();
    }
}
