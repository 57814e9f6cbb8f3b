package io.entresol.infinispan;

import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.infinispan.recovery.StoreFault;
import io.entresol.infinispan.recovery.Withdrawal;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.statetransfer.OutdatedTopologyException;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * Whether an open store can be relied on. It tells failures of the device from mistakes of callers,
 * and explains them in plain words. For such a failure the node withdraws, if other nodes have its
 * entries.
 */
final class StoreHealth {
    private static final Log LOG = LogFactory.getLog(StoreHealth.class);

    /** How long a removal waits for a queue that does not move. */
    private static final long REMOVAL_SECONDS = 10;

    private final String cache;
    private final String capacity;
    private final Store store;
    private final DeviceFiles files;
    /** Null where no other node can take over. */
    private final Withdrawal withdrawal;
    /** Null where whoever changes something waits for the store. */
    private final Unwritten unwritten;
    private volatile StoreFault lasting;
    /** Why writes are refused, even if it is not the worst that lasts; null: they are not. */
    private volatile StoreFault refusing;
    /** Null where there is room for what is written behind. */
    private volatile Full full;
    private volatile boolean toldFull;
    /** The last that was refused as there was no room, whoever was told. */
    private volatile Full refusedFull;
    /** Why a change that was told as done was not taken last. */
    private volatile StoreFault untaken;
    /** How often something was removed so that others have room. */
    private final AtomicInteger rooms = new AtomicInteger();
    private volatile boolean closing;
    private volatile boolean emptied;
    /** Done with the first look that nobody waits for another after; null until the cache stops. */
    private volatile CompletableFuture<Void> lastLook;

    /** What a failure of an operation tells of the store; empty: nothing. */
    private interface Meaning {
        Optional<StoreFault> of(StoreException failure);
    }

    /** A store that had no room, and what its entries took then. */
    private record Full(StoreFault fault, long liveBytes) {}

    StoreHealth(InitializationContext context, Store store, DeviceFiles files,
            Unwritten unwritten, Withdrawal withdrawal) {
        EntresolStoreConfiguration configuration = context.getConfiguration();
        AsyncStoreConfiguration async = configuration.async();
        this.cache = context.getCache().getName();
        this.capacity = configuration.get(EntresolStoreConfiguration.CAPACITY);
        this.store = store;
        this.files = files;
        this.withdrawal = withdrawal;
        this.unwritten = async.enabled() && !async.failSilently() ? unwritten : null;
    }

    /** The outcome of what was begun, or what its failure means. */
    <T> CompletionStage<T> watched(CompletionStage<T> outcome) {
        CompletableFuture<T> future = outcome.toCompletableFuture();
        return future.isDone() && !future.isCompletedExceptionally() ? outcome
                : outcome.exceptionallyCompose(thrown -> failed(thrown, StoreFault::of));
    }

    /** The same of entries that are dropped. */
    CompletionStage<Void> watchedDrop(CompletionStage<Void> outcome) {
        return outcome.exceptionallyCompose(thrown -> failed(thrown, StoreFault::ofDrop));
    }

    /**
     * The outcome of a change. Where whoever made it was told before, it is tried until the store
     * takes it, or the cache stops.
     */
    <T> CompletionStage<T> changed(Supplier<CompletionStage<T>> change) {
        CompletionStage<T> refusal = refusal();
        return refusal == null ? tried(change, StoreFault::of)
                : unwritten == null ? refusal : unwritten.hold(() -> changed(change));
    }

    /** The same of one that drops entries. */
    CompletionStage<Void> changedByDrop(Supplier<CompletionStage<Void>> drop) {
        return tried(drop, StoreFault::ofDrop);
    }

