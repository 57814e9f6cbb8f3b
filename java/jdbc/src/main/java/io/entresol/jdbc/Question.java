package io.entresol.jdbc;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * What a node is asked to tell of the entries that it has by itself: columns of them, or totals.
 *
 * @param table which entries
 * @param source where it finds them
 * @param asked what it asks its index
 * @param columns places of the columns that are wanted
 * @param totals what is computed of the columns; null: they are wanted themselves
 * @param inParts whether an answer that is too long may be refused, and asked for in parts
 */
record Question(Table table, CacheQuery.Source source, Asked asked,
        List<Integer> columns, Totals totals, boolean inParts) {
    private static final int VERSION = 1;

    /**
     * The values of one type in a cache.
     *
     * @param cache its name
     * @param type of the values
     * @param key type of the keys
     */
    record Table(String cache, String type, ColumnType key) {}

    /** How many cells a row of the answer has. */
    int width() {
        return totals == null ? columns.size() : totals.groups().size() + totals.calls().size();
    }

    byte[] toBytes(BitSet segments) {
        Cells.Output output = new Cells.Output().add(VERSION)
                .add(table.cache).add(table.type).add(table.key.ordinal())
                .add(inParts).add(source.ordinal()).add(asked.ickle());
        // Their names have an order, so that one question is always the same bytes.
        Map<String, Object> parameters = new TreeMap<>(asked.parameters());
        output.addAll(List.copyOf(parameters.keySet()));
        parameters.values().forEach(output::add);
        output.add(asked.offset()).add(asked.limit()).addAll(columns)
                .add(new ByteString(segments.toByteArray())).add(totals != null);
        if (totals != null) {
            output.addAll(totals.groups()).add(totals.calls().size());
            totals.calls().forEach(call -> output.add(call.kind().ordinal()).add(call.place())
                    .add(call.type().name()));
        }
        return output.toByteArray();
    }

    /**
     * A question as it arrives.
     *
     * @param question what is asked
     * @param segments of which entries
     */
    record Received(Question question, BitSet segments) {
        static Received of(byte[] bytes) {
            Cells.Input input = new Cells.Input(bytes);
            int version = input.number();
            if (version != VERSION) {
                throw new IllegalStateException("a question of version " + version + "; expected "
                        + VERSION + ": are all nodes of one version?");
            }
            Table table = new Table(input.text(), input.text(),
                    ColumnType.values()[input.number()]);
            boolean inParts = (Boolean) input.next();
            CacheQuery.Source source = CacheQuery.Source.values()[input.number()];
            String ickle = input.text();
            Map<String, Object> parameters = new TreeMap<>();
            input.all().forEach(name -> parameters.put((String) name, null));
            parameters.replaceAll((name, none) -> input.next());
            Asked asked = new Asked(ickle, parameters, (Long) input.next(),
                    (Long) input.next());
            List<Integer> columns = numbers(input);
            BitSet segments = BitSet.valueOf(((ByteString) input.next()).getBytes());
            Totals totals = (Boolean) input.next() ? totals(input) : null;
            return new Received(new Question(table, source, asked, columns, totals, inParts),
                    segments);
        }

        private static Totals totals(Cells.Input input) {
            List<Integer> groups = numbers(input);
            List<Totals.Call> calls = new ArrayList<>();
            for (int left = input.number(); left > 0; left--) {
                calls.add(new Totals.Call(Totals.Kind.values()[input.number()], input.number(),
                        SqlTypeName.valueOf(input.text())));
            }
            return new Totals(groups, calls);
        }

        private static List<Integer> numbers(Cells.Input input) {
            return input.all().stream().map(Integer.class::cast).toList();
        }
    }
}
