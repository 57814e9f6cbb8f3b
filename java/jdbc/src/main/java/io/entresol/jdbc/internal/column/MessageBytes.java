package io.entresol.jdbc.internal.column;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.infinispan.protostream.descriptors.FieldDescriptor;

/**
 * Messages in the encoding of protocol buffers, changed field by field: all other fields stay as
 * they are, even fields that the schema does not know.
 */
final class MessageBytes {
    private static final int VARINT = 0;
    private static final int FIXED64 = 1;
    private static final int DELIMITED = 2;
    private static final int FIXED32 = 5;

    private MessageBytes() {}

    /** The message with its changes. */
    static byte[] edited(byte[] message, Changes changes) {
        Output output = new Output();
        // A message that is there twice means the second merged into the first: so does appending.
        Map<Integer, Output> inner = new TreeMap<>();
        Input input = new Input(message);
        while (input.position < message.length) {
            int start = input.position;
            long tag = input.varint();
            int number = (int) (tag >>> 3);
            int body = input.skip((int) tag & 7);
            if (changes.inner.containsKey(number)) {
                inner.computeIfAbsent(number, any -> new Output())
                        .raw(message, body, input.position);
            } else if (!changes.fields.containsKey(number)) {
                output.raw(message, start, input.position);
            }
        }
        changes.fields.forEach((number, encoded) -> output.raw(encoded, 0, encoded.length));
        changes.inner.forEach((number, nested) -> {
            Output old = inner.get(number);
            byte[] merged = edited(old == null ? new byte[0] : old.toByteArray(), nested);
            if (old != null || merged.length > 0) {
                output.bytes(number, merged);
            }
        });
        return output.toByteArray();
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** New values of fields, those of messages inside of others among them. */
    static final class Changes {
        private final Map<Integer, byte[]> fields = new TreeMap<>();
        private final Map<Integer, Changes> inner = new TreeMap<>();

        /** Sets the field at the end of a path; null takes it away. */
        void set(List<FieldDescriptor> path, Object value) {
            FieldDescriptor first = path.get(0);
            if (path.size() > 1) {
                inner.computeIfAbsent(first.getNumber(), any -> new Changes())
                        .set(path.subList(1, path.size()), value);
                return;
            }
            Output encoded = new Output();
            if (value != null) {
                encoded.field(first, value);
            }
            fields.put(first.getNumber(), encoded.toByteArray());
        }
    }

    /** A message that is being written. */
    static final class Output {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        void varint(int number, long value) {
            tag(number, VARINT);
            varint(value);
        }

        void bytes(int number, byte[] value) {
            tag(number, DELIMITED);
            varint(value.length);
            raw(value, 0, value.length);
        }

        byte[] toByteArray() {
            return bytes.toByteArray();
        }

        void raw(byte[] from, int start, int end) {
            bytes.write(from, start, end - start);
        }

        void field(FieldDescriptor field, Object value) {
            int number = field.getNumber();
            switch (field.getType()) {
                case BOOL -> varint(number, (Boolean) value ? 1 : 0);
                case INT32, INT64, ENUM -> varint(number, ((Number) value).longValue());
                case UINT32 -> varint(number, Integer.toUnsignedLong((Integer) value));
                case UINT64 -> varint(number, (Long) value);
                case SINT32 -> varint(number, zigzag((Integer) value) & 0xffff_ffffL);
                case SINT64 -> varint(number, zigzag((Long) value));
                case FIXED32, SFIXED32 -> fixed(number, FIXED32, (Integer) value, 4);
                case FIXED64, SFIXED64 -> fixed(number, FIXED64, (Long) value, 8);
                case FLOAT -> fixed(number, FIXED32, Float.floatToRawIntBits((Float) value), 4);
                case DOUBLE ->
                        fixed(number, FIXED64, Double.doubleToRawLongBits((Double) value), 8);
                case STRING -> bytes(number, utf8((String) value));
                case BYTES -> bytes(number, (byte[]) value);
                default -> throw new IllegalArgumentException("field " + field.getFullName()
                        + " has the type " + field.getTypeName() + ", which SQL cannot write");
            }
        }

        private static long zigzag(long value) {
            return value << 1 ^ value >> 63;
        }

        private void fixed(int number, int kind, long value, int length) {
            tag(number, kind);
            for (int place = 0; place < length; place++) {
                bytes.write((int) (value >>> 8 * place));
            }
        }

        private void tag(int number, int kind) {
            varint((long) number << 3 | kind);
        }

        private void varint(long value) {
            long rest = value;
            while ((rest & ~0x7fL) != 0) {
                bytes.write((int) (rest & 0x7f | 0x80));
                rest >>>= 7;
            }
            bytes.write((int) rest);
        }
    }

    /** A message that is being read. */
    private static final class Input {
        private final byte[] bytes;
        private int position;

        Input(byte[] bytes) {
            this.bytes = bytes;
        }

        long varint() {
            long value = 0;
            for (int shift = 0; shift < 64; shift += 7) {
                byte next = bytes[need(1)];
                value |= (long) (next & 0x7f) << shift;
                if (next >= 0) {
                    return value;
                }
            }
            throw damaged();
        }

        /** Goes past a field's value; where its content begins. */
        int skip(int kind) {
            int start = position;
            switch (kind) {
                case VARINT -> varint();
                case FIXED64 -> need(8);
                case FIXED32 -> need(4);
                case DELIMITED -> {
                    long length = varint();
                    start = position;
                    if (length < 0 || length > bytes.length) {
                        throw damaged();
                    }
                    need((int) length);
                }
                default -> throw damaged();
            }
            return start;
        }

        private int need(int count) {
            int start = position;
            if (count > bytes.length - start) {
                throw damaged();
            }
            position += count;
            return start;
        }

        private IllegalArgumentException damaged() {
            return new IllegalArgumentException("a message of " + bytes.length
                    + " bytes cannot be read at byte " + position);
        }
    }
}
