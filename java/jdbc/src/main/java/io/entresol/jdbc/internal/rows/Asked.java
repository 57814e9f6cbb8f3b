package io.entresol.jdbc.internal.rows;

import java.util.Map;

/**
 * A request to the index.
 *
 * @param ickle the query after the name of the type
 * @param parameters values by their names
 * @param offset rows to leave out
 * @param limit most rows
 */
record Asked(String ickle, Map<String, Object> parameters, long offset, long limit) {
    static final Asked NOTHING = new Asked("", Map.of(), 0, 0);

    boolean isUnlimited() {
        return offset == 0 && limit == Long.MAX_VALUE;
    }

    boolean isNever() {
        return limit == 0;
    }

    Asked withLimit(long rows) {
        return new Asked(ickle, parameters, offset, rows);
    }

    int first() {
        return (int) Math.min(offset, Integer.MAX_VALUE);
    }

    int most() {
        return (int) Math.min(limit, Integer.MAX_VALUE - first());
    }
}
