package io.entresol.grid;

import java.util.Objects;
import java.util.stream.Stream;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.config.plugins.PluginFactory;
import org.apache.logging.log4j.core.filter.AbstractFilter;

/**
 * Keeps out of a node's log what clients send in plain to a port that speaks TLS: the complaint
 * quotes the bytes, which may be a password.
 */
@Plugin(name = "PlainTextFilter", category = "Core", elementType = Filter.ELEMENT_TYPE)
public final class PlainTextFilter extends AbstractFilter {
    private static final String QUOTING = "NotSslRecordException";

    private PlainTextFilter() {
    }

    /** As the log's configuration names it. */
    @PluginFactory
    public static PlainTextFilter create() {
        return new PlainTextFilter();
    }

    @Override
    public Result filter(LogEvent event) {
        return Stream.iterate(event.getThrown(), Objects::nonNull, Throwable::getCause)
                .anyMatch(cause -> cause.getClass().getSimpleName().equals(QUOTING))
                || event.getMessage().getFormattedMessage().contains(QUOTING)
                ? Result.DENY : Result.NEUTRAL;
    }
}
