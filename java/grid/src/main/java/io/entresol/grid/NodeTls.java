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
import java.util.function.UnaryOperator;
import org.infinispan.commons.io.FileWatcher;
import org.jboss.logging.Logger;

/**
 * TLS of a node's ports, of those for clients or those for other nodes. Infinispan takes certificate
 * and key in one file, so the node's folder has a key store of both; it is made anew when the files
 * that people named change, and Infinispan, which watches it, shows the new certificate to
 * connections that come.
 */
enum NodeTls {
    /** Ports for clients, which show certificates where authorities are named. */
    CLIENTS("tls", "client-ca", ""),
    /** Ports for other nodes. Each end shows a certificate. */
    NODES("cluster-tls", "ca", "cluster-");

    private static final Logger LOG = Logger.getLogger(NodeTls.class);
    private static final int LINE = 64;

    /** Of its options, and of its lines in the plan of a node. */
    private final String group;
    private final String trusting;
    private final String prefix;

    NodeTls(String group, String trusting, String prefix) {
        this.group = group;
        this.trusting = trusting;
        this.prefix = prefix;
    }

    /** In the node's configuration: certificate and key. */
    String identity() {
        return prefix + "identity.p12";
    }

    /** The same: certificates of the authorities of the other end. */
    String trusted() {
        return prefix + "authorities.p12";
    }

    /** The same: the node's own certificate. By it commands know the node of a folder. */
    String own() {
        return prefix + "certificate.pem";
    }

    /** The files that options name; none: the ports speak in plain. */
    Optional<TlsFiles> parse(Path certificate, Path key, Path authorities) {
        if (certificate == null && key == null && authorities == null) {
            return Optional.empty();
        }
        if (this == NODES && (certificate == null || key == null || authorities == null)) {
            throw new GridException(option("cert") + ", " + option("key") + " and "
                    + option(trusting) + " go together: each node shows a certificate, and takes"
                    + " those of the authorities; name all three files");
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
        return Optional.of(files);
    }

    private String option(String file) {
        return "--" + group + "-" + file;
    }

    private String line(String file) {
        return "entresol." + group + "." + file;
    }

    void note(TlsFiles files, Properties plan) {
        plan.setProperty(line("cert"), files.certificate().toAbsolutePath().toString());
        plan.setProperty(line("key"), files.key().toAbsolutePath().toString());
        if (files.authorities() != null) {
            plan.setProperty(line(trusting), files.authorities().toAbsolutePath().toString());
        }
    }

    Optional<TlsFiles> of(UnaryOperator<String> plan) {
        String authorities = plan.apply(line(trusting));
        return Optional.ofNullable(plan.apply(line("cert"))).map(certificate ->
                new TlsFiles(Path.of(certificate), Path.of(plan.apply(line("key"))),
                        authorities == null ? null : Path.of(authorities)));
    }

    /** Makes what the files are to Infinispan; null: removes it. */
    void write(TlsFiles files, Path folder) throws IOException {
        for (String file : new String[] {identity(), trusted(), own()}) {
            if (files == null || file.equals(trusted()) && files.authorities() == null) {
                Files.deleteIfExists(folder.resolve(file));
            }
        }
        if (files == null) {
            return;
        }
        try {
            KeyStore identity = files.identity();
            if (files.authorities() != null) {
                replace(folder.resolve(trusted()), files.trusted());
            }
            replace(folder.resolve(identity()), identity);
            byte[] own = identity.getCertificate(identity.aliases().nextElement()).getEncoded();
            Files.writeString(folder.resolve(own()), "-----BEGIN CERTIFICATE-----\n"
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
    void watch(TlsFiles files, Path folder) {
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
