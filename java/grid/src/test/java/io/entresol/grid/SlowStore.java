package io.entresol.grid;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;

/** A store that makes its file once it may. */
public final class SlowStore implements NonBlockingStore<Object, Object> {
    static CountDownLatch starts;
    static CountDownLatch end;
    static Path file;

    static void begin(Path made) {
        starts = new CountDownLatch(1);
        end = new CountDownLatch(1);
        file = made;
    }

    @Override
    public CompletionStage<Void> start(InitializationContext context) {
        return context.getBlockingManager().runBlocking(() -> {
            starts.countDown();
            try {
                end.await();
                Files.createDirectories(file.getParent());
                Files.writeString(file, "");
            } catch (IOException | InterruptedException failure) {
                throw new IllegalStateException(failure);
            }
        }, "slow");
    }

    @Override
    public CompletionStage<Void> stop() {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public Set<Characteristic> characteristics() {
        return EnumSet.of(Characteristic.SEGMENTABLE);
    }

    @Override
    public CompletionStage<MarshallableEntry<Object, Object>> load(int segment, Object key) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Void> write(int segment,
            MarshallableEntry<? extends Object, ? extends Object> entry) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        return CompletableFuture.completedFuture(false);
    }

    @Override
    public CompletionStage<Void> clear() {
        return CompletableFuture.completedFuture(null);
    }
}
