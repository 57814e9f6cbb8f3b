package io.entresol.jdbc.internal.rows;

import io.entresol.infinispan.Privileged;
import io.entresol.jdbc.internal.aggregate.CheckedSums;
import io.entresol.jdbc.internal.aggregate.Computation;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.Column;
import java.util.BitSet;
import java.util.Iterator;
import java.util.List;
import org.infinispan.AdvancedCache;
import org.infinispan.entresol.Trusted;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.server.core.query.impl.ProtobufMetadataManagerImpl;

/** Answers questions from this node's own entries. */
final class OwnRows {
    /** Groups that are known at once; whoever asks for more takes parts of the segments. */
    private static final int GROUPS_MAX = 100_000;

    private OwnRows() {}

    /** On the node that is asked: the answer to what arrived, from one that may ask. */
    static byte[] answer(EmbeddedCacheManager manager, byte[] asked) {
        return Trusted.call(() -> answered(manager, asked));
    }

    private static byte[] answered(EmbeddedCacheManager manager, byte[] asked) {
        Question.Received received = Question.Received.of(asked);
        Question.Table table = received.question().table();
        // Whoever looks for the cache by its name starts one that was stopped.
        ComponentRegistry cache = Privileged.getRegistry(manager)
                .getNamedComponentRegistry(table.cache());
        if (!isRunning(cache)) {
            return Answer.away();
        }
        try {
            AdvancedCache<?, ?> own = cache.getCache().running();
            CacheRows rows = CacheRows.own(own, table,
                    ProtobufMetadataManagerImpl.getSerializationContext(manager));
            Answer.Writing answer = new Answer.Writing();
            return tell(rows, received.question(), received.segments(), answer)
                    ? answer.end() : Answer.tooLong();
        } catch (RuntimeException failure) {
            return isRunning(cache) ? Answer.refused(failure.getMessage() == null
                    ? failure.toString() : failure.getMessage()) : Answer.away();
        }
    }

    private static boolean isRunning(ComponentRegistry cache) {
        return cache != null && cache.getStatus() == ComponentStatus.RUNNING;
    }

    /** Takes the rows of an answer. */
    interface Listener {
        /** Whether it has room for more. */
        boolean take(Object[] row);
    }

    /**
     * Tells what this node has of some segments.
     *
     * @param own rows of a cache that asks no other node
     * @param segments null: all that there are
     * @return whether it is all; otherwise the answer is too long, and nothing of it counts
     */
    static boolean tell(CacheRows own, Question question, BitSet segments, Listener listener) {
        boolean divisible = question.inParts() && segments != null && segments.cardinality() > 1;
        try (Steps<Object[]> found = found(own, question, segments)) {
            if (question.totals() == null) {
                return tell(found, listener, divisible);
            }
            List<Column> columns =
                    question.columns().stream().map(own.columns()::get).toList();
            Totals.Table table = question.totals().new Table(place -> place < columns.size()
                    ? '"' + columns.get(place).name() + '"' : CheckedSums.EXPRESSION);
            Computation computation = Computation.of(question.totals().formulas(), columns,
                    question.given());
            while (found.hasNext()) {
                Object[] cells = computation.of(found.next());
                if (cells == null) {
                    continue;
                }
                table.add(cells);
                if (divisible && table.size() > GROUPS_MAX) {
                    return false;
                }
            }
            return tell(table.rows().iterator(), listener, divisible);
        }
    }

    private static boolean tell(Iterator<Object[]> rows, Listener listener, boolean divisible) {
        while (rows.hasNext()) {
            if (!listener.take(rows.next()) && divisible) {
                return false;
            }
        }
        return true;
    }

    /** The columns that are wanted, of the entries that this node finds. */
    private static Steps<Object[]> found(CacheRows own, Question question,
            BitSet segments) {
        List<Integer> columns = question.columns();
        return switch (question.source()) {
            case INDEX -> own.indexed(question.asked(), columns, segments);
            case HITS -> chosen(own.found(question.asked(), segments), columns);
            case ALL -> chosen(own.all(segments), columns);
            default -> throw new IllegalArgumentException("a node tells nothing of its "
                    + question.source() + " alone");
        };
    }

    private static Steps<Object[]> chosen(Steps<Object[]> rows,
            List<Integer> columns) {
        return new Steps<>() {
            @Override
            protected Object[] step() {
                return rows.hasNext() ? CacheQuery.chosen(rows.next(), columns) : null;
            }

            @Override
            protected void end() {
                rows.close();
            }
        };
    }
}
