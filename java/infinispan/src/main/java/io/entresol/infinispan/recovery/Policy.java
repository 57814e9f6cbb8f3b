package io.entresol.infinispan.recovery;

import io.entresol.infinispan.recovery.Answer.Phase;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Chooses what a node does with a cache, from the answers of all nodes of the view: a function
 * without memory. docs/internals/grid-recovery.md argues why it loses no acknowledged entry and
 * brings no removed entry back.
 */
final class Policy {
    /** Beyond the coordinator's time, so that it decides, and for what was begun to finish. */
    static final long GRACE_MILLIS = 60_000;

    private final String cache;
    private final UUID me;
    private final long timeoutMillis;
    private final MissingMembers missing;
    private final Function<Map<String, String>, SavedHash> hashes;

    Policy(String cache, UUID me, long timeoutMillis, MissingMembers missing,
            Function<Map<String, String>, SavedHash> hashes) {
        this.cache = cache;
        this.me = me;
        this.timeoutMillis = timeoutMillis;
        this.missing = missing;
        this.hashes = hashes;
    }

    /** {@code answers} are in the order of the view, this node's own among them. */
    Choice choose(List<Answer> answers, long waitedMillis) {
        Answer own = own(answers);
        if (own == null) {
            return new Choice.Wait("this node does not answer itself about cache " + cache);
        }
        Choice choice = chooseWithoutEnd(answers, own, waitedMillis);
        boolean decides = answers.get(0) == own || missing == MissingMembers.REFUSE;
        long end = timeoutMillis + (decides ? 0 : GRACE_MILLIS);
        if (choice instanceof Choice.Wait wait && waitedMillis >= end) {
            return new Choice.Refuse(wait.why());
        }
        boolean late = waitedMillis >= timeoutMillis + GRACE_MILLIS;
        if (late && choice instanceof Choice.Follow begun) {
            return new Choice.Refuse(begun.why());
        }
        return late && choice instanceof Choice.Reunite asked
                ? new Choice.Refuse(asked.why()) : choice;
    }

    private Choice chooseWithoutEnd(List<Answer> all, Answer own, long waitedMillis) {
        Set<UUID> gone = all.stream().flatMap(answer -> answer.undeployed().stream())
                .collect(Collectors.toSet());
        if (own.standing() != null && gone.contains(own.standing().lineage())) {
            return new Choice.Forget();
        }
        List<Answer> answers = all.stream()
                .map(answer -> forgets(answer, gone) ? answer.withoutStanding() : answer).toList();
        List<Answer> running = answers.stream()
                .filter(answer -> answer.phase() == Phase.RUNNING && answer.standing() != null)
                .toList();
        if (!running.isEmpty()) {
            return beside(answers, running, own.standing());
        }
        List<Answer> known = answers.stream()
                .filter(answer -> answer.isThere() && answer.standing() != null).toList();
        if (known.isEmpty()) {
            return empty(answers, own);
        }
        Answer best = newest(known);
        for (Answer answer : known) {
            if (!answer.standing().lineage().equals(best.standing().lineage())) {
                // Somebody may come who knows that one of them was undeployed.
                return new Choice.Wait(strangers(best.name(), answer.name()));
            }
        }
        return together(answers, own, best.standing(), waitedMillis);
    }

    /** Whether a node takes what it has for nothing, as soon as it is told what this one is. */
    private static boolean forgets(Answer answer, Set<UUID> gone) {
        boolean undecided = answer.phase() == Phase.WAITING || answer.phase() == Phase.BORROWING
                || answer.phase() == Phase.PREPARED;
        return undecided && answer.standing() != null
                && gone.contains(answer.standing().lineage());
    }

