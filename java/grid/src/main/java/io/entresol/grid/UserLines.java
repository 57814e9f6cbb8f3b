package io.entresol.grid;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * The users who may connect: lines {@code NAME=PASSWORD}, without the blanks around both, or lines
 * that {@code entresol-grid user add} made. Empty lines, and lines that begin with {@code #}, are
 * ignored.
 */
final class UserLines {
    /** As Infinispan knows that passwords are hashed; the realm's name is in no hash of ours. */
    private static final String HEAD = "#$REALM_NAME=default$\n#$ALGORITHM=encrypted$\n";

    private UserLines() {
    }

    /** The users by their names. */
    static Map<String, GridUser> read(Path file) throws IOException {
        Map<String, GridUser> users = new LinkedHashMap<>();
        int number = 0;
        for (String line : lines(file)) {
            number++;
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String name = name(line);
            String rest = line.substring(line.indexOf('=') + 1).strip();
            if (name.isEmpty() || rest.isEmpty()) {
                // Without the line itself: it may be a password.
                throw new GridException("--users " + file + " line " + number
                        + ": expected NAME=PASSWORD, or a line of entresol-grid user add");
            }
            try {
                GridUser user = GridUser.parse(rest);
                user.misnamed(name).ifPresent(why -> {
                    throw new IllegalArgumentException(why);
                });
                users.put(name, user);
            } catch (IllegalArgumentException mistake) {
                throw new GridException("--users " + file + " line " + number + ": "
                        + mistake.getMessage(), mistake);
            }
        }
        if (users.isEmpty()) {
            throw new GridException("--users " + file + " names nobody; add a user: entresol-grid"
                    + " user add --users " + file + " NAME");
        }
        return users;
    }

    /** The name that a line is about; empty if it is about nobody. */
    static String name(String line) {
        int equals = line.indexOf('=');
        return equals < 0 || line.startsWith("#") ? "" : line.substring(0, equals).strip();
    }

    static List<String> lines(Path file) throws IOException {
        try {
            return Files.readAllLines(file);
        } catch (CharacterCodingException otherwise) {
            throw new GridException("--users " + file + " is no text in UTF-8; write it so",
                    otherwise);
        }
    }

    /** The users as Infinispan reads them, where a backslash stands before what is not itself. */
    static String hashes(Map<String, GridUser> users) {
        StringBuilder text = new StringBuilder(HEAD);
        users.forEach((name, user) -> text.append(name.replaceAll("[\\\\=:#!]", "\\\\$0"))
                .append('=').append(user.hashes()).append('\n'));
        return text.toString();
    }

    /** The roles as Infinispan reads them: as Java's properties. */
    static Properties roles(Map<String, GridUser> users) {
        Properties roles = new Properties();
        users.forEach((name, user) -> roles.setProperty(name, user.names()));
        return roles;
    }
}
