package io.entresol.jdbc;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.util.ImmutableBitSet;

/**
 * Aggregates that each owner of entries computes of its own, and the node that is asked puts
 * together: totals go from node to node, rows do not. A node that has all entries computes them of
 * what its index keeps, hit by hit, and keeps no rows.
 */
final class OwnersTotals {
    /** Sums that are computed as Calcite does, whatever comes first. */
    private static final Set<SqlTypeName> SUMMED = Set.of(SqlTypeName.INTEGER, SqlTypeName.BIGINT,
            SqlTypeName.REAL, SqlTypeName.DOUBLE);

    private OwnersTotals() {}

    /** The same aggregate of the owners' totals; null if they cannot compute them. */
    static RelNode of(LogicalAggregate aggregate, CacheScan scan) {
        List<AggregateCall> calls = aggregate.getAggCallList();
        Set<Integer> used = new TreeSet<>(aggregate.getGroupSet().asList());
        calls.forEach(call -> used.addAll(call.getArgList()));
        if (!scan.query().isPlain() || used.isEmpty()
                || !calls.stream().allMatch(call -> isGrouping(call) || isComputed(call))) {
            return null;
        }
        List<Integer> places = List.copyOf(used);
        CacheQuery narrow = scan.query().withColumns(
                places.stream().map(scan.query().columns()::get).toList());
        if (!scan.cache().rows().computesTotals(scan.with(narrow).source())) {
            return null;
        }
        List<Integer> groups = aggregate.getGroupSet().asList();
        List<Totals.Call> totals = new ArrayList<>();
        List<AggregateCall> combined = new ArrayList<>();
        for (AggregateCall call : calls) {
            if (isGrouping(call)) {
                combined.add(call.withArgList(
                        call.getArgList().stream().map(groups::indexOf).toList()));
            } else {
                combined.add(combined(call, groups.size() + totals.size()));
                totals.add(total(call, places));
            }
        }
        Totals computed = new Totals(groups.stream().map(places::indexOf).toList(), totals);
        List<ImmutableBitSet> sets = aggregate.getGroupSets().stream()
                .map(set -> ImmutableBitSet.of(set.asList().stream().map(groups::indexOf).toList()))
                .toList();
        return LogicalAggregate.create(scan.with(narrow.withTotals(computed)), List.of(),
                ImmutableBitSet.range(groups.size()), sets, combined);
    }

    /** What tells of which group a row is, and not of rows. */
    private static boolean isGrouping(AggregateCall call) {
        return call.getAggregation().getKind() == SqlKind.GROUPING
                || call.getAggregation().getKind() == SqlKind.GROUPING_ID;
    }

    private static boolean isComputed(AggregateCall call) {
        boolean alike = !call.hasFilter() && call.getArgList().size() <= 1
                && call.getCollation().getFieldCollations().isEmpty() && !call.ignoreNulls()
                && call.distinctKeys == null;
        return alike && switch (call.getAggregation().getKind()) {
            case COUNT -> !call.isDistinct();
            case SUM, SUM0 -> !call.isDistinct()
                    && SUMMED.contains(call.getType().getSqlTypeName());
            case MIN, MAX -> true;
            default -> false;
        };
    }

    private static Totals.Call total(AggregateCall call, List<Integer> places) {
        Totals.Kind kind = switch (call.getAggregation().getKind()) {
            case COUNT -> Totals.Kind.COUNT;
            case SUM -> Totals.Kind.SUM;
            case SUM0 -> Totals.Kind.SUM_OR_ZERO;
            case MIN -> Totals.Kind.LEAST;
            default -> Totals.Kind.GREATEST;
        };
        int place = call.getArgList().isEmpty() ? -1 : places.indexOf(call.getArgList().get(0));
        return new Totals.Call(kind, place, call.getType().getSqlTypeName());
    }

    /** What makes one of the totals at a place. */
    private static AggregateCall combined(AggregateCall call, int place) {
        SqlAggFunction function = call.getAggregation().getRollup();
        return AggregateCall.create(function, false, false, false, List.of(), List.of(place), -1,
                null, call.getCollation(), call.getType(), call.getName());
    }
}
