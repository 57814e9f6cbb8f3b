package io.entresol.jdbc.internal.rows;

import io.entresol.infinispan.Privileged;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.query.core.impl.PartitionHandlingSupport;
import org.infinispan.remoting.transport.Address;
import org.infinispan.security.AuthorizationManager;
import org.infinispan.security.AuthorizationPermission;
import org.infinispan.util.function.SerializableFunction;

/**
 * A question that each owner of a cache's entries answers for itself. For each segment its first
 * owner is asked, and the answers count only if the owners stayed the same. So each entry is in one
 * answer. A long answer comes in parts, one after another, each for some of the segments.
 */
final class Survey {
    /** Rows that this node tells itself at once. */
    private static final int ROWS_MAX = 100_000;

    private final AdvancedCache<Object, Object> cache;
    private final Owners owners;
    private final CacheRows own;
    /** Rows that came from other nodes. */
    private final LongAdder carried = new LongAdder();

    /**
     * Questions to the owners of a cache.
     *
     * @param own rows of the same cache that asks no other node
     */
    Survey(AdvancedCache<Object, Object> cache, Owners owners, CacheRows own) {
        this.cache = cache;
        this.owners = owners;
        this.own = own;
    }

    long carried() {
        return carried.sum();
    }

    /** All rows of the answers, in so many parts at least. */
    Steps<Object[]> rows(Question question, long parts) {
        int segments = segments();
        int count = (int) Math.max(1, Math.min(parts, segments));
        Deque<BitSet> left = new ArrayDeque<>();
        for (int part = 0; part < count; part++) {
            BitSet some = new BitSet(segments);
            for (int segment = part; segment < segments; segment += count) {
                some.set(segment);
            }
            left.add(some);
        }
        return new Parts(question, left);
    }

    private int segments() {
        return cache.getCacheConfiguration().clustering().hash().numSegments();
    }

    /** All rows of the answers, in an order in which each answer is. */
    Stream<Object[]> sorted(Question question, Comparator<Object[]> order) {
        BitSet all = new BitSet();
        all.set(0, segments());
        return ask(question, all).stream().flatMap(told -> told.rows.stream()).sorted(order);
    }

    private final class Parts extends Steps<Object[]> {
        private final Question question;
        private final Deque<BitSet> left;
        private Iterator<Object[]> rows = List.<Object[]>of().iterator();

        Parts(Question question, Deque<BitSet> left) {
            this.question = question;
            this.left = left;
        }

        @Override
        protected Object[] step() {
            while (!rows.hasNext()) {
                BitSet next = left.poll();
                if (next == null) {
                    return null;
                }
                List<Object[]> told = new ArrayList<>();
                for (Told each : ask(question, next)) {
                    if (each.rows == null) {
                        halve(each.segments);
                    } else {
                        told.addAll(each.rows);
                    }
                }
                rows = told.iterator();
            }
            return rows.next();
        }

        private void halve(BitSet segments) {
            BitSet half = new BitSet();
            segments.stream().limit(segments.cardinality() / 2).forEach(half::set);
            BitSet rest = (BitSet) segments.clone();
            rest.andNot(half);
            left.addFirst(rest);
            left.addFirst(half);
        }
    }

    /**
     * What one node answered.
     *
     * @param segments of which it was asked
     * @param rows null if they are too many
     */
    private record Told(BitSet segments, List<Object[]> rows) {}

    private List<Told> ask(Question question, BitSet segments) {
        AuthorizationManager permissions = Privileged.getAuthorizationManager(cache);
        if (permissions != null) {
            permissions.checkPermission(AuthorizationPermission.BULK_READ);
        }
        new PartitionHandlingSupport(cache).checkCacheAvailable();
        return owners.ask(() -> askOnce(question, segments));
    }

    private List<Told> askOnce(Question question, BitSet segments) {
        LocalizedCacheTopology topology = cache.getDistributionManager().getCacheTopology();
        Map<Address, BitSet> split = new LinkedHashMap<>();
        segments.stream().forEach(segment -> {
            Address first = topology.getSegmentDistribution(segment).primary();
            // Of a segment whose owners all left there is nothing, as for other ways to the cache.
            if (first != null) {
                split.computeIfAbsent(first, any -> new BitSet()).set(segment);
            }
        });
        BitSet here = split.remove(topology.getLocalAddress());
        Map<BitSet, CompletableFuture<byte[]>> asked = new LinkedHashMap<>();
        split.forEach((node, theirs) -> asked.put(theirs, sent(node, question.toBytes(theirs))));
        List<Told> answers = new ArrayList<>();
        if (here != null) {
            List<Object[]> rows = new ArrayList<>();
            boolean all = OwnRows.tell(own, question, here, row -> {
                rows.add(row);
                return rows.size() < ROWS_MAX;
            });
            answers.add(new Told(here, all ? rows : null));
        }
        asked.forEach((theirs, answer) -> {
            List<Object[]> rows = Answer.rows(awaited(answer), question.width());
            carried.add(rows == null ? 0 : rows.size());
            answers.add(new Told(theirs, rows));
        });
        return answers;
    }

    private CompletableFuture<byte[]> sent(Address node, byte[] question) {
        EmbeddedCacheManager manager =
                Privileged.getRegistry(cache.getCacheManager()).getCacheManager();
        SerializableFunction<EmbeddedCacheManager, byte[]> there =
                at -> OwnRows.answer(at, question);
        CompletableFuture<byte[]> answer = new CompletableFuture<>();
        Privileged.getClusterExecutor(manager).filterTargets(List.of(node))
                .<byte[]>submitConsumer(there, (from, told, failure) -> {
                    if (failure != null) {
                        answer.completeExceptionally(failure);
                    } else {
                        answer.complete(told);
                    }
                })
                .whenComplete((done, failure) -> answer.completeExceptionally(failure == null
                        ? new IllegalStateException("node " + node + " gave no answer") : failure));
        return answer;
    }

    private static byte[] awaited(CompletableFuture<byte[]> answer) {
        try {
            return answer.get();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the thread was interrupted while it waited for "
                    + "another node's answer", interrupted);
        } catch (ExecutionException failure) {
            throw new CompletionException(failure.getCause());
        }
    }
}
