package io.entresol.grid;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import org.infinispan.commons.dataconversion.internal.Json;

/** A running node by its REST interface. */
public final class Rest {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int PORT_MAX = 65_535;
    private static final int UNKNOWN = 401;
    private static final int FORBIDDEN = 403;

    private static final Pattern LACKING = Pattern.compile("lacks '([A-Z_]+)'");

    private final String server;
    private final String user;
    private final String authorization;
    private final Duration patience;
    private final boolean encrypted;
    private final HttpClient client;

    /** The node at {@code HOST:PORT}; a user of null has no name. */
    public Rest(String server, String user, String password) {
        this(server, user, password, PATIENCE);
    }

    /** The same, by TLS; null: in plain. */
    Rest(String server, String user, String password, SSLContext tls) {
        this(server, user, password, tls, PATIENCE);
    }

    /** The same, in plain; an answer is waited for so long. */
    Rest(String server, String user, String password, Duration patience) {
        this(server, user, password, null, patience);
    }

    private Rest(String server, String user, String password, SSLContext tls,
            Duration patience) {
        if (!server.matches(".+:[0-9]{1,5}") || port(server) < 1 || port(server) > PORT_MAX) {
            throw new GridException("--server is '" + server + "'; expected HOST:PORT, such as"
                    + " 127.0.0.1:11222");
        }
        this.server = server;
        this.user = user;
        this.patience = patience;
        encrypted = tls != null;
        HttpClient.Builder builder = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5));
        client = (encrypted ? builder.sslContext(tls) : builder).build();
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
        // A task that lacks a permission fails, for all that REST knows.
        String permission = permission(answer.body());
        if (status == UNKNOWN || status == FORBIDDEN || !permission.isEmpty()) {
            String told = refusal(method + " " + path, status, permission);
            throw status == UNKNOWN ? new GridException(told) : new ForbiddenException(told);
        }
        throw new RefusedException("node " + server + " refused " + method + " " + path
                + " (status " + status + "): " + reason(answer.body()));
    }

    /** Whoever named a user need not be told to name one. */
    private String refusal(String asked, int status, String permission) {
        String node = "node " + server;
        if (user == null) {
            return node + " lets in users only (status " + status + "); name one: --user NAME, and"
                    + " its password in ENTRESOL_GRID_PASSWORD or by --password";
        }
        return status == UNKNOWN
                ? node + " knows no user '" + user + "' of that password (status " + status
                        + "); name another: --user NAME, or mend the password in"
                        + " ENTRESOL_GRID_PASSWORD or --password"
                : node + " does not let user '" + user + "' do " + asked + " (status " + status
                        + "); name one who may: --user NAME, or give '" + user + "' a role with"
                        + " the permission " + permission + "in the file of --users";
    }

    /** Infinispan names it within its sentence, if it says any. */
    private static String permission(String body) {
        Matcher named = LACKING.matcher(body);
        return named.find() ? named.group(1) + " " : "";
    }

    private HttpResponse<String> send(String method, String path, String contentType,
            String body) {
        HttpRequest.Builder request = address(path).timeout(patience)
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
        } catch (ConnectException | HttpConnectTimeoutException refused) {
            boolean known = Stream.<Throwable>iterate(refused, Objects::nonNull, Throwable::getCause)
                    .noneMatch(UnresolvedAddressException.class::isInstance);
            throw new GridException((known ? "no node answers at " + server
                    + "; start one: entresol-grid start, or name another"
                    : "the host of --server " + server + " is not known here; name another")
                    + ": --server HOST:PORT", refused);
        } catch (HttpTimeoutException late) {
            throw new LateException("node " + server + " has not answered " + method + " " + path
                    + " within " + patience.toSeconds() + " s, and may still do it; see what became"
                    + " of it: entresol-grid list, and server/log/node.log of the node's folder",
                    late);
        } catch (IOException failure) {
            Optional<String> tls = encrypted
                    ? TlsFailure.ofEncrypted(host(), port(server), failure)
                    : TlsFailure.ofPlain(host(), port(server));
            throw new GridException(tls.orElseGet(() -> "node " + server + " did not answer "
                    + path + ": " + failure.getMessage() + "; is it still running?"), failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GridException("interrupted while node " + server + " was asked", interrupted);
        }
    }

    private HttpRequest.Builder address(String path) {
        try {
            return HttpRequest.newBuilder(URI.create(
                    (encrypted ? "https://" : "http://") + server + "/rest" + path));
        } catch (IllegalArgumentException mistake) {
            throw new GridException("--server is '" + server + "'; expected HOST:PORT, such as"
                    + " 127.0.0.1:11222", mistake);
        }
    }

    private String host() {
        return server.substring(0, server.lastIndexOf(':'));
    }

    private static int port(String server) {
        return Integer.parseInt(server.substring(server.lastIndexOf(':') + 1));
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
