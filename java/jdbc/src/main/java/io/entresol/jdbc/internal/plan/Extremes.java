package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.rows.Condition;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.util.ImmutableBitSet;
import org.apache.calcite.util.mapping.Mappings.TargetMapping;
import org.apache.calcite.util.mapping.Mappings;

/**
 * The least and the greatest of columns, each by a look-up of its own: the first row in the order
 * of the index. Entries that lack the field come last there, in either direction.
 */
final class Extremes {
    private Extremes() {}

    /** One row of all that is asked for; null if an index cannot tell each. */
    static RelNode of(LogicalAggregate aggregate, CacheScan scan) {
        List<AggregateCall> calls = aggregate.getAggCallList();
        boolean some = calls.stream().anyMatch(call -> direction(call) != 0);
        if (!aggregate.getGroupSet().isEmpty() || aggregate.getGroupSets().size() != 1
                || !some || !scan.query().isPlain()
                || !calls.stream().allMatch(call -> isTold(call, scan))) {
            return null;
        }
        List<RelNode> rows = new ArrayList<>();
        for (AggregateCall call : calls) {
            rows.add(direction(call) == 0 ? aggregate(call, scan) : extreme(call, scan));
        }
        RexBuilder builder = aggregate.getCluster().getRexBuilder();
        return rows.stream().reduce((left, right) -> LogicalJoin.create(left, right, List.of(),
                builder.makeLiteral(true), Set.of(), JoinRelType.INNER)).orElseThrow();
    }

    /** Whether the index has it at hand. */
    private static boolean isTold(AggregateCall call, CacheScan scan) {
        if (direction(call) == 0) {
            return ScanRules.isCounted(call, scan);
        }
        Column column = scan.column(call.getArgList().get(0));
        return !call.hasFilter() && column.can(Column.Index.SORT)
                && column.type() != ColumnType.BOOLEAN;
    }

    /** Positive for the greatest, negative for the least, 0 for whatever else. */
    private static int direction(AggregateCall call) {
        return switch (call.getAggregation().getKind()) {
            case MAX -> 1;
            case MIN -> -1;
            default -> 0;
        };
    }

    private static RelNode extreme(AggregateCall call, CacheScan scan) {
        CacheQuery query = scan.query();
        int place = call.getArgList().get(0);
        int column = query.columns().get(place);
        Column shown = scan.column(place);
        // Where it can, the index leaves out what lacks the field, which it sorts like the last
        // value that there can be.
        CacheQuery those = shown.can(Column.Index.SEARCH)
                ? query.withWhere(List.of(Condition.present(shown))) : query;
        CacheQuery first = those.withColumns(List.of(column)).withOrder(
                List.of(new CacheQuery.Order(column, direction(call) > 0)), null,
                Condition.constant(1));
        TargetMapping moved = Mappings.target(Map.of(place, 0),
                query.columns().size(), 1);
        return aggregate(call.transform(moved), scan.with(first));
    }

    private static RelNode aggregate(AggregateCall call, RelNode input) {
        return LogicalAggregate.create(input, List.of(), ImmutableBitSet.of(), null,
                List.of(call));
    }
}
