package io.entresol.cassandra.node;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The options of a command and the words after them. Not thread-safe. */
final class Arguments {
    private final String command;
    private final Map<String, String> values = new HashMap<>();
    private final Set<String> flags = new HashSet<>();
    private final List<String> words = new ArrayList<>();

    private Arguments(String command) {
        this.command = command;
    }

    /**
     * Takes a command line apart.
     *
     * @param valued options that a value follows, with commas between
     * @param flags options that stand alone, with commas between
     */
    static Arguments parse(String command, List<String> given, String valued, String flags) {
        Arguments arguments = new Arguments(command);
        Set<String> withValue = Set.of(valued.split(","));
        Set<String> alone = Set.of(flags.split(","));
        for (int at = 0; at < given.size(); at++) {
            String[] word = given.get(at).split("=", 2);
            if (withValue.contains(word[0])) {
                boolean attached = word.length == 2;
                if (!attached && at + 1 == given.size()) {
                    throw arguments.wrong(word[0] + " has no value");
                }
                arguments.values.put(word[0], attached ? word[1] : given.get(++at));
            } else if (alone.contains(given.get(at))) {
                arguments.flags.add(given.get(at));
            } else if (word[0].startsWith("-")) {
                throw arguments.wrong("there is no option " + given.get(at));
            } else {
                arguments.words.add(given.get(at));
            }
        }
        return arguments;
    }

    boolean has(String flag) {
        return flags.contains(flag);
    }

    Optional<String> value(String option) {
        return Optional.ofNullable(values.get(option));
    }

    String value(String option, String otherwise) {
        return values.getOrDefault(option, otherwise);
    }

    /** A number of an option, if it is given. */
    Optional<Integer> number(String option, int least, int most) {
        return value(option).map(text -> {
            try {
                int number = Integer.parseInt(text);
                if (number >= least && number <= most) {
                    return number;
                }
            } catch (NumberFormatException malformed) {
                // Said below.
            }
            throw wrong(option + " is '" + text + "'; expected " + least + " to " + most);
        });
    }

    /** Complains if words stand beside the options. */
    Arguments withoutWords() {
        if (!words.isEmpty()) {
            throw wrong("'" + words.get(0) + "' is unexpected");
        }
        return this;
    }

    private NodeException wrong(String what) {
        return new NodeException(what + "; see: entresol-cassandra " + command + " --help");
    }
}
