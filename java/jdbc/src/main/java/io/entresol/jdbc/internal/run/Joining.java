package io.entresol.jdbc.internal.run;

import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.function.Function1;
import org.apache.calcite.linq4j.function.Function2;

/** Methods that the code generated for a statement calls to join by batches. Not for other uses. */
public interface Joining {
    /**
     * The rows of the join.
     *
     * @param run the run of the statement
     * @param left rows that are joined
     * @param leftCell what a row of the left is joined by
     * @param rightCell what a row of the right is joined by
     * @param right rows of the right
     * @param join joins some rows of the left with all that they may match
     */
    Enumerable<Object> join(DataContext run, Enumerable<Object> left,
            Function1<Object, Object> leftCell, Function1<Object, Object> rightCell,
            Function1<Wanted, Enumerable<Object>> right,
            Function2<Enumerable<Object>, Enumerable<Object>, Enumerable<Object>> join);
}
