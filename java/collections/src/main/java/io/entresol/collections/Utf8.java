package io.entresol.collections;

import java.nio.charset.StandardCharsets;

/** Texts as bytes that are different for different texts. */
final class Utf8 {
    private Utf8() {
    }

    /**
     * The bytes of a text; refused if it has half of a surrogate pair, which Java would make a
     * question mark.
     */
    static byte[] bytes(String text) {
        for (int at = 0; at < text.length(); at++) {
            char half = text.charAt(at);
            if (Character.isSurrogate(half)) {
                at++;
                if (at == text.length() || !Character.isSurrogatePair(half, text.charAt(at))) {
                    throw new IllegalArgumentException(String.format("character %d of the text,"
                            + " U+%04X, is half of a surrogate pair and has no bytes in UTF-8",
                            at - 1, (int) half));
                }
            }
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
