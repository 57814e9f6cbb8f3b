//! TLS out of PEM files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::error::SettingError;

/// The port that speaks TLS, which tells the options that name its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPort {
    /// That of clients (`tls-cert`, …). Where certificates are asked for, one without is refused.
    Clients,
    /// That of the HTTP interface (`admin-tls-cert`, …). Where certificates are asked for, one
    /// without is let in, as probes have none; what it sees is the matter of what answers it.
    Admin,
}

/// The files that TLS is made of, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The port that they are for.
    pub port: TlsPort,
    /// The server's certificate, and those between it and the authority.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// Certificates of the authorities that clients' certificates must come from; without, clients
    /// show none.
    pub client_authority: Option<PathBuf>,
}

impl TlsFiles {
    /// The files of `port` named by its options `tls-cert`, `tls-key` and `tls-client-ca`; `None`
    /// if there are none of the first two.
    ///
    /// # Errors
    /// One of the first two comes without the other, or the third without both.
    pub fn from_options(
        port: TlsPort,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_authority: Option<PathBuf>,
    ) -> Result<Option<TlsFiles>, SettingError> {
        let alone = |missing: &str, given: &str| {
            let given = port.option(given);
            let detail = format!("expected a file, found none; `{given}` is given and needs it");
            Err(port.wrong(missing, detail))
        };
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Ok(Some(TlsFiles { port, certificate, key, client_authority }))
            }
            (Some(_), None) => alone("tls-key", "tls-cert"),
            (None, Some(_)) => alone("tls-cert", "tls-key"),
            (None, None) if client_authority.is_some() => alone("tls-cert", "tls-client-ca"),
            (None, None) => Ok(None),
        }
    }

    /// When the first of the certificates ends that the server shows, seconds since the epoch;
    /// `None`, if one of them is no certificate of X.509.
    fn end_seconds(&self) -> Result<Option<i64>, SettingError> {
        let chain = self.port.certificates("tls-cert", &self.certificate)?;
        let ends = chain.iter().map(|certificate| {
            let parsed = x509_parser::parse_x509_certificate(certificate).ok();
            parsed.map(|(_, certificate)| certificate.validity().not_after.timestamp())
        });
        Ok(ends.collect::<Option<Vec<i64>>>().and_then(|ends| ends.into_iter().min()))
    }

    /// How a server's connections speak TLS, from these files.
    ///
    /// # Errors
    /// A file cannot be read or does not hold what it should.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, SettingError> {
        let TlsFiles { port, certificate, key, client_authority } = self;
        let wrong = |option: &str, detail: String| port.wrong(option, detail);
        let chain = port.certificates("tls-cert", certificate)?;
        let key = port.private_key(key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("tls-cert", error.to_string()))?;
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in port.certificates("tls-client-ca", path)? {
                    roots
                        .add(authority)
                        .map_err(|error| wrong("tls-client-ca", error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::new(roots),
                    Arc::clone(&provider),
                );
                let verifier = match port {
                    TlsPort::Clients => verifier,
                    TlsPort::Admin => verifier.allow_unauthenticated(),
                };
                let verifier =
                    verifier.build().map_err(|error| wrong("tls-client-ca", error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        provider.key_provider.load_private_key(key.clone_key()).map_err(|error| {
            let shown = self.key.display();
            wrong("tls-key", format!("the key in {shown} cannot be used: {error}; {KEYS_TAKEN}"))
        })?;
        let config = builder.with_single_cert(chain, key).map_err(|error| {
            wrong("tls-cert", format!("certificate and key do not go together: {error}"))
        })?;
        Ok(Arc::new(config))
    }
}

/// How a server's connections speak TLS, from files that it can read again while it serves.
/// Connections that are there go on as they began. Thread-safe.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    present: RwLock<Present>,
}

/// What the files said when they were read last.
#[derive(Debug)]
struct Present {
    config: Arc<ServerConfig>,
    end_seconds: Option<i64>,
}

impl Present {
    fn read(files: &TlsFiles) -> Result<Present, SettingError> {
        let config = files.server_config()?;
        Ok(Present { config, end_seconds: files.end_seconds()? })
    }
}

impl Tls {
    /// TLS as `files` say now.
    ///
    /// # Errors
    /// As of [`TlsFiles::server_config`].
    pub fn open(files: TlsFiles) -> Result<Tls, SettingError> {
        let present = RwLock::new(Present::read(&files)?);
        Ok(Tls { files, present })
    }

    /// Whether it asks clients for certificates.
    pub fn asks_for_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    /// How the next connection speaks it.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner).config)
    }

    /// When the first of the certificates ends that the next connection is shown, seconds since the
    /// epoch; `None`, if that cannot be told.
    pub fn end_seconds(&self) -> Option<u64> {
        let end = self.present.read().unwrap_or_else(PoisonError::into_inner).end_seconds?;
        // One that ended before the epoch has ended all the same.
        Some(end.max(0) as u64)
    }

    /// Reads the files again, for connections to come.
    ///
    /// # Errors
    /// As of [`TlsFiles::server_config`]; then all stays as it was.
    pub fn reload(&self) -> Result<(), SettingError> {
        let present = Present::read(&self.files)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = present;
        Ok(())
    }
}

/// Which private keys the TLS of servers and clients works with.
const KEYS_TAKEN: &str =
    "expected RSA of 2048, 3072 or 4096 bits, ECDSA on P-256 or P-384, or Ed25519";

impl TlsPort {
    /// The name of its option `name`.
    fn option(self, name: &str) -> String {
        match self {
            TlsPort::Clients => name.to_owned(),
            TlsPort::Admin => format!("admin-{name}"),
        }
    }

    fn wrong(self, option: &str, detail: String) -> SettingError {
        SettingError::new(self.option(option), detail)
    }

    fn private_key(self, path: &Path) -> Result<PrivateKeyDer<'static>, SettingError> {
        let shown = path.display();
        PrivateKeyDer::from_pem_file(path).map_err(|error| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let detail = match text.contains("ENCRYPTED") {
                true => format!(
                    "expected a private key without a passphrase in {shown}, found an encrypted \
                     one; `openssl pkey -in {shown} -out FILE` writes it without"
                ),
                false => format!("expected a private key (PEM) in {shown}: {error}"),
            };
            self.wrong("tls-key", detail)
        })
    }

    fn certificates(
        self,
        option: &str,
        path: &Path,
    ) -> Result<Vec<CertificateDer<'static>>, SettingError> {
        let shown = path.display();
        let expected = format!("expected certificates (PEM) in {shown}");
        let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
            .map_err(|error| self.wrong(option, format!("{shown} cannot be read: {error}")))?
            .collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(self.wrong(option, format!("{expected}, found none"))),
            Err(error) => Err(self.wrong(option, format!("{expected}: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_passphrase_is_refused_with_the_way_to_take_it_off() {
        let path = std::env::temp_dir().join(format!("entresol-key-{}.pem", std::process::id()));
        let begins = [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n",
        ];
        for begin in begins {
            std::fs::write(&path, begin).expect("a file is written");
            let error =
                TlsPort::Clients.private_key(&path).expect_err("it is encrypted").to_string();
            assert!(error.contains("`openssl pkey -in "), "{error}");
        }
        std::fs::remove_file(&path).expect("it was written");
    }
}
