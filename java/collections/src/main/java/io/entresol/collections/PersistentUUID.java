package io.entresol.collections;

import java.util.UUID;

/** A UUID that never changes. */
public final class PersistentUUID extends PersistentBox<UUID> {
    static final ObjectType<PersistentUUID> TYPE =
            ObjectType.of(PersistentUUID.class, "most long, least long", PersistentUUID::new);

    private static final long LEAST_AT = HEADER_BYTES + Long.BYTES;

    private PersistentUUID(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes one of that value. */
    public static PersistentUUID of(ObjectHeap objects, UUID value) {
        return TYPE.create(objects, HEADER_BYTES + 2 * Long.BYTES, range -> {
            range.setLong(HEADER_BYTES, value.getMostSignificantBits());
            range.setLong(LEAST_AT, value.getLeastSignificantBits());
        });
    }

    @Override
    public UUID value() {
        return new UUID(block().getLong(HEADER_BYTES), block().getLong(LEAST_AT));
    }
}
