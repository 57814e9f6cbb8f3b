package io.entresol.jdbc.internal.dialect;

import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.calcite.linq4j.function.Strict;

/**
 * Texts in the order of their code points, which is that of an index and of their bytes, and
 * patterns that mean what they mean to an index. Java's strings have another order: characters
 * beyond U+FFFF begin with a unit that is less than U+E000. For the code that Calcite generates,
 * not for other uses.
 */
public final class Texts {
    public static final Comparator<String> ORDER = Texts::compare;

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

    /** Whether units of texts in a statement are not in the order of the letters. */
    public static boolean areMixed(String sql) {
        boolean escaped = sql.contains("u&'") || sql.contains("U&'");
        return escaped || sql.chars().anyMatch(unit -> unit > Character.MAX_SURROGATE)
                && sql.chars().anyMatch(unit -> Character.isSurrogate((char) unit));
    }

    private static int compare(String one, String other) {
        int shorter = Math.min(one.length(), other.length());
        for (int place = 0; place < shorter; place++) {
            char unit = one.charAt(place);
            char against = other.charAt(place);
            if (unit != against) {
                return rank(unit) - rank(against);
            }
        }
        return one.length() - other.length();
    }

    /** The units of what is beyond U+FFFF after all others. */
    private static char rank(char unit) {
        if (unit < Character.MIN_SURROGATE) {
            return unit;
        }
        return (char) (unit > Character.MAX_SURROGATE
                ? unit - (Character.MAX_SURROGATE - Character.MIN_SURROGATE + 1)
                : unit + (Character.MAX_VALUE - Character.MAX_SURROGATE));
    }

    /** Another text for each, whose order as a string of Java is the order of the text. */
    @Strict
    public static String key(String text) {
        int first = 0;
        while (first < text.length() && text.charAt(first) < Character.MIN_SURROGATE) {
            first++;
        }
        if (first == text.length()) {
            return text;
        }
        char[] units = text.toCharArray();
        for (int place = first; place < units.length; place++) {
            units[place] = rank(units[place]);
        }
        return new String(units);
    }

    /** Whether one comes before the other. */
    @Strict
    public static boolean isLess(String one, String other) {
        return compare(one, other) < 0;
    }

    /** Whether one comes before the other, or is it. */
    @Strict
    public static boolean isLessOrEqual(String one, String other) {
        return compare(one, other) <= 0;
    }

    /** Whether one comes after the other. */
    @Strict
    public static boolean isGreater(String one, String other) {
        return compare(one, other) > 0;
    }

    /** Whether one comes after the other, or is it. */
    @Strict
    public static boolean isGreaterOrEqual(String one, String other) {
        return compare(one, other) >= 0;
    }

    /** The one that comes first; null is none. */
    public static String least(String one, String other) {
        return one == null || compare(other, one) < 0 ? other : one;
    }

    /** The one that comes last; null is none. */
    public static String greatest(String one, String other) {
        return one == null || compare(other, one) > 0 ? other : one;
    }

    /** How many letters it has, not units. */
    @Strict
    public static int length(String text) {
        return text.codePointCount(0, text.length());
    }

    /** The letters from one on, counted from 1. */
    @Strict
    public static String substring(String text, int from) {
        return substring(text, from, Integer.MAX_VALUE);
    }

    /** So many letters from one on; places before the first one count as well. */
    @Strict
    public static String substring(String text, int from, int letters) {
        if (letters < 0) {
            throw new IllegalArgumentException(
                    "substring: expected 0 letters or more, found " + letters);
        }
        int first = place(text, 0, Math.max(0L, from - 1L));
        return text.substring(first,
                place(text, first, Math.max(0, from - 1L + letters) - Math.max(0, from - 1L)));
    }

    /** The place of the unit that so many letters after one begins; the end if there are less. */
    private static int place(String text, int from, long letters) {
        // A letter has at most two units.
        return letters * 2 < text.length() - from
                || letters < text.codePointCount(from, text.length())
                ? text.offsetByCodePoints(from, (int) letters) : text.length();
    }

    /** The first letters. */
    @Strict
    public static String left(String text, int letters) {
        return substring(text, 1, Math.max(0, letters));
    }

    /** The last letters. */
    @Strict
    public static String right(String text, int letters) {
        return text.substring(place(text, 0, Math.max(0, length(text) - Math.max(0, letters))));
    }

    /** Which letter of a text another one begins at, counted from 1; 0: none. */
    @Strict
    public static int position(String sought, String text) {
        int found = text.indexOf(sought);
        return found < 0 ? 0 : text.codePointCount(0, found) + 1;
    }

    /** A text with another one in place of so many letters from one on. */
    @Strict
    public static String overlay(String text, String placed, int from, int letters) {
        return substring(text, 1, from - 1) + placed
                + substring(text, (int) Math.min((long) from + letters, Integer.MAX_VALUE));
    }

    /** The same of as many letters as are placed. */
    @Strict
    public static String overlay(String text, String placed, int from) {
        return overlay(text, placed, from, length(placed));
    }

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
