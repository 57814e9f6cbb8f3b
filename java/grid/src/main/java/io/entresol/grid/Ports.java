package io.entresol.grid;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The ports of a node: the usual ports, moved by an offset.
 *
 * @param offset added to each
 */
record Ports(int offset) {
    /** The ports of a cluster's nodes on one machine stand this far apart. */
    static final int STEP = 100;
    /**
     * JGroups notices a death by a socket this far above its own port. As all others it is below
     * those that the system gives to connections, one of which could keep a node from starting.
     */
    static final int FAILURE_DETECTION = 40;
    private static final int MAIN = 11222;
    private static final int SQL_ABOVE_MAIN = 11765 - MAIN;

    Ports {
        int most = 65_535 - sql(MAIN);
        if (offset < 0 || offset > most) {
            throw new GridException("--port-offset is " + offset + "; expected 0 to " + most);
        }
    }

    /** Hot Rod, REST, the console and metrics. */
    int main() {
        return MAIN + offset;
    }

    int resp() {
        return 6379 + offset;
    }

    int memcached() {
        return 11211 + offset;
    }

    /** JDBC. */
    int sql() {
        return sql(main());
    }

    /** The port for SQL of a node by its main one: an offset moves both. */
    static int sql(int main) {
        return main + SQL_ABOVE_MAIN;
    }

    int cluster() {
        return 7800 + offset;
    }

    /** Where its neighbour notices that the node died. */
    int failures() {
        return cluster() + FAILURE_DETECTION;
    }

    /** Where the other site's nodes find this one. */
    int bridge() {
        return 7850 + offset;
    }

    int bridgeFailures() {
        return bridge() + FAILURE_DETECTION;
    }

    /** Complains about the first port that somebody has, and says what to do. */
    void check(NodePlan plan) {
        check(plan.bind(), plan.clusterAddress());
        if (plan.site() != null) {
            check(plan.clusterAddress(), bridge(), "the other site");
            check(plan.clusterAddress(), bridgeFailures(), "the other site");
        }
    }

    /** The same, for a node without another site. */
    void check(String bind, String clusterAddress) {
        Map<Integer, String> uses = new LinkedHashMap<>();
        uses.put(main(), "Hot Rod, REST and console");
        uses.put(resp(), "RESP");
        uses.put(memcached(), "memcached");
        uses.put(sql(), "SQL");
        uses.forEach((port, use) -> check(bind, port, use));
        check(clusterAddress, cluster(), "the cluster");
        check(clusterAddress, failures(), "the cluster");
    }

    private void check(String address, int port, String use) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(new InetSocketAddress(InetAddress.getByName(address), port));
        } catch (IOException failure) {
            throw new GridException("port " + port + " of " + address + ", for " + use
                    + ", cannot be had (" + failure.getMessage() + "); "
                    + (isOfThisMachine(address) ? "stop what listens there, or move all ports:"
                            + " --port-offset " + (offset + STEP)
                            : "that is no address of this machine: name one of its own by --bind"
                            + " or --cluster-address"), failure);
        }
    }

    /** Where it cannot be told it is: then the port is what is in the way. */
    private static boolean isOfThisMachine(String address) {
        try {
            InetAddress named = InetAddress.getByName(address);
            return named.isAnyLocalAddress() || named.isLoopbackAddress()
                    || NetworkInterface.getByInetAddress(named) != null;
        } catch (IOException unknown) {
            return true;
        }
    }
}
