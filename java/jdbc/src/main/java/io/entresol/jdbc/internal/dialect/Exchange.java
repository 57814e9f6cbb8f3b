package io.entresol.jdbc.internal.dialect;

import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexExecutor;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.schema.impl.ScalarFunctionImpl;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlOperator;
import org.apache.calcite.sql.fun.SqlLibraryOperators;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.parser.SqlParserPos;
import org.apache.calcite.sql.type.OperandTypes;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.sql.type.SqlTypeUtil;
import org.apache.calcite.sql.validate.SqlUserDefinedFunction;

/**
 * Replacements for functions of Calcite that differ from SQL: functions of {@link Texts} and {@link
 * Numbers}, under the names of the functions that they replace. No rule of the planner sees them.
 */
public final class Exchange extends RexShuttle {
    private static final SqlOperator LIKE = function("LIKE", Texts.class, "isLike", 2);
    private static final SqlOperator LIKE_ESCAPE = function("LIKE", Texts.class, "isLike", 3);
    private static final SqlOperator ILIKE = function("ILIKE", Texts.class, "isAlike", 2);
    private static final SqlOperator ILIKE_ESCAPE = function("ILIKE", Texts.class, "isAlike", 3);
    private static final Map<SqlKind, SqlOperator> COMPARED = Map.of(
            SqlKind.LESS_THAN, function("<", Texts.class, "isLess", 2),
            SqlKind.LESS_THAN_OR_EQUAL, function("<=", Texts.class, "isLessOrEqual", 2),
            SqlKind.GREATER_THAN, function(">", Texts.class, "isGreater", 2),
            SqlKind.GREATER_THAN_OR_EQUAL, function(">=", Texts.class, "isGreaterOrEqual", 2));
    private static final SqlOperator KEY = function("ORDER", Texts.class, "key", 1);
    private static final SqlOperator QUOTIENT = function("/", Numbers.class, "quotient", 2);
    private static final SqlOperator MOMENT = function("CAST", Numbers.class, "moment", 1);
    private static final Map<SqlTypeName, SqlOperator> ABSOLUTE = Map.of(
            SqlTypeName.TINYINT, absolute(byte.class), SqlTypeName.SMALLINT, absolute(short.class),
            SqlTypeName.INTEGER, absolute(int.class), SqlTypeName.BIGINT, absolute(long.class));
    /** What counts the letters of texts, by the method that does; Calcite's own count units. */
    private static final Map<SqlOperator, String> COUNTING = Map.of(
            SqlStdOperatorTable.CHAR_LENGTH, "length",
            SqlStdOperatorTable.CHARACTER_LENGTH, "length",
            SqlLibraryOperators.LENGTH, "length", SqlLibraryOperators.LEN, "length",
            SqlStdOperatorTable.SUBSTRING, "substring", SqlStdOperatorTable.POSITION, "position",
            SqlStdOperatorTable.OVERLAY, "overlay",
            SqlLibraryOperators.LEFT, "left", SqlLibraryOperators.RIGHT, "right");
    private static final SqlOperator LEFT = function("LEFT", Texts.class, "left", 2);
    private static final SqlOperator FINITE = function("CAST", Numbers.class, "finite", 1);
    private static final Map<SqlOperator, SqlOperator> CHECKED = Map.of(
            SqlStdOperatorTable.PLUS, SqlStdOperatorTable.CHECKED_PLUS,
            SqlStdOperatorTable.MINUS, SqlStdOperatorTable.CHECKED_MINUS,
            SqlStdOperatorTable.MULTIPLY, SqlStdOperatorTable.CHECKED_MULTIPLY,
            SqlStdOperatorTable.DIVIDE, SqlStdOperatorTable.CHECKED_DIVIDE,
            SqlStdOperatorTable.UNARY_MINUS, SqlStdOperatorTable.CHECKED_UNARY_MINUS);

    private final RexBuilder builder;
    private final Arithmetic arithmetic;

