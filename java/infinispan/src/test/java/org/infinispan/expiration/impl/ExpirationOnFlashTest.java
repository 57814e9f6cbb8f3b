package org.infinispan.expiration.impl;

import org.infinispan.configuration.cache.CacheMode;
import org.testng.annotations.Factory;
import org.testng.annotations.Test;

/** {@code ExpirationStoreFunctionalTest} with a store that takes its time. */
@Test(groups = "functional", testName = "expiration.impl.ExpirationOnFlashTest")
public class ExpirationOnFlashTest extends ExpirationStoreFunctionalTest {
    public ExpirationOnFlashTest() {
        timeService = new TimeAfterPassivations(() -> cache);
    }

    @Factory
    @Override
    public Object[] factory() {
        return new Object[] {
            new ExpirationOnFlashTest().passivation(true).cacheMode(CacheMode.LOCAL),
            new ExpirationOnFlashTest().passivation(false).cacheMode(CacheMode.LOCAL),
        };
    }
}
