package io.entresol.infinispan;

import java.nio.ByteBuffer;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.PersistenceException;

/**
 * An entry of a cache as the value of an entry on flash: a byte for the format, three times, three
 * lengths, and the bytes of the value, its metadata and its internal metadata.
 *
 * @param created when the entry was made, as the cache says it
 * @param lastUsed when it was last read or written, likewise
 * @param expires when it ends, in milliseconds since 1970; -1: never
 * @param value the marshalled value
 * @param metadata its marshalled metadata; empty: none
 * @param internal its marshalled internal metadata; empty: none
 */
record StoredEntry(long created, long lastUsed, long expires, byte[] value, byte[] metadata,
        byte[] internal) {
    private static final byte FORMAT = 1;
    private static final int HEAD_BYTES = 1 + 3 * Long.BYTES + 3 * Integer.BYTES;
    private static final byte[] NONE = new byte[0];

    static StoredEntry of(MarshallableEntry<?, ?> entry) {
        return new StoredEntry(entry.created(), entry.lastUsed(), entry.expiryTime(),
                bytes(entry.getValueBytes()), bytes(entry.getMetadataBytes()),
                bytes(entry.getInternalMetadataBytes()));
    }

    static StoredEntry decode(byte[] bytes) {
        ByteBuffer from = ByteBuffer.wrap(bytes);
        if (bytes.length < HEAD_BYTES || from.get() != FORMAT) {
            throw new PersistenceException("the device holds a value of " + bytes.length
                    + " bytes that no cache wrote; expected format " + FORMAT);
        }
        long created = from.getLong();
        long lastUsed = from.getLong();
        long expires = from.getLong();
        int[] lengths = {from.getInt(), from.getInt(), from.getInt()};
        long total = (long) lengths[0] + lengths[1] + lengths[2];
        if (Math.min(lengths[0], Math.min(lengths[1], lengths[2])) < 0
                || total != from.remaining()) {
            throw new PersistenceException("the device holds a value whose parts have " + total
                    + " bytes; expected " + from.remaining());
        }
        byte[][] parts = new byte[3][];
        for (int part = 0; part < parts.length; part++) {
            parts[part] = lengths[part] == 0 ? NONE : new byte[lengths[part]];
            from.get(parts[part]);
        }
        return new StoredEntry(created, lastUsed, expires, parts[0], parts[1], parts[2]);
    }

    byte[] encode() {
        int length = HEAD_BYTES + value.length + metadata.length + internal.length;
        return ByteBuffer.allocate(length).put(FORMAT)
                .putLong(created).putLong(lastUsed).putLong(expires)
                .putInt(value.length).putInt(metadata.length).putInt(internal.length)
                .put(value).put(metadata).put(internal).array();
    }

    boolean isMortal() {
        return expires >= 0;
    }

    boolean hasEnded(long now) {
        return isMortal() && expires <= now;
    }

    /** As a cache takes it; bytes become objects when they are asked for. */
    <K, V> MarshallableEntry<K, V> toEntry(Object key, MarshallableEntryFactory<K, V> factory,
            org.infinispan.commons.io.ByteBufferFactory buffers) {
        return factory.create(key, buffers.newByteBuffer(value),
                metadata.length == 0 ? null : buffers.newByteBuffer(metadata),
                internal.length == 0 ? null : buffers.newByteBuffer(internal),
                created, lastUsed);
    }

    static byte[] bytes(org.infinispan.commons.io.ByteBuffer buffer) {
        return buffer == null ? NONE : buffer.trim();
    }
}