    private <T> CompletionStage<T> tried(Supplier<CompletionStage<T>> change, Meaning meaning) {
        int before = rooms.get();
        CompletionStage<T> outcome;
        try {
            outcome = change.get();
        } catch (StoreException failure) {
            outcome = CompletableFuture.failedFuture(failure);
        }
        CompletableFuture<T> future = outcome.toCompletableFuture();
        return future.isDone() && !future.isCompletedExceptionally() ? outcome
                : outcome.exceptionallyCompose(thrown -> unwritten == null
                        ? failed(thrown, meaning) : untaken(thrown, change, meaning, before));
    }

    /** Nobody hears of it from whoever made it: see {@link Unwritten}. */
    private <T> CompletionStage<T> untaken(Throwable thrown, Supplier<CompletionStage<T>> change,
            Meaning meaning, int rooms) {
        Throwable cause = cause(thrown);
        if (closing || !(cause instanceof StoreException failure)) {
            return CompletableFuture.failedFuture(cause);
        }
        if (failure.kind() == StoreException.Kind.INVALID) {
            // Each attempt would fail, and keep all that comes after it from being written.
            LOG.errorf("Cache %s: a change that was told as done is not, and never will be: %s",
                    cache, failure.getMessage());
            return CompletableFuture.completedFuture(null);
        }
        if (failure.kind() == StoreException.Kind.FULL && rooms != this.rooms.get()) {
            // Something was removed after it began.
            return tried(change, meaning);
        }
        meaning.of(failure).ifPresent(fault -> takesNone(fault, failure));
        return unwritten.hold(() -> tried(change, meaning)).whenComplete((done, lost) -> {
            if (!unwritten.holdsAny()) {
                full = null;
                toldFull = false;
            }
        });
    }

    private void takesNone(StoreFault fault, StoreException failure) {
        untaken = fault;
        if (!fault.stays()) {
            if (!toldFull && withdrawal == null) {
                toldFull = true;
                LOG.errorf("%s. What was written behind waits for that", sentence(fault));
            }
            full = new Full(fault, store.statistics().liveBytes());
        }
        CompletionStage<Void> refusal =
                told(fault, new PersistenceException(sentence(fault), failure));
        if (fault.kind() != StoreFault.Kind.UNREADABLE) {
            refusal.whenComplete((none, refused) -> unwritten.refuse(cause(refused)));
        }
    }

    /** Why what is written behind could not be written now; null: it could. */
    <T> CompletionStage<T> refusalBehind() {
        CompletionStage<T> refusal = refusalOfAll();
        Full known = full;
        return refusal != null || known == null || hasRoom() ? refusal : refused(known.fault());
    }

    /** The same of removals, which need no room. */
    <T> CompletionStage<T> refusalOfAll() {
        StoreFault known = refusing;
        return unwritten == null || known == null ? null : refused(known);
    }

    /** What waits to be written; null where changes are told as done once they are. */
    Unwritten unwritten() {
        return unwritten;
    }

    /** Whether removals are to make room before those that were made earlier are written. */
    boolean needsRoom() {
        return unwritten != null && refusing == null && unwritten.holdsAny();
    }

    /** Has what waits be written: something was removed, which need not show in figures yet. */
    void makesRoom() {
        rooms.incrementAndGet();
        full = null;
        unwritten.tryAgain();
    }

    /** The same if there is more room than there was. */
    boolean hasRoom() {
        Full known = full;
        if (known != null && store.statistics().liveBytes() >= known.liveBytes()) {
            return false;
        }
        if (known != null) {
            makesRoom();
        }
        return true;
    }

    /** The outcome of a change that is not in the queue yet, which may not move. */
    CompletionStage<Object> queued(CompletableFuture<Object> change) {
        CompletableFuture<Object> told = unwritten.queued(change);
        CompletionStage<Void> refusal = refusalBehind();
        if (refusal != null) {
            refusal.whenComplete((none, failure) -> told.completeExceptionally(cause(failure)));
        }
        return told;
    }

