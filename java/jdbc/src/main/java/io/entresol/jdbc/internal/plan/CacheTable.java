package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.Columns;
import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.rows.CacheRows;
import io.entresol.jdbc.internal.rows.Condition;
import io.entresol.jdbc.internal.rows.Container;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.calcite.plan.RelOptTable;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.metadata.BuiltInMetadata.ColumnUniqueness;
import org.apache.calcite.rel.metadata.BuiltInMetadata.UniqueKeys;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.Statistic;
import org.apache.calcite.schema.Statistics;
import org.apache.calcite.schema.TranslatableTable;
import org.apache.calcite.schema.impl.AbstractTable;
import org.apache.calcite.util.ImmutableBitSet;
import org.infinispan.security.AuthorizationPermission;

/** A cache's values of one type as a table. */
final class CacheTable extends AbstractTable implements TranslatableTable {
    /** Of all rows, those that are taken to meet a condition whose values are not known yet. */
    private static final double UNKNOWN_SHARE = 0.1;

    private final Container container;
    private final String cache;
    private final String type;
    /** What was asked of the index already: planning asks often, and lasts no longer than this. */
    private final Map<String, Double> estimates = new ConcurrentHashMap<>();

    private volatile CacheRows planned;

    CacheTable(Container container, String cache, String type) {
        this.container = container;
        this.cache = cache;
        this.type = type;
    }

    /**
     * Its rows, with the columns that they had when they were first asked for: plans have their
     * places. The cache starts then.
     */
    CacheRows rows() {
        container.require(cache, AuthorizationPermission.BULK_READ);
        CacheRows now = container.rows(cache, type);
        CacheRows before = planned;
        if (before != null && now != before && !now.haveThoseOf(before)) {
            // Of columns behind them a plan knows nothing, and needs nothing.
            if (before.isUsable() && now.begin(before)) {
                return before;
            }
            throw new IllegalStateException("the schema of " + type + " has changed since the "
                    + "statement was prepared; prepare it again");
        }
        planned = now;
        return now;
    }

    /** Complains unless the user may change entries. */
    void requireChanges() {
        container.require(cache, AuthorizationPermission.WRITE);
    }

    /** Whether an entry of one may be a row of the other. */
    boolean sharesCacheWith(CacheTable other) {
        return container == other.container && cache.equals(other.cache);
    }

    List<Column> columns() {
        return rows().columns();
    }

    @Override
    public RelDataType getRowType(RelDataTypeFactory factory) {
        return Columns.rowType(columns(), factory);
    }

    @Override
    public Statistic getStatistic() {
        // Of keys, places in the rows of a scan are asked, which not all scans have alike.
        return Statistics.of(estimate(CacheQuery.all(columns().size())), List.of());
    }

    /** That no two rows have the same key, wherever a scan has put it. */
    @Override
    public <C> C unwrap(Class<C> wanted) {
        if (wanted == ColumnUniqueness.Handler.class) {
            ColumnUniqueness.Handler unique = (scan, metadata, places, nulls) ->
                    ((CacheScan) scan).key().map(places::get).orElse(false);
            return wanted.cast(unique);
        } else if (wanted == UniqueKeys.Handler.class) {
            UniqueKeys.Handler unique = (scan, metadata, nulls) ->
                    ((CacheScan) scan).key().map(ImmutableBitSet::of).map(Set::of).orElse(Set.of());
            return wanted.cast(unique);
        }
        return super.unwrap(wanted);
    }

    /** About how many rows the conditions of a query leave. */
    double estimate(CacheQuery query) {
        List<Condition> known = query.where().stream().filter(Condition::isConstant).toList();
        CacheQuery asked = CacheQuery.all(columns().size()).withWhere(known);
        double found = estimates.computeIfAbsent(asked.shown(columns()),
                any -> asked.estimate(rows()));
        return found * Math.pow(UNKNOWN_SHARE, query.where().size() - known.size());
    }

    @Override
    public RelNode toRel(RelOptTable.ToRelContext context, RelOptTable table) {
        return CacheScan.all(context.getCluster(), table, this);
    }
}
