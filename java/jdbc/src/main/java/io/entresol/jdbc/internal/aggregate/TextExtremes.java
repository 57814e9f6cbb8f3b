package io.entresol.jdbc.internal.aggregate;

import io.entresol.jdbc.internal.dialect.Exchange;
import io.entresol.jdbc.internal.dialect.Texts;
import java.util.List;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;

/** The least and the greatest of texts, in the order of {@link Texts}. */
public final class TextExtremes {
    private TextExtremes() {}

    public static boolean isOne(SqlAggFunction function, RelDataType type) {
        return (function.getKind() == SqlKind.MIN || function.getKind() == SqlKind.MAX)
                && Exchange.isText(type);
    }

    public static SqlAggFunction of(SqlAggFunction function, RelDataType type) {
        return new Accumulator(type, Expressions.constant(null), Texts.class,
                function.getKind() == SqlKind.MAX ? "greatest" : "least", List.of())
                .insteadOf(function);
    }
}