    /** Others run the cache already. */
    private Choice beside(List<Answer> answers, List<Answer> running, Standing mine) {
        Answer newest = newest(running);
        Standing theirs = newest.standing();
        if (mine != null && !mine.lineage().equals(theirs.lineage())) {
            return new Choice.Refuse(strangers(newest.name(), "this node"));
        }
        if (!newest.available()) {
            return besideDegraded(answers, running, theirs);
        }
        if (theirs.members().containsKey(me)) {
            return new Choice.Wait("cache " + cache + " runs on " + names(running)
                    + ", which still count on this node's former life. Once they notice that it"
                    + " ended, this node joins; if they do not, see their logs");
        }
        if (mine == null || !mine.holds() || theirs.epoch().compareTo(mine.epoch()) > 0) {
            return new Choice.Join(theirs);
        }
        return new Choice.Wait("cache " + cache + " runs on " + names(running) + " at epoch "
                + theirs.epoch() + ", and this node's store is newer: " + mine.epoch()
                + ". Stop the cache there and start it on all nodes");
    }

    /** Nobody can join a degraded cache; those that it waits for may all be here. */
    private Choice besideDegraded(List<Answer> answers, List<Answer> running, Standing theirs) {
        SavedHash hash = hashes.apply(theirs.hash());
        Set<UUID> holders = holders(answers, theirs);
        String why = "cache " + cache + " runs on " + names(running) + ", degraded: ";
        if (answers.get(0).isThere() && running.stream().noneMatch(Answer::available)
                && mayGoOn(answers, theirs, hash, holders, false)) {
            return new Choice.Reunite(theirs.epoch().incarnation(), why + "it is to be started"
                    + " again there, so that all recover together, and is not; see the logs");
        }
        return new Choice.Wait(why + "nobody can join it until all members that it waits for are"
                + " here. " + lacking(theirs, hash, holders) + ". That takes a start of the cache"
                + " on all nodes");
    }

    /** Nobody ever had the cache, as far as can be asked. */
    private Choice empty(List<Answer> answers, Answer own) {
        List<Answer> silent = answers.stream()
                .filter(answer -> answer.phase() == Phase.SILENT).toList();
        if (!silent.isEmpty()) {
            // One that stalls may have entries, and another lineage is for ever.
            return own.phase() == Phase.CLAIMING ? new Choice.Withdraw()
                    : new Choice.Wait("there is no answer about cache " + cache + " from "
                            + names(silent) + ", which may have entries of it; see the log"
                            + " there, or stop the node");
        }
        List<Answer> owners = answers.stream()
                .filter(answer -> answer.isThere() && answer.phase() != Phase.BORROWING).toList();
        if (own.phase() == Phase.BORROWING) {
            return owners.isEmpty() ? new Choice.Forget() : new Choice.Wait("cache " + cache
                    + " is being started by " + names(owners) + ", which does not finish; see its"
                    + " log");
        }
        Answer first = owners.get(0);
        List<Answer> claiming = answers.stream()
                .filter(answer -> answer != own && (answer.phase() == Phase.CLAIMING
                        || answer.phase() == Phase.STARTING || answer.phase() == Phase.JOINING
                        || answer.phase() == Phase.RUNNING))
                .toList();
        if (own.phase() == Phase.CLAIMING) {
            boolean others = claiming.stream().anyMatch(a -> a.phase() != Phase.CLAIMING);
            return first != own || others ? new Choice.Withdraw() : new Choice.StartEmpty();
        }
        return claiming.isEmpty() && first == own ? new Choice.Claim()
                : new Choice.Wait("cache " + cache + " is being started by "
                        + (claiming.isEmpty() ? first.name() : names(claiming))
                        + ", which does not finish; see its log");
    }

    /** All are down or starting: those who were there last put the cluster together again. */
    private Choice together(List<Answer> answers, Answer own, Standing best, long waitedMillis) {
        Answer coordinator = answers.get(0);
        SavedHash hash = hashes.apply(best.hash());
        Set<UUID> holders = holders(answers, best);
        boolean whole = holders.containsAll(best.members().keySet());
        if (!coordinator.isThere()) {
            return new Choice.Wait((whole ? "" : lacking(best, hash, holders) + ". ")
                    + "Node " + coordinator.name() + ", which coordinates the cluster,"
                    + " has not started cache " + cache + "; start it there");
        }
        boolean mayGoOn = coordinator == own
                && mayGoOn(answers, best, hash, holders, waitedMillis >= timeoutMillis);
        Plan plan = mayGoOn ? plan(own.plan(), best, hash, holders) : coordinator.plan();
        if (plan == null || coordinator == own && !mayGoOn) {
            return new Choice.Wait(lacking(best, hash, holders));
        }
        if (!plan.equals(own.plan())) {
            return new Choice.Prepare(plan);
        }
        boolean all = answers.stream()
                .allMatch(answer -> !answer.isThere() || plan.equals(answer.plan()));
        if (all && plan.members().containsKey(me)) {
            return new Choice.Restore(plan);
        }
        return new Choice.Follow("cache " + cache + " is being put together again by "
                + plan.members().values() + ", which do not finish; see their logs");
    }

