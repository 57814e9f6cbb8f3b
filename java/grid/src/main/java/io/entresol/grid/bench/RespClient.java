package io.entresol.grid.bench;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** A connection that speaks as much RESP2 as writing and reading byte strings takes. */
public final class RespClient implements Closeable {
    private static final int BUFFER_BYTES = 64 * 1024;

    private final Socket socket;
    private final InputStream from;
    private final OutputStream to;

    /** Connects. */
    public RespClient(String host, int port) throws IOException {
        this(host, port, Optional.empty());
    }

    /** The same, by TLS if there is any. */
    public RespClient(String host, int port, Optional<SSLContext> tls) throws IOException {
        socket = tls.isEmpty() ? new Socket(host, port) : encrypted(tls.get(), host, port);
        socket.setTcpNoDelay(true);
        from = new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES);
        to = new BufferedOutputStream(socket.getOutputStream(), BUFFER_BYTES);
    }

    private static Socket encrypted(SSLContext tls, String host, int port) throws IOException {
        SSLSocket socket = (SSLSocket) tls.getSocketFactory().createSocket(host, port);
        SSLParameters parameters = socket.getSSLParameters();
        // Java compares the name with the certificate only where it is told to.
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        socket.setSSLParameters(parameters);
        socket.startHandshake();
        return socket;
    }

    /** Says who asks. */
    public void authenticate(String user, String password) throws IOException {
        call(bytes("AUTH"), bytes(user), bytes(password));
    }

    /** Makes the cache of this name, or of this number, the one that is meant. */
    public void select(String cache) throws IOException {
        call(bytes("SELECT"), bytes(cache));
    }

    /** Puts an entry. */
    public void set(byte[] key, byte[] value) throws IOException {
        call(bytes("SET"), key, value);
    }

    /** The value of a key; null: there is none. */
    public byte[] get(byte[] key) throws IOException {
        return call(bytes("GET"), key);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private byte[] call(byte[]... words) throws IOException {
        to.write(bytes("*" + words.length + "\r\n"));
        for (byte[] word : words) {
            to.write(bytes("$" + word.length + "\r\n"));
            to.write(word);
            to.write('\r');
            to.write('\n');
        }
        to.flush();
        String head = line();
        return switch (head.charAt(0)) {
            case '+', ':' -> bytes(head.substring(1));
            case '_' -> null;
            case '$' -> bulk(Integer.parseInt(head.substring(1)));
            default -> throw new IOException("the node answered " + words.length + " words, "
                    + new String(words[0], StandardCharsets.US_ASCII) + " first, with: " + head);
        };
    }

    private byte[] bulk(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        byte[] value = from.readNBytes(length);
        if (value.length < length || from.read() != '\r' || from.read() != '\n') {
            throw new EOFException("the node ended a value of " + length + " bytes early");
        }
        return value;
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = from.read(); next != '\r'; next = from.read()) {
            if (next < 0) {
                throw new EOFException("the node closed the connection");
            }
            line.append((char) next);
        }
        from.read();
        return line.toString();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
