package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;

/**
 * All decisions about a node before its start.
 *
 * @param name the node's name in its cluster
 * @param folder the folder with everything of the node
 * @param ports the ports on which it listens
 * @param bind the address of its endpoints
 * @param clusterAddress the address at which other nodes reach it
 * @param members cluster addresses of nodes to join, {@code HOST[PORT],…} as JGroups writes them
 * @param clusterName the name of the cluster; nodes of another cluster are strangers
 * @param site the site, if the grid is one of two; null: it is alone
 * @param machine the machine or rack that it shares with nodes that fail together; null: not given
 * @param heap Java's heap, as {@code -Xmx} takes it
 * @param users a file of names and passwords; null: anybody may connect
 * @param tls the files of TLS; ports that have none speak in plain
 * @param endpoints the caches in which RESP and memcached keep their entries
 * @param histograms whether the node's metrics have histograms of latencies
 */
record NodePlan(String name, NodeFolder folder, Ports ports, String bind, String clusterAddress,
        String members, String clusterName, Site site, String machine, String heap, Path users,
        Map<NodeTls, TlsFiles> tls, Deployment endpoints, boolean histograms) {
    /** The folder's place among the {@link #properties}. */
    static final String FOLDER = "infinispan.server.home.path";
    /** How long answers are waited for that nobody was asked for; JGroups: two seconds. */
    private static final String ALONE_TIMEOUT = "100ms";

    NodePlan {
        if (users == null && !isLoopback(bind)) {
            throw new GridException("--bind " + bind + " lets other machines in, and there are no"
                    + " users; name a file of lines NAME=PASSWORD: --users FILE, or stay on"
                    + " 127.0.0.1");
        }
        if (address(clusterAddress).isAnyLocalAddress()) {
            throw new GridException("--bind " + bind + " is every address of this machine, and"
                    + " other nodes need one of them: --cluster-address ADDRESS, or 127.0.0.1 for a"
                    + " node alone");
        }
    }

    /** What {@code node.xml} leaves open. */
    Properties properties() {
        Properties properties = new Properties();
        properties.putAll(System.getProperties());
        properties.setProperty(FOLDER, folder.root().toString());
        properties.setProperty("infinispan.server.log.path", folder.log().toString());
        properties.setProperty("entresol.node.name", name);
        properties.setProperty("entresol.bind", bind);
        properties.setProperty("entresol.histograms", "" + histograms);
        properties.setProperty("entresol.port.offset", "" + ports.offset());
        properties.setProperty("entresol.cluster.name", clusterName);
        properties.setProperty("entresol.cluster.members", members);
        properties.setProperty(Node.REALM, users == null ? Node.OPEN : Node.USERS);
        properties.setProperty("jgroups.bind.address", clusterAddress);
        properties.setProperty("jgroups.bind.port", "" + ports.cluster());
        properties.setProperty("jgroups.fd.port-offset", "" + Ports.FAILURE_DETECTION);
        if (machine != null) {
            properties.setProperty("entresol.machine", machine);
        }
        tls.forEach((ports, files) -> ports.note(files, properties));
        if (isAlone()) {
            properties.setProperty("jgroups.join_timeout", ALONE_TIMEOUT);
        }
        if (site != null) {
            properties.setProperty("entresol.site", site.name());
            properties.setProperty("entresol.site.other", site.other());
            properties.setProperty("entresol.bridge.port", "" + ports.bridge());
            properties.setProperty("entresol.bridge.members",
                    clusterAddress + "[" + ports.bridge() + "]," + site.bridge());
        }
        return properties;
    }

    /** Whether it has nobody to ask for the cluster: whoever joins it asks. */
    private boolean isAlone() {
        return site == null && members.indexOf(',') < 0;
    }

    /** Of a heap as Java takes it, with its letter. */
    long heapBytes() {
        int end = heap.length() - 1;
        int shift = "kmg".indexOf(Character.toLowerCase(heap.charAt(end))) * 10 + 10;
        return new BigInteger(heap.substring(0, end)).shiftLeft(shift)
                .min(BigInteger.valueOf(Long.MAX_VALUE)).longValue();
    }

    static boolean isLoopback(String address) {
        return address(address).isLoopbackAddress();
    }

    private static InetAddress address(String address) {
        try {
            return InetAddress.getByName(address);
        } catch (UnknownHostException unknown) {
            throw new GridException("the address '" + address + "' is not known here; give an"
                    + " address of this machine, such as 127.0.0.1", unknown);
        }
    }
}
