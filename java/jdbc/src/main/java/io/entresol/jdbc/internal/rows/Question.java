package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.aggregate.Formulas;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.Cells;
import io.entresol.jdbc.internal.column.ColumnType;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * A question to a node about its own entries: columns of them, or totals.
 *
 * @param table which entries
 * @param source where the node finds them
 * @param asked the request to its index
 * @param columns places of the required columns
 * @param totals totals to compute of the columns; null: the columns themselves
 * @param given parameters of the totals' formulas, by their names
 * @param inParts whether the node may refuse an answer that is too long, to be asked for parts
 */
record Question(Table table, CacheQuery.Source source, Asked asked, List<Integer> columns,
        Totals totals, Map<String, Object> given, boolean inParts) {
    private static final int VERSION = 2;

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
        add(output, asked.parameters());
        output.add(asked.offset()).add(asked.limit()).addAll(columns)
                .add(new ByteString(segments.toByteArray())).add(totals != null);
        if (totals != null) {
            output.addAll(totals.groups()).add(totals.calls().size());
            totals.calls().forEach(call -> output.add(call.kind().ordinal()).add(call.place())
                    .add(call.filter()).add(call.type().name()));
            output.addAll(totals.formulas().values()).add(totals.formulas().condition());
            add(output, given);
        }
        return output.toByteArray();
    }

    /** The names have an order, so that one question is always the same bytes. */
    private static void add(Cells.Output output, Map<String, Object> parameters) {
        Map<String, Object> sorted = new TreeMap<>(parameters);
        output.addAll(List.copyOf(sorted.keySet()));
        sorted.values().forEach(output::add);
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
            Asked asked = new Asked(ickle, parameters(input), (Long) input.next(),
                    (Long) input.next());
            List<Integer> columns = numbers(input);
            BitSet segments = BitSet.valueOf(((ByteString) input.next()).getBytes());
            Totals totals = (Boolean) input.next() ? totals(input) : null;
            Map<String, Object> given = totals == null ? Map.of() : parameters(input);
            return new Received(new Question(table, source, asked, columns, totals, given,
                    inParts), segments);
        }

        private static Map<String, Object> parameters(Cells.Input input) {
            Map<String, Object> parameters = new TreeMap<>();
            input.all().forEach(name -> parameters.put((String) name, null));
            parameters.replaceAll((name, none) -> input.next());
            return parameters;
        }

        private static Totals totals(Cells.Input input) {
            List<Integer> groups = numbers(input);
            List<Totals.Call> calls = new ArrayList<>();
            for (int left = input.number(); left > 0; left--) {
                calls.add(new Totals.Call(Totals.Kind.values()[input.number()], input.number(),
                        input.number(), SqlTypeName.valueOf(input.text())));
            }
            List<String> values = input.all().stream().map(String.class::cast).toList();
            return new Totals(groups, calls, new Formulas(values, input.text()));
        }

        private static List<Integer> numbers(Cells.Input input) {
            return input.all().stream().map(Integer.class::cast).toList();
        }
    }
}
