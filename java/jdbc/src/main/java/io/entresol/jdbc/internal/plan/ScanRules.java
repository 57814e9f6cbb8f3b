package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.rows.Condition;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.calcite.DataContext;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptRuleCall;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.plan.RelRule;
import org.apache.calcite.rel.RelFieldCollation;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.RelFactories;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.rel.logical.LogicalFilter;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rel.logical.LogicalSort;
import org.apache.calcite.rex.RexDynamicParam;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.tools.RelBuilderFactory;
import org.apache.calcite.util.ImmutableBitSet;
import org.apache.calcite.util.mapping.Mappings.TargetMapping;
import org.apache.calcite.util.mapping.Mappings;

/** Rules that move parts of a statement into the reading of a cache. */
final class ScanRules {
    static final List<RelOptRule> ALL = List.of(
            rule("filter", LogicalFilter.class, ScanRules::filtered),
            rule("project", LogicalProject.class, ScanRules::projected),
            rule("columns", LogicalProject.class, ScanRules::narrowed),
            rule("sort", LogicalSort.class, ScanRules::sorted),
            rule("count", LogicalAggregate.class, ScanRules::counted),
            rule("extremes", LogicalAggregate.class, Extremes::of),
            rule("narrow", LogicalAggregate.class, ScanRules::narrowed));

    private ScanRules() {}

    /** Makes something of a node above a scan; null if it cannot. */
    private interface Change<R extends RelNode> {
        RelNode of(R node, CacheScan scan);
    }

    private static <R extends RelNode> RelOptRule rule(String name, Class<R> type,
            Change<R> change) {
        return new Settings("CacheScan:" + name, top -> top.operand(type).oneInput(ScanRules::scan),
                config -> new Rule<>(config, type, change)).toRule();
    }

    /** The reading of a cache in a plan that is not carried out yet. */
    static RelRule.Done scan(RelRule.OperandBuilder below) {
        return below.operand(CacheScan.class)
                .predicate(scan -> !(scan instanceof CacheRead)).noInputs();
    }

    /** What the index can decide goes to it, the rest stays above. */
    private static RelNode filtered(LogicalFilter filter, CacheScan scan) {
        CacheQuery query = scan.query();
        if (query.isReduced() || query.isLimited() || query.keys() != null
                || query.looksUpKeys(scan.cache().columns())) {
            return null;
        }
        Predicates predicates = new Predicates(filter.getCluster().getRexBuilder(), scan::column);
        List<RexNode> parts = RelOptUtil.conjunctions(filter.getCondition());
        List<RexNode> rest = new ArrayList<>(parts);
        if (query.where().isEmpty() && query.order().isEmpty() && query.lookup() == null) {
            for (RexNode part : parts) {
                List<Condition.Operand> keys = predicates.keys(part);
                if (keys != null) {
                    rest.remove(part);
                    return above(filter, scan.with(query.withKeys(keys)), rest);
                }
            }
        }
        List<Condition> conditions = new ArrayList<>();
        for (RexNode part : parts) {
            Condition condition = predicates.condition(part);
            if (condition != null) {
                conditions.add(condition);
                rest.remove(part);
            }
        }
        return conditions.isEmpty() ? null
                : above(filter, scan.with(query.withWhere(conditions)), rest);
    }

    private static RelNode above(LogicalFilter filter, CacheScan scan, List<RexNode> rest) {
        RexNode condition = RexUtil.composeConjunction(filter.getCluster().getRexBuilder(), rest);
        return rest.isEmpty() ? scan : LogicalFilter.create(scan, condition);
    }

    /** Columns and nothing else; what is computed from them is left to a node above. */
    private static RelNode projected(LogicalProject project, CacheScan scan) {
        CacheQuery query = scan.query();
        List<Integer> chosen = new ArrayList<>();
        for (RexNode each : project.getProjects()) {
            if (!(each instanceof RexInputRef reference)) {
                return null;
            }
            int column = query.columns().get(reference.getIndex());
            if (chosen.contains(column)) {
                return null;
            }
            chosen.add(column);
        }
        return query.isReduced() || chosen.isEmpty() || chosen.equals(query.columns()) ? null
                : scan.with(query.withColumns(chosen));
    }

    /** What is computed of some columns reads those, and what is of none, the key. */
    private static RelNode narrowed(LogicalProject project, CacheScan scan) {
        CacheQuery query = scan.query();
        int columns = query.columns().size();
        ImmutableBitSet used = RelOptUtil.InputFinder.bits(project.getProjects(), null);
        List<Integer> kept = used.isEmpty() ? List.of(scan.key().orElse(0)) : used.asList();
        if (query.isReduced() || kept.size() == columns || !project.getVariablesSet().isEmpty()) {
            return null;
        }
        CacheScan narrow = scan.with(query.withColumns(
                kept.stream().map(query.columns()::get).toList()));
        TargetMapping moved = Mappings.target(places(kept), columns, kept.size());
        return LogicalProject.create(narrow, project.getHints(),
                RexUtil.apply(moved, project.getProjects()), project.getRowType(), Set.of());
    }

    /** Where columns are that are left, by where they were. */
    static Map<Integer, Integer> places(List<Integer> kept) {
        Map<Integer, Integer> places = new HashMap<>();
        kept.forEach(place -> places.put(place, places.size()));
        return places;
    }

