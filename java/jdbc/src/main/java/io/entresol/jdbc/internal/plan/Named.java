package io.entresol.jdbc.internal.plan;

import java.util.List;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexBiVisitor;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexVariable;
import org.apache.calcite.rex.RexVisitor;

/** A column in an expression for people, with its name in place of Calcite's number. */
final class Named extends RexVariable {
    private Named(String name, RelDataType type) {
        super(name, type);
    }

    static String shown(RexNode expression, List<String> columns) {
        return expression.accept(new RexShuttle() {
            @Override
            public RexNode visitInputRef(RexInputRef reference) {
                return new Named(columns.get(reference.getIndex()), reference.getType());
            }
        }).toString();
    }

    @Override
    public <R> R accept(RexVisitor<R> visitor) {
        throw new UnsupportedOperationException("an expression for people is not planned with");
    }

    @Override
    public <R, P> R accept(RexBiVisitor<R, P> visitor, P argument) {
        throw new UnsupportedOperationException("an expression for people is not planned with");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Named named && getName().equals(named.getName())
                && getType().equals(named.getType());
    }

    @Override
    public int hashCode() {
        return getName().hashCode();
    }
}
