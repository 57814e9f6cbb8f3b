package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Optional;
import java.util.Properties;
import org.infinispan.commons.io.FileWatcher;
import org.jboss.logging.Logger;

/**
 * TLS of a node's ports. Infinispan takes certificate and key in one file, so the node's folder has
 * a key store of both; it is made anew when the files that people named change, and Infinispan,
 * which watches it, shows the new certificate to connections that come.
 */
final class NodeTls {
    /** In the node's configuration. */
    static final String IDENTITY = "identity.p12";
    static final String TRUSTED = "authorities.p12";
    /** The node's own certificate: by it commands know the node of a folder. */
    static final String OWN = "certificate.pem";

    private static final Logger LOG = Logger.getLogger(NodeTls.class);
    /** In the plan of a node whose ports speak TLS, and two more. */
    static final String CERTIFICATE_FILE = "entresol.tls.cert";
    private static final String KEY_FILE = "entresol.tls.key";
    private static final String AUTHORITIES_FILE = "entresol.tls.client-ca";
    private static final int LINE = 64;

    private NodeTls() {
    }

    /** The files that options name; null: the ports speak in plain. */
    static TlsFiles parse(Path certificate, Path key, Path authorities) {
        if (certificate == null && key == null && authorities == null) {
            return null;
        }
        if (certificate == null || key == null) {
            throw new GridException("--tls-cert and --tls-key go together" + (authorities == null
                    ? "" : ", and --tls-client-ca goes with both") + "; name the files of a"
                    + " certificate and of its key: --tls-cert FILE --tls-key FILE");
        }
        TlsFiles files = new TlsFiles(certificate, key, authorities);
        try {
            files.identity();
            if (authorities != null) {
                files.trusted();
            }
        } catch (IOException mistake) {
            throw new GridException("the files of TLS: " + mistake.getMessage(), mistake);
        }
        return files;
    }

    static void note(TlsFiles files, Properties plan) {
        plan.setProperty(CERTIFICATE_FILE, files.certificate().toAbsolutePath().toString());
        plan.setProperty(KEY_FILE, files.key().toAbsolutePath().toString());
        if (files.authorities() != null) {
            plan.setProperty(AUTHORITIES_FILE, files.authorities().toAbsolutePath().toString());
        }
    }

    static Optional<TlsFiles> of(Properties plan) {
        String authorities = plan.getProperty(AUTHORITIES_FILE);
        return Optional.ofNullable(plan.getProperty(CERTIFICATE_FILE)).map(certificate ->
                new TlsFiles(Path.of(certificate), Path.of(plan.getProperty(KEY_FILE)),
                        authorities == null ? null : Path.of(authorities)));
    }

    /** Makes what the files are to Infinispan; null: removes it. */
    static void write(TlsFiles files, Path folder) throws IOException {
        for (String file : new String[] {IDENTITY, TRUSTED, OWN}) {
            if (files == null || file.equals(TRUSTED) && files.authorities() == null) {
                Files.deleteIfExists(folder.resolve(file));
            }
        }
        if (files == null) {
            return;
        }
        try {
            KeyStore identity = files.identity();
            if (files.authorities() != null) {
                replace(folder.resolve(TRUSTED), files.trusted());
            }
            replace(folder.resolve(IDENTITY), identity);
            byte[] own = identity.getCertificate(identity.aliases().nextElement()).getEncoded();
            Files.writeString(folder.resolve(OWN), "-----BEGIN CERTIFICATE-----\n"
                    + Base64.getMimeEncoder(LINE, "\n".getBytes(StandardCharsets.US_ASCII))
                            .encodeToString(own) + "\n-----END CERTIFICATE-----\n");
        } catch (GeneralSecurityException failure) {
            throw new IOException("Java does not take the files of TLS: " + failure.getMessage(),
                    failure);
        }
    }

    private static void replace(Path file, KeyStore store)
            throws IOException, GeneralSecurityException {
        Path next = file.resolveSibling(file.getFileName() + ".next");
        Files.deleteIfExists(next);
        Files.createFile(next, PosixFilePermissions.asFileAttribute(
                PosixFilePermissions.fromString("rw-------")));
        try (OutputStream to = Files.newOutputStream(next)) {
            store.store(to, TlsFiles.PASSWORD.toCharArray());
        }
        Files.move(next, file, StandardCopyOption.REPLACE_EXISTING,
                StandardCopyOption.ATOMIC_MOVE);
    }

    /** Follows changes of the files. A certificate without its new key yet leaves all as it was. */
    static void watch(TlsFiles files, Path folder) {
        FileWatcher watcher = new FileWatcher();
        for (Path each : files.authorities() == null
                ? new Path[] {files.certificate(), files.key()}
                : new Path[] {files.certificate(), files.key(), files.authorities()}) {
            watcher.watch(each, changed -> {
                try {
                    write(files, folder);
                    LOG.infof("%s has changed: connections that come meet what it says", changed);
                } catch (IOException mistake) {
                    LOG.warnf("%s has changed, and the former certificate stays: %s", changed,
                            mistake.getMessage());
                }
            });
        }
    }
}