    /** The same of a removal, which may have made the room that it waits for. */
    CompletionStage<Object> queuedRemoval(CompletableFuture<Object> removal) {
        return removal.copy().orTimeout(REMOVAL_SECONDS, TimeUnit.SECONDS)
                .exceptionallyCompose(failure -> {
                    boolean late = cause(failure) instanceof TimeoutException;
                    CompletionStage<Object> refusal = late ? refusalBehind() : null;
                    return refusal != null ? refusal : late ? removal
                            : CompletableFuture.failedFuture(cause(failure));
                });
    }

    private <T> CompletionStage<T> refused(StoreFault fault) {
        // A copy: what is known already is not to be decided again.
        return told(new StoreFault(fault.kind(), fault.what()),
                new PersistenceException(sentence(fault)));
    }

    /** A file that is not there any more takes writes, and loses them: they are refused. */
    private <T> CompletionStage<T> refusal() {
        StoreFault known = lasting;
        return known == null || known.kind() != StoreFault.Kind.REMOVED ? null
                : told(known, new PersistenceException(sentence(known)));
    }

    /** A failure that nobody can be told to try again after. */
    void met(Throwable thrown) {
        failed(thrown, StoreFault::of);
    }

    /**
     * Compares the device with what was opened, and asks whether writes are taken still. Whether
     * the store is available: in a cluster it is even so, for others may need what it has.
     */
    boolean look() {
        if (unwritten != null && refusing == null) {
            hasRoom();
            // Reclaim may have gone on, and what was too much at once is done.
            unwritten.tryAgain();
        }
        boolean available = isAvailable();
        CompletableFuture<Void> last = lastLook;
        if (last == null) {
            return available;
        }
        last.complete(null);
        return true;
    }

    /** The cache is about to stop: what is written behind from now on is tried once. */
    void stops() {
        if (unwritten != null) {
            unwritten.stop();
        }
    }

    /**
     * The cache is about to stop: who waits for the store to be available again is told that it is,
     * and that it refuses. Infinispan is told when it looks next, which is waited for.
     */
    void stopsWaiting(long patienceMillis) {
        CompletableFuture<Void> last = new CompletableFuture<>();
        lastLook = last;
        if (hasFailed()) {
            last.completeOnTimeout(null, patienceMillis, TimeUnit.MILLISECONDS).join();
        }
    }

    private boolean isAvailable() {
        if (lasting == null || lasting.kind() == StoreFault.Kind.UNWRITABLE) {
            files.change().ifPresent(what -> note(new StoreFault(StoreFault.Kind.REMOVED, what)));
        }
        if (lasting == null && store.statistics().poisoned()) {
            note(new StoreFault(StoreFault.Kind.UNWRITABLE, refusalOfWrites()));
        }
        if (withdrawal != null) {
            withdrawal.look();
            return true;
        }
        return lasting == null || lasting.kind() == StoreFault.Kind.UNREADABLE;
    }

    /** What a store that takes no writes says to the next one: what befell it. */
    private String refusalOfWrites() {
        try {
            store.sync();
            return "a write or sync failed";
        } catch (StoreException refused) {
            return refused.getMessage();
        }
    }

    /** Closes the store; one that failed cannot be closed well, and needs not. */
    void close() {
        closing = true;
        if (unwritten != null && unwritten.lost() > 0 && !emptied) {
            tellLost();
        }
        if (withdrawal != null) {
            withdrawal.close();
        }
        try {
            store.close();
        } catch (StoreException failure) {
            if (lasting == null) {
                throw failure;
            }
            LOG.debugf(failure, "The failed store of cache %s was closed", cache);
        }
    }

    private void tellLost() {
        StoreFault fault = lasting != null ? lasting : untaken;
        String why = fault == null ? "too much was under way at once" : sentence(fault);
        if (withdrawal != null && withdrawal.isLeaving()) {
            LOG.infof("Cache %s: %d changes were not written on this node; others have them: %s",
                    cache, unwritten.lost(), why);
        } else {
            LOG.errorf("Cache %s: %d changes that were told as done are lost: %s",
                    cache, unwritten.lost(), why);
        }
    }

