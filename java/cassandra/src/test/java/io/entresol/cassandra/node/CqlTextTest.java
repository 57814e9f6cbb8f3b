package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CqlTextTest {
    @Test
    void semicolonsInQuotationsAndCommentsEndNothing() {
        assertEquals(List.of("SELECT ';', \"a;\", $$b;$$ FROM t", "x"),
                statements("SELECT ';', \"a;\", $$b;$$ FROM t; -- c;", "/* d;", "e; */ x; // f;"));
    }

    @Test
    void aStatementMayHaveSeveralLines() {
        assertEquals(List.of("a\nb", "c"), statements("a", "b; c"));
    }

    @Test
    void aBatchIsOneStatement() {
        String batch = "BEGIN UNLOGGED BATCH INSERT a; UPDATE b; APPLY BATCH";
        assertEquals(List.of(batch, "c"), statements(batch + "; c;"));
    }

    @Test
    void quotesInQuotesStay() {
        assertEquals(List.of("SELECT 'it''s; so'"), statements("SELECT 'it''s; so';;"));
    }

    @Test
    void memoryIsDividedSoThatTheStoreGetsMostOfMuch() {
        assertEquals(new Memory(512, 128), Memory.of("--memory", "1g"));
        assertEquals(new Memory(8192, 57_344 - 384), Memory.of("--memory", "64GiB"));
        assertThrows(NodeException.class, () -> Memory.of("--memory", "512m"));
        assertThrows(NodeException.class, () -> Memory.of("--memory", "much"));
    }

    private static List<String> statements(String... lines) {
        CqlText text = new CqlText();
        List<String> all = new ArrayList<>();
        for (String line : lines) {
            all.addAll(text.add(line));
        }
        if (!text.rest().isEmpty()) {
            all.add(text.rest());
        }
        return all;
    }
}
