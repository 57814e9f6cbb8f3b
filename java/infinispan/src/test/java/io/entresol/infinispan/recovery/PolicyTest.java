package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import io.entresol.infinispan.recovery.Answer.Phase;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ParserRegistry;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.distribution.ch.impl.ConsistentHashFactory;
import org.infinispan.distribution.ch.impl.SyncConsistentHashFactory;
import org.infinispan.remoting.transport.Address;
import org.testng.annotations.Test;

/** The choices of nodes from the answers of all, without any cluster. */
@Test(groups = "unit", testName = "infinispan.PolicyTest")
public class PolicyTest {
    private static final ConsistentHashFactory<?> FACTORY = SyncConsistentHashFactory.getInstance();
    private static final UUID LINEAGE = new UUID(9, 9);
    private static final UUID[] NODES = {new UUID(0, 1), new UUID(0, 2), new UUID(0, 3)};

    public void theNewestDecidesAndOlderOnesAreNotUsed() {
        Answer old = waiting(0, standing(1, 3, true, 0, 1, 2));
        Answer newer = waiting(1, standing(1, 4, true, 1, 2));
        Answer other = waiting(2, standing(1, 4, true, 1, 2));
        Choice.Prepare chosen = (Choice.Prepare) choose(0, old, newer, other);
        assertEquals(chosen.plan().members().keySet(), Set.of(NODES[1], NODES[2]));
        assertEquals(chosen.plan().incarnation(), 2);
        Answer[] all = Stream.of(old, newer, other)
                .map(answer -> prepared(answer, chosen.plan())).toArray(Answer[]::new);
        assertTrue(choose(0, all) instanceof Choice.Follow);
        assertTrue(choose(1, all) instanceof Choice.Restore);
        assertTrue(choose(2, all) instanceof Choice.Restore);
    }

    public void nobodyGoesOnBeforeAllHaveThePlan() {
        Standing same = standing(1, 3, true, 0, 1);
        Choice.Prepare chosen =
                (Choice.Prepare) choose(0, waiting(0, same), waiting(1, same));
        Answer first = prepared(waiting(0, same), chosen.plan());
        assertTrue(choose(0, first, waiting(1, same)) instanceof Choice.Follow);
        assertEquals(choose(1, first, waiting(1, same)), chosen);
    }

    public void membersThatAreMissingAreWaitedForThenNamed() {
        Standing all = standing(1, 3, true, 0, 1, 2);
        Answer[] here = {waiting(0, all), waiting(1, all), Answer.absent("somebody")};
        assertTrue(choose(0, here) instanceof Choice.Wait);
        Choice late = policy(0, MissingMembers.REFUSE).choose(List.of(here), 1_000);
        assertTrue(((Choice.Refuse) late).why().contains("n2 (" + NODES[2]), late.toString());
        Choice enough = policy(0, MissingMembers.REPLICATED).choose(List.of(here), 1_000);
        assertEquals(((Choice.Prepare) enough).plan().members().size(), 2);
        // One of three has not all segments, and lost the majority.
        Answer[] one = {waiting(0, all)};
        Choice few = policy(0, MissingMembers.REPLICATED).choose(List.of(one), 1_000);
        assertTrue(few instanceof Choice.Refuse, few.toString());
        Choice.Prepare some = (Choice.Prepare)
                policy(0, MissingMembers.LOSE).choose(List.of(one), 1_000);
        assertEquals(some.plan().members().size(), 1);
        // Drawn up once more it is the same.
        Answer planned = prepared(one[0], some.plan());
        assertTrue(policy(0, MissingMembers.LOSE).choose(List.of(planned), 2_000)
                instanceof Choice.Restore);
    }

    public void aNodeWhoseStoreIsNewIsNotWaitedForIfOthersHaveCopies() {
        Standing all = standing(1, 3, true, 0, 1, 2);
        Choice chosen = choose(0, waiting(0, null), waiting(1, all), waiting(2, all));
        assertEquals(((Choice.Prepare) chosen).plan().members().keySet(),
                Set.of(NODES[1], NODES[2]));
    }

