package io.entresol.jdbc;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.calcite.linq4j.function.Strict;

/**
 * Patterns of texts that mean what they mean to an index. For the code that Calcite makes, not for
 * other uses.
 */
public final class Texts {
    private static final int PATTERNS_MAX = 100;
    private static final Map<Likeness, Pattern> PATTERNS =
            Collections.synchronizedMap(new LinkedHashMap<>(16, 0.75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Likeness, Pattern> eldest) {
                    return size() > PATTERNS_MAX;
                }
            });
    private static final char NO_ESCAPE = 0;

    private Texts() {}

    /** Whether a text is like a pattern. Any letter is one to {@code _}, the end of a line too. */
    @Strict
    public static boolean isLike(String text, String pattern) {
        return matches(text, new Likeness(pattern, NO_ESCAPE, 0));
    }

    /** The same with a letter that takes the meaning from the next one. */
    @Strict
    public static boolean isLike(String text, String pattern, String escape) {
        return matches(text, new Likeness(pattern, escape(escape), 0));
    }

    /** Whether a text is like a pattern but for capitals. */
    @Strict
    public static boolean isAlike(String text, String pattern) {
        return matches(text, new Likeness(pattern, NO_ESCAPE, Likeness.ANY_CASE));
    }

    /** The same with a letter that takes the meaning from the next one. */
    @Strict
    public static boolean isAlike(String text, String pattern, String escape) {
        return matches(text, new Likeness(pattern, escape(escape), Likeness.ANY_CASE));
    }

    private static char escape(String escape) {
        if (escape.length() != 1) {
            throw new IllegalArgumentException(
                    "escape '" + escape + "': expected one letter that marks others in a pattern");
        }
        return escape.charAt(0);
    }

    private static boolean matches(String text, Likeness likeness) {
        return PATTERNS.computeIfAbsent(likeness, Likeness::compiled).matcher(text).matches();
    }

    private record Likeness(String pattern, char escape, int flags) {
        static final int ANY_CASE = Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE;

        Pattern compiled() {
            StringBuilder expression = new StringBuilder();
            StringBuilder plain = new StringBuilder();
            for (int place = 0; place < pattern.length(); place++) {
                char letter = pattern.charAt(place);
                if (letter == escape && escape != NO_ESCAPE) {
                    place++;
                    plain.append(escaped(place));
                } else if (letter == '_' || letter == '%') {
                    expression.append(quoted(plain)).append(letter == '_' ? "." : ".*");
                } else {
                    plain.append(letter);
                }
            }
            return Pattern.compile(expression.append(quoted(plain)).toString(),
                    Pattern.DOTALL | flags);
        }

        private char escaped(int place) {
            char letter = place < pattern.length() ? pattern.charAt(place) : NO_ESCAPE;
            if (letter != '_' && letter != '%' && letter != escape) {
                throw new IllegalArgumentException("pattern '" + pattern + "': expected _, % or "
                        + escape + " after each " + escape);
            }
            return letter;
        }

        private static String quoted(StringBuilder plain) {
            String text = plain.toString();
            plain.setLength(0);
            return text.isEmpty() ? "" : Pattern.quote(text);
        }
    }
}
