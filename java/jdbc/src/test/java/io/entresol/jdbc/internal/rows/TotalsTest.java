package io.entresol.jdbc.internal.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.entresol.jdbc.internal.aggregate.Formulas;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.ColumnType;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.sql.type.SqlTypeName;
import org.infinispan.statetransfer.OutdatedTopologyException;
import org.junit.jupiter.api.Test;

/** The totals that owners compute from their entries, and their way from node to node. */
class TotalsTest {
    private static final Totals TOTALS = new Totals(List.of(0), List.of(
            new Totals.Call(Totals.Kind.COUNT, -1, -1, SqlTypeName.BIGINT),
            new Totals.Call(Totals.Kind.COUNT, 1, -1, SqlTypeName.BIGINT),
            new Totals.Call(Totals.Kind.SUM, 1, -1, SqlTypeName.INTEGER),
            new Totals.Call(Totals.Kind.SUM_OR_ZERO, 1, -1, SqlTypeName.BIGINT),
            new Totals.Call(Totals.Kind.LEAST, 1, -1, SqlTypeName.INTEGER),
            new Totals.Call(Totals.Kind.GREATEST, 1, -1, SqlTypeName.INTEGER)), Formulas.NONE);

    @Test
    void nullIsAGroupAndNoValue() {
        Totals.Table table = TOTALS.new Table(place -> "column " + place);
        for (Object[] row : new Object[][] {{"a", 3}, {null, null}, {"a", null}, {"a", -5}}) {
            table.add(row);
        }
        assertEquals(2, table.size());
        assertArrayEquals(new Object[] {"a", 3L, 2L, -2, -2L, -5, 3}, table.rows().get(0));
        assertArrayEquals(new Object[] {null, 1L, 0L, null, 0L, null, null}, table.rows().get(1));
    }

    @Test
    void sumsOfWholeNumbersAreTheSameInWhateverPartsTheyAreAdded() {
        Totals sum = new Totals(List.of(),
                List.of(new Totals.Call(Totals.Kind.SUM, 0, -1, SqlTypeName.INTEGER)),
                Formulas.NONE);
        Totals.Table all = sum.new Table(place -> "column " + place);
        Totals.Table parts = sum.new Table(place -> "column " + place);
        for (int part = 0; part < 3; part++) {
            Totals.Table some = sum.new Table(place -> "column " + place);
            for (int number = 0; number < 5; number++) {
                all.add(new Object[] {Integer.MAX_VALUE - part * number});
                some.add(new Object[] {Integer.MAX_VALUE - part * number});
            }
            some.rows().forEach(parts::add);
        }
        assertArrayEquals(all.rows().get(0), parts.rows().get(0));
    }

    @Test
    void aSumThatLeavesItsTypeNamesItsColumn() {
        Totals.Table table = new Totals(List.of(), List.of(
                new Totals.Call(Totals.Kind.SUM, 1, -1, SqlTypeName.BIGINT)),
                Formulas.NONE).new Table(place -> "\"wealth\"");
        table.add(new Object[] {0, Long.MAX_VALUE});
        table.add(new Object[] {0, null});
        table.add(new Object[] {0, -1L});
        table.add(new Object[] {0, 1L});
        assertEquals(Long.MAX_VALUE, table.rows().get(0)[0]);
        assertEquals("overflow: a sum of \"wealth\" is beyond BIGINT; sum it as "
                + "sum(cast(\"wealth\" as decimal(19)))", assertThrows(ArithmeticException.class,
                () -> table.add(new Object[] {0, 1L})).getMessage());
    }

    @Test
    void aFilterLeavesRowsOutOfOneTotalAndOfNoOther() {
        Totals.Table table = new Totals(List.of(), List.of(
                new Totals.Call(Totals.Kind.COUNT, -1, 1, SqlTypeName.BIGINT),
                new Totals.Call(Totals.Kind.SUM, 0, 1, SqlTypeName.DECIMAL),
                new Totals.Call(Totals.Kind.SUM_OR_ZERO, 0, -1, SqlTypeName.DECIMAL)),
                Formulas.NONE).new Table(place -> "column " + place);
        for (Object filter : new Object[] {true, false, null, true}) {
            table.add(new Object[] {new BigDecimal("1.50"), filter});
        }
        assertArrayEquals(new Object[] {2L, new BigDecimal("3.00"), new BigDecimal("6.00")},
                table.rows().get(0));
    }

    @Test
    void cellsOfEachTypeArriveAsTheyWere() {
        Object[] cells = {null, true, false, 1, Long.MIN_VALUE, 1.5f, Double.NaN, "Aé\uD83D\uDE00",
            new BigDecimal("-12345678901234567890.500"), BigDecimal.ZERO, new ByteString(new byte[] {0, -1})};
        Answer.Writing answer = new Answer.Writing();
        answer.take(cells);
        answer.take(cells);
        List<Object[]> rows = Answer.rows(answer.end(), cells.length);
        assertEquals(2, rows.size());
        assertArrayEquals(cells, rows.get(1));
    }

    @Test
    void aQuestionArrivesAsItWas() {
        Asked asked = new Asked(" where p.name = :v0", Map.of("v0", "x", "v1", 2L), 3, 4);
        Question question = new Question(new Question.Table("people", "sample.Person",
                ColumnType.BIGINT), CacheQuery.Source.HITS, asked, List.of(0, 5),
                new Totals(TOTALS.groups(), TOTALS.calls(),
                        new Formulas(List.of("{\"input\":0}"), "{\"input\":1}")),
                Map.of("?0", 5, "?2", new BigDecimal("1.50")), true);
        BitSet segments = new BitSet();
        segments.set(3, 77);
        Question.Received received = Question.Received.of(question.toBytes(segments));
        assertEquals(question, received.question());
        assertEquals(segments, received.segments());
    }

    @Test
    void answersThatAreNoneSayWhy() {
        assertNull(Answer.rows(Answer.tooLong(), 1));
        assertThrows(OutdatedTopologyException.class, () -> Answer.rows(Answer.away(), 1));
        assertEquals("no index", assertThrows(IllegalStateException.class,
                () -> Answer.rows(Answer.refused("no index"), 1)).getMessage());
    }

    @Test
    void bytesThatAreNoAnswerAreRefused() {
        Answer.Writing answer = new Answer.Writing();
        answer.take(new Object[] {"a text"});
        byte[] whole = answer.end();
        for (int length = 0; length < whole.length; length++) {
            byte[] part = Arrays.copyOf(whole, length);
            assertThrows(UncheckedIOException.class, () -> Answer.rows(part, 1));
        }
    }
}