    public void aNodeJoinsWithoutEntriesOnlyWhereTheClusterWentOnWithoutIt() {
        Standing mine = standing(1, 3, true, 0, 1, 2);
        Answer me = waiting(2, mine);
        assertTrue(choose(2, running(0, standing(1, 4, true, 0, 1), true), me)
                instanceof Choice.Join);
        assertTrue(choose(2, running(0, mine, true), me) instanceof Choice.Wait);
        assertTrue(choose(2, running(0, standing(1, 4, true, 0, 1), false), me)
                instanceof Choice.Wait);
        assertTrue(choose(2, running(0, standing(1, 2, true, 0, 1), true), me)
                instanceof Choice.Wait);
        assertTrue(choose(2, running(0, standing(2, 1, true, 0, 1), true), me)
                instanceof Choice.Join);
        Standing other = standing(1, 4, true, 0, 1);
        Standing foreign = ofOtherLineage(other);
        assertTrue(choose(2, running(0, foreign, true), me) instanceof Choice.Refuse);
        assertTrue(choose(2, running(0, foreign, true), waiting(2, null))
                instanceof Choice.Join);
    }

    public void aDegradedCacheIsStartedAgainOnceAllOwnersOfItsNewestHashAreThere() {
        Standing before = standing(1, 3, true, 0, 1, 2);
        Answer first = running(0, standing(1, 4, true, 0, 1), false);
        Answer killedEarlier = waiting(2, before);
        assertTrue(choose(1, first, killedEarlier) instanceof Choice.Wait);
        Answer killedLast = waiting(1, standing(1, 4, true, 0, 1));
        Choice all = choose(1, first, killedLast, killedEarlier);
        assertEquals(((Choice.Reunite) all).incarnation(), 1);
        assertEquals(choose(2, first, killedLast, killedEarlier), all);
        // It is not enough that one is there: its store has to have what the hash gives it.
        Answer replaced = waiting(1, standing(1, 4, true, 0, 1).withoutEntries());
        assertTrue(choose(1, running(0, standing(1, 4, true, 1), false), replaced)
                instanceof Choice.Wait);
        Answer elsewhere = running(2, standing(1, 3, true, 0, 1), true);
        assertTrue(choose(1, first, killedLast, elsewhere) instanceof Choice.Wait);
        // The others would wait for whoever coordinates.
        assertTrue(choose(1, Answer.absent("n3"), first, killedLast) instanceof Choice.Wait);
        Choice never = policy(1, MissingMembers.LOSE)
                .choose(List.of(first, killedLast), 100_000);
        assertTrue(((Choice.Refuse) never).why().contains("started again"), never.toString());
    }

    public void whatWasUndeployedIsNeitherWaitedForNorMixedWithANewCacheOfTheName() {
        Answer me = waiting(2, standing(1, 3, true, 0, 1, 2));
        Answer knows = Answer.absent("n0").knowing(Set.of(LINEAGE));
        assertTrue(choose(2, Answer.absent("n0"), me) instanceof Choice.Wait);
        assertTrue(choose(2, knows, me) instanceof Choice.Forget);
        Standing now = standing(1, 1, true, 0, 1);
        Standing other = ofOtherLineage(now);
        Answer anew = running(0, other, true).knowing(Set.of(LINEAGE));
        assertTrue(choose(2, anew, me) instanceof Choice.Forget);
        assertTrue(choose(2, anew, waiting(2, null)) instanceof Choice.Join);
    }

    /**
     * Of two that started together the one with the new cache gave up at once, before the other one
     * was told that what it has was undeployed.
     */
    public void aNewCacheOfTheNameWaitsUntilTheFormerOneIsForgotten() {
        Answer former = waiting(0, standing(1, 3, true, 0, 1));
        Standing now = ofOtherLineage(standing(1, 1, true, 1));
        Answer anew = waiting(1, now);
        Choice unknown = choose(1, former, anew);
        assertTrue(((Choice.Wait) unknown).why().contains("at different times"), unknown + "");
        Answer knows = anew.knowing(Set.of(LINEAGE));
        assertTrue(choose(0, former, knows) instanceof Choice.Forget);
        // The one that coordinates has nothing that counts, and takes part all the same.
        assertTrue(choose(1, former, knows) instanceof Choice.Wait);
        Answer without = waiting(0, null);
        Choice.Prepare chosen = (Choice.Prepare) choose(0, without, knows);
        assertEquals(chosen.plan().lineage(), now.lineage());
        assertEquals(chosen.plan().members().keySet(), Set.of(NODES[1]));
        // Somebody else may know.
        assertTrue(choose(0, former, anew, Answer.absent("n2").knowing(Set.of(LINEAGE)))
                instanceof Choice.Forget);
    }

