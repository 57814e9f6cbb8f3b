package io.entresol.grid;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

/**
 * A file of the users who may connect: lines {@code NAME=PASSWORD}, without the blanks around both.
 * Empty lines, and lines that begin with {@code #}, are ignored.
 */
final class UserLines {
    private UserLines() {
    }

    /**
     * The passwords by names. Infinispan reads users as Java reads properties, where a backslash or
     * a colon is not itself, nor is a letter beyond ASCII: they are to be written so.
     */
    static Properties read(Path file) throws IOException {
        Properties users = new Properties();
        int number = 0;
        for (String line : lines(file)) {
            number++;
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            int equals = line.indexOf('=');
            String name = equals < 0 ? "" : line.substring(0, equals).strip();
            String password = line.substring(equals + 1).strip();
            if (name.isEmpty() || password.isEmpty()) {
                // Without the line itself: it may be a password.
                throw new GridException("--users " + file + " line " + number
                        + ": expected NAME=PASSWORD");
            }
            users.setProperty(name, password);
        }
        if (users.isEmpty()) {
            throw new GridException("--users " + file + " names nobody; write lines NAME=PASSWORD"
                    + " into it");
        }
        return users;
    }

    private static List<String> lines(Path file) throws IOException {
        try {
            return Files.readAllLines(file);
        } catch (CharacterCodingException otherwise) {
            throw new GridException("--users " + file + " is no text in UTF-8; write it so",
                    otherwise);
        }
    }
}
