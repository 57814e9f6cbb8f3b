package io.entresol;

/**
 * A key with its value.
 *
 * @param key the key's bytes
 * @param value the value's bytes; none where only keys were asked for
 * @param version which put wrote it; grows with each put of the key
 * @param label the byte that was put with it
 * @param expires when it ends, in milliseconds since 1970; 0: never
 */
public record Entry(byte[] key, byte[] value, long version, int label, long expires) {
}