    public void whoBorrowsACacheTakesPartInItAndNeverStartsItEmpty() {
        Answer me = in(Phase.BORROWING, waiting(0, null));
        Standing all = standing(1, 3, true, 1);
        Choice.Prepare chosen = (Choice.Prepare) choose(0, me, waiting(1, all));
        assertEquals(chosen.plan().members().keySet(), Set.of(NODES[1]));
        assertTrue(choose(0, me, running(1, all, true)) instanceof Choice.Join);
        assertTrue(choose(0, me, waiting(1, null)) instanceof Choice.Wait);
        assertTrue(choose(0, me, Answer.parse("n1", "")) instanceof Choice.Wait);
        assertTrue(choose(0, me, Answer.absent("n1")) instanceof Choice.Forget);
        Answer other = in(Phase.BORROWING, waiting(1, null));
        assertTrue(choose(0, me, other) instanceof Choice.Forget);
        // Nobody waits for it to start the cache.
        assertTrue(choose(1, me, waiting(1, null)) instanceof Choice.Claim);
        // What the one that it was borrowed from has was undeployed.
        assertTrue(choose(0, me, waiting(1, all), Answer.absent("n2").knowing(Set.of(LINEAGE)))
                instanceof Choice.Wait);
    }

    public void oneNodeStartsACacheThatNobodyHas() {
        Answer first = waiting(0, null);
        Answer second = waiting(1, null);
        assertTrue(choose(0, first, second) instanceof Choice.Claim);
        assertTrue(choose(1, first, second) instanceof Choice.Wait);
        assertTrue(choose(1, Answer.absent("n0"), second) instanceof Choice.Claim);
        Answer claims = in(Phase.CLAIMING, second);
        assertTrue(choose(1, Answer.absent("n0"), claims) instanceof Choice.StartEmpty);
        assertTrue(choose(1, first, claims) instanceof Choice.Withdraw);
        assertTrue(choose(0, first, claims) instanceof Choice.Wait);
        assertTrue(choose(0, in(Phase.CLAIMING, first), in(Phase.STARTING, second))
                instanceof Choice.Withdraw);
    }

    /**
     * No answer counted as that of a node without the cache: one whose disk was new started it
     * empty beside one that stalled and had its entries, and neither came back after a restart.
     */
    public void nobodyStartsACacheEmptyWhileANodeDoesNotAnswer() {
        Answer stalled = Answer.parse("n0", "");
        Answer me = waiting(1, null);
        Choice.Wait chosen = (Choice.Wait) choose(1, stalled, me);
        assertTrue(chosen.why().contains("c from n0, which may"), chosen.why());
        assertTrue(choose(1, stalled, in(Phase.CLAIMING, me)) instanceof Choice.Withdraw);
        assertTrue(choose(1, me, stalled) instanceof Choice.Wait);
        Choice late = policy(1, MissingMembers.REFUSE).choose(List.of(stalled, me), 1_000);
        assertTrue(((Choice.Refuse) late).why().contains("c from n0, which may"), late.toString());
        // Who has entries goes by them: a node that stalls is one that is missing.
        Standing mine = standing(1, 3, true, 1);
        assertTrue(choose(1, waiting(1, mine), stalled) instanceof Choice.Prepare);
    }

