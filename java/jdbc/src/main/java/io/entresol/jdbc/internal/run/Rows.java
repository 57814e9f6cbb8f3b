package io.entresol.jdbc.internal.run;

import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;

/** Methods that the code generated for a statement calls to read a cache. Not for other uses. */
public interface Rows {
    /** The rows, as one run of the statement asks for them; a row of one column is its cell. */
    Enumerable<Object> read(DataContext run);

    /** Those of them that a join wants. */
    Enumerable<Object> readWanted(DataContext run, Wanted wanted);
}
