//! TLS out of PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::config::{Config, ConfigError};

/// How TCP connections speak TLS; `None` if they do not.
///
/// # Errors
/// A file cannot be read or does not hold what it should.
pub(crate) fn server_config(config: &Config) -> Result<Option<Arc<ServerConfig>>, ConfigError> {
    let (cert, key) = match (config.tls_cert(), config.tls_key()) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        (Some(_), None) => {
            return Err(wrong(
                "tls-key",
                "expected a file, found none; `tls-cert` is given and needs its key".to_owned(),
            ));
        }
        (None, Some(_)) => {
            return Err(wrong(
                "tls-cert",
                "expected a file, found none; `tls-key` is given and needs its certificate"
                    .to_owned(),
            ));
        }
    };
    let chain = certificates("tls-cert", &cert)?;
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| {
        wrong("tls-key", format!("expected a private key (PEM) in {}: {error}", key.display()))
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("tls-cert", error.to_string()))?;
    let builder = match config.tls_client_ca() {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("tls-client-ca", &path)? {
                roots.add(authority).map_err(|error| wrong("tls-client-ca", error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| wrong("tls-client-ca", error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| {
        wrong("tls-cert", format!("certificate and key do not go together: {error}"))
    })?;
    Ok(Some(Arc::new(config)))
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let shown = path.display();
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| wrong(key, format!("{shown} cannot be read: {error}")))?
        .collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(wrong(key, format!("expected certificates (PEM) in {shown}, found none"))),
        Err(error) => Err(wrong(key, format!("expected certificates (PEM) in {shown}: {error}"))),
    }
}

fn wrong(key: &str, detail: String) -> ConfigError {
    ConfigError::new("configuration", key, detail)
}
