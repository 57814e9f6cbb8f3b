package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Refusals before any node is asked or started. */
class OptionsTest {
    /** As Linux comes: {@code net.ipv4.ip_local_port_range}. */
    private static final int FIRST_OF_CONNECTIONS = 32_768;
    private static final String JOINING = "jgroups.join_timeout";

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "deploy x --template tape | 'tape' is no template | flash,partitioned-with-backup",
        "deploy x --template ram,flash | exclude each other | expected words of",
        "deploy x --template partitioned,partitioned-with-backup | exclude | expected",
        "deploy x --template ram --capacity 1GiB | --capacity is for flash | leave one of them out",
        "deploy x --template ram --durability synced | --durability is for flash | leave",
        "deploy x --template ram --reformat | --reformat is for flash | leave one of them out",
        "deploy x --reformat --devices /dev/x | make them empty yourself | leave --reformat out",
        "deploy x --stripe | --stripe has no devices | --devices",
        "deploy x --template two-sites | name the one | --other-site SITE",
        "deploy x --other-site NYC | is for --template two-sites | flash,partitioned",
        "deploy x --database 3 | --database is for --encoding resp | protostream",
        "deploy x --encoding telex | telex | protostream",
        "deploy x --cache-entries-percentage 120 --dry-run | is 120 | expected 0 to 100",
        "deploy x --recovery --dry-run | needs a second copy | partitioned-with-backup",
        "deploy x --average-object-size big --dry-run | 'big' | 5KB",
        "list --server nowhere | 'nowhere' | expected HOST:PORT",
        "list --server 127.0.0.1:1 | no node answers | entresol-grid start",
        "list --server 127.0.0.1:99999 | '127.0.0.1:99999' | expected HOST:PORT",
        "list --server no.such.host.invalid:1 | is not known here | name another: --server",
        "undeploy ___protobuf_metadata | is Infinispan's own | entresol-grid list",
        "sql x --csv --json | exclude each other | leave one of them out",
        "sql x --server nowhere | 'nowhere' | expected HOST:PORT",
        "sql x --server 127.0.0.1:1 | cannot be asked | entresol-grid start",
        "sql x --user me | has no password | ENTRESOL_GRID_PASSWORD",
        "list --user me | has no password | ENTRESOL_GRID_PASSWORD",
        "start --bind 0.0.0.0 | there are no users | --users FILE",
        "start --bind 0.0.0.0 --users /dev/null | is every address | --cluster-address",
        "start --bind no.such.host.invalid | is not known here | 127.0.0.1",
        "start --bind 203.0.113.9 --users /dev/null | no address of this machine | --bind",
        "start --endpoint-template tape | --endpoint-template is 'tape' | expected words of",
        "user | expected what to do | entresol-grid user add NAME",
        "user add a=b | without '=' | expected one",
        "user add a --role boss | is 'boss' | admin, deployer",
        "start --users /no/such/file | cannot be read | NAME=PASSWORD",
        "start --tls-cert /x | go together | --tls-cert FILE --tls-key FILE",
        "start --tls-client-ca /x | go together | --tls-cert FILE --tls-key FILE",
        "start --tls-cert /no/such --tls-key /x | /no/such cannot be read | name another file",
        "start --cluster-tls-key /x | --cluster-tls-ca go together | name all three files",
        "start --tls-cert /dev/null --tls-key /x | no certificate | BEGIN CERTIFICATE",
        "list --server http://127.0.0.1:1 --tls-ca /x | is in plain | https://HOST:PORT",
        "list --tls-cert /x | go together | name both files",
        "list --tls-ca /no/such | /no/such cannot be read | name another file",
        "list --server https://127.0.0.1:1 | no node answers | entresol-grid start",
        "sql x --tls-ca /no/such | /no/such cannot be read | name another file",
        "start --port-offset 60000 | is 60000 | expected 0 to 53770",
        "start --nodes 20 | is 20 | expected 1 to 9",
        "start --memory lots | 'lots' | such as 512m",
        "start --join here | 'here' | expected HOST:PORT",
        "start --join a:99999 --dir /proc/none | 'a:99999' | expected HOST:PORT",
        "start --site LON --other-site NYC=a:0 --dir /proc/none | 'a:0' | expected HOST:PORT",
        "start --site LON | go together | --other-site NYC=",
        "start --site LON --other-site LON=a:1 | both 'LON' | two names",
        "start --site LON --other-site NYC | expected NAME=HOST:PORT | NYC=10.1.0.1:7850",
        "start --site LON --other-site NYC=there | 'there' | expected HOST:PORT",
        "start --dir /proc/none --port-offset 7600 | cannot prepare | --dir",
        "start --dir /proc/{n} --port-offset 7600 | names of stores have | --dir",
        "start --dir /proc/a,b --port-offset 7600 | names of stores have | --dir",
        "stop --dir /no/such/folder | no node runs in | --dir",
        "stop --force --cluster | leave its cluster | leave one of them out",
        "bench --writes 101 | is 101 | expected 0 to 100",
        "bench --show-rate -1 | is -1 | expected at least 0",
        "bench --cache x | go together | --cache NAME --execute write",
        "bench --execute read | go together | --cache NAME --execute write",
    })
    void aMistakeIsNamedWithWhatToDoNext(String line, String what, String next) {
        TestGrid.Ran ran = TestGrid.inside(line.split(" "));
        assertEquals(2, ran.status(), ran.err());
        assertTrue(ran.err().contains(what), ran.err());
        assertTrue(ran.err().contains(next), ran.err());
        assertFalse(ran.err().contains("\tat "), ran.err());
    }

    @Test
    void aPortForSqlThatSomebodyHasIsNamed() throws Exception {
        Ports ports = new Ports(TestGrid.freeOffset(5000));
        try (ServerSocket taken = new ServerSocket(ports.sql(), 1,
                InetAddress.getByName("127.0.0.1"))) {
            TestGrid.Ran ran = TestGrid.inside("start", "--dir", "/proc/none", "--port-offset",
                    "" + ports.offset());
            assertEquals(2, ran.status(), ran.err());
            assertTrue(ran.err().contains("port " + taken.getLocalPort()), ran.err());
            assertTrue(ran.err().contains("for SQL, cannot be had"), ran.err());
            // The advice was always 100, which was the offset that had failed, or one below it.
            assertTrue(ran.err().endsWith("--port-offset " + (ports.offset() + Ports.STEP) + "\n"),
                    ran.err());
        }
    }

    /**
     * The configuration and the process of the other node were written over, and then Infinispan
     * said that the lock was probably left behind by a node that was killed.
     */
    @Test
    void aFolderThatANodeElsewhereHasIsLeftAlone(@TempDir Path folder) throws Exception {
        Path data = Files.createDirectories(folder.resolve("node/server/data"));
        try (FileChannel lock = FileChannel.open(data.resolve("___global.lck"),
                StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            lock.lock();
            TestGrid.Ran ran = TestGrid.program("start", "--dir", folder + "/node",
                    "--port-offset", "" + TestGrid.freeOffset(5000));
            assertEquals(2, ran.status(), ran.err());
            assertTrue(ran.err().contains("a node has the folder " + folder + "/node that"),
                    ran.err());
            assertTrue(ran.err().contains("stop it there"), ran.err());
        }
        assertFalse(Files.exists(folder.resolve("node/server/conf")));
        assertFalse(Files.exists(folder.resolve("node/node.pid")));
    }

    /** A node started, and let in nobody, or somebody of another name. */
    @Test
    void aLineOfUsersThatNamesNobodyIsNamed(@TempDir Path folder) throws Exception {
        String[][] mistakes = {{"", "names nobody"}, {"# none\n\n", "names nobody"},
            {"ada=secret\nbob secret\n", "line 2: expected NAME=PASSWORD"},
            {"=secret\n", "line 1: expected NAME=PASSWORD"},
            {"ada=\n", "line 1: expected NAME=PASSWORD"},
            {"\nada=scram-sha-256:secret\n", "line 2: the hash of the password cannot be read"},
            {"ada=scram-sha-secret roles=admin\n", "line 1: the hash"},
            {GridUser.of("secret", List.of()).line("ada").replace("admin", "boss"),
                "line 1: 'boss' is no role; expected some of admin, deployer"},
            {GridUser.of("secret", List.of(GridUser.Role.MONITOR)).line("deployer"),
                "line 1: user 'deployer' has the name of a role"}, {"ada=gr\u00fcn", "no text in UTF-8"}};
        String offset = "" + TestGrid.freeOffset(5000);
        for (String[] mistake : mistakes) {
            Path users = Files.writeString(folder.resolve("users"), mistake[0],
                    StandardCharsets.ISO_8859_1);
            TestGrid.Ran ran = TestGrid.inside("start", "--dir", folder + "/node", "--users",
                    users + "", "--port-offset", offset);
            assertEquals(2, ran.status(), ran.err());
            assertTrue(ran.err().contains("--users " + users), ran.err());
            assertTrue(ran.err().contains(mistake[1]), ran.err());
            assertFalse(ran.err().contains("secret"), ran.err());
        }
    }

    /** Java says it on the standard output, where the node's own line is expected: a stack. */
    @Test
    void whatJavaSaysOfANodeThatItCannotRunIsToldOfAsASentence(@TempDir Path folder) {
        TestGrid.Ran ran = TestGrid.inside("start", "--dir", folder + "/node", "--memory", "1k",
                "--port-offset", "" + TestGrid.freeOffset(5000));
        assertEquals(2, ran.status(), ran.err());
        assertTrue(ran.err().contains("did not start: Java says: "), ran.err());
        assertTrue(ran.err().contains("Too small maximum heap"), ran.err());
        assertFalse(ran.err().contains("\tat "), ran.err());
    }

    /** It stood below the stacks of all that had failed for it, hundreds of lines. */
    @Test
    void whyANodeDoesNotStartIsTheLastLineAndNoStackStandsBeforeIt(@TempDir Path folder)
            throws Exception {
        Path data = Files.createDirectories(folder.resolve("node/server/data"));
        Files.writeString(data.resolve("caches.xml"), "<torn");
        TestGrid.Ran ran = TestGrid.program("start", "--dir", folder + "/node", "--memory",
                "384m", "--endpoint-template", "ram", "--port-offset",
                "" + TestGrid.freeOffset(5000));
        assertEquals(2, ran.status(), ran.err());
        String[] lines = ran.err().split("\n");
        assertTrue(lines[lines.length - 1].contains("node node did not start"), ran.err());
        assertFalse(ran.err().contains("\tat "), ran.err());
        assertTrue(Files.readString(folder.resolve("node/server/log/node.log"))
                .contains("\tat "), "no stack anywhere");
    }

    /** Somebody's connection had the port by which nodes notice deaths: a node did not start. */
    @Test
    void noPortIsOneThatTheSystemGivesToConnections() {
        Ports ports = new Ports(0);
        for (int port : new int[] {ports.main(), ports.resp(), ports.memcached(), ports.sql(),
            ports.cluster(), ports.failures(), ports.bridge(), ports.bridgeFailures()}) {
            assertTrue(port < FIRST_OF_CONNECTIONS, "port " + port);
        }
    }

    /** Each start of a node alone took two seconds more. */
    @Test
    void aNodeThatHasNobodyToAskForItsClusterDoesNotWaitForAnswers() {
        assertTrue(plan("127.0.0.1[7800]").properties().containsKey(JOINING));
        assertFalse(plan("127.0.0.1[7800],127.0.0.1[7900]").properties().containsKey(JOINING));
    }

    @Test
    void theMachineOfANodeIsInItsConfigurationIfItWasNamed(@TempDir Path folder) throws Exception {
        for (String machine : new String[] {null, "rack 7"}) {
            NodeFolder place = new NodeFolder(folder.resolve("node"));
            NodePlan plan = new NodePlan("node", place, new Ports(0), "127.0.0.1", "127.0.0.1",
                    "127.0.0.1[7800]", "grid", null, machine, "512m", null, Map.of(),
                    new Deployment(Template.parse("ram"), Encoding.RESP, null,
                            OptionalLong.empty(), List.of(), List.of(), null), false);
            place.prepare(plan);
            String written = Files.readString(place.configuration().resolve("node.xml"));
            assertEquals(machine != null, written.contains(" machine=\"${entresol.machine}\""),
                    written);
            assertEquals(machine, place.plan().getProperty("entresol.machine"));
        }
    }

    private static NodePlan plan(String members) {
        return new NodePlan("node", new NodeFolder(Path.of("node")), new Ports(0), "127.0.0.1",
                "127.0.0.1", members, "grid", null, null, "512m", null, Map.of(), null, false);
    }

    @Test
    void everyCommandHasHelpWithExamples() {
        String[] commands = {"start", "deploy", "undeploy", "list", "info", "query", "sql",
            "bench", "stop", "user"};
        for (String command : commands) {
            TestGrid.Ran ran = TestGrid.inside(command, "--help");
            assertEquals(0, ran.status(), ran.err());
            assertTrue(ran.out().contains("Example"), ran.out());
        }
        String usage = TestGrid.inside("--help").out();
        assertTrue(Arrays.stream(commands).allMatch(usage::contains), usage);
    }

    @Test
    void wordsOfATemplateAreReadInAnyOrder() {
        assertEquals("flash,partitioned", Template.parse("flash") + "");
        assertEquals("ram,partitioned", Template.parse("ram") + "");
        assertEquals("flash,partitioned-with-backup",
                Template.parse("partitioned-with-backup") + "");
        assertEquals("ram,partitioned-with-backup,two-sites",
                Template.parse("two-sites,partitioned-with-backup,ram") + "");
    }

    /** It was said that entries are away until their node is back; its store dropped them then. */
    @Test
    void whatACacheMayLoseWithItsNodesIsSaidWithTheTemplateThatKeepsIt() {
        String single = Template.parse("flash").losses(2, false).orElseThrow();
        assertTrue(single.contains("a node that is killed are lost, also once it is"), single);
        assertTrue(single.contains("flash,partitioned-with-backup --recovery"), single);
        Template backed = Template.parse("partitioned-with-backup");
        String all = backed.losses(3, false).orElseThrow();
        assertTrue(all.contains("where all 3 nodes are killed, entries may be lost"), all);
        assertTrue(all.contains("--recovery"), all);
        assertTrue(backed.losses(3, true).isEmpty());
        assertTrue(Template.parse("flash").losses(1, false).isEmpty());
        assertTrue(Template.parse("ram").losses(2, false).isEmpty());
    }
}
