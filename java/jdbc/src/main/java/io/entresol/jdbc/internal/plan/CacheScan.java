package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.aggregate.Formulas;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.rows.Condition;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.calcite.plan.Convention;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelOptTable;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelCollation;
import org.apache.calcite.rel.RelCollations;
import org.apache.calcite.rel.RelFieldCollation;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelWriter;
import org.apache.calcite.rel.core.TableScan;
import org.apache.calcite.rel.metadata.RelMetadataQuery;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * The reading of a cache in a plan, with all parts of the statement that the cache can do itself.
 */
class CacheScan extends TableScan {
    /** Of all rows, those that are taken to be in a group of their own. */
    private static final double GROUPS_SHARE = 0.1;

    private final CacheTable cache;
    private final CacheQuery query;

    CacheScan(RelOptCluster cluster, RelTraitSet traits, RelOptTable table, CacheTable cache,
            CacheQuery query) {
        super(cluster, traits, List.of(), table);
        this.cache = cache;
        this.query = query;
    }

    /** Reads all columns of all rows. */
    static CacheScan all(RelOptCluster cluster, RelOptTable table, CacheTable cache) {
        return new CacheScan(cluster, cluster.traitSetOf(Convention.NONE), table, cache,
                CacheQuery.all(cache.columns().size()));
    }

    /** A scan of other rows or columns, which come in the order in which these come. */
    CacheScan with(CacheQuery changed) {
        return sorted(ordered(changed), changed);
    }

    /** The order of the rows as columns that are left can tell it. */
    private RelCollation ordered(CacheQuery changed) {
        RelCollation order = getTraitSet().getCollation();
        List<RelFieldCollation> told = new ArrayList<>();
        if (order == null || changed.isReduced()) {
            return RelCollations.EMPTY;
        }
        for (RelFieldCollation each : order.getFieldCollations()) {
            int place = changed.columns().indexOf(query.columns().get(each.getFieldIndex()));
            // What comes after it sorts only rows that have the same of it.
            if (place < 0) {
                break;
            }
            told.add(each.withFieldIndex(place));
        }
        return RelCollations.of(told);
    }

    /** A scan whose rows come in an order. */
    CacheScan sorted(RelCollation order, CacheQuery changed) {
        return new CacheScan(getCluster(), getTraitSet().replace(order), getTable(), cache,
                changed);
    }

    CacheTable cache() {
        return cache;
    }

    CacheQuery query() {
        return query;
    }

    /** The column that a place of the scan's rows shows. */
    Column column(int place) {
        return cache.columns().get(query.columns().get(place));
    }

    /** The place of the key in the scan's rows. */
    Optional<Integer> key() {
        int place = query.isReduced() ? -1 : query.columns().indexOf(0);
        return place < 0 ? Optional.empty() : Optional.of(place);
    }

    CacheQuery.Source source() {
        return query.source(cache.rows());
    }

    @Override
    public RelNode copy(RelTraitSet traits, List<RelNode> inputs) {
        return new CacheScan(getCluster(), traits, getTable(), cache, query);
    }

    @Override
    public void register(RelOptPlanner planner) {
        ScanRules.ALL.forEach(planner::addRule);
        LookupRule.ALL.forEach(planner::addRule);
        OwnersTotals.ALL.forEach(planner::addRule);
        planner.addRule(CacheRead.RULE);
    }

    @Override
    public RelDataType deriveRowType() {
        RelDataTypeFactory factory = getCluster().getTypeFactory();
        RelDataTypeFactory.Builder row = factory.builder();
        if (query.counted()) {
            return row.add("count", factory.createSqlType(SqlTypeName.BIGINT)).build();
        }
        List<RelDataType> types = table.getRowType().getFieldList().stream()
                .map(field -> field.getType()).toList();
        if (query.totals() == null) {
            for (int place : query.columns()) {
                row.add(cache.columns().get(place).name(), types.get(place));
            }
            return row.build();
        }
        List<RelDataType> chosen =
                new ArrayList<>(query.columns().stream().map(types::get).toList());
        query.totals().formulas().nodes(Formulas.row(wanted()))
                .forEach(node -> chosen.add(node.getType()));
        for (int place : query.totals().groups()) {
            row.add(place < query.columns().size() ? column(place).name()
                    : "group" + row.getFieldCount(), chosen.get(place));
        }
        for (Totals.Call call : query.totals().calls()) {
            row.add("total" + row.getFieldCount(), typeOf(call, chosen));
        }
        return row.build();
    }

    private RelDataType typeOf(Totals.Call call, List<RelDataType> columns) {
        RelDataTypeFactory factory = getCluster().getTypeFactory();
        RelDataType type = switch (call.kind()) {
            case LEAST, GREATEST -> columns.get(call.place());
            default -> call.type() == SqlTypeName.DECIMAL
                    ? factory.getTypeSystem().deriveSumType(factory, columns.get(call.place()))
                    : factory.createSqlType(call.type());
        };
        boolean nullable = switch (call.kind()) {
            case COUNT, SUM_OR_ZERO -> false;
            // A group of all rows may have none.
            default -> query.totals().groups().isEmpty() || call.filter() >= 0
                    || columns.get(call.place()).isNullable();
        };
        return factory.createTypeWithNullability(type, nullable);
    }

    /** Part of what makes two scans the same. */
    @Override
    public RelWriter explainTerms(RelWriter writer) {
        return super.explainTerms(writer)
                .item("columns", query.columns().stream()
                        .map(place -> cache.columns().get(place).name()).toList())
                .item("ickle", query.shown(cache.columns()))
                .itemIf("keys", keys(), keys() != null)
                .itemIf("totals", totals(), query.totals() != null)
                .item("reads", source());
    }

    private List<String> keys() {
        if (query.looksUpKeys(cache.columns())) {
            return List.of(CacheQuery.WANTED);
        }
        return query.keys() == null ? null
                : query.keys().stream().map(Condition.Operand::shown).toList();
    }

    private List<Column> wanted() {
        return query.columns().stream().map(cache.columns()::get).toList();
    }

    private List<String> totals() {
        if (query.totals() == null) {
            return null;
        }
        List<String> names = wanted().stream().map(Column::name).toList();
        List<String> cells = new ArrayList<>(names);
        Formulas formulas = query.totals().formulas();
        RelDataType row = Formulas.row(wanted());
        formulas.nodes(row).forEach(node -> cells.add(Named.shown(node, names)));
        List<String> shown = query.totals().shown(cells);
        if (formulas.condition() != null) {
            shown.add("where " + Named.shown(formulas.conditionNode(row), names));
        }
        return shown;
    }

    /** About how many rows of the index, or entries, are behind the scan's rows. */
    double estimateRead() {
        return Math.max(1, cache.estimate(query));
    }

    @Override
    public double estimateRowCount(RelMetadataQuery metadata) {
        if (query.counted() || query.lookup() != null) {
            // What a join looks up is the join's to estimate.
            return 1;
        } else if (query.keys() != null) {
            return query.keys().size();
        }
        double found = estimateRead();
        if (query.totals() != null) {
            return query.totals().groups().isEmpty() ? 1 : Math.max(1, found * GROUPS_SHARE);
        }
        if (query.limit() != null && query.limit().isConstant()) {
            return Math.min(found, ((Number) query.limit().value(null)).doubleValue());
        }
        return found * (query.limit() == null ? 1 : 0.5);
    }
}
