package io.entresol.jdbc.internal.server;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.handler.HandlerWrapper;

/** Answers what is asked for by GET; all else passes. */
public final class Pages extends HandlerWrapper {
    private final Source source;

    public Pages(Source source) {
        this.source = source;
    }

    /** Where pages come from. */
    public interface Source {
        /** The answer to a path and the parameters of its query; empty: there is none. */
        Optional<Found> page(String path, Map<String, String> parameters);
    }

    /**
     * An answer.
     *
     * @param type its type of media
     * @param headers further headers
     * @param body its text
     */
    public record Found(String type, Map<String, String> headers, String body) {
    }

    @Override
    public void handle(String target, Request base, HttpServletRequest request,
            HttpServletResponse response) throws IOException, ServletException {
        boolean whole = HttpMethod.GET.is(request.getMethod());
        Optional<Found> found;
        try {
            found = whole || HttpMethod.HEAD.is(request.getMethod())
                    ? source.page(target, parameters(request)) : Optional.empty();
        } catch (SecurityException refused) {
            base.setHandled(true);
            response.sendError(HttpServletResponse.SC_FORBIDDEN, refused.getMessage());
            return;
        }
        if (found.isEmpty()) {
            super.handle(target, base, request, response);
            return;
        }
        base.setHandled(true);
        Found page = found.get();
        byte[] body = page.body().getBytes(StandardCharsets.UTF_8);
        response.setContentType(page.type());
        response.setContentLength(body.length);
        // Figures of a moment, for who is let in.
        response.setHeader("Cache-Control", "no-store");
        response.setHeader("X-Content-Type-Options", "nosniff");
        page.headers().forEach(response::setHeader);
        if (whole) {
            response.getOutputStream().write(body);
        }
    }

    /** Of each name the first value. */
    private static Map<String, String> parameters(HttpServletRequest request) {
        Map<String, String> parameters = new HashMap<>();
        request.getParameterMap().forEach((name, values) -> parameters.put(name, values[0]));
        return parameters;
    }
}
