package io.entresol.jdbc;

import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rel.type.RelDataTypeSystemImpl;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * Types of what is computed: sums of INTEGER are BIGINT, and means of whole numbers are DOUBLE.
 * Calcite's own are of the column's type, in which sums wrap around, means lose their fraction, and
 * deviations are no deviations. For Calcite, not for other uses.
 */
public final class SqlTypes extends RelDataTypeSystemImpl {
    /** For Calcite, which makes it by its name. */
    public SqlTypes() {}

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
            default -> super.deriveAvgAggType(factory, of);
        };
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
