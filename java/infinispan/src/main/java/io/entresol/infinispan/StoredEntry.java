package io.entresol.infinispan;

import java.nio.ByteBuffer;
import java.util.List;
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
record StoredEntry(long created, long lastUsed, long expires, ByteBuffer value,
        ByteBuffer metadata, ByteBuffer internal) {
    private static final byte FORMAT = 1;
    private static final int HEAD_BYTES = 1 + 3 * Long.BYTES + 3 * Integer.BYTES;
    private static final byte[] NONE = new byte[0];

    /** The entry, whose bytes stay where they are. */
    static StoredEntry of(MarshallableEntry<?, ?> entry) {
        return new StoredEntry(entry.created(), entry.lastUsed(), entry.expiryTime(),
                wrapped(entry.getValueBytes()), wrapped(entry.getMetadataBytes()),
                wrapped(entry.getInternalMetadataBytes()));
    }

    /** The entry of what a store has, whose bytes stay where they are. */
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
        ByteBuffer[] parts = new ByteBuffer[3];
        int at = HEAD_BYTES;
        for (int part = 0; part < parts.length; part++) {
            parts[part] = ByteBuffer.wrap(bytes, at, lengths[part]);
            at += lengths[part];
        }
        return new StoredEntry(created, lastUsed, expires, parts[0], parts[1], parts[2]);
    }

    /** What a store gets, one part after another. */
    List<ByteBuffer> encode() {
        ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES).put(FORMAT)
                .putLong(created).putLong(lastUsed).putLong(expires).putInt(value.remaining())
                .putInt(metadata.remaining()).putInt(internal.remaining()).flip();
        return List.of(head, value, metadata, internal);
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
        return factory.create(key, buffer(value, buffers), buffer(metadata, buffers),
                buffer(internal, buffers), created, lastUsed);
    }

    private static ByteBuffer wrapped(org.infinispan.commons.io.ByteBuffer buffer) {
        return buffer == null ? ByteBuffer.wrap(NONE)
                : ByteBuffer.wrap(buffer.getBuf(), buffer.getOffset(), buffer.getLength());
    }

    /** Null if there are no bytes. */
    private static org.infinispan.commons.io.ByteBuffer buffer(ByteBuffer bytes,
            org.infinispan.commons.io.ByteBufferFactory buffers) {
        return !bytes.hasRemaining() ? null : buffers.newByteBuffer(
                bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
    }

    static byte[] bytes(org.infinispan.commons.io.ByteBuffer buffer) {
        return buffer == null ? NONE : buffer.trim();
    }
}
