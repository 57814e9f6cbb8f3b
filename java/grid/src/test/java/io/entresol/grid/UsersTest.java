package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.grid.bench.RespClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** A node that anybody may reach. */
class UsersTest {
    @Test
    void onlyUsersReachANodeOnAllAddresses() throws Exception {
        TestGrid grid = new TestGrid();
        // Infinispan read another name and another password than those that are in the file.
        String[] other = {"gr\u00fcn b", "\\a=b:#\u20ac\\"};
        Path users = Files.writeString(grid.folder.resolve("users"),
                "# those who may\n\nada=secret\n" + other[0] + "=" + other[1] + "\n");
        grid.start("--bind", "0.0.0.0", "--cluster-address", "127.0.0.1", "--users",
                users.toString(), "--endpoint-template", "ram").succeeded();
        TestGrid.Ran nobody = grid.ask("list");
        assertEquals(2, nobody.status());
        assertTrue(nobody.err().contains("lets in users only"), nobody.err());
        assertEquals(2, grid.ask("list", "--user", "ada", "--password", "wrong").status());
        grid.ask("list", "--user", "ada", "--password", "secret").succeeded();
        grid.ask("list", "--user", other[0], "--password", other[1]).succeeded();
        String sql = "select 1 as found";
        for (String[] stranger : new String[][] {{"sql", sql},
            {"sql", sql, "--user", "ada", "--password", "wrong"},
            {"sql", sql, "--user", "eve", "--password", "secret"}}) {
            TestGrid.Ran refused = grid.ask(stranger);
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("lets in users only"), refused.err());
        }
        assertEquals("found\n1\n", grid.ask("sql", "--csv", sql, "--user", "ada", "--password",
                "secret").succeeded().out());
        // It said that there are [].
        TestGrid.Ran none = grid.ask("sql", "select * from nothing", "--user", "ada",
                "--password", "secret");
        assertTrue(none.err().contains("there are none: caches of ProtoStream"), none.err());
        grid.ask("sql", sql, "--user", other[0], "--password", other[1]).succeeded();
        byte[] bytes = {1, 2};
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            assertThrows(IOException.class, () -> client.set(bytes, bytes));
            client.authenticate("ada", "secret");
            client.set(bytes, bytes);
            assertArrayEquals(bytes, client.get(bytes));
        }
        grid.stop().succeeded();
        grid.remove();
    }
}
