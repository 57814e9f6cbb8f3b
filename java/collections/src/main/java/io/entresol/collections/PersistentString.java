package io.entresol.collections;

import java.nio.charset.StandardCharsets;

/** A text that never changes, in UTF-8. */
public final class PersistentString extends PersistentBox<String> {
    static final ObjectType<PersistentString> TYPE =
            ObjectType.of(PersistentString.class, "value UTF-8", PersistentString::new);

    private PersistentString(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes one of that text. */
    public static PersistentString of(ObjectHeap objects, String value) {
        byte[] bytes = Utf8.bytes(value);
        return TYPE.create(objects, HEADER_BYTES + bytes.length, range -> {
            if (bytes.length > 0) {
                range.copyFromArray(bytes, 0, HEADER_BYTES, bytes.length);
            }
        });
    }

    @Override
    public String value() {
        return new String(getBytes(), StandardCharsets.UTF_8);
    }

    /** The text's bytes in UTF-8. */
    public byte[] getBytes() {
        byte[] bytes = new byte[(int) (block().size() - HEADER_BYTES)];
        if (bytes.length > 0) {
            block().copyToArray(HEADER_BYTES, bytes, 0, bytes.length);
        }
        return bytes;
    }

    /** Characters as Java counts them. */
    public int length() {
        return value().length();
    }
}
