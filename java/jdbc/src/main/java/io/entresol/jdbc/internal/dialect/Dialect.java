package io.entresol.jdbc.internal.dialect;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.config.CalciteConnectionConfig;
import org.apache.calcite.jdbc.CalcitePrepare;
import org.apache.calcite.jdbc.JavaTypeFactoryImpl;
import org.apache.calcite.rel.type.RelDataTypeSystem;
import org.apache.calcite.sql.SqlOperatorTable;
import org.apache.calcite.sql.validate.SqlConformanceEnum;
import org.apache.calcite.sql.validate.SqlDelegatingConformance;

/**
 * The SQL that statements are in, unless the URL names another {@code conformance}: the SQL of the
 * standard with some extensions of other databases; numbers that grow too large are errors.
 */
public final class Dialect extends SqlDelegatingConformance {
    private Dialect() {
        super(SqlConformanceEnum.DEFAULT);
    }

    @Override
    public boolean isPercentRemainderAllowed() {
        return true;
    }

    @Override
    public boolean isBangEqualAllowed() {
        return true;
    }

    @Override
    public boolean isGroupByOrdinal() {
        return true;
    }

    @Override
    public boolean isLimitStartCountAllowed() {
        return true;
    }

    @Override
    public boolean checkedArithmetic() {
        return true;
    }

    /** What is known of a statement, that it is in this SQL, and that its texts are Unicode. */
    public static CalcitePrepare.Context in(CalcitePrepare.Context context) {
        CalciteConnectionConfig settings = context.config();
        boolean named = settings.conformance() != SqlConformanceEnum.DEFAULT;
        CalciteConnectionConfig own = Except.of(CalciteConnectionConfig.class, settings, Map.of(
                "conformance", (none, plain) -> named ? plain.result() : new Dialect(),
                "fun", (none, plain) -> Neighbours.in((SqlOperatorTable) plain.result())));
        JavaTypeFactory types = types(context.getTypeFactory().getTypeSystem());
        return Except.of(CalcitePrepare.Context.class, context, Map.of(
                "config", (none, plain) -> own, "getTypeFactory", (none, plain) -> types));
    }

    public static JavaTypeFactory types(RelDataTypeSystem system) {
        return new Types(system);
    }

    /** Types of texts that may have any letter; those of Calcite have Latin ones. */
    private static final class Types extends JavaTypeFactoryImpl {
        Types(RelDataTypeSystem system) {
            super(system);
        }

        @Override
        public Charset getDefaultCharset() {
            return StandardCharsets.UTF_8;
        }
    }
}
