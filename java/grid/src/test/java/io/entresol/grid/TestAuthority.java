package io.entresol.grid;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.security.cert.X509Certificate;
import java.time.ZonedDateTime;
import java.util.Base64;
import java.util.List;
import javax.security.auth.x500.X500Principal;
import org.wildfly.security.x500.GeneralName;
import org.wildfly.security.x500.cert.BasicConstraintsExtension;
import org.wildfly.security.x500.cert.SubjectAlternativeNamesExtension;
import org.wildfly.security.x500.cert.X509CertificateBuilder;

/** An authority of certificates, made for a test. */
final class TestAuthority {
    private static final String ALGORITHM = "SHA256withECDSA";

    private final String name;
    private final KeyPair keys = keys();
    /** Its own certificate, in PEM. */
    final Path file;
    private int issued;

    TestAuthority(Path folder, String name) throws IOException {
        this.name = name;
        file = folder.resolve(name + ".pem");
        Files.writeString(file, certificate("CN=" + name, keys.getPublic(), null));
    }

    /** A certificate and its key in two files, FILE.pem and FILE.key. */
    void issue(Path certificate, String address) throws IOException {
        KeyPair own = keys();
        Files.writeString(keyOf(certificate), pem("PRIVATE KEY", own.getPrivate().getEncoded()));
        Files.writeString(certificate, certificate("CN=" + certificate.getFileName(),
                own.getPublic(), address));
    }

    static Path keyOf(Path certificate) {
        return certificate.resolveSibling(certificate.getFileName() + ".key");
    }

    private String certificate(String subject, PublicKey key, String address) {
        try {
            X509CertificateBuilder builder = new X509CertificateBuilder()
                    .setIssuerDn(new X500Principal("CN=" + name))
                    .setSubjectDn(new X500Principal(subject))
                    .setSerialNumber(BigInteger.valueOf(++issued))
                    .setNotValidBefore(ZonedDateTime.now().minusDays(1))
                    .setNotValidAfter(ZonedDateTime.now().plusDays(1))
                    .setPublicKey(key).setSigningKey(keys.getPrivate())
                    .setSignatureAlgorithmName(ALGORITHM);
            builder.addExtension(address == null ? new BasicConstraintsExtension(true, true, 0)
                    : new SubjectAlternativeNamesExtension(false,
                            List.of(new GeneralName.IPAddress(address))));
            X509Certificate made = builder.build();
            return pem("CERTIFICATE", made.getEncoded());
        } catch (GeneralSecurityException failure) {
            throw new AssertionError(failure);
        }
    }

    private static String pem(String kind, byte[] bytes) {
        return "-----BEGIN " + kind + "-----\n"
                + Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII))
                        .encodeToString(bytes) + "\n-----END " + kind + "-----\n";
    }

    private static KeyPair keys() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
            generator.initialize(256);
            return generator.generateKeyPair();
        } catch (GeneralSecurityException failure) {
            throw new AssertionError(failure);
        }
    }
}
