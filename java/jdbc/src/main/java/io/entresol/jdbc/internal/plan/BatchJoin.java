package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.rows.CacheRows;
import io.entresol.jdbc.internal.run.Cancellation;
import io.entresol.jdbc.internal.run.Joining;
import io.entresol.jdbc.internal.run.Wanted;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.AbstractEnumerable;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.linq4j.Linq4j;
import org.apache.calcite.linq4j.function.Function1;
import org.apache.calcite.linq4j.function.Function2;

/**
 * A join that reads from a cache only the rows for its left input, a batch of cells at a time and
 * each cell once. If these rows come to a good part of the cache, the rest of the left input is
 * joined with the whole cache, read once in the order of the device.
 *
 * @param cache the cache to read
 * @param query how to read it
 */
record BatchJoin(CacheTable cache, CacheQuery query) implements Joining {
    /** Rows of the left that wait for their batch, where many have the same cell. */
    private static final int ROWS_MAX = 2 * CacheRows.BATCH;
    /** One of so many is read by itself at most: reading in order costs that much less. */
    private static final int PART = 4;

    @Override
    public Enumerable<Object> join(DataContext run, Enumerable<Object> left,
            Function1<Object, Object> leftCell, Function1<Object, Object> rightCell,
            Function1<Wanted, Enumerable<Object>> right,
            Function2<Enumerable<Object>, Enumerable<Object>, Enumerable<Object>> join) {
        return new AbstractEnumerable<>() {
            @Override
            public Enumerator<Object> enumerator() {
                return new Batches(run, left.enumerator(), leftCell, rightCell, right, join);
            }
        };
    }

    private final class Batches implements Enumerator<Object> {
        private final CacheRows rows = cache.rows();
        private final DataContext run;
        private final Cancellation cancellation;
        private final Enumerator<Object> left;
        private final Function1<Object, Object> leftCell;
        private final Function1<Object, Object> rightCell;
        private final Function1<Wanted, Enumerable<Object>> right;
        private final Function2<Enumerable<Object>, Enumerable<Object>, Enumerable<Object>> join;
        /** What was read, by the cells that it was asked for. */
        private final Map<Object, List<Object>> known = new HashMap<>();
        private Enumerator<Object> joined = Linq4j.emptyEnumerator();
        /** Whether the left has given its last row, or gives the rest to somebody else. */
        private boolean ended;
        /** What reading all of the right would read; negative: not asked for yet. */
        private long all = -1;
        private long spent;

        Batches(DataContext run, Enumerator<Object> left, Function1<Object, Object> leftCell,
                Function1<Object, Object> rightCell, Function1<Wanted, Enumerable<Object>> right,
                Function2<Enumerable<Object>, Enumerable<Object>, Enumerable<Object>> join) {
            this.run = run;
            this.cancellation = Cancellation.of(run);
            this.left = left;
            this.leftCell = leftCell;
            this.rightCell = rightCell;
            this.right = right;
            this.join = join;
        }

        @Override
        public Object current() {
            return joined.current();
        }

        @Override
        public boolean moveNext() {
            while (!joined.moveNext()) {
                joined.close();
                List<Object> batch = new ArrayList<>();
                Set<Object> unknown = new LinkedHashSet<>();
                Set<Object> cells = fill(batch, unknown);
                if (batch.isEmpty()) {
                    joined = Linq4j.emptyEnumerator();
                    return false;
                }
                joined = joined(batch, unknown, cells);
            }
            return true;
        }

        /** Takes the next rows of the left; their cells. */
        private Set<Object> fill(List<Object> batch, Set<Object> unknown) {
            int most = query.looksUpKeys(rows.columns()) ? CacheRows.BATCH
                    : Predicates.ALTERNATIVES_MAX;
            Set<Object> cells = new LinkedHashSet<>();
            while (!ended && batch.size() < ROWS_MAX && unknown.size() < most) {
                cancellation.check();
                if (!left.moveNext()) {
                    ended = true;
                    break;
                }
                Object row = left.current();
                Object cell = leftCell.apply(row);
                batch.add(row);
                // Nothing equals null.
                if (cell != null && cells.add(cell) && !known.containsKey(cell)) {
                    unknown.add(cell);
                }
            }
            return cells;
        }

        private Enumerator<Object> joined(List<Object> batch, Set<Object> unknown,
                Set<Object> cells) {
            if (!unknown.isEmpty()) {
                if (isBetterReadWhole(unknown)) {
                    known.clear();
                    Enumerable<Object> rest = ended ? Linq4j.emptyEnumerable() : rest();
                    ended = true;
                    return join.apply(Linq4j.asEnumerable(batch).concat(rest),
                            right.apply(Wanted.all())).enumerator();
                }
                read(unknown);
            }
            List<Object> matching = new ArrayList<>();
            cells.forEach(cell -> matching.addAll(known.get(cell)));
            return join.apply(Linq4j.asEnumerable(batch), Linq4j.asEnumerable(matching))
                    .enumerator();
        }

        private boolean isBetterReadWhole(Set<Object> unknown) {
            if (all < 0) {
                all = query.narrowed(rows.columns(), Wanted.all()).size(rows, run);
            }
            spent += query.narrowed(rows.columns(), Wanted.of(unknown)).size(rows, run);
            return spent > Math.max(1, all / PART);
        }

        private void read(Set<Object> unknown) {
            unknown.forEach(cell -> known.put(cell, new ArrayList<>()));
            try (Enumerator<Object> found = right.apply(Wanted.of(unknown)).enumerator()) {
                while (found.moveNext()) {
                    List<Object> same = known.get(rightCell.apply(found.current()));
                    if (same != null) {
                        same.add(found.current());
                    }
                }
            }
        }

        /** The rows of the left that were not taken yet. */
        private Enumerable<Object> rest() {
            return new AbstractEnumerable<>() {
                @Override
                public Enumerator<Object> enumerator() {
                    return left;
                }
            };
        }

        @Override
        public void reset() {
            throw new UnsupportedOperationException("a join by batches is read once");
        }

        @Override
        public void close() {
            joined.close();
            left.close();
        }
    }
}
