package io.entresol.infinispan;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.commons.marshall.WrappedByteArray;
import org.infinispan.marshall.persistence.impl.MarshallableEntryImpl;
import org.infinispan.metadata.Metadata;
import org.infinispan.metadata.impl.PrivateMetadata;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.PersistenceException;

/**
 * An entry of a cache as the value of an entry on flash: a byte for the form of the value, three
 * times of 8 bytes, three lengths of 4, most significant byte first, and the bytes of the value,
 * its metadata and its internal metadata.
 *
 * @param form the kind of the value's bytes
 * @param created when the entry was made, by the cache's clock
 * @param lastUsed when it was last read or written, by the same clock
 * @param expires when it expires, in milliseconds since 1970; -1: never
 * @param value the value
 * @param metadata its marshalled metadata; empty: none
 * @param internal its marshalled internal metadata; empty: none
 */
record StoredEntry(Form form, long created, long lastUsed, long expires, ByteBuffer value,
        ByteBuffer metadata, ByteBuffer internal) {
    private static final int HEAD_BYTES = 1 + 3 * Long.BYTES + 3 * Integer.BYTES;
    private static final byte[] NONE = new byte[0];

    /** Bytes need no marshaller, which would copy them several times. */
    enum Form {
        /** What the marshaller made of the value. */
        MARSHALLED(1),
        /** A {@link WrappedByteArray}: what servers keep for their clients. */
        WRAPPED(2),
        /** A {@code byte[]}. */
        BYTES(3);

        private final byte code;

        Form(int code) {
            this.code = (byte) code;
        }

        /** Null if there is none. */
        private static Form of(byte code) {
            return code < 1 || code > FORMS.length ? null : FORMS[code - 1];
        }
    }

    private static final Form[] FORMS = Form.values();
    /**
     * The object of an entry's value, which nobody can ask for without having it made of the bytes.
     * Null where an Infinispan has its entries otherwise.
     */
    private static final VarHandle OBJECT = objectOfEntry();

    /** The entry, whose bytes stay where they are. */
    static StoredEntry of(MarshallableEntry<?, ?> entry) {
        if (OBJECT != null && entry instanceof MarshallableEntryImpl
                && OBJECT.get(entry) == null) {
            // Of another store: its value would be made an object, to see what it is.
            return of(Form.MARSHALLED, wrapped(entry.getValueBytes()), entry);
        }
        Object value = entry.getValue();
        if (value instanceof WrappedByteArray bytes) {
            return of(Form.WRAPPED, ByteBuffer.wrap(bytes.getBytes()), entry);
        }
        if (value instanceof byte[] bytes) {
            return of(Form.BYTES, ByteBuffer.wrap(bytes), entry);
        }
        return of(Form.MARSHALLED, wrapped(entry.getValueBytes()), entry);
    }

    private static StoredEntry of(Form form, ByteBuffer value, MarshallableEntry<?, ?> entry) {
        return new StoredEntry(form, entry.created(), entry.lastUsed(), entry.expiryTime(), value,
                wrapped(entry.getMetadataBytes()), wrapped(entry.getInternalMetadataBytes()));
    }

    /** The entry of what a store has, whose bytes stay where they are. */
    static StoredEntry decode(byte[] bytes) {
        ByteBuffer from = ByteBuffer.wrap(bytes);
        Form form = bytes.length < HEAD_BYTES ? null : Form.of(from.get());
        if (form == null) {
            throw new PersistenceException("the device holds a value of " + bytes.length
                    + " bytes that no cache wrote; expected " + HEAD_BYTES
                    + " or more, of form 1 to " + FORMS.length);
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
        return new StoredEntry(form, created, lastUsed, expires, parts[0], parts[1], parts[2]);
    }

    /** What a store gets, one part after another. */
    List<ByteBuffer> encode() {
        ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES).put(form.code)
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

    /** As a cache takes it; marshalled values become objects when they are asked for. */
    <K, V> MarshallableEntry<K, V> toEntry(Object key, MarshallableEntryFactory<K, V> factory,
            org.infinispan.commons.io.ByteBufferFactory buffers, Marshaller marshaller) {
        if (form == Form.MARSHALLED) {
            return factory.create(key, buffer(value, buffers), buffer(metadata, buffers),
                    buffer(internal, buffers), created, lastUsed);
        }
        int from = value.arrayOffset() + value.position();
        byte[] bytes = Arrays.copyOfRange(value.array(), from, from + value.remaining());
        return factory.create(key, form == Form.BYTES ? bytes : new WrappedByteArray(bytes),
                (Metadata) object(metadata, marshaller),
                (PrivateMetadata) object(internal, marshaller), created, lastUsed);
    }

    private static VarHandle objectOfEntry() {
        try {
            return MethodHandles.privateLookupIn(MarshallableEntryImpl.class,
                    MethodHandles.lookup())
                    .findVarHandle(MarshallableEntryImpl.class, "value", Object.class);
        } catch (ReflectiveOperationException otherwise) {
            return null;
        }
    }

    /** Null if there are no bytes. */
    private static Object object(ByteBuffer bytes, Marshaller marshaller) {
        if (!bytes.hasRemaining()) {
            return null;
        }
        try {
            return marshaller.objectFromByteBuffer(bytes.array(),
                    bytes.arrayOffset() + bytes.position(), bytes.remaining());
        } catch (IOException | ClassNotFoundException failure) {
            throw new PersistenceException("cannot unmarshal metadata of " + bytes.remaining()
                    + " bytes", failure);
        }
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

    /** A key as it is on flash. */
    static byte[] marshalled(Object key, Marshaller marshaller) {
        try {
            return bytes(marshaller.objectToBuffer(key));
        } catch (IOException failure) {
            throw new PersistenceException("cannot marshal the key " + key, failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new PersistenceException("interrupted while a key was marshalled", interrupted);
        }
    }

    /** The key of what is on flash. */
    @SuppressWarnings("unchecked")
    static <K> K unmarshalled(byte[] key, Marshaller marshaller) {
        try {
            return (K) marshaller.objectFromByteBuffer(key);
        } catch (IOException | ClassNotFoundException failure) {
            throw new PersistenceException("cannot unmarshal a key of " + key.length
                    + " bytes", failure);
        }
    }

    static byte[] bytes(org.infinispan.commons.io.ByteBuffer buffer) {
        return buffer == null ? NONE : buffer.trim();
    }
}
