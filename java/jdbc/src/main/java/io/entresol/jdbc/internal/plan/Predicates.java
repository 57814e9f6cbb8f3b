package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.dialect.Exchange;
import io.entresol.jdbc.internal.rows.Condition;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexDynamicParam;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.util.NlsString;

/**
 * Conditions of SQL as conditions of Ickle, if an index decides them exactly as SQL does. They
 * differ in nulls: an index finds entries that lack a field where SQL says unknown.
 */
final class Predicates {
    /** More alternatives than this are not asked of an index, which has a limit of its own. */
    static final int ALTERNATIVES_MAX = 500;

    private final RexBuilder builder;
    private final IntFunction<Column> columns;

    Predicates(RexBuilder builder, IntFunction<Column> columns) {
        this.builder = builder;
        this.columns = columns;
    }

    /** The condition; null if an index cannot decide it. */
    Condition condition(RexNode node) {
        return switch (node.getKind()) {
            case AND -> joined((RexCall) node, Condition.All::new);
            case OR -> joined((RexCall) node, Condition.Any::new);
            case SEARCH -> condition(RexUtil.expandSearch(builder, null, node));
            case EQUALS, NOT_EQUALS, LESS_THAN, LESS_THAN_OR_EQUAL, GREATER_THAN,
                    GREATER_THAN_OR_EQUAL -> compared(node.getKind(), (RexCall) node);
            case IS_NULL -> missing((RexCall) node);
            case IS_NOT_NULL -> present((RexCall) node);
            case LIKE -> like((RexCall) node);
            case INPUT_REF -> truth(node, true);
            case NOT -> truth(((RexCall) node).getOperands().get(0), false);
            case IS_TRUE -> truth(((RexCall) node).getOperands().get(0), true);
            case IS_FALSE -> truth(((RexCall) node).getOperands().get(0), false);
            default -> Exchange.comparison(node) == null ? null
                    : compared(Exchange.comparison(node), (RexCall) node);
        };
    }

    /** The keys that a condition asks for, if that is all it says; else null. */
    List<Condition.Operand> keys(RexNode node) {
        RexNode plain = node.getKind() == SqlKind.SEARCH
                ? RexUtil.expandSearch(builder, null, node) : node;
        List<RexNode> alternatives = plain.getKind() == SqlKind.OR
                ? ((RexCall) plain).getOperands() : List.of(plain);
        List<Condition.Operand> keys = new ArrayList<>();
        for (RexNode each : alternatives) {
            if (each.getKind() != SqlKind.EQUALS) {
                return null;
            }
            RexCall call = (RexCall) each;
            int side = reference(call.getOperands().get(0)) != null ? 0 : 1;
            Column column = reference(call.getOperands().get(side));
            Condition.Operand key = column == null || !column.findsEntries() ? null
                    : operand(column, call.getOperands().get(1 - side));
            if (key == null) {
                return null;
            }
            keys.add(key);
        }
        return keys;
    }

    private Condition joined(RexCall call, Function<List<Condition>, Condition> join) {
        List<Condition> parts = new ArrayList<>();
        for (RexNode each : call.getOperands()) {
            Condition part = condition(each);
            if (part == null) {
                return null;
            }
            parts.add(part);
        }
        Condition whole = join.apply(parts);
        return whole.operands().count() > ALTERNATIVES_MAX ? null : whole;
    }

    private Condition compared(SqlKind kind, RexCall call) {
        RexNode left = call.getOperands().get(0);
        RexNode right = call.getOperands().get(1);
        if (reference(left) == null) {
            return reference(right) == null ? null
                    : compared(kind.reverse(), right, left);
        }
        return compared(kind, left, right);
    }

    private Condition compared(SqlKind kind, RexNode reference, RexNode value) {
        Column column = searchable(reference);
        boolean equality = kind == SqlKind.EQUALS || kind == SqlKind.NOT_EQUALS;
        if (column == null || !equality && (!column.type().isOrdered()
                || column.type() == ColumnType.BOOLEAN)) {
            return null;
        }
        Condition.Operand operand = operand(column, value);
        return operand == null ? null : Comparison.of(column, kind, operand);
    }