    private static RelNode sorted(LogicalSort sort, CacheScan scan) {
        CacheQuery query = scan.query();
        if (query.isReduced() || query.isLimited() || query.keys() != null
                || query.lookup() != null || !query.order().isEmpty()) {
            return null;
        }
        List<CacheQuery.Order> order = new ArrayList<>();
        boolean mixed = false;
        for (RelFieldCollation each : sort.getCollation().getFieldCollations()) {
            Column column = scan.column(each.getFieldIndex());
            boolean descending = each.getDirection().isDescending();
            // An index puts what lacks the field last, whichever way it sorts.
            // It puts one zero before the other, so that what comes next would not sort them.
            if (mixed || !column.can(Column.Index.SORT)
                    || each.nullDirection == RelFieldCollation.NullDirection.FIRST
                    && query.where().stream().noneMatch(one -> one.present().contains(column))) {
                return null;
            }
            mixed = column.type().isApproximate();
            order.add(new CacheQuery.Order(query.columns().get(each.getFieldIndex()), descending));
        }
        Condition.Operand offset = number(sort.offset);
        Condition.Operand limit = number(sort.fetch);
        if (sort.offset != null && offset == null || sort.fetch != null && limit == null) {
            return null;
        }
        return scan.sorted(sort.getCollation(), query.withOrder(order, offset, limit));
    }

    private static Condition.Operand number(RexNode node) {
        if (node instanceof RexLiteral literal) {
            BigDecimal most = BigDecimal.valueOf(Long.MAX_VALUE);
            BigDecimal rows = literal.getValueAs(BigDecimal.class);
            return rows == null ? null : Condition.constant(rows.min(most).longValue());
        }
        return node instanceof RexDynamicParam parameter ? number(parameter) : null;
    }

    private static Condition.Operand number(RexDynamicParam parameter) {
        return new Condition.Operand() {
            @Override
            public Object value(DataContext run) {
                return run.get(parameter.getName());
            }

            @Override
            public String shown() {
                return parameter.getName();
            }
        };
    }

    /** The number of rows alone, or of those where a column has a value. */
    private static RelNode counted(LogicalAggregate aggregate, CacheScan scan) {
        CacheQuery query = scan.query();
        if (!aggregate.getGroupSet().isEmpty() || aggregate.getAggCallList().size() != 1
                || query.isReduced() || query.isLimited() || query.keys() != null
                || query.lookup() != null
                || !isCounted(aggregate.getAggCallList().get(0), scan)) {
            return null;
        }
        CacheQuery wanted = query.withOrder(List.of(), null, null);
        List<Integer> of = aggregate.getAggCallList().get(0).getArgList();
        Column column = of.isEmpty() ? null : scan.column(of.get(0));
        if (column != null && !column.isKey()) {
            wanted = wanted.withWhere(List.of(Condition.present(column)));
        }
        return scan.with(wanted.withCount());
    }

    /** Whether a call counts rows, or those where a column has a value, as an index can. */
    static boolean isCounted(AggregateCall call, CacheScan scan) {
        if (call.getAggregation().getKind() != SqlKind.COUNT || call.isDistinct()
                || call.hasFilter() || call.getArgList().size() > 1) {
            return false;
        }
        Column column = call.getArgList().isEmpty() ? null
                : scan.column(call.getArgList().get(0));
        return column == null || column.isKey() || column.can(Column.Index.SEARCH);
    }

    /** An aggregate of all columns, of which it uses some only, reads those. */
    private static RelNode narrowed(LogicalAggregate aggregate, CacheScan scan) {
        CacheQuery query = scan.query();
        Set<Integer> used = RelOptUtil.getAllFields(aggregate);
        List<Integer> kept = used.isEmpty() ? List.of(0) : List.copyOf(new TreeSet<>(used));
        if (query.isReduced() || kept.size() == query.columns().size()) {
            return null;
        }
        CacheScan narrow = scan.with(query.withColumns(
                kept.stream().map(query.columns()::get).toList()));
        Map<Integer, Integer> places = places(kept);
        TargetMapping moved = Mappings.target(places, query.columns().size(), kept.size());
        return aggregate.copy(aggregate.getTraitSet(), narrow,
                aggregate.getGroupSet().permute(places),
                aggregate.getGroupSets().stream().map(set -> set.permute(places)).toList(),
                aggregate.getAggCallList().stream().map(call -> call.transform(moved)).toList());
    }

    private static final class Rule<R extends RelNode> extends RelRule<Settings> {
        private final Class<R> type;
        private final Change<R> change;

        Rule(Settings config, Class<R> type, Change<R> change) {
            super(config);
            this.type = type;
            this.change = change;
        }

        @Override
        public void onMatch(RelOptRuleCall call) {
            RelNode made = change.of(type.cast(call.rel(0)), call.rel(1));
            if (made != null) {
                call.transformTo(made);
            }
        }
    }

    /** What Calcite asks of the settings of a rule. */
    record Settings(String description, RelBuilderFactory relBuilderFactory,
            RelRule.OperandTransform operandSupplier, Function<Settings, RelOptRule> make)
            implements RelRule.Config {
        Settings(String description, RelRule.OperandTransform operands,
                Function<Settings, RelOptRule> make) {
            this(description, RelFactories.LOGICAL_BUILDER, operands, make);
        }

        @Override
        public RelOptRule toRule() {
            return make.apply(this);
        }

        @Override
        public Settings withRelBuilderFactory(RelBuilderFactory factory) {
            return new Settings(description, factory, operandSupplier, make);
        }

        @Override
        public Settings withDescription(String name) {
            return new Settings(name, relBuilderFactory, operandSupplier, make);
        }

        @Override
        public Settings withOperandSupplier(RelRule.OperandTransform operands) {
            return new Settings(description, relBuilderFactory, operands, make);
        }
    }
}
