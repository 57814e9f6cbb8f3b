package io.entresol.jdbc;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.List;

/** A grid, and the two ways to ask it: in process and remotely. */
final class BothWays implements AutoCloseable {
    final Grid grid;
    /** The one in process, then the remote one. */
    final List<Connection> connections;
    private final SqlServer server;

    BothWays(Path folder) throws SQLException {
        grid = new Grid(folder);
        server = SqlServer.start(grid.manager, 0);
        connections = List.of(grid.connect(), another());
    }

    /** One more that is remote. */
    Connection another() throws SQLException {
        return DriverManager.getConnection(
                "jdbc:entresol:remote:http://127.0.0.1:" + server.port());
    }

    @Override
    public void close() throws SQLException {
        for (Connection each : connections) {
            each.close();
        }
        server.close();
        grid.close();
    }
}
