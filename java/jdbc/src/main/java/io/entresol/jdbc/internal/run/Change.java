package io.entresol.jdbc.internal.run;

import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;

/** Methods that the code generated for a statement calls to change a cache. Not for other uses. */
public interface Change {
    /** Changes the cache by each of the rows; the one row that comes back counts them. */
    Enumerable<Object> carryOut(Enumerable<?> rows, DataContext run);
}
