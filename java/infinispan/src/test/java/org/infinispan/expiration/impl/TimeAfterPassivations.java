package org.infinispan.expiration.impl;

import java.util.function.Supplier;
import org.infinispan.Cache;
import org.infinispan.commons.test.Eventually;
import org.infinispan.commons.time.ControlledTimeService;
import org.infinispan.persistence.manager.PassivationPersistenceManager;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.test.TestingUtil;

/**
 * Time that goes on only when no entry of the cache is on its way to the store: Infinispan counts
 * the keys of such entries even if they have expired meanwhile. Its own store, in memory, has every
 * entry at once, and its tests rely on that.
 */
final class TimeAfterPassivations extends ControlledTimeService {
    private final Supplier<Cache<?, ?>> cache;

    TimeAfterPassivations(Supplier<Cache<?, ?>> cache) {
        this.cache = cache;
    }

    @Override
    public void advance(long milliseconds) {
        Cache<?, ?> present = cache.get();
        if (present != null && TestingUtil.extractComponent(present, PersistenceManager.class)
                instanceof PassivationPersistenceManager passivating) {
            Eventually.eventually("entries are still on their way to the store",
                    () -> passivating.pendingPassivations() == 0);
        }
        super.advance(milliseconds);
    }
}
