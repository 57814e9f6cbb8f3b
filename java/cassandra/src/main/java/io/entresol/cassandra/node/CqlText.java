package io.entresol.cassandra.node;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** Takes text apart into CQL statements, a line at a time. Not thread-safe. */
final class CqlText {
    private static final Pattern BATCH = Pattern.compile("(?is)\\s*BEGIN\\s.*");
    private static final Pattern APPLIED = Pattern.compile("(?is).*\\sAPPLY\\s+BATCH\\s*");

    private final StringBuilder statement = new StringBuilder();
    /** What ends the quotation or comment that the text is in; empty for none. */
    private String until = "";

    /** The statements that end in a line. */
    List<String> add(String line) {
        List<String> ended = new ArrayList<>();
        String text = line + "\n";
        int at = 0;
        while (at < text.length()) {
            if (until.isEmpty() && text.charAt(at) == ';') {
                end(ended);
                at++;
            } else {
                at = step(text, at);
            }
        }
        return ended;
    }

    /** What is left without a semicolon at the end; empty for nothing. */
    String rest() {
        return statement.toString().strip();
    }

    private void end(List<String> ended) {
        String text = rest();
        if (BATCH.matcher(text).matches() && !APPLIED.matcher(text).matches()) {
            statement.append(';');
        } else {
            if (!text.isEmpty()) {
                ended.add(text);
            }
            statement.setLength(0);
        }
    }

    /** Takes a character, or what begins or ends a quotation or a comment; where it goes on. */
    private int step(String text, int at) {
        boolean comment = until.equals("\n") || until.equals("*/");
        if (!until.isEmpty()) {
            boolean ends = text.startsWith(until, at);
            int length = ends ? until.length() : 1;
            if (!comment || ends && until.equals("\n")) {
                statement.append(text, at, at + length);
            }
            until = ends ? "" : until;
            return at + length;
        }
        String begin = beginning(text, at);
        until = switch (begin) {
            case "--", "//" -> "\n";
            case "/*" -> "*/";
            default -> begin;
        };
        int length = Math.max(1, begin.length());
        if (!until.equals("\n") && !until.equals("*/")) {
            statement.append(text, at, at + length);
        }
        return at + length;
    }

    private static String beginning(String text, int at) {
        for (String begin : List.of("'", "\"", "$$", "--", "//", "/*")) {
            if (text.startsWith(begin, at)) {
                return begin;
            }
        }
        return "";
    }
}
