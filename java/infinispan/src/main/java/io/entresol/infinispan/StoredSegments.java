package io.entresol.infinispan;

import io.entresol.Durability;
import io.entresol.Entries;
import io.entresol.PutOptions;
import io.entresol.StoreException;
import java.nio.charset.StandardCharsets;
import org.infinispan.configuration.cache.HashConfiguration;
import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * A note in a store that says how its entries are divided into segments. The store counts, scans
 * and drops by segments, and keeps each key in one for good. A cache with another division would
 * count, iterate over and send to other nodes only the entries in segments that it also has.
 */
final class StoredSegments {
    private static final Log LOG = LogFactory.getLog(StoredSegments.class);
    private static final byte[] KEY = "segments".getBytes(StandardCharsets.US_ASCII);

    private StoredSegments() {
    }

    /**
     * Throws if there are entries in other segments than the cache has. A store of entries that has
     * no note was not closed since it got them, or is of a version that made none.
     *
     * @param own what the store keeps for itself
     */
    static void check(InitializationContext context, StorePlace place, Entries entries,
            Entries own) {
        StoreConfiguration store = context.getConfiguration();
        String now = text(context);
        try {
            byte[] note = own.get(KEY);
            String was = note == null ? now : new String(note, StandardCharsets.UTF_8);
            if (was.equals(now)) {
                note(context, entries, own);
            } else if (entries.count() > 0 && !store.purgeOnStartup()) {
                throw new PersistenceException("cache " + context.getCache().getName()
                        + ": the store on " + place + " has entries in " + was
                        + ", and the cache has " + now + ". Configure it as it was, or, if nothing"
                        + " on it is wanted, " + place.emptying() + " and start the cache again");
            } else {
                write(own, now);
            }
        } catch (StoreException failure) {
            // Whoever puts or gets an entry is told, where that fails, too.
            LOG.debugf(failure, "The segments of the store on %s could not be noted", place);
        }
    }

    /** Notes those of a store that is about to be closed. */
    static void leave(InitializationContext context, Entries entries, Entries own) {
        try {
            note(context, entries, own);
        } catch (StoreException failure) {
            LOG.debugf(failure, "Cache %s: the segments of its store could not be noted",
                    context.getCache().getName());
        }
    }

    /** If it has entries, and no note yet. */
    private static void note(InitializationContext context, Entries entries, Entries own) {
        StoreConfiguration store = context.getConfiguration();
        if (entries.count() > 0 && !store.ignoreModifications() && own.get(KEY) == null) {
            write(own, text(context));
        }
    }

    private static void write(Entries own, String segments) {
        own.put(KEY, segments.getBytes(StandardCharsets.UTF_8),
                PutOptions.DEFAULT.durability(Durability.SYNCED));
    }

    /** Partitioners that have no name of their own have another one each time. */
    private static String text(InitializationContext context) {
        StoreConfiguration store = context.getConfiguration();
        HashConfiguration hash = context.getCache().getCacheConfiguration().clustering().hash();
        if (!store.segmented()) {
            return "no segments (segmented=\"false\")";
        }
        Class<?> partitioner = hash.keyPartitioner().getClass();
        boolean isNamed = !partitioner.isHidden() && !partitioner.isAnonymousClass();
        return hash.numSegments() + " segments"
                + (isNamed ? " of " + partitioner.getSimpleName() : "");
    }
}
