//! The HTTP interface by TLS: who gets what, and who gets nothing.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use entresol_net::{Admin, AdminAccess, Answer, Asked, Site, TlsFiles, TlsPort};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

const TOKEN: &str = "0123456789abcdef";

/// An authority, and files with what it certifies.
struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    directory: PathBuf,
}

impl Authority {
    fn new() -> Authority {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("entresol-admin-tls-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Authority { issuer, directory }
    }

    fn issue(&self) -> (rcgen::Certificate, rcgen::KeyPair) {
        let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A server's files; with `client_authority` it asks for certificates.
    fn files(&self, client_authority: Option<&Authority>) -> TlsFiles {
        let (certificate, key) = self.issue();
        TlsFiles {
            port: TlsPort::Admin,
            certificate: self.write("cert", &certificate.pem()),
            key: self.write("key", &key.serialize_pem()),
            client_authority: client_authority.map(|one| self.write("ca", &one.issuer.pem())),
        }
    }

    /// A client that trusts it; with `identity`, it shows a certificate of that authority.
    fn client(&self, identity: Option<&Authority>) -> Arc<ClientConfig> {
        self.client_of(rustls::DEFAULT_VERSIONS, identity)
    }

    fn client_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        identity: Option<&Authority>,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match identity {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let (certificate, key) = authority.issue();
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        })
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// A site of pages that are as long as their path says.
#[derive(Default)]
struct Pages {
    stops: AtomicBool,
}

impl Site for Pages {
    fn is_stopping(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    fn page(&self, asked: &Asked<'_>) -> Option<Answer> {
        let length = asked.path.trim_start_matches('/').parse().unwrap_or(2);
        Some(Answer::json("200 OK", "x".repeat(length)))
    }
}

fn while_served(access: &Arc<AdminAccess>, body: impl FnOnce(SocketAddr)) {
    let pages = Pages::default();
    let admin = Admin::open("127.0.0.1", 0, Arc::clone(access)).unwrap();
    let address = admin.address();
    std::thread::scope(|scope| {
        scope.spawn(|| admin.serve(&pages).unwrap());
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(address)));
        pages.stops.store(true, Ordering::Relaxed);
        ended.unwrap();
    });
}

fn by_tls(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    // An answer that never comes fails the test.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    StreamOwned::new(connection, stream)
}

/// The answer, whose end the server says: an answer that was cut off is an error.
fn get(address: SocketAddr, config: &Arc<ClientConfig>, request: &str) -> io::Result<String> {
    let mut stream = by_tls(address, config);
    stream.write_all(format!("{request}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn pages_are_shown_by_tls_and_nothing_in_plain() {
    let authority = Authority::new();
    let token = authority.write("token", TOKEN);
    let access = AdminAccess::open(Some(token), Some(authority.files(None))).unwrap();
    while_served(&Arc::new(access), |address| {
        let client = authority.client(None);
        let health = get(address, &client, "GET /health HTTP/1.1").unwrap();
        assert!(health.starts_with("HTTP/1.1 200"), "{health}");
        assert!(get(address, &client, "GET /1 HTTP/1.1").unwrap().starts_with("HTTP/1.1 401"));
        let shown = format!("GET https://x/3 HTTP/1.1\r\nAuthorization: Bearer {TOKEN}");
        assert!(get(address, &client, &shown).unwrap().ends_with("\r\n\r\nxxx"));
        let signs_in = format!("GET /console/sign-in HTTP/1.1\r\nAuthorization: Bearer {TOKEN}");
        let signed = get(address, &client, &signs_in).unwrap();
        assert!(signed.contains("; SameSite=Strict; Secure\r\n"), "{signed}");
        let mut plain = TcpStream::connect(address).unwrap();
        plain.write_all(b"GET /health HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // It may end in a reset.
        drop(plain.read_to_end(&mut answer));
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    });
}

/// The server's last word of a handshake of TLS 1.2 was not sent: the client waited for it, and
/// sent no request.
#[test]
fn pages_are_shown_by_either_version_of_tls() {
    let authority = Authority::new();
    let access = AdminAccess::open(None, Some(authority.files(Some(&authority)))).unwrap();
    while_served(&Arc::new(access), |address| {
        for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
            for (identity, status) in [(None, "403"), (Some(&authority), "200")] {
                let client = authority.client_of(versions, identity);
                let answer = get(address, &client, "GET /1 HTTP/1.1").unwrap();
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            }
        }
    });
}

#[test]
fn probes_show_no_certificate_and_whoever_asks_for_figures_does() {
    let (authority, others) = (Authority::new(), Authority::new());
    let files = authority.files(Some(&authority));
    let access = AdminAccess::open(None, Some(files)).unwrap();
    while_served(&Arc::new(access), |address| {
        let (unknown, known) = (authority.client(None), authority.client(Some(&authority)));
        for path in ["/health", "/health/live", "/health/ready"] {
            let answer = get(address, &unknown, &format!("GET {path} HTTP/1.1")).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        for path in ["/", "/stats", "/console/style.css", "/healthy"] {
            let request = format!("GET {path} HTTP/1.1");
            let refused = get(address, &unknown, &request).unwrap();
            assert!(refused.starts_with("HTTP/1.1 403"), "{path}: {refused}");
            let answer = get(address, &known, &request).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        let foreign = authority.client(Some(&others));
        assert!(get(address, &foreign, "GET /health HTTP/1.1").is_err(), "a false certificate");
    });
}

#[test]
fn a_certificate_does_not_stand_in_for_the_token() {
    let authority = Authority::new();
    let token = authority.write("token", TOKEN);
    let files = authority.files(Some(&authority));
    let access = AdminAccess::open(Some(token), Some(files)).unwrap();
    while_served(&Arc::new(access), |address| {
        let (unknown, known) = (authority.client(None), authority.client(Some(&authority)));
        let shown = format!("GET /1 HTTP/1.1\r\nAuthorization: Bearer {TOKEN}");
        for (client, request, status) in [
            (&unknown, shown.as_str(), "403"),
            (&known, "GET /1 HTTP/1.1", "401"),
            (&known, shown.as_str(), "200"),
        ] {
            let answer = get(address, client, request).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
        }
    });
}

/// Of these lengths TLS and the socket hold back all, all but the end, or a part.
#[test]
fn an_answer_is_whole_however_long_it_is_and_however_late_it_is_taken() {
    const STEP: usize = 192 << 10;
    let authority = Authority::new();
    let access = AdminAccess::open(None, Some(authority.files(None))).unwrap();
    while_served(&Arc::new(access), |address| {
        let client = authority.client(None);
        for length in (1..40).map(|steps| steps * STEP) {
            let mut late = by_tls(address, &client);
            late.write_all(format!("GET /{length} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
            let mut first = [0; 12];
            late.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
            // Others are served meanwhile, beside those who come and say nothing.
            let _silent = TcpStream::connect(address).unwrap();
            assert!(get(address, &client, "GET /3 HTTP/1.1").unwrap().ends_with("\r\n\r\nxxx"));
            let mut rest = String::new();
            late.read_to_string(&mut rest).unwrap();
            assert_eq!(rest.split_once("\r\n\r\n").unwrap().1.len(), length);
        }
    });
}

#[test]
fn certificates_that_are_read_again_are_for_visitors_to_come() {
    let (authority, others) = (Authority::new(), Authority::new());
    let access = Arc::new(AdminAccess::open(None, Some(authority.files(None))).unwrap());
    let reload = || access.tls().unwrap().reload();
    while_served(&access, |address| {
        let before = authority.client(None);
        assert!(get(address, &before, "GET /health HTTP/1.1").is_ok());
        authority.write("key", "no key");
        let refused = reload().unwrap_err();
        assert_eq!(refused.key(), "admin-tls-key");
        assert!(get(address, &before, "GET /health HTTP/1.1").is_ok());
        let (certificate, key) = others.issue();
        authority.write("cert", &certificate.pem());
        authority.write("key", &key.serialize_pem());
        reload().unwrap();
        assert!(get(address, &before, "GET /health HTTP/1.1").is_err(), "the old one is shown");
        assert!(get(address, &others.client(None), "GET /health HTTP/1.1").is_ok());
    });
}
