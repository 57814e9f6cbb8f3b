package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Lines of a users file. */
class UserCommandTest {
    /** The command, with that on its standard input. */
    static TestGrid.Ran add(String input, String name, String... more) {
        InputStream in = System.in;
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            List<String> all = new ArrayList<>(List.of("user", "add", name));
            all.addAll(List.of(more));
            return TestGrid.inside(all.toArray(String[]::new));
        } finally {
            System.setIn(in);
        }
    }

    @Test
    void aLineHasTheRolesAndHashesInPlaceOfThePassword() {
        String line = add("open sesame\r\nmore\n", "ada", "--role", "deployer", "--role", "monitor")
                .succeeded().out().strip();
        assertTrue(line.matches("ada=(scram-sha-[0-9]+:[A-Za-z0-9+/=]+;?){3}"
                + " roles=deployer,monitor"), line);
        assertFalse(line.contains("sesame"), line);
        GridUser read = GridUser.parse(line.substring(line.indexOf('=') + 1));
        assertEquals(line, read.line("ada"));
        assertNotEquals(line, add("open sesame\n", "ada", "--role", "deployer", "--role",
                "monitor").out().strip(), "no salt");
        assertTrue(add("x\n", "eve").out().endsWith(" roles=admin\n"));
    }

    @Test
    void theFileHasTheLineInPlaceOfTheFormerAndIsTheOwnersAlone(@TempDir Path folder)
            throws Exception {
        Path users = Files.writeString(folder.resolve("users"),
                "# mine\nada=secret\nbob = other\n");
        add("open sesame\n", "ada", "--users", users + "", "--role", "observer").succeeded();
        List<String> lines = Files.readAllLines(users);
        assertEquals(List.of("# mine", "bob = other"), lines.subList(0, 2));
        assertTrue(lines.get(2).startsWith("ada=scram-"), lines + "");
        assertEquals(3, lines.size());
        assertEquals(PosixFilePermissions.fromString("rw-------"),
                Files.getPosixFilePermissions(users));
        assertEquals(Set.of("ada", "bob"), UserLines.read(users).keySet());
        assertEquals("observer", UserLines.read(users).get("ada").names());
        assertEquals("admin", UserLines.read(users).get("bob").names());
    }

    @Test
    void whatIsNoPasswordIsRefusedAndNothingIsWritten(@TempDir Path folder) {
        Path users = folder.resolve("users");
        for (String input : new String[] {"", "\n", "\r\nmore", " blank\n", "x".repeat(5000)}) {
            TestGrid.Ran ran = add(input, "ada", "--users", users + "");
            assertEquals(2, ran.status(), ran.out());
            assertTrue(ran.err().contains("password"), ran.err());
        }
        assertFalse(Files.exists(users));
    }

    /** What a password in plain was before is one still: roles stand behind hashes alone. */
    @Test
    void aPasswordInPlainMayHaveWordsThatLookLikeRoles() {
        GridUser user = GridUser.parse("pass word roles=monitor");
        assertEquals("admin", user.names());
    }
}