    /** What becomes of whole numbers that leave their type. */
    public enum Arithmetic {
        CHECKED,
        /** They wrap around, as the SQL that the connection asked for has it. */
        WRAPPING
    }

    public Exchange(RexBuilder builder, Arithmetic arithmetic) {
        this.builder = builder;
        this.arithmetic = arithmetic;
    }

    private static SqlOperator function(String name, Class<?> owner, String method, int operands) {
        return function(name, Stream.of(owner.getMethods())
                .filter(each -> each.getName().equals(method)
                        && each.getParameterCount() == operands)
                .findFirst().orElseThrow());
    }

    private static SqlOperator absolute(Class<?> number) {
        return function("ABS", Types.lookupMethod(Numbers.class, "absolute", number));
    }

    private static SqlOperator function(String name, Method method) {
        return new SqlUserDefinedFunction(new SqlIdentifier(name, SqlParserPos.ZERO),
                SqlKind.OTHER_FUNCTION, binding -> {
                    throw new IllegalStateException("a call of " + name + " has a type");
                }, null,
                OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
                ScalarFunctionImpl.createUnsafe(method));
    }

    /** Comparisons of texts alone, for a planner that is not to carry them out. */
    public static RexShuttle comparisons(RexBuilder builder) {
        return new RexShuttle() {
            @Override
            public RexNode visitCall(RexCall call) {
                RexNode there = super.visitCall(call);
                return there instanceof RexCall changed && isCompared(changed)
                        ? with(builder, changed, COMPARED.get(changed.getKind())) : there;
            }
        };
    }

    /** How a call compares two texts; null: it does not. */
    public static SqlKind comparison(RexNode call) {
        return call instanceof RexCall made ? COMPARED.entrySet().stream()
                .filter(each -> each.getValue() == made.getOperator())
                .map(Map.Entry::getKey).findFirst().orElse(null) : null;
    }

    /** A column that sorts as texts are to be sorted. */
    public static RexNode key(RexBuilder builder, RexNode text) {
        return builder.makeCall(text.getType(), KEY, List.of(text));
    }

    /** What computes constants as the same expressions of rows are computed. */
    public static RexExecutor constants(RexExecutor plain, Arithmetic arithmetic) {
        return (builder, constants, reduced) -> {
            List<RexNode> exchanged = new Exchange(builder, arithmetic).apply(constants);
            plain.reduce(builder, exchanged, reduced);
            for (int place = 0; place < constants.size(); place++) {
                // What cannot be computed stays as the planner knows it.
                if (reduced.get(place) == exchanged.get(place)) {
                    reduced.set(place, constants.get(place));
                }
            }
        };
    }

    @Override
    public RexNode visitCall(RexCall call) {
        if (call.getKind() == SqlKind.SEARCH) {
            return isText(call.getOperands().get(0).getType())
                    ? RexUtil.expandSearch(builder, null, call).accept(this)
                    : super.visitCall(call);
        }
        RexNode there = super.visitCall(call);
        return there instanceof RexCall changed ? exchanged(changed) : there;
    }

    private RexNode exchanged(RexCall call) {
        List<RexNode> operands = call.getOperands();
        SqlTypeName type = call.getType().getSqlTypeName();
        return switch (call.getKind()) {
            case LESS_THAN, LESS_THAN_OR_EQUAL, GREATER_THAN, GREATER_THAN_OR_EQUAL ->
                    isCompared(call) ? with(builder, call, COMPARED.get(call.getKind())) : call;
            case LIKE -> like(call);
            case CAST -> operands.size() == 1 ? cast(call, operands.get(0)) : call;
            default -> call.getOperator() == SqlStdOperatorTable.ABS && ABSOLUTE.containsKey(type)
                    ? with(builder, call, ABSOLUTE.get(type))
                    : COUNTING.containsKey(call.getOperator()) ? counted(call) : computed(call);
        };
    }

