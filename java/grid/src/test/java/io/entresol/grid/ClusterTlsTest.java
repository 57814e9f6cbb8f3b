package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.infinispan.commons.dataconversion.internal.Json;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes, of a site, that speak TLS to one another. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClusterTlsTest {
    private static final int PATIENCE_MILLIS = 60_000;

    private TestGrid grid;
    private TestAuthority authority;
    private TestAuthority other;
    private Path certificate;
    private Path stranger;

    @BeforeAll
    void start(@TempDir Path folder) throws Exception {
        authority = new TestAuthority(folder, "authority");
        other = new TestAuthority(folder, "other");
        certificate = folder.resolve("node.pem");
        // Nodes know one another by their authority, not by names.
        authority.issue(certificate, "203.0.113.9");
        stranger = folder.resolve("stranger.pem");
        other.issue(stranger, "127.0.0.1");
        grid = new TestGrid();
        start("cluster", grid.offset, certificate, authority, "--nodes", "2", "--site", "here",
                "--other-site", "there=127.0.0.1:" + new Ports(grid.offset + 4 * Ports.STEP)
                        .bridge()).succeeded();
    }

    private TestGrid.Ran start(String folder, int offset, Path shown, TestAuthority trusted,
            String... more) throws Exception {
        List<String> all = new ArrayList<>(List.of("start", "--dir", grid.folder + "/" + folder,
                "--port-offset", "" + offset, "--memory", "384m", "--endpoint-template", "ram",
                "--detach"));
        if (shown != null) {
            all.addAll(List.of("--cluster-tls-cert", shown + "", "--cluster-tls-key",
                    TestAuthority.keyOf(shown) + "", "--cluster-tls-ca", trusted.file + ""));
        }
        all.addAll(List.of(more));
        return TestGrid.program(all.toArray(String[]::new));
    }

    @AfterAll
    void stop() throws Exception {
        TestGrid.program("stop", "--dir", grid.folder + "/cluster").succeeded();
        grid.remove();
    }

    private Ports ports(int node) {
        return new Ports(grid.offset + node * Ports.STEP);
    }

    /** Those by which other nodes and the other site reach the two; one of them has the bridge. */
    private int[] closed() {
        AtomicInteger bridge = new AtomicInteger();
        TestGrid.await(() -> {
            for (int node = 0; node < 2; node++) {
                if (!shown(authority, ports(node).bridge()).contains("refused")) {
                    bridge.set(ports(node).bridge());
                }
            }
            return bridge.get() != 0;
        }, "no node has a bridge");
        return new int[] {ports(0).cluster(), ports(1).cluster(), bridge.get()};
    }

    private static int nodesAt(Ports ports) {
        return Json.read(TestGrid.inside("info", "--json", "--server",
                "127.0.0.1:" + ports.main()).succeeded().out()).at("members").asJsonList()
                .size();
    }

    @Test
    void nodesOfOneAuthorityAreACluster() {
        assertEquals(2, nodesAt(ports(1)));
        grid.ask("deploy", "shared", "--template", "ram", "--encoding", "text").succeeded();
        grid.put("shared", 20, "value ");
        for (int key = 0; key < 20; key++) {
            assertEquals("value " + key, grid.rest(1).getText(Rest.cache("shared") + "/" + key));
        }
    }

    @Test
    void nobodyConnectsWithoutACertificateOfTheAuthority() throws Exception {
        SSLContext without = new TlsFiles(null, null, authority.file).context();
        SSLContext strange = new TlsFiles(stranger, TestAuthority.keyOf(stranger), authority.file)
                .context();
        for (int port : closed()) {
            for (SSLContext context : new SSLContext[] {without, strange}) {
                try (SSLSocket socket = connected(context, port)) {
                    SSLException refused = assertThrows(SSLException.class,
                            () -> socket.getInputStream().read());
                    assertTrue(refused.getMessage().contains("certificate"), refused.toString());
                }
            }
            try (Socket socket = new Socket("127.0.0.1", port)) {
                socket.setSoTimeout(PATIENCE_MILLIS);
                socket.getOutputStream().write("bela".getBytes(StandardCharsets.US_ASCII));
                socket.shutdownOutput();
                String told = new String(socket.getInputStream().readAllBytes(),
                        StandardCharsets.ISO_8859_1);
                assertFalse(told.contains("bela"), told);
            }
        }
    }

    private static SSLSocket connected(SSLContext context, int port) throws IOException {
        SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", port);
        socket.setSoTimeout(PATIENCE_MILLIS);
        socket.startHandshake();
        return socket;
    }

    /** They start all the same, as the first nodes of clusters of their own. */
    @Test
    void nodesInPlainAndOfAnotherAuthorityStayOutside() throws Exception {
        Ports third = ports(2);
        for (Path shown : new Path[] {null, stranger}) {
            start("outside", third.offset(), shown, other, "--join",
                    "127.0.0.1:" + ports(0).cluster()).succeeded();
            assertEquals(1, nodesAt(third));
            assertEquals(2, nodesAt(ports(0)));
            if (shown != null) {
                assertEquals("CN=stranger.pem", shown(other, third.cluster()));
            }
            TestGrid.program("stop", "--dir", grid.folder + "/outside").succeeded();
        }
    }

    @Test
    void aCertificateThatIsReplacedIsShownToNodesThatCome() throws Exception {
        Path next = certificate.resolveSibling("next.pem");
        authority.issue(next, "127.0.0.1");
        Files.move(TestAuthority.keyOf(next), TestAuthority.keyOf(certificate),
                StandardCopyOption.REPLACE_EXISTING);
        Files.move(next, certificate, StandardCopyOption.REPLACE_EXISTING);
        for (int port : closed()) {
            TestGrid.await(() -> shown(authority, port).equals("CN=next.pem"), "port " + port);
        }
        assertEquals(2, nodesAt(ports(0)));
    }

    private static String shown(TestAuthority trusted, int port) {
        try (SSLSocket socket = connected(new TlsFiles(null, null, trusted.file).context(), port)) {
            return ((X509Certificate) socket.getSession().getPeerCertificates()[0])
                    .getSubjectX500Principal().getName();
        } catch (IOException failure) {
            return failure.toString();
        }
    }
}
