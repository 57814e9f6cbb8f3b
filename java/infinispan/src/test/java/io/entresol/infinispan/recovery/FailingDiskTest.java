package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.testng.ITestResult;
import org.testng.annotations.AfterClass;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

/**
 * Clusters of three JVMs with two owners for each entry; the device of one of them fails. That node
 * has to report it and give up its entries, while the others answer and take over everything.
 */
@Test(groups = "unit", testName = "infinispan.FailingDiskTest")
public class FailingDiskTest {
    private static final long SEED = Long.getLong("entresol.seed", 7);
    private static final int KEYS = 500;
    private static final int FEW_KEYS = 100;
    /** So that a node's write buffers, of 16 MiB, hold some of its entries only. */
    private static final int VALUE_BYTES = 48_000;
    private static final int LARGE_BYTES = 1 << 20;
    /** A full store takes writes again once reclaim made room, which needs some of them. */
    private static final int ATTEMPTS = 1_000;
    /** Before it are the superblocks. */
    private static final long SUPERBLOCKS_BYTES = 1 << 20;

    private String folder;
    private Random random;
    private Grid grid;
    private int generation;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        random = new Random(SEED);
        System.out.println("failing disks: -Dentresol.seed=" + SEED);
    }

    /** What failed leaves nothing to go on with. */
    @AfterMethod(alwaysRun = true)
    protected void removeFailedGrid(ITestResult result) throws Exception {
        if (!result.isSuccess()) {
            removeGrid();
        }
    }

    @AfterClass(alwaysRun = true)
    protected void removeGrid() throws Exception {
        if (grid != null) {
            grid.close();
            grid = null;
        }
        Util.recursiveFileRemove(folder);
    }

    @DataProvider
    public Object[][] recoveries() {
        return new Object[][] {{false}, {true}};
    }

    @Test(dataProvider = "recoveries")
    public void aNodeWhoseDeviceFailsStopsOwningWhileTheOthersGoOnAndJoinsAsNew(boolean recovers)
            throws Exception {
        makeGrid(recovers, VALUE_BYTES, "96MiB", "96MiB", "96MiB");
        writesFail();
        theFileIsRemoved();
        entriesAreDamaged();
    }

    private void writesFail() throws Exception {
        grid.put(0, 0, FEW_KEYS, ++generation);
        load();
        limitFiles(2, "" + SUPERBLOCKS_BYTES);
        withdrew(2, "File too large");
        goOnWithout(2, 0, 1);
        limitFiles(2, "unlimited");
        // On the store as it is, which could not take a word of what happened.
        comeBack(2, 0, 1);
    }

    private void theFileIsRemoved() throws Exception {
        grid.put(0, 0, FEW_KEYS, ++generation);
        Files.delete(grid.node(0).store());
        withdrew(0, "is gone");
        goOnWithout(0, 1, 2);
        Files.write(grid.node(0).store(), new byte[1 << 20]);
        String said = grid.node(0).tell("start").toString();
        assertTrue(said.contains("start failed") && said.contains(grid.node(0).store().toString())
                && said.contains("ask for less, or for a new file"), said);
        grid.put(1, 50, 60, ++generation);
        Files.delete(grid.node(0).store());
        comeBack(0, 1, 2);
    }

    private void entriesAreDamaged() throws Exception {
        grid.put(0, 0, KEYS, ++generation);
        load();
        damage(1, SUPERBLOCKS_BYTES, Long.MAX_VALUE);
        // Whoever meets the damage is given the other owner's.
        grid.get(0, 0, KEYS);
        grid.get(2, 0, KEYS);
        withdrew(1, "does not verify");
        goOnWithout(1, 0, 2);
        Files.delete(grid.node(1).store());
        comeBack(1, 0, 2);
    }

    public void aNodeThatIsFullStopsOwningWhereTheOthersHaveRoom() throws Exception {
        // Each of the others' two shards has room for all, were a key's hash always the same one's.
        makeGrid(false, LARGE_BYTES, "256MiB", "256MiB", "40MiB");
        // Each of them is acknowledged.
        grid.put(0, 0, 70, ++generation);
        withdrew(2, "is full");
        grid.node(0).tell("await 2");
        grid.check(0, 2, 0, 1);
        grid.put(1, 60, 80, ++generation);
        grid.check(1, 2, 0, 1);
    }

    public void aNodeThatIsFullServesReadsAndRefusesWritesWhereTheOthersAreFullToo()
            throws Exception {
        makeGrid(false, LARGE_BYTES, "40MiB", "40MiB", "40MiB");
        String said = grid.attempt(0, 0, 200, ++generation);
        assertTrue(said.contains("cache grid") && said.contains("capacity 40MiB")
                && said.contains("full on this node") && said.contains("Remove entries"), said);
        for (int node = 0; node < 3; node++) {
            grid.node(node).tell("await 3");
            grid.check(node, 0);
            assertFalse(grid.node(node).said().contains("stops owning"), "node " + node);
        }
        grid.remove(1, 0, 20);
        for (int attempt = 0; attempt < ATTEMPTS && !said.isEmpty(); attempt++) {
            said = grid.attempt(0, 0, 5, ++generation);
        }
        assertEquals(said, "", "refused after entries were removed");
        grid.check(2, 0);
    }

    private void load() throws Exception {
        grid.node(0).tell("load a " + random.nextLong());
        grid.node(0).hearAcknowledged(30);
    }

    /** The node says so, once, and has left. */
    private void withdrew(int node, String why) throws Exception {
        String reason = grid.node(node).tell("withdrawn").toString();
        assertTrue(reason.contains(grid.node(node).store().toString()) && reason.contains(why),
                reason);
    }

    /** One of the others is asked for all, the other one for its copies. */
    private void goOnWithout(int node, int by, int with) throws Exception {
        if (grid.node(by).isLoading()) {
            grid.node(by).hearAcknowledged(30);
            grid.node(by).tell("rest");
        }
        grid.node(by).tell("await 2");
        grid.check(by, 2, by, with);
        grid.remove(with, 0, 30);
        grid.put(by, 30, 60, ++generation);
        grid.check(with, 2, by, with);
    }

    private void comeBack(int node, int by, int with) throws Exception {
        List<String> said = grid.node(node).tell("start");
        assertTrue(said.contains("started"), said.toString());
        grid.node(by).tell("await 3");
        grid.check(node, 2, by, with, node);
        grid.check(with, 0);
    }

    /** From outside: noise over all that the file has there. */
    private void damage(int node, long from, long to) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(
                grid.node(node).store().toFile(), "rw")) {
            byte[] noise = new byte[1 << 20];
            file.seek(from);
            for (long left = Math.min(to, file.length()) - from; left > 0; left -= noise.length) {
                random.nextBytes(noise);
                file.write(noise, 0, (int) Math.min(left, noise.length));
            }
        }
    }

    private void makeGrid(boolean recovers, int valueBytes, String... capacities) throws Exception {
        removeGrid();
        grid = new Grid(Path.of(folder),
                new Grid.Shape(recovers, valueBytes, List.of(capacities)));
        grid.start(3, 0, 1, 2);
    }

    /** From outside, as a file system that has no room for a file's next bytes. */
    private void limitFiles(int node, String bytes) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid", "" + grid.node(node).pid(),
                "--fsize=" + bytes + ":unlimited").inheritIO().start();
        assertEquals(limit.waitFor(), 0, "prlimit");
    }
}
