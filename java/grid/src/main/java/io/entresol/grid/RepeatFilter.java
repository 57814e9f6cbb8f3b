package io.entresol.grid;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.config.plugins.PluginFactory;
import org.apache.logging.log4j.core.filter.AbstractFilter;

/**
 * Keeps a node's log from repeating one complaint for many entries. Of warnings and errors with the
 * same text, the log gets the first ones of each minute, then the number of those left out.
 * Infinispan writes a stack trace for each put that a full store refuses: a minute of these would
 * push all earlier lines out of the log.
 */
@Plugin(name = "RepeatFilter", category = "Core", elementType = Filter.ELEMENT_TYPE)
public final class RepeatFilter extends AbstractFilter {
    private static final int LINES_A_MINUTE = 20;
    private static final long MINUTE_MILLIS = TimeUnit.MINUTES.toMillis(1);
    /** So many kinds of lines are counted; the one that was longest silent is forgotten. */
    private static final int KINDS_MAX = 500;
    /** Infinispan's numbers tell its messages apart. */
    private static final Pattern NUMBER = Pattern.compile("ISPN[0-9]{6}");
    private static final int HEAD = 40;

    private final Consumer<String> summary;
    private final Map<String, Minute> minutes = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Minute> eldest) {
            return size() > KINDS_MAX;
        }
    };

    private static final class Minute {
        private final long begun;
        private int lines;

        Minute(long begun) {
            this.begun = begun;
        }
    }

    RepeatFilter(Consumer<String> summary) {
        this.summary = summary;
    }

    /** As the log's configuration names it. */
    @PluginFactory
    public static RepeatFilter create() {
        return new RepeatFilter(LogManager.getLogger(RepeatFilter.class)::warn);
    }

    @Override
    public Result filter(LogEvent event) {
        if (!event.getLevel().isMoreSpecificThan(Level.WARN)) {
            return Result.NEUTRAL;
        }
        String kind = kind(event);
        Minute former;
        synchronized (minutes) {
            former = minutes.get(kind);
            if (former != null && event.getTimeMillis() - former.begun < MINUTE_MILLIS) {
                return ++former.lines > LINES_A_MINUTE ? Result.DENY : Result.NEUTRAL;
            }
            Minute now = new Minute(event.getTimeMillis());
            now.lines = 1;
            minutes.put(kind, now);
        }
        if (former != null && former.lines > LINES_A_MINUTE) {
            summary.accept((former.lines - LINES_A_MINUTE) + " more lines of " + kind
                    + " were left out");
        }
        return Result.NEUTRAL;
    }

    private static String kind(LogEvent event) {
        String message = event.getMessage().getFormattedMessage();
        Matcher number = NUMBER.matcher(message);
        String head = number.find() ? number.group()
                : message.substring(0, Math.min(HEAD, message.length())).replaceAll("[0-9]+", "N");
        return event.getLoggerName() + ": " + head;
    }
}
