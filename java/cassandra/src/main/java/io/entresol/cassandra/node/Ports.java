package io.entresol.cassandra.node;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/**
 * Where a node listens.
 *
 * @param address of CQL and of other nodes
 * @param jmx for nodetool, of this machine only
 */
record Ports(String address, int cql, int storage, int jmx) {
    static final int CQL = 9042;
    /** Ports below are the system's. */
    static final int LEAST = CQL - 7000 + 1024;
    static final int MOST = 65_000;

    /** The usual ports, moved so that CQL is at one; each node of a machine has its address. */
    static Ports of(int number, int cql) {
        int moved = cql - CQL;
        return new Ports("127.0.0." + number, cql, 7000 + moved, 7199 + moved + number - 1);
    }

    /** Complains about the first port that somebody has, and says what to do. */
    void check() {
        check(address, cql, "CQL");
        check(address, storage, "other nodes");
        check("127.0.0.1", jmx, "nodetool");
    }

    private static void check(String address, int port, String use) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(new InetSocketAddress(InetAddress.getByName(address), port));
        } catch (IOException failure) {
            throw new NodeException("port " + port + " of " + address + ", for " + use
                    + ", cannot be had (" + failure.getMessage() + "); stop what listens there, or"
                    + " make the node with other ports: --port 19042 moves all", failure);
        }
    }
}
