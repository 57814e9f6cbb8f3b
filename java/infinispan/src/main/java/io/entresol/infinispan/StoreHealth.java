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
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.statetransfer.OutdatedTopologyException;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * Whether an open store can be relied on. It tells failures of the device from those of callers,
 * says in a person's words what they mean, and has the node withdraw for them where others have
 * what it owns.
 */
final class StoreHealth {
    private static final Log LOG = LogFactory.getLog(StoreHealth.class);

    private final String cache;
    private final String capacity;
    private final Store store;
    private final DeviceFiles files;
    /** Null where no other node can take over. */
    private final Withdrawal withdrawal;
    private volatile StoreFault lasting;
    private volatile boolean closing;
    /** Done with the first look that nobody waits for another after; null until the cache stops. */
    private volatile CompletableFuture<Void> lastLook;

    /** What a failure of an operation tells of the store; empty: nothing. */
    private interface Meaning {
        Optional<StoreFault> of(StoreException failure);
    }

    StoreHealth(String cache, String capacity, Store store, DeviceFiles files,
            Withdrawal withdrawal) {
        this.cache = cache;
        this.capacity = capacity;
        this.store = store;
        this.files = files;
        this.withdrawal = withdrawal;
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

    /** A file that is not there any more takes writes, and loses them: they are refused. */
    <T> CompletionStage<T> refusal() {
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
        boolean available = isAvailable();
        CompletableFuture<Void> last = lastLook;
        if (last == null) {
            return available;
        }
        last.complete(null);
        return true;
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

    /** What it was opened on, whatever is there now. */
    List<Path> devices() {
        return files.paths();
    }

    /** It could not be emptied before it is closed: nobody can tell whether it closes well. */
    void endsWith(Throwable thrown) {
        StoreFault found = fault(cause(thrown), StoreFault::ofDrop);
        lasting = lasting == null ? found : lasting;
    }

    boolean hasFailed() {
        return lasting != null;
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
        String where = "cache " + cache + ": the store on " + files;
        return switch (fault.kind()) {
            case FULL -> where + " (capacity " + capacity + ") is full on this node: "
                    + fault.what() + ". Remove entries, or start this node again with a larger capacity";
            case UNWRITABLE -> where + " refuses writes: " + fault.what()
                    + ". Replace the device, or mend what made it fail, and start the cache again";
            case REMOVED -> where + " is lost: " + fault.what()
                    + ". What it is given now would not outlive this process, so writes are"
                    + " refused. Put the device back or replace it, and start the cache again";
            case UNREADABLE -> where + " is damaged: " + fault.what()
                    + ". Replace the device; a cluster gives the node its entries again";
        };
    }
}
