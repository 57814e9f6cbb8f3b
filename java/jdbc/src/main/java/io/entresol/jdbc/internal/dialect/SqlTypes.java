package io.entresol.jdbc.internal.dialect;

import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rel.type.RelDataTypeSystemImpl;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * Types of computed values: sums of INTEGER are BIGINT, means of whole numbers are DOUBLE, and
 * means of decimals have digits for their fraction. Calcite's own results have the column's type,
 * in which sums wrap around, means lose their fraction, and deviations are wrong. Decimals have as
 * many digits as in most databases, and moments their milliseconds. For Calcite, not for other
 * uses.
 */
public final class SqlTypes extends RelDataTypeSystemImpl {
    /** Digits of a decimal, before and behind its point. */
    static final int DIGITS_MAX = 38;

    /** Of a mean, behind the point, beyond those that the numbers have. */
    private static final int MEAN_DIGITS = 10;
    /** Of a second, in a moment. */
    private static final int MOMENT_DIGITS = 3;

    /** For Calcite, which makes it by its name. */
    public SqlTypes() {}

    @Override
    public int getMaxPrecision(SqlTypeName type) {
        return type == SqlTypeName.DECIMAL ? DIGITS_MAX : super.getMaxPrecision(type);
    }

    @Override
    public int getMaxScale(SqlTypeName type) {
        return type == SqlTypeName.DECIMAL ? DIGITS_MAX : super.getMaxScale(type);
    }

    /** Calcite asks it as well, although it is to ask the others. */
    @Override
    @SuppressWarnings("deprecation")
    public int getMaxNumericPrecision() {
        return DIGITS_MAX;
    }

    /** As above. */
    @Override
    @SuppressWarnings("deprecation")
    public int getMaxNumericScale() {
        return DIGITS_MAX;
    }

    @Override
    public int getDefaultPrecision(SqlTypeName type) {
        return type == SqlTypeName.TIMESTAMP ? MOMENT_DIGITS : super.getDefaultPrecision(type);
    }

    @Override
    public RelDataType deriveSumType(RelDataTypeFactory factory, RelDataType of) {
        return switch (of.getSqlTypeName()) {
            case TINYINT, SMALLINT, INTEGER -> like(factory, SqlTypeName.BIGINT, of);
            default -> super.deriveSumType(factory, of);
        };
    }

    @Override
    public RelDataType deriveAvgAggType(RelDataTypeFactory factory, RelDataType of) {
        return switch (of.getSqlTypeName()) {
            case TINYINT, SMALLINT, INTEGER, BIGINT -> like(factory, SqlTypeName.DOUBLE, of);
            case DECIMAL -> mean(factory, of);
            default -> super.deriveAvgAggType(factory, of);
        };
    }

    private static RelDataType mean(RelDataTypeFactory factory, RelDataType of) {
        int whole = of.getPrecision() - of.getScale();
        int scale = Math.max(of.getScale(),
                Math.min(of.getScale() + MEAN_DIGITS, DIGITS_MAX - whole));
        return factory.createTypeWithNullability(
                factory.createSqlType(SqlTypeName.DECIMAL, DIGITS_MAX, scale), of.isNullable());
    }

    /**
     * Texts of several lengths that come together are not padded to the longest: of what is
     * compared with them, which is never padded, the shorter ones would equal nothing.
     */
    @Override
    public boolean shouldConvertRaggedUnionTypesToVarying() {
        return true;
    }

    private static RelDataType like(RelDataTypeFactory factory, SqlTypeName type,
            RelDataType nullable) {
        return factory.createTypeWithNullability(factory.createSqlType(type),
                nullable.isNullable());
    }
}
