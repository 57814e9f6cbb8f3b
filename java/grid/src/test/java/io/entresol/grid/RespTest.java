package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** A node's RESP endpoint, as present-day clients use it. */
class RespTest {
    private static final int PATIENCE_MILLIS = 60_000;

    private int port;

    /**
     * Clients that asked for what Infinispan does not know waited for ever as they connected, and
     * those that never said HELLO 3 could not read what is absent, nor maps.
     */
    @Test
    void eachRequestIsAnsweredInTheVersionThatTheClientSpeaks() throws Exception {
        TestGrid grid = new TestGrid();
        grid.start().succeeded();
        port = grid.ports().resp();
        try {
            unknownSubcommandsAreErrors();
            repliesAreOfVersionTwoUntilHelloThree();
            commandsAreThere();
        } finally {
            grid.stop();
        }
        grid.remove();
    }

    private void unknownSubcommandsAreErrors() throws IOException {
        assertTrue(ask("CLIENT MAINT_NOTIFICATIONS ON").startsWith("-ERR unknown subcommand"));
        for (String command : new String[] {"CLIENT", "CONFIG", "COMMAND", "CLUSTER", "MODULE",
            "MEMORY", "ACL", "SCRIPT", "PUBSUB", "JSON.DEBUG"}) {
            assertTrue(ask(command + " NOSUCH").startsWith("-"), command);
        }
    }

    private void repliesAreOfVersionTwoUntilHelloThree() throws IOException {
        assertEquals("$-1", ask("GET absent"));
        assertEquals(":1", ask("HSET map a 1"));
        assertEquals("*2 $1 a $1 1", ask("HGETALL map"));
        assertEquals(":2", ask("ZADD sorted 1 a 2.5 b"));
        assertEquals("*4 $1 a $1 1 $1 b $3 2.5", ask("ZRANGE sorted 0 -1 WITHSCORES"));
        assertTrue(ask("HELLO 2").startsWith("*14 $6 server"));
        assertTrue(ask("HELLO 2").contains("$5 proto :2"));
        assertTrue(ask("HELLO 3").contains("$5 proto :3"));
        assertTrue(ask("HELLO 3\r\nGET absent").endsWith(" _"));
        assertTrue(ask("HELLO 3\r\nHGETALL map").endsWith("%1 $1 a $1 1"));
    }

    private void commandsAreThere() throws IOException {
        assertEquals("+OK", ask("SET key value"));
        assertEquals(":1", ask("UNLINK key absent"));
        assertTrue(ask("RANDOMKEY").startsWith("$"));
        assertEquals("+OK", ask("QUIT"));
        assertEquals("-ERR unknown command", ask("XADD stream * a b"));
    }

    /** All that a connection of its own is told, with blanks for ends of lines. */
    private String ask(String commands) throws IOException {
        StringBuilder request = new StringBuilder();
        for (String command : (commands + "\r\nQUIT").split("\r\n")) {
            String[] words = command.split(" ");
            request.append('*').append(words.length).append("\r\n");
            for (String word : words) {
                request.append('$').append(word.length()).append("\r\n").append(word)
                        .append("\r\n");
            }
        }
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(PATIENCE_MILLIS);
            socket.getOutputStream()
                    .write(request.toString().getBytes(StandardCharsets.ISO_8859_1));
            String told = new String(socket.getInputStream().readAllBytes(),
                    StandardCharsets.ISO_8859_1);
            assertTrue(told.endsWith("+OK\r\n"), told);
            String answer = told.substring(0, told.length() - "+OK\r\n".length());
            return commands.equals("QUIT") ? "+OK" : answer.strip().replace("\r\n", " ");
        }
    }
}
