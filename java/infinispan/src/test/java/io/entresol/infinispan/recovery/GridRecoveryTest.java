package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.testng.ITestResult;
import org.testng.annotations.AfterClass;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/**
 * Clusters of three JVMs with two owners for each entry, killed in all ways. A seed ({@code
 * entresol.seed}, printed) chooses what is loaded and when it is cut; {@code entresol.grid.rounds}
 * says how often, and with more than one all orders of starting are tried.
 */
@Test(groups = "unit", testName = "infinispan.GridRecoveryTest")
public class GridRecoveryTest {
    private static final int ROUNDS = Integer.getInteger("entresol.grid.rounds", 1);
    private static final long SEED = Long.getLong("entresol.seed", 7);
    private static final int KEYS = 600;
    private static final List<int[]> ORDERS = List.of(
            new int[] {2, 1, 0}, new int[] {0, 1, 2}, new int[] {2, 0, 1},
            new int[] {1, 2, 0}, new int[] {0, 2, 1}, new int[] {1, 0, 2});

    private String folder;
    private Random random;
    private Grid grid;
    private int generation;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        random = new Random(SEED);
        System.out.println("grid: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
    }

    /** A cluster is left as it was found, so that the next test goes on with it. */
    @BeforeMethod(alwaysRun = true)
    protected void makeGrid() throws Exception {
        if (grid == null) {
            Util.recursiveFileRemove(folder);
            grid = new Grid(Path.of(folder), Grid.Shape.USUAL);
            grid.start(3, 0, 1, 2);
        }
        generation++;
        grid.put(0, 0, KEYS, generation);
    }

    /** What failed leaves nothing to go on with. */
    @AfterMethod(alwaysRun = true)
    protected void removeFailedGrid(ITestResult result) throws Exception {
        if (!result.isSuccess() && grid != null) {
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

    public void aNodeThatIsKilledUnderLoadTakesNothingWithItAndRejoinsWithoutOldEntries()
            throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            load("a" + round, 0, 1);
            grid.kill(2);
            rest(0, 1);
            grid.node(0).tell("await 2");
            grid.check(0, 2, 0, 1);
            grid.remove(0, 0, 100);
            grid.put(1, 100, 200, ++generation);
            grid.start(3, 2);
            grid.check(2, 2, 0, 1, 2);
            grid.check(0, 0);
            grid.put(0, 0, 100, generation);
        }
    }

    public void aClusterThatIsKilledAtOnceUnderLoadComesBackWithEverythingAcknowledged()
            throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            load("c" + round, 0, 1, 2);
            grid.kill(ORDERS.get(random.nextInt(ORDERS.size())));
            grid.start(3, 0, 1, 2);
            for (int node = 0; node < 3; node++) {
                grid.check(node, 0);
            }
            grid.put(0, 0, KEYS, ++generation);
            grid.settle(0);
            grid.check(1, 2, 0, 1, 2);
        }
    }

    public void nodesThatWereKilledOneAfterAnotherComeBackInAnyOrderWithTheNewest()
            throws Exception {
        for (int round = 0; round < (ROUNDS == 1 ? 1 : ORDERS.size()); round++) {
            grid.kill(2);
            // At once, while entries go from node to node.
            grid.remove(0, 0, 100);
            grid.put(1, 100, 300, ++generation);
            grid.node(0).tell("await 2");
            grid.check(0, 2, 0, 1);
            grid.kill(1);
            grid.node(0).tell("degraded");
            grid.kill(0);
            for (int number : ORDERS.get(round)) {
                grid.node(number).launch("10m", "refuse");
                grid.node(number).hear("view");
            }
            grid.awaitServing(3, 0, 1, 2);
            grid.check(0, 2, 0, 1, 2);
            grid.check(1, 0);
            grid.check(2, 0);
            grid.put(0, 0, 100, generation);
        }
    }

    /** The third one is degraded then, and starts its cache again as soon as both are there. */
    public void twoNodesThatWereKilledComeBackInAnyOrderWithTheThird() throws Exception {
        load("t", 1, 2);
        grid.remove(0, 0, 100);
        grid.kill(2, 1);
        comeBackToTheThird(1, 2);
        grid.put(2, 0, KEYS, ++generation);
        grid.settle(2);
        load("u", 1);
        grid.kill(2);
        grid.remove(0, 0, 100);
        grid.put(1, 100, 300, ++generation);
        grid.kill(1);
        comeBackToTheThird(2, 1);
        grid.put(0, 0, 100, generation);
        grid.settle(0);
        grid.check(1, 2, 0, 1, 2);
    }

    private void comeBackToTheThird(int... order) throws Exception {
        grid.node(0).tell("degraded");
        for (int number : order) {
            grid.node(number).launch("10m", "refuse");
            grid.node(number).hear("view");
        }
        grid.awaitServing(3, order);
        grid.node(0).tell("await 3");
        for (int node = 0; node < 3; node++) {
            grid.check(node, 0);
        }
    }

    public void aMemberThatNeverComesBackIsNamedAndCanBeDoneWithout() throws Exception {
        grid.kill(0, 1, 2);
        grid.node(1).launch("10m", "refuse");
        grid.node(1).hear("view");
        grid.node(0).launch("1s", "refuse");
        String said = grid.node(0).hear("refused").toString();
        assertTrue(said.contains("node-2 (") && said.contains("recovery-missing="), said);
        grid.kill(0, 1);
        for (int number = 0; number < 2; number++) {
            grid.node(number).launch("12s", "replicated");
        }
        grid.awaitServing(2, 0, 1);
        grid.check(0, 2, 0, 1);
        grid.remove(0, 0, 100);
        // It comes back after all: the cluster went on without it.
        grid.start(3, 2);
        grid.check(2, 2, 0, 1, 2);
    }

    /** Nodes change keys of their own, until each acknowledged as many as the seed says. */
    private void load(String prefix, int... by) throws Exception {
        for (int number : by) {
            grid.node(number).tell("load " + prefix + number + " " + random.nextLong());
        }
        for (int number : by) {
            grid.node(number).hearAcknowledged(100 + random.nextInt(200));
        }
    }

    private void rest(int... by) throws Exception {
        for (int number : by) {
            grid.node(number).hearAcknowledged(50);
            grid.node(number).tell("rest");
        }
    }
}
