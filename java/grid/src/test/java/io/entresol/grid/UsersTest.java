package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.grid.bench.RespClient;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.junit.jupiter.api.Test;

/** A node that anybody may reach. */
class UsersTest {
    @Test
    void onlyUsersReachANodeOnAllAddresses() throws Exception {
        TestGrid grid = new TestGrid();
        // Infinispan read another name and another password than those that are in the file.
        String[] other = {"gr\u00fcn b", "\\a=b:#\u20ac\\"};
        Path users = Files.writeString(grid.folder.resolve("users"),
                "# those who may\n\nada=se cr:et\n" + other[0] + "=" + other[1] + "\n");
        UserCommandTest.add("hidden word\n", "hash ed", "--users", users + "").succeeded();
        grid.start("--bind", "0.0.0.0", "--cluster-address", "127.0.0.1", "--users",
                users.toString(), "--endpoint-template", "ram").succeeded();
        TestGrid.Ran nobody = grid.ask("list");
        assertEquals(2, nobody.status());
        assertTrue(nobody.err().contains("lets in users only"), nobody.err());
        assertEquals(2, grid.ask("list", "--user", "ada", "--password", "wrong").status());
        grid.ask("list", "--user", "ada", "--password", "se cr:et").succeeded();
        grid.ask("list", "--user", other[0], "--password", other[1]).succeeded();
        grid.ask("list", "--user", "hash ed", "--password", "hidden word").succeeded();
        String sql = "select 1 as found";
        for (String[] stranger : new String[][] {{"sql", sql},
            {"sql", sql, "--user", "ada", "--password", "wrong"},
            {"sql", sql, "--user", "eve", "--password", "secret"}}) {
            TestGrid.Ran refused = grid.ask(stranger);
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("lets in users only"), refused.err());
        }
        assertEquals("found\n1\n", grid.ask("sql", "--csv", sql, "--user", "ada", "--password",
                "se cr:et").succeeded().out());
        // It said that there are [].
        TestGrid.Ran none = grid.ask("sql", "select * from nothing", "--user", "ada",
                "--password", "se cr:et");
        assertTrue(none.err().contains("there are none: caches of ProtoStream"), none.err());
        grid.ask("sql", sql, "--user", other[0], "--password", other[1]).succeeded();
        byte[] bytes = {1, 2};
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            assertThrows(IOException.class, () -> client.set(bytes, bytes));
            client.authenticate("ada", "se cr:et");
            client.set(bytes, bytes);
            assertArrayEquals(bytes, client.get(bytes));
        }
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            assertThrows(IOException.class, () -> client.authenticate("hash ed", "hidden"));
            client.authenticate("hash ed", "hidden word");
            assertArrayEquals(bytes, client.get(bytes));
        }
        grid.ask("deploy", "ram", "--template", "ram", "--encoding", "text", "--user", "hash ed",
                "--password", "hidden word").succeeded();
        for (String mechanism : new String[] {"SCRAM-SHA-256", "SCRAM-SHA-384", "SCRAM-SHA-512"}) {
            assertEquals(mechanism, asked(grid, mechanism, "hash ed", "hidden word"));
            assertEquals(mechanism, asked(grid, mechanism, other[0], other[1]));
            assertThrows(RuntimeException.class, () -> asked(grid, mechanism, "ada", "wrong"));
        }
        assertHasNone(grid.folder.resolve("node"), "se cr:et", other[1], "hidden word");
        grid.stop().succeeded();
        grid.remove();
    }

    /** By Hot Rod: what was put. */
    private static String asked(TestGrid grid, String mechanism, String user, String password) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.addServer().host("127.0.0.1").port(grid.ports().main()).maxRetries(0)
                .security().authentication().saslMechanism(mechanism).username(user)
                .password(password);
        try (RemoteCacheManager manager = new RemoteCacheManager(builder.build())) {
            RemoteCache<String, String> cache = manager.getCache("ram");
            cache.put("key", mechanism);
            return cache.get("key");
        }
    }

    /** The file of users had the passwords, and so had a copy in the node's folder. */
    private static void assertHasNone(Path folder, String... passwords) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
                for (String password : passwords) {
                    assertFalse(text.contains(password), file + " has a password");
                }
            }
        }
    }
}
