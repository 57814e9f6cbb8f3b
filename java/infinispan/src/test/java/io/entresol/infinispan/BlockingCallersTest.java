package io.entresol.infinispan;

import static org.testng.AssertJUnit.assertEquals;
import static org.testng.AssertJUnit.assertFalse;
import static org.testng.AssertJUnit.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
import org.infinispan.commons.executors.NonBlockingResource;
import org.testng.annotations.Test;

/** Threads count as waiting if they wait, and no others do. */
@Test(groups = "unit", testName = "infinispan.BlockingCallersTest")
public class BlockingCallersTest {
    private static final int ENOUGH = 20;

    private final BlockingCallers callers = new BlockingCallers();

    /** Infinispan's threads that must not wait are known by their group. */
    private static final class Group extends ThreadGroup implements NonBlockingResource {
        Group() {
            super("threads that must not wait");
        }
    }

    /** A load of the calling thread that another one ends once the caller waits for it. */
    private void loadAndWait() {
        CompletableFuture<Void> load = begin();
        Thread caller = Thread.currentThread();
        Thread ending = new Thread(() -> {
            while (LockSupport.getBlocker(caller) == null) {
                Thread.onSpinWait();
            }
            end(load, caller);
        });
        ending.start();
        load.join();
    }

    private CompletableFuture<Void> begin() {
        callers.begins();
        return new CompletableFuture<>();
    }

    private void end(CompletableFuture<Void> load, Thread caller) {
        callers.ends(caller);
        load.complete(null);
    }

    /** Runs in a thread of its own. */
    private static <T> T in(ThreadGroup group, java.util.concurrent.Callable<T> task) {
        FutureTask<T> result = new FutureTask<>(task);
        new Thread(group, result).start();
        try {
            return result.get();
        } catch (InterruptedException | java.util.concurrent.ExecutionException failure) {
            throw new AssertionError(failure);
        }
    }

    public void aThreadThatWaitsForEachLoadIsKnownAndLookedAtNowAndThen() {
        in(null, () -> {
            assertFalse(callers.waits());
            for (int load = 0; load < ENOUGH; load++) {
                loadAndWait();
            }
            int waits = 0;
            for (int load = 0; load < 640; load++) {
                if (callers.waits()) {
                    waits++;
                } else {
                    loadAndWait();
                }
            }
            assertEquals(630, waits);
            return null;
        });
    }

    public void aThreadThatDoesSomethingElseMeanwhileIsNotKnownAnyMore() {
        in(null, () -> {
            for (int load = 0; load < ENOUGH; load++) {
                loadAndWait();
            }
            assertTrue(callers.waits());
            CompletableFuture<Void> load = begin();
            Thread caller = Thread.currentThread();
            in(null, () -> {
                end(load, caller);
                return null;
            });
            assertFalse(callers.waits());
            return null;
        });
    }

    public void aThreadWithSeveralLoadsUnderWayDoesNotWait() {
        in(null, () -> {
            for (int load = 0; load < ENOUGH; load++) {
                loadAndWait();
            }
            List<CompletableFuture<Void>> loads = new ArrayList<>();
            for (int load = 0; load < ENOUGH; load++) {
                assertFalse(callers.waits() && load > 0);
                loads.add(begin());
            }
            Thread caller = Thread.currentThread();
            new Thread(() -> {
                while (LockSupport.getBlocker(caller) == null) {
                    Thread.onSpinWait();
                }
                loads.subList(0, loads.size() - 1).forEach(load -> end(load, caller));
                end(loads.get(loads.size() - 1), caller);
            }).start();
            loads.get(loads.size() - 1).join();
            return null;
        });
    }

    public void threadsThatMustNotWaitAreNeverAsked() {
        in(new Group(), () -> {
            for (int load = 0; load < ENOUGH; load++) {
                assertFalse(callers.waits());
                loadAndWait();
            }
            assertFalse(callers.waits());
            return null;
        });
    }

    public void aLoadThatEndsInItsOwnThreadTellsNothing() {
        in(null, () -> {
            for (int load = 0; load < ENOUGH; load++) {
                loadAndWait();
            }
            end(begin(), Thread.currentThread());
            assertTrue(callers.waits());
            return null;
        });
    }
}
