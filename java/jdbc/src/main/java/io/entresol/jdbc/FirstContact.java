package io.entresol.jdbc;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/**
 * A request that any server of HTTP answers, before a connection is opened. Avatica repeats what is
 * not answered, at once and for ever, as a port is that speaks TLS to whoever speaks in plain.
 */
final class FirstContact {
    /** Nothing stands there: a server that has pages makes none for it. */
    private static final String PATH = "/first-contact";
    private static final int PATIENCE_MILLIS = 10_000;
    private static final int HTTP_PORT = 80;
    private static final int HTTPS_PORT = 443;

    private FirstContact() {}

    /** Asks the server of that address, {@code http://} or {@code https://}. */
    static void make(String server, TlsFiles files) throws IOException {
        URI address = URI.create(server);
        boolean encrypted = address.getScheme().equals("https");
        String host = address.getHost();
        if (host == null) {
            throw new IOException("expected http://HOST:PORT");
        }
        int port = address.getPort() >= 0 ? address.getPort()
                : encrypted ? HTTPS_PORT : HTTP_PORT;
        try (Socket plain = new Socket()) {
            plain.connect(new InetSocketAddress(host, port), PATIENCE_MILLIS);
            plain.setSoTimeout(PATIENCE_MILLIS);
            if (!encrypted) {
                ask(plain, host);
                return;
            }
            try (SSLSocket socket = (SSLSocket) files.context().getSocketFactory()
                    .createSocket(plain, host, port, true)) {
                SSLParameters parameters = socket.getSSLParameters();
                parameters.setEndpointIdentificationAlgorithm("HTTPS");
                socket.setSSLParameters(parameters);
                ask(socket, host);
            }
        }
    }

    private static void ask(Socket socket, String host) throws IOException {
        socket.getOutputStream().write(("HEAD " + PATH + " HTTP/1.1\r\nHost: " + host
                + "\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.ISO_8859_1));
        // A port of TLS says in its own way that it did not understand.
        if (socket.getInputStream().read() != 'H') {
            throw new EOFException("it does not answer in HTTP, as a port does not that"
                    + (socket instanceof SSLSocket ? " demands a certificate: name tls-cert and"
                            + " tls-key" : " speaks TLS: write https://HOST:PORT"));
        }
    }
}