    /** What it was opened on, whatever is there now. */
    List<Path> devices() {
        return files.paths();
    }

    /** It was emptied as its cache was removed: nothing of that is lost. */
    void emptied() {
        emptied = true;
    }

    /** It could not be emptied before it is closed: nobody can tell whether it closes well. */
    void endsWith(Throwable thrown) {
        StoreFault found = fault(cause(thrown), StoreFault::ofDrop);
        lasting = lasting == null ? found : lasting;
    }

    boolean hasFailed() {
        return lasting != null;
    }

    /** What is wrong with the store now. */
    Optional<StoreTrouble> trouble() {
        Full known = refusedFull;
        if (known != null && store.statistics().liveBytes() < known.liveBytes()) {
            refusedFull = null;
            known = null;
        }
        StoreFault fault = lasting != null ? lasting : known == null ? null : known.fault();
        return Optional.ofNullable(fault).map(this::trouble);
    }

    @Override
    public String toString() {
        StoreFault known = lasting;
        return known == null ? "entresol-store of cache " + cache + " on " + files
                : sentence(known);
    }

    private <T> CompletionStage<T> failed(Throwable thrown, Meaning meaning) {
        Throwable cause = cause(thrown);
        // What a closed store says of itself is not its device's fault.
        StoreFault fault = closing ? null : fault(cause, meaning);
        return fault == null ? CompletableFuture.failedFuture(cause)
                : told(fault, new PersistenceException(sentence(fault), cause));
    }

    private static Throwable cause(Throwable thrown) {
        return thrown instanceof CompletionException && thrown.getCause() != null
                ? thrown.getCause() : thrown;
    }

    /** Null if it tells nothing of the store. */
    private static StoreFault fault(Throwable cause, Meaning meaning) {
        return cause instanceof StoreException failure
                ? meaning.of(failure).orElse(null) : null;
    }

    private <T> CompletionStage<T> told(StoreFault fault, PersistenceException failure) {
        return note(fault).thenCompose(leaves -> CompletableFuture.failedFuture(
                leaves ? OutdatedTopologyException.RETRY_NEXT_TOPOLOGY : failure));
    }

    /** Whether the node leaves for it. */
    private CompletionStage<Boolean> note(StoreFault fault) {
        boolean first = lasting == null;
        if (!fault.stays() && refusedFull == null) {
            refusedFull = new Full(fault, store.statistics().liveBytes());
        }
        if (fault.kind() == StoreFault.Kind.UNWRITABLE || fault.kind() == StoreFault.Kind.REMOVED) {
            refusing = fault;
        }
        if (fault.stays()) {
            lasting = first || fault.kind().compareTo(lasting.kind()) > 0 ? fault : lasting;
        }
        if (withdrawal != null) {
            return withdrawal.leaves(fault);
        }
        if (first && fault.stays()) {
            LOG.error(sentence(fault));
        }
        return CompletableFuture.completedFuture(false);
    }

    private String sentence(StoreFault fault) {
        StoreTrouble trouble = trouble(fault);
        return "cache " + cache + ": " + trouble.what() + ". " + trouble.next();
    }

    private StoreTrouble trouble(StoreFault fault) {
        String where = "the store on " + files;
        return switch (fault.kind()) {
            case FULL -> new StoreTrouble(where + " (capacity " + capacity
                    + ") is full on this node: " + fault.what(),
                    "Remove entries, or start this node again with a larger capacity");
            case UNWRITABLE -> new StoreTrouble(where + " refuses writes: " + fault.what(),
                    "Replace the device, or mend what made it fail, and start the cache again");
            case REMOVED -> new StoreTrouble(where + " is lost: " + fault.what()
                    + ". What it is given now would not outlive this process, so writes are"
                    + " refused", "Put the device back or replace it, and start the cache again");
            case UNREADABLE -> new StoreTrouble(where + " is damaged: " + fault.what(),
                    "Replace the device; a cluster gives the node its entries again");
        };
    }
}
