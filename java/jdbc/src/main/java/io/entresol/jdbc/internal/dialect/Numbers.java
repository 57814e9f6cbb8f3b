package io.entresol.jdbc.internal.dialect;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import org.apache.calcite.avatica.util.DateTimeUtils;
import org.apache.calcite.linq4j.function.Strict;

/**
 * Arithmetic that reports an error when it leaves its type, and loses no digits that its type has.
 * For the code that Calcite generates, not for other uses.
 */
@Strict
public final class Numbers {
    private static final MathContext QUOTIENT =
            new MathContext(SqlTypes.DIGITS_MAX, RoundingMode.HALF_UP);
    private static final int MILLISECONDS = 3;

    private Numbers() {}

    /** Without its sign. */
    public static byte absolute(byte number) {
        if (number == Byte.MIN_VALUE) {
            throw new ArithmeticException("overflow: no TINYINT is abs(" + number + ")");
        }
        return (byte) Math.abs(number);
    }

    /** Without its sign. */
    public static short absolute(short number) {
        if (number == Short.MIN_VALUE) {
            throw new ArithmeticException("overflow: no SMALLINT is abs(" + number + ")");
        }
        return (short) Math.abs(number);
    }

    /** Without its sign. */
    public static int absolute(int number) {
        return Math.absExact(number);
    }

    /** Without its sign. */
    public static long absolute(long number) {
        return Math.absExact(number);
    }

    /** The number, if whole numbers and decimals go so far. */
    public static double finite(double number) {
        if (Double.isNaN(number) || Double.isInfinite(number)) {
            throw new ArithmeticException("overflow: " + number
                    + " is cast to a type that has no such number");
        }
        return number;
    }

    /** With as many digits as a type may have; how many of them stay the type says. */
    public static BigDecimal quotient(BigDecimal one, BigDecimal other) {
        return one.divide(other, QUOTIENT);
    }

    /** A moment as a text, with its milliseconds if there are any. */
    public static String moment(long milliseconds) {
        return DateTimeUtils.unixTimestampToString(milliseconds,
                milliseconds % DateTimeUtils.MILLIS_PER_SECOND == 0 ? 0 : MILLISECONDS);
    }
}
