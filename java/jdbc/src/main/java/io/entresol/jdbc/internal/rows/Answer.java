package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.column.Cells;
import java.util.ArrayList;
import java.util.List;
import org.infinispan.statetransfer.OutdatedTopologyException;

/** A node's answer from its own entries, as bytes. */
final class Answer {
    /** How it begins. */
    private enum Kind {
        ROWS,
        /** It is more than one answer should be: parts of it are asked for. */
        TOO_LONG,
        /** The cache does not run there, so that others own what it owned. */
        AWAY,
        REFUSED
    }

    private static final int BYTES_MAX = 8 << 20;

    private Answer() {}

    static byte[] tooLong() {
        return begun(Kind.TOO_LONG).toByteArray();
    }

    static byte[] away() {
        return begun(Kind.AWAY).toByteArray();
    }

    /** Why there is no answer. */
    static byte[] refused(String reason) {
        return begun(Kind.REFUSED).add(reason).toByteArray();
    }

    private static Cells.Output begun(Kind kind) {
        return new Cells.Output().add(kind.ordinal());
    }

    /** An answer that is being written. */
    static final class Writing implements OwnRows.Listener {
        private final Cells.Output output = begun(Kind.ROWS);

        @Override
        public boolean take(Object[] row) {
            output.add(true);
            for (Object cell : row) {
                output.add(cell);
            }
            return output.size() < BYTES_MAX;
        }

        byte[] end() {
            return output.add(false).toByteArray();
        }
    }

    /** The rows of an answer, of so many cells each; null if they are too many. */
    static List<Object[]> rows(byte[] answer, int width) {
        Cells.Input input = new Cells.Input(answer);
        switch (Kind.values()[input.number()]) {
            case AWAY -> throw OutdatedTopologyException.RETRY_NEXT_TOPOLOGY;
            case REFUSED -> throw new IllegalStateException(input.text());
            case TOO_LONG -> {
                return null;
            }
            default -> { }
        }
        List<Object[]> rows = new ArrayList<>();
        while ((Boolean) input.next()) {
            Object[] row = new Object[width];
            for (int place = 0; place < width; place++) {
                row[place] = input.next();
            }
            rows.add(row);
        }
        return rows;
    }
}
