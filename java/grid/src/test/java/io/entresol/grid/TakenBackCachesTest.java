package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.CustomStoreConfigurationBuilder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.manager.DefaultCacheManager;
import org.junit.jupiter.api.Test;

/** Deployments that are undone. */
class TakenBackCachesTest extends SavingContainer {
    /** A cache that does not start stayed among the deployed, and its name was taken. */
    @Test
    void aCacheThatIsTakenBackLeavesNothingButWhatWasThereBefore() throws Exception {
        Path former = folder.resolve("first/entresol/entresol.data");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", stored()).put("key", "value");
        }
        Files.delete(folder.resolve("caches.xml"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            takeBack(manager, "first", stored());
            assertTrue(Files.exists(former), "the entries of the former cache are gone");
            takeBack(manager, "second", stored());
            assertFalse(Files.exists(folder.resolve("second/entresol/entresol.data")));
            assertEquals("value", manager.administration().createCache("first", stored())
                    .get("key"));
            // What was deployed in between is nobody's any more.
            manager.administration().removeCache("first");
            takeBack(manager, "first", stored());
            manager.administration().createCache("second", configuration());
            assertEquals(List.of("second"), saved());
        }
    }

    /** It had made nothing when the deployment was undone, and kept the file that it made then. */
    @Test
    void aCacheThatIsTakenBackWhileItIsMadeLeavesNothing() throws Exception {
        ConfigurationBuilder slow = new ConfigurationBuilder();
        slow.persistence().addStore(CustomStoreConfigurationBuilder.class)
                .customStoreClass(SlowStore.class);
        SlowStore.begin(folder.resolve("first/entresol/entresol.data"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            CompletableFuture<Void> making = CompletableFuture.runAsync(() ->
                    manager.administration().createCache("first", slow.build()));
            SlowStore.starts.await();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            assertTrue(deployed.isMaking("first"));
            deployed.withdraw("first", deployed.attempt("first"));
            SlowStore.end.countDown();
            making.handle((made, failure) -> null).join();
            manager.administration().removeCache("first");
            assertFalse(manager.isRunning("first"));
            assertFalse(deployed.isMaking("first"));
            assertFalse(Files.exists(SlowStore.file), "the file of its store is there");
            assertEquals(List.of(), saved());
            manager.administration().createCache("first", configuration());
            assertEquals(List.of("first"), saved());
        }
    }

    /** One that a request by REST or the console made stayed deployed, and its name was taken. */
    @Test
    void aCacheThatCannotBeMadeIsTakenBackWithoutBeingAsked() throws Exception {
        ConfigurationBuilder lacking = new ConfigurationBuilder();
        lacking.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .devices(folder.resolve("missing/device").toString());
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertThrows(RuntimeException.class, () ->
                    manager.administration().createCache("first", lacking.build()));
            TestGrid.await(() -> manager.getCacheConfiguration("first") == null
                    && state(manager).isEmpty(), "the cache was not taken back");
            assertTrue(DeployedCaches.of(manager).orElseThrow().failed("first"));
            assertEquals(List.of(), saved());
            manager.administration().createCache("first", configuration()).put("key", "value");
            assertFalse(DeployedCaches.of(manager).orElseThrow().failed("first"));
            assertEquals(List.of("first"), saved());
        }
    }

    /** A slow node that came to its undo of the former one took the new one back. */
    @Test
    void aNameThatIsDeployedAgainIsLeftAloneByTheUndoOfItsFormerDeployment() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            manager.administration().createCache("first", configuration());
            String former = deployed.attempt("first");
            manager.administration().removeCache("first");
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
            manager.administration().createCache("first", configuration()).put("key", "value");
            deployed.withdraw("first", former);
            assertTrue(manager.isRunning("first"), "the new one was taken back");
            deployed.forget("first", former);
            assertEquals("value", manager.getCache("first", false).get("key"));
            assertEquals(List.of("first"), saved());
            deployed.withdraw("first", deployed.attempt("first"));
            deployed.forget("first", deployed.attempt("first"));
            assertFalse(manager.cacheExists("first"));
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
        }
    }

    /**
     * All nodes take a cache back, and whoever deployed it: those behind the first gave up waiting
     * for the lock, and the deployment said that the cache could not be taken back.
     */
    @Test
    void aCacheIsForgottenOnceNobodyElseMakesOrRemovesIt() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", configuration());
            CountDownLatch taken = new CountDownLatch(1);
            CountDownLatch end = new CountDownLatch(1);
            CompletableFuture<Void> other = CompletableFuture.runAsync(() ->
                    state(manager).computeIfPresent(cache("first"), (key, state) -> {
                        taken.countDown();
                        join(end);
                        return state;
                    }));
            taken.await();
            AtomicReference<Boolean> asked = new AtomicReference<>();
            Thread forgetting = new Thread(() -> Undo.forget(manager, "first", () -> {
                asked.set(end.getCount() == 0);
                return true;
            }));
            forgetting.start();
            TestGrid.await(() -> asked.get() != null
                    || forgetting.getState() == Thread.State.TIMED_WAITING
                    || forgetting.getState() == Thread.State.WAITING, "nobody forgets it");
            end.countDown();
            other.join();
            forgetting.join();
            assertEquals(true, asked.get(), "it was to be forgotten while it was being changed");
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
        }
    }

    private static void join(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static Cache<ScopedState, Object> state(DefaultCacheManager manager) {
        return GlobalComponentRegistry.componentOf(manager, GlobalConfigurationManager.class)
                .getStateCache();
    }

    private static ScopedState cache(String name) {
        return new ScopedState(GlobalConfigurationManagerImpl.CACHE_SCOPE, name);
    }

    private static void takeBack(DefaultCacheManager manager, String name,
            Configuration configuration) {
        manager.administration().createCache(name, configuration);
        DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
        deployed.withdraw(name, deployed.attempt(name));
        assertFalse(manager.isRunning(name));
        manager.administration().removeCache(name);
        assertFalse(manager.cacheExists(name));
    }
}