    private Condition missing(RexCall call) {
        Column column = searchable(call.getOperands().get(0));
        return column == null ? null
                : new Condition.Plain(column.ickle() + " is null", List.of(), Set.of());
    }

    private Condition present(RexCall call) {
        Column column = searchable(call.getOperands().get(0));
        return column == null ? null : Condition.present(column);
    }

    private Condition truth(RexNode node, boolean wanted) {
        Column column = node instanceof RexInputRef ? searchable(node) : null;
        return column == null || column.type() != ColumnType.BOOLEAN ? null
                : new Condition.Plain(column.ickle() + " = %s", List.of(Condition.constant(wanted)),
                        Set.of(column));
    }

    /** Patterns only that mean the same to an index: it has wildcards of its own. */
    private Condition like(RexCall call) {
        Column column = searchable(call.getOperands().get(0));
        if (column == null || column.type() != ColumnType.VARCHAR
                || call.getOperator() != SqlStdOperatorTable.LIKE
                || call.getOperands().size() != 2
                || !(call.getOperands().get(1) instanceof RexLiteral pattern)
                || RexLiteral.stringValue(pattern) == null) {
            return null;
        }
        String text = RexLiteral.stringValue(pattern);
        boolean plain = text.chars().noneMatch(letter -> "*?\\".indexOf(letter) >= 0);
        return plain && text.chars().anyMatch(letter -> letter == '%' || letter == '_')
                ? new Condition.Plain(column.ickle() + " like %s",
                        List.of(Condition.constant(text)), Set.of(column))
                : null;
    }

    private Column searchable(RexNode node) {
        Column column = reference(node);
        return column != null && column.can(Column.Index.SEARCH) ? column : null;
    }

    /** The column that is referred to, through casts that lose nothing too. */
    Column reference(RexNode node) {
        if (node instanceof RexInputRef reference) {
            return columns.apply(reference.getIndex());
        }
        if (node.getKind() != SqlKind.CAST) {
            return null;
        }
        RexNode inner = ((RexCall) node).getOperands().get(0);
        Column column = inner instanceof RexInputRef reference
                ? columns.apply(reference.getIndex()) : null;
        if (column == null) {
            return null;
        }
        SqlTypeName to = node.getType().getSqlTypeName();
        boolean lossless = switch (column.type()) {
            case INTEGER -> to == SqlTypeName.BIGINT || to == SqlTypeName.DOUBLE;
            case DOUBLE -> to == SqlTypeName.DOUBLE || to == SqlTypeName.FLOAT;
            case VARCHAR -> to == SqlTypeName.VARCHAR
                    && node.getType().getPrecision() == inner.getType().getPrecision();
            default -> node.getType().equals(inner.getType());
        };
        return lossless ? column : null;
    }

    private static Condition.Operand operand(Column column, RexNode node) {
        RexNode bare = node.getKind() == SqlKind.CAST
                && ((RexCall) node).getOperands().get(0) instanceof RexDynamicParam
                && node.getType().getSqlTypeName() == column.type().sqlName()
                ? ((RexCall) node).getOperands().get(0) : node;
        if (bare instanceof RexDynamicParam parameter
                && parameter.getType().getSqlTypeName() == column.type().sqlName()) {
            return Condition.parameter(column, parameter.getIndex());
        }
        if (!(node instanceof RexLiteral literal) || literal.isNull()) {
            return null;
        }
        Object field = field(column, literal);
        return field == null ? null : Condition.constant(field);
    }

    /** The constant as the index has it; null if the column cannot have it. */
    private static Object field(Column column, RexLiteral literal) {
        Object value = literal.getValue4();
        Object cell = value instanceof NlsString text ? text.getValue()
                : literal.getTypeName() == SqlTypeName.TIMESTAMP
                        ? literal.getValueAs(Long.class) : value;
        if (column.type() == ColumnType.REAL && (!(cell instanceof BigDecimal number)
                || new BigDecimal(number.floatValue()).compareTo(number) != 0)) {
            return null;
        }
        return column.comparedOrNull(cell);
    }
}