    public void whatANodeSaysIsReadAsItWasSaid() {
        Standing standing = standing(3, 7, true, 0, 2);
        assertEquals(Standing.parse(standing.toString()), standing);
        Plan plan = new Plan(LINEAGE, 4, standing.members(), standing.hash(), true);
        Answer answer = new Answer("n1", NODES[1], Phase.PREPARED, true, standing, plan,
                Set.of());
        assertEquals(Answer.parse("n1", answer.toString()), answer);
        Answer bare = new Answer("n1", NODES[1], Phase.WAITING, false, null, null,
                Set.of(LINEAGE, new UUID(1, 1)));
        assertEquals(Answer.parse("n1", bare.toString()), bare);
        Answer absent = Answer.absent("n1");
        assertEquals(Answer.parse("n1", absent.knowing(Set.of(LINEAGE)).toString()),
                absent.knowing(Set.of(LINEAGE)));
    }

    public void aCacheThatCouldLoseEntriesIsRefusedWithAllThatMustChange() {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.clustering().cacheMode(CacheMode.DIST_ASYNC);
        builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .recovery("true").purgeOnStartup(true).async().enable();
        Configuration configuration = builder.build();
        CacheConfigurationException refused = expectThrows(CacheConfigurationException.class,
                () -> Requirements.check("c", new GlobalConfigurationBuilder().build(),
                        configuration, (EntresolStoreConfiguration)
                                configuration.persistence().stores().get(0), "memory"));
        for (String wrong : new String[] {"mode=\"SYNC\"", "DENY_READ_WRITES", "write-behind",
                "purge=\"false\"", "durability", "global-state"}) {
            assertTrue(refused.getMessage().contains(wrong), refused.getMessage());
        }
    }

    public void theExampleOfTheGuideCanRecover() throws Exception {
        String guide = Files.readString(Path.of("../../docs/guides/infinispan.md"));
        int start = guide.indexOf("```xml\n<distributed-cache") + 7;
        String example = guide.substring(start, guide.indexOf("```", start));
        ConfigurationBuilderHolder holder = new ParserRegistry().parse("<infinispan>"
                + "<cache-container><transport/><global-state/>" + example
                + "</cache-container></infinispan>");
        Configuration configuration = holder.getNamedConfigurationBuilders().get("grid").build();
        Requirements.check("grid", holder.getGlobalConfigurationBuilder().build(), configuration,
                configuration.persistence().stores().get(0), "process");
    }

    private static Choice choose(int me, Answer... answers) {
        return policy(me, MissingMembers.REFUSE).choose(List.of(answers), 0);
    }

    private static Policy policy(int me, MissingMembers missing) {
        return new Policy("c", NODES[me], 1_000, missing,
                saved -> new SavedHash("c", saved, FACTORY));
    }

    private static Standing ofOtherLineage(Standing standing) {
        return new Standing(new UUID(1, 1), standing.epoch(), standing.holds(),
                standing.members(), standing.hash());
    }

    private static Answer waiting(int node, Standing standing) {
        return new Answer("n" + node, NODES[node], Phase.WAITING, false, standing, null,
                Set.of());
    }

    private static Answer running(int node, Standing standing, boolean available) {
        return new Answer("n" + node, NODES[node], Phase.RUNNING, available, standing, null,
                Set.of());
    }

    private static Answer prepared(Answer answer, Plan plan) {
        return new Answer(answer.name(), answer.node(), Phase.PREPARED, false,
                answer.standing(), plan, Set.of());
    }

    private static Answer in(Phase phase, Answer answer) {
        return new Answer(answer.name(), answer.node(), phase, false, null, null, Set.of());
    }

    /** Of a cluster whose members are these, at that moment. */
    private static Standing standing(long incarnation, long view, boolean holds, int... members) {
        Map<Address, UUID> nodes = new LinkedHashMap<>();
        Map<UUID, String> names = new LinkedHashMap<>();
        Map<Address, Float> factors = new LinkedHashMap<>();
        for (int member : members) {
            nodes.put(Address.random("n" + member), NODES[member]);
            names.put(NODES[member], "n" + member);
        }
        nodes.keySet().forEach(address -> factors.put(address, 1f));
        ConsistentHash hash = FACTORY.create(2, 32, List.copyOf(nodes.keySet()), factors);
        return new Standing(LINEAGE, new Epoch(incarnation, view, view, 0), holds, names,
                SavedHash.save("c", hash, nodes::get));
    }
}
