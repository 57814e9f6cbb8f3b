package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.testng.annotations.Test;

/** When a node whose store fails may leave, tested on the function alone. */
@Test(groups = "unit", testName = "infinispan.DepartureTest")
public class DepartureTest {
    private static final StoreFault DAMAGED =
            new StoreFault(StoreFault.Kind.UNREADABLE, "damaged");
    private static final StoreFault FULL = new StoreFault(StoreFault.Kind.FULL, "full");
    private static final List<List<String>> TWO_OWNERS =
            List.of(List.of("a", "b"), List.of("b", "c"), List.of("c", "a"));

    private static StoreReport sound(long capacity, long live) {
        return new StoreReport(true, capacity, live);
    }

    private static StoreReport failing(long capacity, long live) {
        return new StoreReport(false, capacity, live);
    }

    private static Optional<String> obstacle(StoreFault fault, List<List<String>> owners,
            Map<String, StoreReport> stores) {
        return new Departure<>("a", owners, stores).obstacle(fault);
    }

    public void aNodeLeavesWhatOthersHave() {
        assertEquals(obstacle(DAMAGED, TWO_OWNERS, Map.of("a", failing(100, 50),
                "b", sound(100, 99), "c", sound(100, 99))), Optional.empty());
    }

    public void aNodeStaysWithWhatOnlyItHas() {
        List<List<String>> alone = List.of(List.of("b", "c"), List.of("a"));
        assertTrue(obstacle(DAMAGED, alone, Map.of("b", sound(100, 5), "c", sound(100, 5)))
                .orElseThrow().contains("1 of 2 segments"));
    }

    public void ofTwoNodesThatFailNeitherCountsOnTheOther() {
        assertTrue(obstacle(DAMAGED, TWO_OWNERS, Map.of("a", failing(100, 50),
                "b", failing(100, 50), "c", sound(100, 50))).orElseThrow()
                .contains("1 of 3 segments"));
    }

    public void aNodeThatDoesNotAnswerIsNotCountedOn() {
        assertTrue(obstacle(DAMAGED, TWO_OWNERS, Map.of("a", failing(100, 50),
                "c", sound(100, 50))).isPresent());
    }

    public void aNodeThatOwnsNothingYetLeavesOnlyOthersThatRunTheCache() {
        List<List<String>> others = List.of(List.of("b", "c"));
        assertEquals(obstacle(DAMAGED, others, Map.of("b", sound(100, 5))), Optional.empty());
        assertTrue(obstacle(DAMAGED, others, Map.of("a", failing(100, 5))).isPresent());
    }

    public void aFullNodeLeavesWhereItsShareHasRoom() {
        // It cannot use 10 of its 100; the others would get 90 in all, one of them all of it.
        assertEquals(obstacle(FULL, TWO_OWNERS, Map.of("a", failing(100, 90),
                "b", sound(300, 90), "c", sound(200, 90))), Optional.empty());
    }

    public void aFullNodeStaysWhereItsShareWouldFillTheNext() {
        assertTrue(obstacle(FULL, TWO_OWNERS, Map.of("a", failing(100, 90),
                "b", sound(300, 90), "c", sound(180, 90))).orElseThrow()
                .startsWith("its share would fill the next: c"));
    }

    public void aFullNodeOfTwoLeavesTheOtherWhatThatHasAlready() {
        List<List<String>> both = List.of(List.of("a", "b"));
        assertEquals(obstacle(FULL, both, Map.of("a", failing(100, 90), "b", sound(200, 90))),
                Optional.empty());
        assertTrue(obstacle(FULL, both, Map.of("a", failing(100, 90), "b", sound(100, 90)))
                .isPresent());
    }

    public void aReportIsReadAsItWasWritten() {
        StoreReport report = new StoreReport(true, 7, 5);
        assertEquals(StoreReport.parse(report.toString()), report);
    }
}
