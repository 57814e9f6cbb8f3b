package io.entresol;

import java.util.OptionalLong;

/**
 * About how many rows a range of an {@link OrderedTable} has.
 *
 * @param rows about so many rows
 * @param error they are at most so many more or fewer; empty if nobody knows, as after a crash,
 *         where inner nodes are not in memory, or where more than 4096 changes wait
 */
public record RowEstimate(long rows, OptionalLong error) {
}
