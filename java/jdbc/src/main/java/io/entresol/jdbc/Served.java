package io.entresol.jdbc;

import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.jdbc.CalciteConnection;

/** Connections that Avatica's server has for its clients, and asks as no program does. */
final class Served {
    /** The property that they have. */
    static final String MARK = "served";

    private Served() {}

    static boolean is(AvaticaConnection connection) {
        return connection instanceof CalciteConnection here
                && here.getProperties().containsKey(MARK);
    }
}
