package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.Optional;
import javax.net.ssl.SSLServerSocket;
import org.infinispan.commons.io.FileWatcher;
import org.infinispan.commons.util.SslContextFactory;
import org.jgroups.util.DefaultSocketFactory;
import org.jgroups.util.SocketFactory;

/**
 * The sockets by which nodes reach one another, if these speak TLS. Whoever connects shows a
 * certificate of the authorities, and so does whoever is connected to. Its names are not looked at,
 * since nodes know one another by addresses of a network of their own.
 */
final class ClusterTls {
    private static final String VERSION = "TLSv1.3";
    /** One for all stacks of the process. Files that are replaced count for connections to come. */
    private static final Optional<SocketFactory> SOCKETS =
            NodeTls.NODES.of(System::getProperty).map(files -> sockets());

    private ClusterTls() {
    }

    /** Those of the node of this process; none: in plain. */
    static Optional<SocketFactory> socketsOfThisNode() {
        return SOCKETS;
    }

    private static SocketFactory sockets() {
        Path folder = new NodeFolder(Path.of(System.getProperty(NodePlan.FOLDER))).configuration();
        char[] password = TlsFiles.PASSWORD.toCharArray();
        SslContextFactory.Context context = new SslContextFactory()
                .sslProtocol(VERSION)
                .useNativeIfAvailable(false)
                .keyStoreFileName(folder.resolve(NodeTls.NODES.identity()).toString())
                .keyStoreType("PKCS12")
                .keyStorePassword(password)
                .trustStoreFileName(folder.resolve(NodeTls.NODES.trusted()).toString())
                .trustStoreType("PKCS12")
                .trustStorePassword(password)
                .watcher(new FileWatcher())
                .build();
        DefaultSocketFactory sockets = new DefaultSocketFactory(context.sslContext());
        sockets.setServerSocketConfigurator(ClusterTls::demand);
        return sockets;
    }

    private static void demand(ServerSocket socket) {
        SSLServerSocket server = (SSLServerSocket) socket;
        server.setNeedClientAuth(true);
        server.setEnabledProtocols(new String[] {VERSION});
    }
}
