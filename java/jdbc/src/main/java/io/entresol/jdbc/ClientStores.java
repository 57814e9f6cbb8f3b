package io.entresol.jdbc;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * The key stores of a connection by TLS. Avatica takes them as files, which it reads while it
 * connects; they are gone after that.
 */
final class ClientStores implements AutoCloseable {
    static final String AUTHORITIES = "tls-ca";
    private static final String CERTIFICATE = "tls-cert";
    private static final String KEY = "tls-key";

    private final TlsFiles files;
    private final List<Path> made = new ArrayList<>();

    private ClientStores(TlsFiles files) {
        this.files = files;
    }

    /** Replaces the names of files in PEM by what Avatica takes. */
    static ClientStores of(String server, Properties properties) throws SQLException {
        Path authorities = taken(properties, AUTHORITIES);
        Path certificate = taken(properties, CERTIFICATE);
        Path key = taken(properties, KEY);
        TlsFiles files = new TlsFiles(certificate, key, authorities);
        ClientStores stores = new ClientStores(files);
        if (authorities == null && certificate == null && key == null) {
            return stores;
        }
        if (!server.startsWith("https://")) {
            throw new SQLException("address " + server + " of a server of SQL is not of TLS, and "
                    + AUTHORITIES + " is for TLS; write https://HOST:PORT");
        }
        if ((certificate == null) != (key == null)) {
            throw new SQLException(CERTIFICATE + " and " + KEY + " go together; name both files");
        }
        try {
            properties.setProperty("keystore_type", "PKCS12");
            if (authorities != null) {
                properties.setProperty("truststore", stores.written(files.trusted()));
                properties.setProperty("truststore_password", TlsFiles.PASSWORD);
            }
            if (certificate != null) {
                properties.setProperty("keystore", stores.written(files.identity()));
                properties.setProperty("keystore_password", TlsFiles.PASSWORD);
                properties.setProperty("key_password", TlsFiles.PASSWORD);
            }
        } catch (IOException | GeneralSecurityException failure) {
            stores.close();
            throw new SQLException(failure.getMessage(), failure);
        }
        return stores;
    }

    /** The files in PEM. */
    TlsFiles files() {
        return files;
    }

    private static Path taken(Properties properties, String name) {
        String file = properties.getProperty(name);
        properties.remove(name);
        return file == null ? null : Path.of(file);
    }

    /** For the owner alone, as temporary files are. */
    private String written(KeyStore store) throws IOException, GeneralSecurityException {
        Path file = Files.createTempFile("entresol-tls", ".p12");
        made.add(file);
        try (OutputStream to = Files.newOutputStream(file)) {
            store.store(to, TlsFiles.PASSWORD.toCharArray());
        }
        return file.toString();
    }

    @Override
    public void close() {
        for (Path each : made) {
            try {
                Files.deleteIfExists(each);
            } catch (IOException failure) {
                each.toFile().deleteOnExit();
            }
        }
    }
}
