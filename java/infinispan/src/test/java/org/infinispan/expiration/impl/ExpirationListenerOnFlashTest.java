package org.infinispan.expiration.impl;

import org.infinispan.configuration.cache.CacheMode;
import org.testng.annotations.Factory;
import org.testng.annotations.Test;

/** {@code ExpirationStoreListenerFunctionalTest} with a store that takes its time. */
@Test(groups = "functional", testName = "expiration.impl.ExpirationListenerOnFlashTest")
public class ExpirationListenerOnFlashTest extends ExpirationStoreListenerFunctionalTest {
    public ExpirationListenerOnFlashTest() {
        timeService = new TimeAfterPassivations(() -> cache);
    }

    @Factory
    @Override
    public Object[] factory() {
        return new Object[] {new ExpirationListenerOnFlashTest().cacheMode(CacheMode.LOCAL)};
    }
}