    private RexNode cast(RexCall call, RexNode operand) {
        RelDataType to = call.getType();
        RelDataType from = operand.getType();
        if (isText(to) && from.getSqlTypeName() == SqlTypeName.TIMESTAMP) {
            return builder.makeAbstractCast(to, moment(operand), false);
        } else if (to.getSqlTypeName() == SqlTypeName.VARCHAR && isText(from)
                && to.getPrecision() != RelDataType.PRECISION_NOT_SPECIFIED) {
            return builder.makeCall(to, LEFT, List.of(operand,
                    builder.makeExactLiteral(BigDecimal.valueOf(to.getPrecision()))));
        } else if (SqlTypeUtil.isBoolean(to) && SqlTypeUtil.isNumeric(from)) {
            return builder.makeCall(to, SqlStdOperatorTable.NOT_EQUALS,
                    List.of(operand, builder.makeZeroLiteral(from)));
        } else if (SqlTypeUtil.isExactNumeric(to) && SqlTypeUtil.isApproximateNumeric(from)) {
            return builder.makeAbstractCast(to,
                    builder.makeCall(from, FINITE, List.of(operand)), false);
        }
        return call;
    }

    /** What counts letters, if it does so of a text. */
    private RexNode counted(RexCall call) {
        List<RexNode> operands = call.getOperands();
        String method = COUNTING.get(call.getOperator());
        if (!isText(operands.get(0).getType())
                || method.equals("position") && operands.size() != 2) {
            return call;
        }
        RelDataType whole = builder.getTypeFactory().createSqlType(SqlTypeName.INTEGER);
        return builder.makeCall(call.getType(),
                function(call.getOperator().getName(), Texts.class, method, operands.size()),
                operands.stream().map(each -> SqlTypeUtil.isNumeric(each.getType())
                        ? builder.ensureType(whole, each, false) : each).toList());
    }

    public static boolean isText(RelDataType type) {
        return SqlTypeUtil.inCharFamily(type);
    }

    private static boolean isCompared(RexCall call) {
        return COMPARED.containsKey(call.getKind())
                && call.getOperands().stream().allMatch(each -> isText(each.getType()));
    }

    private static RexNode with(RexBuilder builder, RexCall call, SqlOperator operator) {
        return builder.makeCall(call.getType(), operator, call.getOperands());
    }

    private RexNode like(RexCall call) {
        int operands = call.getOperands().size();
        if (call.getOperator() == SqlStdOperatorTable.LIKE) {
            return with(builder, call, operands == 2 ? LIKE : LIKE_ESCAPE);
        }
        return call.getOperator() == SqlLibraryOperators.ILIKE
                ? with(builder, call, operands == 2 ? ILIKE : ILIKE_ESCAPE) : call;
    }

    private RexNode moment(RexNode timestamp) {
        RelDataTypeFactory types = builder.getTypeFactory();
        return builder.makeCall(types.createTypeWithNullability(
                types.createSqlType(SqlTypeName.VARCHAR), timestamp.getType().isNullable()),
                MOMENT, List.of(timestamp));
    }

    private RexNode computed(RexCall call) {
        SqlOperator checked = CHECKED.get(call.getOperator());
        if (checked == null || !call.getOperands().stream()
                .allMatch(each -> SqlTypeUtil.isExactNumeric(each.getType()))) {
            return call;
        } else if (SqlTypeUtil.isDecimal(call.getType())) {
            return call.getKind() == SqlKind.DIVIDE
                    ? builder.makeCall(call.getType(), QUOTIENT,
                            call.getOperands().stream().map(this::decimal).toList()) : call;
        }
        return arithmetic == Arithmetic.CHECKED && SqlTypeUtil.isIntType(call.getType())
                ? with(builder, call, checked) : call;
    }

    private RexNode decimal(RexNode number) {
        RelDataTypeFactory types = builder.getTypeFactory();
        return SqlTypeUtil.isDecimal(number.getType()) ? number
                : builder.makeAbstractCast(types.createTypeWithNullability(
                        types.decimalOf(number.getType()), number.getType().isNullable()),
                        number, false);
    }
}
