package io.entresol.jdbc.internal.plan;

import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.JoinInfo;
import org.apache.calcite.rel.metadata.BuiltInMetadata;
import org.apache.calcite.rel.metadata.MetadataDef;
import org.apache.calcite.rel.metadata.MetadataHandler;
import org.apache.calcite.rel.metadata.ReflectiveRelMetadataProvider;
import org.apache.calcite.rel.metadata.RelMdUtil;
import org.apache.calcite.rel.metadata.RelMetadataProvider;
import org.apache.calcite.rel.metadata.RelMetadataQuery;

/**
 * The estimated number of rows of a join. Calcite takes a share of all pairs, which is far too many
 * for large tables. For Calcite, not for other uses.
 */
public final class JoinRows implements MetadataHandler<BuiltInMetadata.RowCount> {
    static final RelMetadataProvider SOURCE = ReflectiveRelMetadataProvider.reflectiveSource(
            new JoinRows(), BuiltInMetadata.RowCount.Handler.class);
    /** Rows that a field's value is taken to be shared by. */
    static final double SHARED = 10;

    private JoinRows() {}

    @Override
    public MetadataDef<BuiltInMetadata.RowCount> getDef() {
        return BuiltInMetadata.RowCount.DEF;
    }

    /** For Calcite, which finds it by its parameters. */
    public Double getRowCount(Join planned, RelMetadataQuery metadata) {
        Join join = planned instanceof LookupJoin lookup ? lookup.other() : planned;
        Double guess = RelMdUtil.getJoinRowCount(metadata, join, join.getCondition());
        JoinInfo equal = join.analyzeCondition();
        if (guess == null || !join.getJoinType().projectsRight() || equal.leftKeys.isEmpty()) {
            return guess;
        }
        double left = metadata.getRowCount(join.getLeft());
        double right = metadata.getRowCount(join.getRight());
        double most = Math.min(left, right) * SHARED;
        if (Boolean.TRUE.equals(metadata.areColumnsUnique(join.getRight(), equal.rightSet()))) {
            most = left;
        }
        if (Boolean.TRUE.equals(metadata.areColumnsUnique(join.getLeft(), equal.leftSet()))) {
            most = Math.min(most, right);
        }
        double least = Math.max(join.getJoinType().generatesNullsOnRight() ? left : 0,
                join.getJoinType().generatesNullsOnLeft() ? right : 0);
        return Math.max(least, Math.min(guess, most));
    }
}
