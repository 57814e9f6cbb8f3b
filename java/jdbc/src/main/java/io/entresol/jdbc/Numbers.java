package io.entresol.jdbc;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.calcite.linq4j.function.Strict;

/**
 * Arithmetic that loses no digits that its type has. For the code that Calcite makes, not for other
 * uses.
 */
@Strict
public final class Numbers {
    private static final MathContext QUOTIENT =
            new MathContext(SqlTypes.DIGITS_MAX, RoundingMode.HALF_UP);

    private Numbers() {}

    /** With as many digits as a type may have; how many of them stay the type says. */
    public static BigDecimal quotient(BigDecimal one, BigDecimal other) {
        return one.divide(other, QUOTIENT);
    }
}
