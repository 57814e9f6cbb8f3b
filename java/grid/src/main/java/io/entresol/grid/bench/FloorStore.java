package io.entresol.grid.bench;

import java.io.IOException;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.commons.io.ByteBuffer;
import org.infinispan.commons.marshall.WrappedByteArray;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.concurrent.CompletableFutures;
import org.infinispan.marshall.persistence.PersistenceMarshaller;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.NonBlockingStore;

/**
 * A store that costs as little as a store can: marshalled entries in a map, answered at once. A
 * cache over it costs more than one without a store only by the cost that Infinispan has with any
 * store. It is for comparisons only: no entry outlives the process.
 */
public final class FloorStore<K, V> implements NonBlockingStore<K, V> {
    private final Map<WrappedByteArray, Stored> entries = new ConcurrentHashMap<>();
    private MarshallableEntryFactory<K, V> factory;
    private PersistenceMarshaller marshaller;

    private record Stored(ByteBuffer key, ByteBuffer value, ByteBuffer metadata,
            ByteBuffer internal, long created, long lastUsed) {
    }

    /** As Infinispan makes it. */
    public FloorStore() {}

    @Override
    public CompletionStage<Void> start(InitializationContext context) {
        factory = context.getMarshallableEntryFactory();
        marshaller = context.getPersistenceMarshaller();
        return CompletableFutures.completedNull();
    }

    @Override
    public CompletionStage<Void> stop() {
        return CompletableFutures.completedNull();
    }

    @Override
    public Set<Characteristic> characteristics() {
        // Infinispan takes some out.
        return EnumSet.of(Characteristic.SEGMENTABLE);
    }

    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        try {
            Stored found = entries.get(wrapped(marshaller.objectToBuffer(key)));
            return CompletableFuture.completedFuture(found == null ? null
                    : factory.create(found.key, found.value, found.metadata, found.internal,
                            found.created, found.lastUsed));
        } catch (IOException | InterruptedException failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }

    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> e) {
        entries.put(wrapped(e.getKeyBytes()), new Stored(e.getKeyBytes(), e.getValueBytes(),
                e.getMetadataBytes(), e.getInternalMetadataBytes(), e.created(), e.lastUsed()));
        return CompletableFutures.completedNull();
    }

    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        try {
            boolean gone = entries.remove(wrapped(marshaller.objectToBuffer(key))) != null;
            return CompletableFutures.booleanStage(gone);
        } catch (IOException | InterruptedException failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }

    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        return CompletableFutures.completedNull();
    }

    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        return CompletableFutures.completedNull();
    }

    @Override
    public CompletionStage<Void> clear() {
        entries.clear();
        return CompletableFutures.completedNull();
    }

    private static WrappedByteArray wrapped(ByteBuffer bytes) {
        return new WrappedByteArray(bytes.copy().getBuf());
    }
}
