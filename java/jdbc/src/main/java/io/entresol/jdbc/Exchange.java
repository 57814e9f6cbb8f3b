package io.entresol.jdbc;

import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.Stream;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexCall;
import org.apache.calcite.rex.RexExecutor;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.schema.impl.ScalarFunctionImpl;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlOperator;
import org.apache.calcite.sql.fun.SqlLibraryOperators;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.parser.SqlParserPos;
import org.apache.calcite.sql.type.OperandTypes;
import org.apache.calcite.sql.validate.SqlUserDefinedFunction;

/**
 * What expressions are computed by where Calcite's own does something else than SQL has: functions
 * of {@link Texts}, under the names of those that they are exchanged for. No rule of the planner sees
 * them.
 */
final class Exchange extends RexShuttle {
    private static final SqlOperator LIKE = function("LIKE", Texts.class, "isLike", 2);
    private static final SqlOperator LIKE_ESCAPE = function("LIKE", Texts.class, "isLike", 3);
    private static final SqlOperator ILIKE = function("ILIKE", Texts.class, "isAlike", 2);
    private static final SqlOperator ILIKE_ESCAPE = function("ILIKE", Texts.class, "isAlike", 3);

    private final RexBuilder builder;

    Exchange(RexBuilder builder) {
        this.builder = builder;
    }

    private static SqlOperator function(String name, Class<?> owner, String method, int operands) {
        return function(name, Stream.of(owner.getMethods())
                .filter(each -> each.getName().equals(method)
                        && each.getParameterCount() == operands)
                .findFirst().orElseThrow());
    }

    private static SqlOperator function(String name, Method method) {
        return new SqlUserDefinedFunction(new SqlIdentifier(name, SqlParserPos.ZERO),
                SqlKind.OTHER_FUNCTION, binding -> {
                    throw new IllegalStateException("a call of " + name + " has a type");
                }, null,
                OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
                ScalarFunctionImpl.createUnsafe(method));
    }

    /** What computes constants as the same expressions of rows are computed. */
    static RexExecutor constants(RexExecutor plain) {
        return (builder, constants, reduced) -> {
            List<RexNode> exchanged = new Exchange(builder).apply(constants);
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
        RexNode there = super.visitCall(call);
        return there instanceof RexCall changed && changed.getKind() == SqlKind.LIKE
                ? like(changed) : there;
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
}
