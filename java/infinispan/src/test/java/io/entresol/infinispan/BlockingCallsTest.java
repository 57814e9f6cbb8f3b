package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;

import io.entresol.Store;
import io.entresol.StoreOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.infinispan.commons.ThreadGroups;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** Calls that block Infinispan's threads are found: all other tests rely on that. */
@Test(groups = "unit", testName = "infinispan.BlockingCallsTest")
public class BlockingCallsTest {
    private static final byte[] KEY = {1};

    private String folder;
    private Store store;

    @BeforeClass(alwaysRun = true)
    protected void open() throws IOException {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        Path file = Files.createDirectories(Path.of(folder)).resolve("store");
        store = Store.open(StoreOptions.on(file).capacity(64 << 20));
    }

    @AfterClass(alwaysRun = true)
    protected void close() {
        store.close();
        Util.recursiveFileRemove(folder);
    }

    public void aThreadThatMustNotBlockIsFoundWaitingForTheStore() throws Exception {
        for (Callable<?> waits : new Callable<?>[] {
            () -> store.get(KEY),
            () -> store.put(KEY, KEY),
            () -> {
                store.sync();
                return null;
            },
            () -> Store.open(StoreOptions.on(Path.of(folder, "other")).capacity(64 << 20))}) {
            String end = inNonBlockingThread(waits);
            assertTrue(end.startsWith("the store blocks ") && end.contains("must not block"), end);
            assertEquals(BlockingCalls.taken().getMessage(), end);
        }
        assertNull(BlockingCalls.taken());
    }

    public void aThreadThatWaitsForNobodyIsNotFound() throws Exception {
        String end = inNonBlockingThread(() -> store.getAsync(KEY));
        assertTrue(end.startsWith("returned"), end);
        assertNull(BlockingCalls.taken());
    }

    /** What became of it there. */
    private static String inNonBlockingThread(Callable<?> call) throws Exception {
        FutureTask<String> task = new FutureTask<>(() -> {
            try {
                return "returned " + call.call();
            } catch (AssertionError found) {
                return found.getMessage();
            }
        });
        new Thread(ThreadGroups.NON_BLOCKING_GROUP, task, "must not block").start();
        return task.get();
    }
}
