package io.entresol.grid;

import java.io.ByteArrayOutputStream;
import java.io.Console;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid user}. */
@Command(name = "user", mixinStandardHelpOptions = true,
        description = "Makes lines of the file that start --users names.",
        subcommands = UserCommand.Add.class,
        footer = {"", "Example:", "  entresol-grid user add --users users ada --role deployer"})
final class UserCommand implements Callable<Integer> {
    @Override
    public Integer call() {
        throw new GridException("expected what to do: entresol-grid user add NAME");
    }

    /** {@code entresol-grid user add}. */
    @Command(name = "add", mixinStandardHelpOptions = true,
            description = "Asks for a password, or reads the first line of standard input where"
                    + " that is no terminal, and prints the user's line, with the password"
                    + " hashed; --users puts it into the file.",
            footer = {"", "Examples:", "  entresol-grid user add --users users ada",
                "  entresol-grid user add --users users app --role application < password",
                "  entresol-grid user add eve --role observer --role monitor < password"})
    static final class Add implements Callable<Integer> {
        /** Longest line with a password, bytes. */
        private static final int LINE_MAX = 4096;
        /** Whether somebody types, as the script that starts this finds out. */
        private static final boolean TYPED = Boolean.getBoolean("entresol.typed");

        @Parameters(paramLabel = "NAME", description = "name of the user")
        private String name;

        @Option(names = "--role", paramLabel = "ROLE", description = "what the user may do: admin,"
                + " deployer, application, observer or monitor; may be given again (admin)")
        private List<String> roles = List.of();

        @Option(names = "--users", paramLabel = "FILE", description = "put the line into the file,"
                + " in place of the one that the user has there")
        private Path users;

        @Override
        public Integer call() throws IOException {
            // All that a line of the file says otherwise.
            if (name.isBlank() || !name.equals(name.strip()) || name.startsWith("#")
                    || name.chars().anyMatch(each -> each == '=' || Character.isISOControl(each))) {
                throw new GridException("the name is '" + name + "'; expected one without '=', that"
                        + " does not begin with '#', nor begin or end with a blank");
            }
            List<GridUser.Role> named = roles.stream().map(each -> GridUser.Role.named(each)
                    .orElseThrow(() -> new GridException("--role is '" + each + "'; expected one"
                            + " of " + GridUser.Role.all()))).toList();
            GridUser user = GridUser.of(password(), named);
            user.misnamed(name).ifPresent(why -> {
                throw new GridException(why);
            });
            String line = user.line(name);
            if (users == null) {
                System.out.println(line);
            } else {
                write(line);
            }
            return 0;
        }

        private String password() throws IOException {
            String password = TYPED ? asked(System.console()) : firstLine(System.in);
            if (!password.equals(password.strip())) {
                throw new GridException("the password begins or ends with a blank, which files of"
                        + " users leave out; choose another");
            }
            return password;
        }

        private String asked(Console console) {
            if (console == null) {
                // Java hides what is typed only where it writes to the terminal, too.
                throw new GridException("a password that is typed would be seen, as the output"
                        + " goes elsewhere; name the file: --users FILE, or give the password by"
                        + " standard input");
            }
            char[] first = console.readPassword("Password of %s: ", name);
            if (first == null || first.length == 0) {
                throw new GridException("expected a password, found nothing");
            }
            if (!Arrays.equals(first, console.readPassword("The same again: "))) {
                throw new GridException("the two passwords differ; nothing was made");
            }
            return new String(first);
        }

        private static String firstLine(InputStream input) throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int next = input.read(); next >= 0 && next != '\n'; next = input.read()) {
                line.write(next);
                if (line.size() >= LINE_MAX) {
                    throw new GridException("expected a password of less than " + LINE_MAX
                            + " bytes in the first line of the standard input, found more");
                }
            }
            String password = line.toString(StandardCharsets.UTF_8);
            if (password.endsWith("\r")) {
                password = password.substring(0, password.length() - 1);
            }
            if (password.isEmpty()) {
                throw new GridException("expected a password in the first line of the standard"
                        + " input, found nothing");
            }
            return password;
        }

        /** The file is there as a whole, before and after; others cannot read it. */
        private void write(String line) throws IOException {
            List<String> lines = new ArrayList<>(
                    Files.exists(users) ? UserLines.lines(users) : List.of());
            lines.removeIf(each -> UserLines.name(each).equals(name));
            lines.add(line);
            Path file = users.toAbsolutePath();
            Path next = file.resolveSibling(file.getFileName() + ".next");
            try {
                Files.deleteIfExists(next);
                Files.createFile(next, PosixFilePermissions.asFileAttribute(
                        PosixFilePermissions.fromString("rw-------")));
                Files.write(next, lines);
                Files.move(next, file, StandardCopyOption.REPLACE_EXISTING,
                        StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException failure) {
                throw new GridException("cannot write " + users + ": " + failure
                        + "; name a file that can be written: --users", failure);
            }
            System.out.println("user " + name + " is in " + users);
        }
    }
}
