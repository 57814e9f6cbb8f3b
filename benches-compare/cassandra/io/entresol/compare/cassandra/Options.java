package io.entresol.compare.cassandra;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** What the command line asks for. */
record Options(Map<String, String> values) {
    private static final List<String> KNOWN = List.of("rows", "bytes", "clustered", "nodes",
            "phases", "seconds", "rounds", "in-flight", "threads", "rate", "part", "json",
            "record", "dir", "launcher", "agent");
    static final List<String> PHASES = List.of("reads1", "local1", "updates4", "reads4", "local4",
            "mixed", "overwrite", "fixed", "memory");

    static Options parse(String[] arguments) {
        Map<String, String> values = new TreeMap<>();
        for (int at = 0; at < arguments.length; at++) {
            String[] word = arguments[at].split("=", 2);
            String name = word[0].replaceFirst("^--", "");
            if (!word[0].startsWith("--") || !KNOWN.contains(name)) {
                throw new IllegalArgumentException(
                        "there is no option " + arguments[at] + "; see --help");
            } else if (word.length == 1 && at + 1 == arguments.length) {
                throw new IllegalArgumentException(word[0] + " has no value; see --help");
            } else {
                values.put(name, word.length == 2 ? word[1] : arguments[++at]);
            }
        }
        return new Options(values);
    }

    int number(String name, int otherwise) {
        String text = values.get(name);
        try {
            int number = text == null ? otherwise : Integer.parseInt(text);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException malformed) {
            // Said below.
        }
        throw new IllegalArgumentException("--" + name + " is '" + text + "'; expected a number");
    }

    Path path(String name) {
        return Path.of(values.get(name)).toAbsolutePath();
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    /** The shape of rows. */
    Rows shape() {
        String[] bounds = values.getOrDefault("bytes", "100-1000").split("-");
        int least = Integer.parseInt(bounds[0]);
        return new Rows(number("rows", 200_000), least,
                bounds.length == 1 ? least : Integer.parseInt(bounds[1]), number("clustered", 0));
    }

    List<Variant> variants() {
        String all = "entresol,defaults,latest,tuned,floor";
        return Arrays.stream(values.getOrDefault("nodes", all).split(","))
                .map(name -> Variant.valueOf(name.toUpperCase(Locale.ROOT))).toList();
    }

    List<String> phases() {
        String phases = values.get("phases");
        List<String> asked = phases == null ? PHASES : Arrays.asList(phases.split(","));
        for (String phase : asked) {
            if (!PHASES.contains(phase)) {
                throw new IllegalArgumentException(
                        "--phases has '" + phase + "'; expected some of " + PHASES);
            }
        }
        return asked;
    }
}
