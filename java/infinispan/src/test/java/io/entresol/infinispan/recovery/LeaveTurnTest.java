package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;

import io.entresol.infinispan.recovery.LeaveTurn.Said;
import io.entresol.infinispan.recovery.LeaveTurn.Share;
import io.entresol.infinispan.recovery.Leaving.Intent;
import io.entresol.infinispan.recovery.Leaving.Step;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.testng.annotations.Test;

/** Of nodes a, b and c, b was told to stop. */
class LeaveTurnTest {
    private static final String CACHE = "one=two";

    private final Map<String, Said> said = new LinkedHashMap<>();

    @Test
    void aNodeLeavesOnceOthersHaveAllThatItHas() {
        assertEquals(Step.LEAVE, step(Intent.SERVES, Intent.SERVES, copied("ab", "bc")));
    }

    /** Two of three left a second apart: a third of the entries was gone. */
    @Test
    void whatNoOtherNodeHasIsWaitedFor() {
        assertEquals(Step.WAIT, step(Intent.SERVES, Intent.SERVES, copied("ab", "b")));
        assertEquals(Step.WAIT, step(Intent.SERVES, Intent.SERVES, copied("bd", "ab")));
    }

    @Test
    void twoNodesNeverGoAtOnce() {
        assertEquals(Step.WAIT, step(Intent.SERVES, Intent.GOES, copied("ab", "ac")));
        // The one that came first begins, unless it cannot.
        assertEquals(Step.WAIT, step(Intent.WANTS, Intent.SERVES, copied("ab")));
        assertEquals(Step.LEAVE, step(Intent.HINDERED, Intent.SERVES, copied("ab")));
        assertEquals(Step.LEAVE, step(Intent.SERVES, Intent.WANTS, copied("ab")));
    }

    /** It may be gone at any moment. */
    @Test
    void aNodeThatSaysNothingIsWaitedFor() {
        assertEquals(Step.WAIT, step(Intent.SERVES, Intent.SILENT, copied("ab")));
    }

    @Test
    void copiesOfANodeWhoseStoreFailsOrIsFullDoNotCount() {
        say("a", Intent.SERVES, Set.of());
        say("b", Intent.WANTS, Set.of(CACHE));
        say("c", Intent.SERVES, Set.of(CACHE));
        assertEquals(Step.WAIT, turn(copied("ab")).choose().step());
        assertEquals(Step.LEAVE, turn(copied("bc")).choose().step());
    }

    @Test
    void entriesThatOneNodeHasKeepItThere() {
        Share<String> share = new Share<>(CACHE, owners("b", "a"), false, 7);
        LeaveTurn<String> turn = turn(Intent.SERVES, Intent.SERVES, share);
        assertEquals(Step.STAY, turn.choose().step());
        assertTrue(turn.choose().why().contains("this one has 7"), turn.choose().why());
        assertEquals(Step.LEAVE, step(Intent.SERVES, Intent.SERVES,
                new Share<>(CACHE, owners("b", "a"), false, 0)));
    }

    @Test
    void nodesThatAreAllToldStopAsACluster() {
        Share<String> share = new Share<>(CACHE, owners("b", "a"), false, 7);
        assertEquals(Step.WAIT, step(Intent.HINDERED, Intent.WANTS, share));
        said.clear();
        say("b", Intent.WANTS, Set.of(CACHE));
        say("c", Intent.HINDERED, Set.of(CACHE));
        assertEquals(Step.STOP_CLUSTER, turn(share).choose().step());
    }

    @Test
    void whatNodesSayIsReadAsItWasSaid() {
        Said one = new Said(Intent.HINDERED, Set.of(CACHE, "", "other"));
        assertEquals(one, Said.parse(one.toString()));
        assertEquals(Intent.SILENT, Said.parse("").intent());
    }

    private Step step(Intent before, Intent after, Share<String> share) {
        return turn(before, after, share).choose().step();
    }

    private LeaveTurn<String> turn(Intent before, Intent after, Share<String> share) {
        said.clear();
        say("a", before, Set.of(CACHE));
        say("b", Intent.WANTS, Set.of(CACHE));
        say("c", after, Set.of(CACHE));
        return turn(share);
    }

    private LeaveTurn<String> turn(Share<String> share) {
        return new LeaveTurn<>("b", said, List.of(share));
    }

    private void say(String node, Intent intent, Set<String> sound) {
        said.put(node, new Said(intent, sound));
    }

    private static Share<String> copied(String... segments) {
        return new Share<>(CACHE, owners(segments), true, -1);
    }

    private static List<List<String>> owners(String... segments) {
        return List.of(segments).stream().map(those -> List.of(those.split(""))).toList();
    }
}
