package io.entresol.grid;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509TrustManager;

/** Sentences for a command and a port that could not speak because of TLS. */
final class TlsFailure {
    private static final int PATIENCE_MILLIS = 2_000;
    /** Of Java, about the first bytes of an answer. */
    private static final String NO_TLS = "Unsupported or unrecognized SSL message";

    private TlsFailure() {
    }

    /** What is behind a port. */
    private enum Speaks { PLAIN, TLS, TLS_WITH_CERTIFICATES }

    /** Why a node could not be asked in plain, if it is that its port speaks TLS. */
    static Optional<String> ofPlain(String host, int port) {
        return speaks(host, port) == Speaks.PLAIN ? Optional.empty() : Optional.of("node " + host
                + ":" + port + " speaks TLS; name its authorities: --tls-ca FILE, or ask it by"
                + " --server https://" + host + ":PORT where Java knows them");
    }

    /** Why a node could not be asked by TLS, if it is for TLS. */
    static Optional<String> ofEncrypted(String host, int port, Throwable failure) {
        String node = "node " + host + ":" + port;
        Optional<Throwable> certificate = causes(failure)
                .filter(cause -> cause instanceof CertificateException
                        || cause instanceof CertPathValidatorException)
                .reduce((first, last) -> last);
        String all = causes(failure).map(cause -> String.valueOf(cause.getMessage()))
                .reduce("", (one, other) -> one + "\n" + other);
        if (all.contains(NO_TLS)) {
            return Optional.of(node + " does not speak TLS; ask it in plain: leave out https://"
                    + " and --tls-ca, and ENTRESOL_GRID_TLS_CA of the environment");
        } else if (all.contains("No subject alternative") || all.contains("No name matching")) {
            return Optional.of("the certificate of " + node + " is for other names ("
                    + certificate.map(Throwable::getMessage).orElse("") + "); name the node as its"
                    + " certificate does: --server https://HOST:PORT");
        } else if (all.contains("PKIX path") || all.contains("trustAnchors")) {
            return Optional.of("the certificate of " + node + " is of no authority that is known"
                    + " here; name the file with its authority: --tls-ca FILE");
        } else if (certificate.isPresent()) {
            return Optional.of("the certificate of " + node + " is not valid ("
                    + certificate.get().getMessage() + "); give the node another one, or name the"
                    + " file with its authority: --tls-ca FILE");
        }
        // Whoever is refused for it sees an end of the connection and no more.
        if (speaks(host, port) == Speaks.TLS_WITH_CERTIFICATES) {
            return Optional.of(node + " takes clients with a certificate of its --tls-client-ca"
                    + " only; show one: --tls-cert FILE --tls-key FILE");
        }
        return causes(failure).filter(SSLException.class::isInstance).findFirst()
                .map(other -> node + " and this command do not agree on TLS: "
                        + other.getMessage());
    }

    private static Stream<Throwable> causes(Throwable failure) {
        return Stream.iterate(failure, Objects::nonNull, Throwable::getCause);
    }

    /** Asks for no more than that: nothing that matters is sent. */
    private static Speaks speaks(String host, int port) {
        Nobody nobody = new Nobody();
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, port), PATIENCE_MILLIS);
            socket.setSoTimeout(PATIENCE_MILLIS);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(new KeyManager[] {nobody}, new TrustManager[] {new Anybody()}, null);
            try (SSLSocket encrypted = (SSLSocket) context.getSocketFactory()
                    .createSocket(socket, host, port, true)) {
                encrypted.startHandshake();
                return nobody.speaks();
            }
        } catch (SSLException refused) {
            return String.valueOf(refused.getMessage()).contains(NO_TLS) ? Speaks.PLAIN
                    : nobody.speaks();
        } catch (IOException | GeneralSecurityException other) {
            return Speaks.PLAIN;
        }
    }

    /** Has no certificate, and notes whether it was asked for one. */
    private static final class Nobody extends X509ExtendedKeyManager {
        private boolean asked;

        Speaks speaks() {
            return asked ? Speaks.TLS_WITH_CERTIFICATES : Speaks.TLS;
        }

        @Override
        public String chooseClientAlias(String[] types, Principal[] issuers, Socket socket) {
            asked = true;
            return null;
        }

        @Override
        public String[] getClientAliases(String type, Principal[] issuers) {
            return null;
        }

        @Override
        public String[] getServerAliases(String type, Principal[] issuers) {
            return null;
        }

        @Override
        public String chooseServerAlias(String type, Principal[] issuers, Socket socket) {
            return null;
        }

        @Override
        public X509Certificate[] getCertificateChain(String alias) {
            return null;
        }

        @Override
        public PrivateKey getPrivateKey(String alias) {
            return null;
        }
    }

    private static final class Anybody implements X509TrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {
            // No server asks here.
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {
            // Whoever it is, it speaks TLS.
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