    /** The members that are there, and whose stores have what the hash gives them. */
    private static Set<UUID> holders(List<Answer> answers, Standing best) {
        Set<UUID> holders = new HashSet<>();
        for (Answer answer : answers) {
            Standing standing = answer.standing();
            if (answer.isThere() && standing != null && standing.holds()
                    && standing.lineage().equals(best.lineage())
                    && best.members().containsKey(answer.node())) {
                holders.add(answer.node());
            }
        }
        return holders;
    }

    /** Whether those who are there are enough. */
    private boolean mayGoOn(List<Answer> answers, Standing best, SavedHash hash,
            Set<UUID> holders, boolean late) {
        Set<UUID> there = answers.stream().filter(Answer::isThere).map(Answer::node)
                .collect(Collectors.toSet());
        boolean absent = best.members().keySet().stream()
                .anyMatch(node -> hash.owns(node) && !there.contains(node));
        int lost = hash.lost(holders);
        boolean enough = lost == 0 && !absent;
        return enough || late && !holders.isEmpty() && switch (missing) {
            case REFUSE -> false;
            case REPLICATED -> lost == 0 && isHalf(best, hash, holders);
            case LOSE -> true;
        };
    }

    /** Whether the others were too few to go on without these when these crashed. */
    private static boolean isHalf(Standing best, SavedHash hash, Set<UUID> holders) {
        long owners = best.members().keySet().stream().filter(hash::owns).count();
        long here = holders.stream().filter(hash::owns).count();
        return 2 * here >= owners;
    }

    /** A plan that stands is kept: others have taken it over, and drawn up anew it may differ. */
    private Plan plan(Plan former, Standing best, SavedHash hash, Set<UUID> holders) {
        boolean whole = holders.containsAll(best.members().keySet());
        Map<UUID, String> members = new LinkedHashMap<>(best.members());
        members.keySet().retainAll(holders);
        if (former != null && former.incarnation() == best.epoch().incarnation() + 1
                && former.members().equals(members)) {
            return former;
        }
        return new Plan(best.lineage(), best.epoch().incarnation() + 1, members,
                whole ? best.hash() : hash.of(cache, holders), whole);
    }

    private String lacking(Standing best, SavedHash hash, Set<UUID> holders) {
        List<String> lacking = new ArrayList<>();
        best.members().forEach((node, name) -> {
            if (hash.owns(node) && !holders.contains(node)) {
                lacking.add(name + " (" + node + ")");
            }
        });
        int lost = hash.lost(holders);
        boolean replicated = lost == 0 && isHalf(best, hash, holders);
        return "cache " + cache + " has entries on members that are not here: "
                + String.join(", ", lacking) + "; " + lost + " of its segments are on none of"
                + " those that are. Start them. If they never come back, start with "
                + (replicated ? "recovery-missing=\"replicated\": the others have all entries"
                        : "recovery-missing=\"lose\": what only they have is lost");
    }

    private String strangers(String one, String other) {
        return "cache " + cache + " was started empty on " + one + " and " + other
                + " at different times, and both have entries. Stop it everywhere, remove the"
                + " store of that whose entries are not wanted, and start it again";
    }

    private Answer own(List<Answer> answers) {
        return answers.stream().filter(answer -> me.equals(answer.node())).findFirst()
                .orElse(null);
    }

    private static Answer newest(List<Answer> answers) {
        return answers.stream()
                .max(Comparator.comparing(answer -> answer.standing().epoch())).orElseThrow();
    }

    private static String names(List<Answer> answers) {
        return answers.stream().map(Answer::name).collect(Collectors.joining(", "));
    }
}
