package io.entresol.grid;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import org.infinispan.commons.dataconversion.internal.Json;

/** A running node by its REST interface. */
public final class Rest {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final String server;
    private final String authorization;
    private final HttpClient client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5)).build();

    /** The node at {@code HOST:PORT}; a user of null has no name. */
    public Rest(String server, String user, String password) {
        if (!server.matches(".+:[0-9]{1,5}")) {
            throw new GridException("--server is '" + server + "'; expected HOST:PORT, such as"
                    + " 127.0.0.1:11222");
        }
        this.server = server;
        byte[] both = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
        authorization = user == null ? null : "Basic " + Base64.getEncoder().encodeToString(both);
    }

    /** Gets a document. */
    public Json get(String path) {
        String text = getText(path);
        try {
            return Json.read(text);
        } catch (Json.MalformedJsonException mistake) {
            throw new GridException("node " + server + " answered " + path + " with '" + text
                    + "'; expected JSON. Is it a node of a grid?", mistake);
        }
    }

    /** Gets a text. */
    public String getText(String path) {
        return ask("GET", path, null, null).body();
    }

    /** Sends a document; what comes back, as text. */
    public String post(String path, String contentType, String body) {
        return ask("POST", path, contentType, body).body();
    }

    /** Removes what the path names. */
    public void delete(String path) {
        ask("DELETE", path, null, null);
    }

    /** Whether there is something at the path. */
    public boolean exists(String path) {
        return send("HEAD", path, null, null).statusCode() < 400;
    }

    /** The path of a cache. */
    public static String cache(String name) {
        return "/v2/caches/" + encode(name);
    }

    static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Its address. */
    public String server() {
        return server;
    }

    private HttpResponse<String> ask(String method, String path, String contentType, String body) {
        HttpResponse<String> answer = send(method, path, contentType, body);
        int status = answer.statusCode();
        if (status < 400) {
            return answer;
        }
        if (status == 401 || status == 403) {
            throw new GridException("node " + server + " lets in users only (status " + status
                    + "); name one: --user NAME, and its password in ENTRESOL_GRID_PASSWORD or by"
                    + " --password");
        }
        throw new RefusedException("node " + server + " refused " + method + " " + path
                + " (status " + status + "): " + reason(answer.body()));
    }

    private HttpResponse<String> send(String method, String path, String contentType,
            String body) {
        HttpRequest.Builder request = address(path).timeout(PATIENCE)
                .method(method, body == null ? HttpRequest.BodyPublishers.noBody()
                        : HttpRequest.BodyPublishers.ofString(body));
        if (contentType != null) {
            request.header("Content-Type", contentType);
        }
        if (authorization != null) {
            request.header("Authorization", authorization);
        }
        try {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (ConnectException refused) {
            throw new GridException("no node answers at " + server + "; start one: entresol-grid"
                    + " start, or name another: --server HOST:PORT", refused);
        } catch (IOException failure) {
            throw new GridException("node " + server + " did not answer " + path + ": "
                    + failure.getMessage() + "; is it still running?", failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GridException("interrupted while node " + server + " was asked", interrupted);
        }
    }

    private HttpRequest.Builder address(String path) {
        try {
            return HttpRequest.newBuilder(URI.create("http://" + server + "/rest" + path));
        } catch (IllegalArgumentException mistake) {
            throw new GridException("--server is '" + server + "'; expected HOST:PORT, such as"
                    + " 127.0.0.1:11222", mistake);
        }
    }

    /** Infinispan's sentence within its JSON. */
    private static String reason(String body) {
        try {
            Json error = Json.read(body).at("error");
            Json cause = error.at("cause");
            String message = error.at("message").asString();
            return cause == null || cause.isNull() || cause.asString().isBlank()
                    || cause.asString().equals(message)
                    ? message : message + ": " + cause.asString();
        } catch (RuntimeException other) {
            return body.isBlank() ? "without a reason" : body.strip();
        }
    }
}
