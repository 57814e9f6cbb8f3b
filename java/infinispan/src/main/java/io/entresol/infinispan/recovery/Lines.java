package io.entresol.infinispan.recovery;

import java.util.LinkedHashMap;
import java.util.Map;

/** Names and values as text, a line each, for the store and for other nodes. */
final class Lines {
    private final Map<String, String> lines = new LinkedHashMap<>();

    /** Reads what {@link #toString} gives. */
    static Lines parse(String text) {
        Lines read = new Lines();
        for (String line : text.split("\n")) {
            int end = line.indexOf('=');
            if (end > 0) {
                read.lines.put(line.substring(0, end), line.substring(end + 1));
            }
        }
        return read;
    }

    Lines put(String name, Object value) {
        lines.put(name, value.toString().replace('\n', ' '));
        return this;
    }

    /** All of {@code values}, their names behind {@code prefix}. */
    Lines putAll(String prefix, Map<?, String> values) {
        values.forEach((name, value) -> put(prefix + name, value));
        return this;
    }

    /** The value of a name that must be there. */
    String get(String name) {
        String value = lines.get(name);
        if (value == null) {
            throw new IllegalArgumentException("the line '" + name + "' is missing");
        }
        return value;
    }

    /** The names that begin with {@code prefix}, without it, and their values. */
    Map<String, String> all(String prefix) {
        Map<String, String> found = new LinkedHashMap<>();
        lines.forEach((name, value) -> {
            if (name.startsWith(prefix)) {
                found.put(name.substring(prefix.length()), value);
            }
        });
        return found;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        lines.forEach((name, value) -> text.append(name).append('=').append(value).append('\n'));
        return text.toString();
    }
}
