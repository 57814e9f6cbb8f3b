package io.entresol.jdbc;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/**
 * The files of one end of TLS, all of them in PEM. The messages of what is thrown name the file and
 * never show a part of a key.
 *
 * @param certificate the certificate of this end, and those between it and its authority; null:
 *     this end shows none
 * @param key the private key of the certificate
 * @param authorities the authorities of the other end's certificate; null: those that Java knows
 */
public record TlsFiles(Path certificate, Path key, Path authorities) {
    /** Of key stores in files: the mode of the file keeps them, as it does the file of the key. */
    public static final String PASSWORD = "entresol";

    private static final Pattern KEY = Pattern.compile(
            "-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----([^-]*)-----END ");
    private static final String PLAIN_KEY = "PRIVATE KEY";
    private static final byte[] PROBE = {1, 2, 3};

    /** What both ends use. */
    public SSLContext context() throws IOException {
        try {
            return context(trusting().getTrustManagers());
        } catch (GeneralSecurityException failure) {
            throw refused(failure);
        }
    }

    /** The same, where others say whose certificates count. */
    public SSLContext context(TrustManager... trusted) throws IOException {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(certificate == null ? null : keyManagers(), trusted, null);
            return context;
        } catch (GeneralSecurityException failure) {
            throw refused(failure);
        }
    }

    private static IOException refused(GeneralSecurityException failure) {
        return new IOException("Java does not take the files of TLS: " + failure.getMessage(),
                failure);
    }

    private KeyManager[] keyManagers() throws GeneralSecurityException, IOException {
        KeyManagerFactory keys =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(identity(), PASSWORD.toCharArray());
        return keys.getKeyManagers();
    }

    private TrustManagerFactory trusting() throws GeneralSecurityException, IOException {
        TrustManagerFactory trusted =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(authorities == null ? null : trusted());
        return trusted;
    }

    /** The certificate with its key, under the {@link #PASSWORD}. */
    public KeyStore identity() throws IOException {
        Certificate[] chain = certificates(certificate).toArray(Certificate[]::new);
        try {
            KeyStore store = empty();
            store.setKeyEntry("identity", key(chain[0].getPublicKey()), PASSWORD.toCharArray(),
                    chain);
            return store;
        } catch (GeneralSecurityException failure) {
            throw new IOException("Java does not take the certificate in " + certificate + ": "
                    + failure.getMessage(), failure);
        }
    }

    /** The certificates of the authorities. */
    public KeyStore trusted() throws IOException {
        try {
            KeyStore store = empty();
            int number = 0;
            for (Certificate each : certificates(authorities)) {
                store.setCertificateEntry("authority-" + number++, each);
            }
            return store;
        } catch (GeneralSecurityException failure) {
            throw new IOException("Java does not take the certificates in " + authorities + ": "
                    + failure.getMessage(), failure);
        }
    }

    private static KeyStore empty() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    /** The certificates in a file, at least one. */
    public static Collection<? extends Certificate> certificates(Path file) throws IOException {
        try {
            Collection<? extends Certificate> found = CertificateFactory.getInstance("X.509")
                    .generateCertificates(new ByteArrayInputStream(bytes(file)));
            if (!found.isEmpty()) {
                return found;
            }
        } catch (CertificateException mistake) {
            throw new IOException(file + " has no certificate that can be read; expected PEM, with"
                    + " lines -----BEGIN CERTIFICATE-----", mistake);
        }
        throw new IOException(file + " has no certificate; expected PEM, with lines"
                + " -----BEGIN CERTIFICATE-----");
    }

    private PrivateKey key(PublicKey of) throws IOException, GeneralSecurityException {
        Matcher found = KEY.matcher(new String(bytes(key),
                StandardCharsets.ISO_8859_1));
        if (!found.find()) {
            throw new IOException(key + " has no private key; expected PEM, with a line"
                    + " -----BEGIN PRIVATE KEY-----");
        }
        if (!found.group(1).equals(PLAIN_KEY)) {
            throw new IOException(key + " has its key as '" + found.group(1) + "'; expected '"
                    + PLAIN_KEY + "'. Write it so: openssl pkcs8 -topk8 -nocrypt -in " + key
                    + " -out NEW");
        }
        PrivateKey read;
        try {
            read = KeyFactory.getInstance(of.getAlgorithm()).generatePrivate(
                    new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(2))));
        } catch (GeneralSecurityException | IllegalArgumentException other) {
            // Without what Java says of it, and of the bytes of the key.
            throw new IOException(key + " has no private key of the kind that the certificate in "
                    + certificate + " is for, which is " + of.getAlgorithm()
                    + "; name the two that belong together");
        }
        if (!belongTogether(read, of)) {
            throw new IOException(key + " is not the key of the certificate in " + certificate
                    + "; name the two that belong together");
        }
        return read;
    }

    private static boolean belongTogether(PrivateKey key, PublicKey of)
            throws GeneralSecurityException {
        String signing = switch (of.getAlgorithm()) {
            case "RSA" -> "SHA256withRSA";
            case "EC" -> "SHA256withECDSA";
            default -> of.getAlgorithm();
        };
        Signature signature = Signature.getInstance(signing);
        signature.initSign(key);
        signature.update(PROBE);
        byte[] signed = signature.sign();
        signature.initVerify(of);
        signature.update(PROBE);
        return signature.verify(signed);
    }

    private static byte[] bytes(Path file) throws IOException {
        try {
            return Files.readAllBytes(file);
        } catch (IOException failure) {
            throw new IOException(file + " cannot be read (" + failure.getClass().getSimpleName()
                    + "); name another file, or let this user read it", failure);
        }
    }
}
