package io.entresol.jdbc.internal.aggregate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.Columns;
import io.entresol.jdbc.internal.dialect.Dialect;
import io.entresol.jdbc.internal.dialect.SqlTypes;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.hep.HepPlanner;
import org.apache.calcite.plan.hep.HepProgram;
import org.apache.calcite.rel.externalize.RelJson;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexCorrelVariable;
import org.apache.calcite.rex.RexDynamicParam;
import org.apache.calcite.rex.RexFieldAccess;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexOver;
import org.apache.calcite.rex.RexSubQuery;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.rex.RexVisitorImpl;
import org.apache.calcite.sql.SqlOperator;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.util.JsonBuilder;

/**
 * Expressions over the cells of a row, in the form that nodes exchange: Calcite's JSON. An
 * expression becomes a formula only if every other node reads it alike and computes the same
 * result.
 *
 * @param values expressions to compute for each row that counts
 * @param condition the rows that count are those for which it is true; null: all
 */
public record Formulas(List<String> values, String condition) {
    public static final Formulas NONE = new Formulas(List.of(), null);

    private static final ObjectMapper JSON = new ObjectMapper()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);
    /** Types of what other nodes are told, as results and as parameters. */
    private static final Set<SqlTypeName> TOLD = EnumSet.of(SqlTypeName.BOOLEAN,
            SqlTypeName.INTEGER, SqlTypeName.BIGINT, SqlTypeName.REAL, SqlTypeName.FLOAT,
            SqlTypeName.DOUBLE, SqlTypeName.DECIMAL, SqlTypeName.CHAR, SqlTypeName.VARCHAR);
    /** Further ones inside of expressions; what depends on the place of a session is not there. */
    private static final Set<SqlTypeName> COMPUTED = EnumSet.of(SqlTypeName.TINYINT,
            SqlTypeName.SMALLINT, SqlTypeName.BINARY, SqlTypeName.VARBINARY, SqlTypeName.DATE,
            SqlTypeName.TIME, SqlTypeName.TIMESTAMP, SqlTypeName.SYMBOL, SqlTypeName.NULL);

    static {
        COMPUTED.addAll(TOLD);
        COMPUTED.addAll(SqlTypeName.INTERVAL_TYPES);
    }

    /** The expressions over columns of those types; null if other nodes cannot compute them. */
    public static Formulas of(List<RexNode> values, RexNode condition, RelDataType columns) {
        List<String> texts = new ArrayList<>();
        for (RexNode value : values) {
            texts.add(TOLD.contains(value.getType().getSqlTypeName())
                    ? text(value, columns) : null);
        }
        String told = condition == null ? null : text(condition, columns);
        return texts.contains(null) || condition != null && told == null ? null
                : new Formulas(List.copyOf(texts), told);
    }

    boolean areNone() {
        return values.isEmpty() && condition == null;
    }

    private static String text(RexNode node, RelDataType columns) {
        Expected expected = Expected.of(node);
        if (!expected.known || !RexUtil.isDeterministic(node)) {
            return null;
        }
        try {
            String text = JSON.writeValueAsString(
                    RelJson.create().withJsonBuilder(new JsonBuilder()).toJson(node));
            RexNode understood = node(text, columns);
            // Functions of one name are not one function. Literals of texts differ in how they
            // give way to other collations, of which there are none.
            return understood.toString().equals(node.toString())
                    && expected.isOf(Expected.of(understood)) ? text : null;
        } catch (RuntimeException | JsonProcessingException unknown) {
            return null;
        }
    }

    private static RexNode node(String text, RelDataType columns) {
        try {
            return RelJson.create()
                    .withInputTranslator((json, place, map, input) ->
                            RexInputRef.of(place, columns))
                    .toRex(cluster(), JSON.readValue(text, Map.class));
        } catch (JsonProcessingException failure) {
            throw new IllegalArgumentException("what another node sent is no expression: are all "
                    + "nodes of one version?", failure);
        }
    }

    private static RelOptCluster cluster() {
        return RelOptCluster.create(new HepPlanner(HepProgram.builder().build()),
                new RexBuilder(types()));
    }

    private static JavaTypeFactory types() {
        return Dialect.types(new SqlTypes());
    }

    /** A row of columns, as the expressions know it. */
    public static RelDataType row(List<Column> columns) {
        return Columns.rowType(columns, types());
    }

    /** The values' expressions. */
    public List<RexNode> nodes(RelDataType columns) {
        return values.stream().map(text -> node(text, columns)).toList();
    }

    /** The condition's expression; null: none. */
    public RexNode conditionNode(RelDataType columns) {
        return condition == null ? null : node(condition, columns);
    }

    static RexBuilder builder() {
        return new RexBuilder(types());
    }

    /** What a run gives for parameters of the expressions, by their names. */
    public Map<String, Object> given(DataContext run, RelDataType columns) {
        Map<String, Object> given = new TreeMap<>();
        List<RexNode> nodes = new ArrayList<>(nodes(columns));
        if (condition != null) {
            nodes.add(conditionNode(columns));
        }
        nodes.forEach(node -> Expected.of(node).parameters
                .forEach(name -> given.put(name, run.get(name))));
        return given;
    }

    /** What an expression is made of, as far as its text may be taken for that of another one. */
    private static final class Expected extends RexVisitorImpl<Void> {
        private final List<SqlOperator> operators = new ArrayList<>();
        private final List<RelDataType> types = new ArrayList<>();
        private final List<String> parameters = new ArrayList<>();
        private boolean known = true;

        private Expected() {
            super(true);
        }

        public static Expected of(RexNode node) {
            Expected expected = new Expected();
            node.accept(expected);
            return expected;
        }

        boolean isOf(Expected other) {
            boolean same = operators.size() == other.operators.size();
            for (int place = 0; same && place < operators.size(); place++) {
                same = operators.get(place) == other.operators.get(place)
                        && areSame(types.get(place), other.types.get(place));
            }
            return same;
        }

        private static boolean areSame(RelDataType one, RelDataType other) {
            return one.getSqlTypeName() == other.getSqlTypeName()
                    && one.isNullable() == other.isNullable()
                    && one.getPrecision() == other.getPrecision()
                    && one.getScale() == other.getScale();
        }

        @Override
        public Void visitCall(RexCall call) {
            operators.add(call.getOperator());
            types.add(call.getType());
            known &= !call.getOperator().isDynamicFunction()
                    && COMPUTED.contains(call.getType().getSqlTypeName());
            return super.visitCall(call);
        }

        @Override
        public Void visitDynamicParam(RexDynamicParam parameter) {
            known &= TOLD.contains(parameter.getType().getSqlTypeName());
            parameters.add(parameter.getName());
            return null;
        }

        @Override
        public Void visitOver(RexOver over) {
            known = false;
            return null;
        }

        @Override
        public Void visitSubQuery(RexSubQuery query) {
            known = false;
            return null;
        }

        @Override
        public Void visitCorrelVariable(RexCorrelVariable variable) {
            known = false;
            return null;
        }

        @Override
        public Void visitFieldAccess(RexFieldAccess access) {
            known = false;
            return null;
        }
    }
}
