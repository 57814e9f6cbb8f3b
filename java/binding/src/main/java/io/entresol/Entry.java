package io.entresol;

/**
 * A key with its value.
 *
 * @param key the key's bytes
 * @param value the value's bytes; none if only keys were requested
 * @param version the put that wrote it; grows with each put of the key
 * @param label the byte that was put with it
 * @param expires when it expires, in milliseconds since 1970; 0: never
 */
public record Entry(byte[] key, byte[] value, long version, int label, long expires) {
}
