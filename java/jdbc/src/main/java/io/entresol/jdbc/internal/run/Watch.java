package io.entresol.jdbc.internal.run;

import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;

/**
 * A method that the code generated for a statement calls to end with its run, where it makes rows
 * without reading any. Not for other uses.
 */
public interface Watch {
    /** The same rows, until their run is cancelled or takes too long. */
    Enumerable<Object> over(Enumerable<Object> rows, DataContext run);
}
