package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.grid.bench.RespClient;
import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes whose ports speak TLS; one of them demands certificates of its clients. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class TlsTest {
    private static final int PATIENCE_MILLIS = 60_000;
    private static final byte[] BYTES = {1, 2};
    private static final String HTTP = "GET /rest/v2/caches HTTP/1.1\r\nHost: a\r\n\r\n";
    /** Of ports in the order of {@link #ports}: what each answers. */
    private static final String[] REQUESTS =
            {HTTP, "*1\r\n$4\r\nPING\r\n", "version\r\n", HTTP};

    private TestGrid grid;
    private TestGrid demanding;
    private TestAuthority authority;
    private TestAuthority other;
    private Path certificate;
    private Path clients;

    @BeforeAll
    void start(@TempDir Path folder) throws Exception {
        authority = new TestAuthority(folder, "authority");
        other = new TestAuthority(folder, "other");
        certificate = folder.resolve("node.pem");
        authority.issue(certificate, "127.0.0.1");
        clients = folder.resolve("client.pem");
        other.issue(clients, "127.0.0.1");
        grid = new TestGrid();
        grid.start("--endpoint-template", "ram", "--tls-cert", certificate + "", "--tls-key",
                TestAuthority.keyOf(certificate) + "").succeeded();
        demanding = new TestGrid();
        demanding.start("--endpoint-template", "ram", "--tls-cert", certificate + "", "--tls-key",
                TestAuthority.keyOf(certificate) + "", "--tls-client-ca", other.file + "")
                .succeeded();
    }

    @AfterAll
    void stop() throws Exception {
        for (TestGrid each : new TestGrid[] {grid, demanding}) {
            each.stop().succeeded();
            each.remove();
        }
    }

    private SSLContext context(TestAuthority trusted) throws IOException {
        return new TlsFiles(null, null, trusted.file).context();
    }

    private static int[] ports(TestGrid of) {
        return new int[] {of.ports().main(), of.ports().resp(), of.ports().memcached(),
            of.ports().sql()};
    }

    private TestGrid.Ran ask(String... arguments) {
        return ask(grid, authority, arguments);
    }

    private static TestGrid.Ran ask(TestGrid of, TestAuthority trusted, String... arguments) {
        String[] all = Arrays.copyOf(arguments, arguments.length + 2);
        all[arguments.length] = "--tls-ca";
        all[arguments.length + 1] = trusted.file + "";
        return of.ask(all);
    }

    @Test
    void everyPortSpeaksTlsAndAnswersNothingInPlain() throws Exception {
        for (int port : ports(grid)) {
            try (SSLSocket socket = (SSLSocket) context(authority).getSocketFactory()
                    .createSocket("127.0.0.1", port)) {
                socket.setSoTimeout(PATIENCE_MILLIS);
                socket.startHandshake();
                assertEquals("CN=node.pem", ((X509Certificate) socket.getSession()
                        .getPeerCertificates()[0]).getSubjectX500Principal().getName());
            }
            try (SSLSocket socket = (SSLSocket) context(other).getSocketFactory()
                    .createSocket("127.0.0.1", port)) {
                assertThrows(SSLException.class, socket::startHandshake);
            }
            String told = toldInPlain(port);
            assertFalse(told.contains("HTTP/1.1 200") || told.contains("PONG")
                    || told.contains("VERSION"), port + ": " + told);
        }
        // Infinispan quotes the bytes, which may be a password.
        String log = Files.readString(grid.folder.resolve("node/server/log/node.log"));
        assertFalse(log.contains(HexFormat.of().formatHex(
                REQUESTS[1].getBytes(StandardCharsets.US_ASCII))), log);
    }

    /** Several nodes of a folder stop as a cluster, which is asked for by REST. */
    @Test
    void nodesOfAFolderStopByTheirOwnCertificateWhateverNamesItHas() throws Exception {
        Path elsewhere = certificate.resolveSibling("elsewhere.pem");
        other.issue(elsewhere, "203.0.113.9");
        TestGrid cluster = new TestGrid();
        String folder = cluster.folder + "/cluster";
        TestGrid.program("start", "--dir", folder, "--nodes", "2", "--port-offset",
                "" + cluster.offset, "--memory", "384m", "--endpoint-template", "ram", "--detach",
                "--tls-cert", elsewhere + "", "--tls-key", TestAuthority.keyOf(elsewhere) + "")
                .succeeded();
        assertTrue(TestGrid.program("stop", "--dir", folder).succeeded().out()
                .contains("stopped: 2"));
        cluster.remove();
    }

    /** What a port answers to whoever speaks HTTP, RESP and memcached's protocol in plain. */
    private static String toldInPlain(int port) throws IOException {
        StringBuilder told = new StringBuilder();
        for (String request : REQUESTS) {
            try (Socket socket = new Socket("127.0.0.1", port)) {
                socket.setSoTimeout(PATIENCE_MILLIS);
                socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
                socket.shutdownOutput();
                InputStream from = socket.getInputStream();
                told.append(new String(from.readAllBytes(), StandardCharsets.ISO_8859_1));
            } catch (IOException reset) {
                told.append("reset");
            }
        }
        return told.toString();
    }

    @Test
    void clientsOfEachProtocolReadWhatTheyWrote() throws Exception {
        ask("deploy", "by-tls", "--template", "ram").succeeded();
        try (RemoteCacheManager manager = new RemoteCacheManager(encrypted().build())) {
            manager.<String, String>getCache("by-tls").put("key", "value");
            assertEquals("value", manager.<String, String>getCache("by-tls").get("key"));
        }
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp(),
                Optional.of(context(authority)))) {
            client.set(BYTES, BYTES);
            assertArrayEquals(BYTES, client.get(BYTES));
        }
        assertEquals("found\n1\n", ask("sql", "--csv", "select 1 as found").succeeded().out());
        assertTrue(ask("list").succeeded().out().contains("by-tls"));
        ask("bench", "--iterations", "5", "--rounds", "1", "--warm-up", "0", "--threads", "2",
                "--stores", "ram").succeeded();
    }

    private ConfigurationBuilder encrypted() throws IOException {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.addServer().host("127.0.0.1").port(grid.ports().main()).maxRetries(0)
                .security().ssl().enable().sslContext(context(authority))
                .sniHostName("127.0.0.1");
        return builder;
    }

    @Test
    void whoeverAsksTheOtherWayIsToldWhatToDo() throws Exception {
        for (String[] command : new String[][] {{"list"}, {"sql", "select 1"}}) {
            assertTold(grid.ask(command), "speaks TLS", "--tls-ca FILE");
            assertTold(ask(grid, other, command), "of no authority that is known", "--tls-ca FILE");
            TestGrid.Ran known = TestGrid.inside(with(command, "--server",
                    "https://" + grid.server()));
            assertTold(known, "of no authority that is known", "--tls-ca FILE");
            TestGrid.Ran named = TestGrid.inside(with(with(command, "--tls-ca",
                    authority.file + ""), "--server", "localhost:" + grid.ports().main()));
            assertTold(named, "is for other names", "--server https://HOST:PORT");
            assertTold(ask(demanding, authority, command), "with a certificate of its",
                    "--tls-cert FILE --tls-key FILE");
            ask(demanding, authority, with(command, "--tls-cert", clients + "", "--tls-key",
                    TestAuthority.keyOf(clients) + "")).succeeded();
        }
    }

    private static String[] with(String[] command, String... more) {
        String[] all = Arrays.copyOf(command, command.length + more.length);
        System.arraycopy(more, 0, all, command.length, more.length);
        return all;
    }

    private static void assertTold(TestGrid.Ran ran, String what, String next) {
        assertEquals(2, ran.status(), ran.out());
        assertTrue(ran.err().contains(what), ran.err());
        assertTrue(ran.err().contains(next), ran.err());
        assertFalse(ran.err().contains("\tat "), ran.err());
    }

    @Test
    void aNodeThatDemandsCertificatesLetsNobodyInWithoutAtAnyPort() throws Exception {
        SSLContext without = context(authority);
        SSLContext shown = new TlsFiles(clients, TestAuthority.keyOf(clients), authority.file)
                .context();
        for (int place = 0; place < REQUESTS.length; place++) {
            int port = ports(demanding)[place];
            String request = REQUESTS[place];
            assertThrows(IOException.class, () -> firstByte(without, port, request), request);
            assertNotEquals(-1, firstByte(shown, port, request), request);
        }
    }

    private static int firstByte(SSLContext context, int port, String request)
            throws IOException {
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory()
                .createSocket("127.0.0.1", port)) {
            socket.setSoTimeout(PATIENCE_MILLIS);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            return socket.getInputStream().read();
        }
    }

    @Test
    void filesThatNoNodeCouldUseAreNamedWithWhatToDo(@TempDir Path folder) throws Exception {
        Path mine = folder.resolve("mine.pem");
        authority.issue(mine, "127.0.0.1");
        String key = Files.readString(TestAuthority.keyOf(mine));
        Path older = Files.writeString(folder.resolve("older.key"),
                key.replace("PRIVATE KEY", "EC PRIVATE KEY"));
        Path torn = Files.writeString(folder.resolve("torn.key"), key.replaceFirst("M", "m"));
        Path none = Files.writeString(folder.resolve("none.key"), "secret");
        for (Object[] mistake : new Object[][] {
            {TestAuthority.keyOf(certificate), "is not the key of the certificate in", "together"},
            {older, "has its key as 'EC PRIVATE KEY'", "openssl pkcs8 -topk8"},
            {torn, "has no private key of the kind", "together"},
            {none, "has no private key", "-----BEGIN PRIVATE KEY-----"}}) {
            TestGrid.Ran ran = TestGrid.inside("start", "--dir", folder + "/node", "--tls-cert",
                    mine + "", "--tls-key", mistake[0] + "");
            assertTold(ran, mistake[0] + " ", mistake[2] + "");
            assertTrue(ran.err().contains(mistake[1] + ""), ran.err());
            assertFalse(ran.err().contains(key.substring(30, 60)), ran.err());
            assertFalse(ran.err().contains("secret"), ran.err());
        }
    }

    @Test
    void aCertificateThatIsReplacedIsShownToConnectionsThatCome() throws Exception {
        Path next = certificate.resolveSibling("next.pem");
        authority.issue(next, "127.0.0.1");
        try {
            Files.move(TestAuthority.keyOf(next), TestAuthority.keyOf(certificate),
                    StandardCopyOption.REPLACE_EXISTING);
            Files.move(next, certificate, StandardCopyOption.REPLACE_EXISTING);
            for (int port : ports(grid)) {
                TestGrid.await(() -> shown(port).equals("CN=next.pem"), "port " + port);
            }
        } finally {
            authority.issue(certificate, "127.0.0.1");
            for (int port : ports(grid)) {
                TestGrid.await(() -> shown(port).equals("CN=node.pem"), "port " + port);
            }
        }
    }

    private String shown(int port) {
        try (SSLSocket socket = (SSLSocket) context(authority).getSocketFactory()
                .createSocket("127.0.0.1", port)) {
            socket.startHandshake();
            return ((X509Certificate) socket.getSession().getPeerCertificates()[0])
                    .getSubjectX500Principal().getName();
        } catch (IOException failure) {
            return failure.toString();
        }
    }
}
