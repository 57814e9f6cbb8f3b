package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.Filter.Result;
import org.apache.logging.log4j.core.impl.Log4jLogEvent;
import org.apache.logging.log4j.message.SimpleMessage;
import org.junit.jupiter.api.Test;

/** Repeated lines in a node's log. */
class RepeatFilterTest {
    private static final long BEGIN = 1_000_000;
    private static final long MINUTE = 60_000;

    private final List<String> left = new ArrayList<>();
    private final RepeatFilter filter = new RepeatFilter(left::add);

    /** A full store made a log of 300 MB: a stack for each entry. */
    @Test
    void aComplaintForEachOfManyEntriesIsWrittenSometimesAndCounted() {
        assertEquals(20, written(1000, 0, Level.ERROR, "ISPN000136: key "));
        assertEquals(20, written(30, MINUTE, Level.ERROR, "ISPN000136: key "));
        assertEquals(List.of("980 more lines of a: ISPN000136 were left out"), left);
    }

    @Test
    void whatSaysSomethingElseIsWritten() {
        written(1000, 0, Level.ERROR, "ISPN000136: key ");
        assertEquals(20, written(30, 0, Level.ERROR, "ISPN000137: key "));
        assertEquals(20, written(30, 0, Level.WARN, "what is not numbered "));
        assertEquals(30, written(30, 0, Level.INFO, "ISPN000136: key "));
        assertEquals(List.of(), left);
    }

    private long written(int lines, long millis, Level level, String text) {
        long written = 0;
        for (int line = 0; line < lines; line++) {
            Result result = filter.filter(Log4jLogEvent.newBuilder().setLoggerName("a")
                    .setLevel(level).setTimeMillis(BEGIN + millis)
                    .setMessage(new SimpleMessage(text + line)).build());
            written += result == Result.NEUTRAL ? 1 : 0;
        }
        return written;
    }
}
