package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import picocli.CommandLine.Option;

/** Options of commands that ask a running node. */
public final class Target {
    private static final String ENCRYPTED = "https://";
    private static final String PLAIN = "http://";

    @Option(names = "--server", paramLabel = "HOST:PORT",
            defaultValue = "${env:ENTRESOL_GRID_SERVER:-127.0.0.1:11222}",
            description = "a running node; else ENTRESOL_GRID_SERVER of the environment"
                    + " (${DEFAULT-VALUE}). https://HOST:PORT asks it by TLS")
    private String server;

    /** Those of these options without a value are in the environment, which is not shown. */
    @Option(names = "--tls-ca", paramLabel = "FILE",
            description = "ask by TLS; the file (PEM) has the authorities of the node's"
                    + " certificate. Else ENTRESOL_GRID_TLS_CA of the environment; without both,"
                    + " https:// takes the authorities that Java knows")
    private Path authorities;

    @Option(names = "--tls-cert", paramLabel = "FILE",
            description = "certificate (PEM) to show a node that demands one")
    private Path certificate;

    @Option(names = "--tls-key", paramLabel = "FILE", description = "its private key (PEM)")
    private Path key;

    @Option(names = "--user", paramLabel = "NAME", description = "where users are asked for")
    private String user;

    /** A default would have what looks like a variable in it replaced. */
    @Option(names = "--password", paramLabel = "PASSWORD",
            description = "its password; else ENTRESOL_GRID_PASSWORD of the environment")
    private String password;

    @Option(names = "--json", description = "print JSON")
    private boolean json;

    /** The node. */
    public Rest rest() {
        return rest(address(), tls());
    }

    /** Another node of the cluster, asked by the same user. */
    public Rest rest(String address) {
        return rest(address, tls());
    }

    /** A node that is known to speak TLS, or not to, asked by the same user. */
    Rest rest(String address, Optional<SSLContext> tls) {
        if (user != null && password() == null) {
            throw new GridException("--user " + user + " has no password; put it into"
                    + " ENTRESOL_GRID_PASSWORD, or give --password");
        }
        return new Rest(address, user, password(), tls.orElse(null));
    }

    /** What the node is asked by; empty: in plain. */
    public Optional<SSLContext> tls() {
        return tlsFiles().map(Target::context);
    }

    /** The files of TLS; empty: the node is asked in plain. */
    Optional<TlsFiles> tlsFiles() {
        Path trusted = authorities();
        boolean named = trusted != null || certificate != null || key != null;
        if (server.startsWith(PLAIN) && (authorities != null || certificate != null)) {
            throw new GridException("--server " + server + " is in plain, and --tls-ca, --tls-cert"
                    + " and --tls-key are for TLS; name it https://HOST:PORT, or leave them out");
        }
        if ((certificate == null) != (key == null)) {
            throw new GridException("--tls-cert and --tls-key go together; name both files");
        }
        return server.startsWith(ENCRYPTED) || named && !server.startsWith(PLAIN)
                ? Optional.of(new TlsFiles(certificate, key, trusted)) : Optional.empty();
    }

    /** The same, for a node that is known by its own certificate. */
    SSLContext tlsOf(Path own) {
        try {
            return new TlsFiles(certificate, key, null).context(new OwnCertificate(own));
        } catch (IOException mistake) {
            throw new GridException("the files of TLS: " + mistake.getMessage(), mistake);
        }
    }

    private static SSLContext context(TlsFiles files) {
        try {
            return files.context();
        } catch (IOException mistake) {
            throw new GridException("the files of TLS: " + mistake.getMessage(), mistake);
        }
    }

    private Path authorities() {
        String named = System.getenv("ENTRESOL_GRID_TLS_CA");
        return authorities != null || named == null || named.isEmpty() ? authorities
                : Path.of(named);
    }

    /** Whether JSON is wanted. */
    public boolean json() {
        return json;
    }

    private String address() {
        String address = server.startsWith(ENCRYPTED) ? server.substring(ENCRYPTED.length())
                : server.startsWith(PLAIN) ? server.substring(PLAIN.length()) : server;
        return address.endsWith("/") ? address.substring(0, address.length() - 1) : address;
    }

    /** The host's part of the address. */
    public String host() {
        return address().substring(0, address().lastIndexOf(':'));
    }

    /** The port's part of the address. */
    public int port() {
        return Integer.parseInt(address().substring(address().lastIndexOf(':') + 1));
    }

    /** Who asks; null: nobody in particular. */
    public String user() {
        return user;
    }

    /** The user's password. */
    public String password() {
        return password == null ? System.getenv("ENTRESOL_GRID_PASSWORD") : password;
    }
}
