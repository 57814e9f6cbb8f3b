//! TLS on the NBD server: who is served in plain, who is not, and who must show a certificate.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use entresol_nbd::{Access, Listen, NbdOptions, NbdServer, TlsDemand, TlsFiles, TlsPort};
use entresol_wire::nbd::{
    ClientOptions, Command, ErrorKind, Refusal, ReplyStyle, Request, Security, TlsWish,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use support::client::{Answered, NbdClient, Served, TlsClient};
use support::memory_volumes::Volume;
use support::scratch::Scratch;

const MIB: u64 = 1 << 20;

/// An authority with a server's and a client's certificate.
struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    directory: Scratch,
}

impl Authority {
    fn new() -> Authority {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
        Authority { issuer, directory: Scratch::new("tls") }
    }

    fn issue(&self) -> (rcgen::Certificate, rcgen::KeyPair) {
        let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// The server's files; with `client_authority`, clients must show a certificate.
    fn files(&self, client_authority: Option<&Authority>) -> TlsFiles {
        let (certificate, key) = self.issue();
        let write = |name: &str, text: String| -> PathBuf {
            let path = self.directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        TlsFiles {
            port: TlsPort::Clients,
            certificate: write("cert", certificate.pem()),
            key: write("key", key.serialize_pem()),
            client_authority: client_authority.map(|a| write("ca", a.issuer.pem())),
        }
    }

    /// How a client speaks TLS to the server; with `identity`, it shows a certificate of that
    /// authority.
    fn client(&self, identity: Option<&Authority>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let (certificate, key) = authority.issue();
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        Arc::new(config)
    }
}

fn wishes(tls: TlsWish) -> ClientOptions {
    ClientOptions { tls, style: ReplyStyle::Structured, ..ClientOptions::export("") }
}

#[test]
fn where_tls_is_required_nothing_is_done_without_it() {
    let authority = Authority::new();
    let volumes = vec![Volume::new("secret", 64 * MIB)];
    let served = Served::start_with(volumes, Some(authority.files(None)), TlsDemand::Required);
    let error = NbdClient::connect(&served.socket(), wishes(TlsWish::Never)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused(Refusal::TlsRequired));
    let config = authority.client(None);
    let mut client =
        TlsClient::connect_tls(&served.socket(), wishes(TlsWish::Required), config).unwrap();
    assert_eq!(client.agreement.security, Security::Encrypted);
    assert_eq!(client.agreement.style, ReplyStyle::Structured);
    let payload: Vec<u8> = (0..8 * MIB).map(|place| (place % 251) as u8).collect();
    let write = Request::new(Command::Write, 1, 4096, payload.len() as u64);
    assert_eq!(client.call(&write, &payload), Answered::DONE);
    let read = Request::new(Command::Read, 2, 4096, payload.len() as u64);
    assert_eq!(client.call(&read, &[]), Answered::Bytes(payload));
}

#[test]
fn where_tls_is_optional_both_kinds_of_clients_are_served() {
    let authority = Authority::new();
    let volumes = vec![Volume::new("open", MIB)];
    let served = Served::start_with(volumes, Some(authority.files(None)), TlsDemand::Optional);
    let mut plain = served.client("", ReplyStyle::Simple);
    let read = Request::new(Command::Read, 1, 0, 2);
    assert_eq!(plain.call(&read, &[]), Answered::Bytes(vec![0, 0]));
    let config = authority.client(None);
    let mut secured =
        TlsClient::connect_tls(&served.socket(), wishes(TlsWish::IfOffered), config).unwrap();
    assert_eq!(secured.call(&read, &[]), Answered::Bytes(vec![0, 0]));
}

#[test]
fn certificates_that_are_read_again_are_for_clients_to_come_and_leave_others_be() {
    let mut authority = Authority::new();
    let volumes = vec![Volume::new("renewed", MIB)];
    let served = Served::start_with(volumes, Some(authority.files(None)), TlsDemand::Required);
    let wish = || wishes(TlsWish::Required);
    let before = authority.client(None);
    let mut early = TlsClient::connect_tls(&served.socket(), wish(), Arc::clone(&before)).unwrap();
    let others = Authority::new();
    authority.issuer = others.issuer;
    authority.files(None);
    let tls = served.tls.as_ref().unwrap();
    tls.reload().unwrap();
    let refused = TlsClient::connect_tls(&served.socket(), wish(), before);
    assert_eq!(refused.err().unwrap().field(), "TLS", "the certificate of before is shown");
    let now = authority.client(None);
    let mut late = TlsClient::connect_tls(&served.socket(), wish(), Arc::clone(&now)).unwrap();
    let read = Request::new(Command::Read, 1, 0, 2);
    for client in [&mut early, &mut late] {
        assert_eq!(client.call(&read, &[]), Answered::Bytes(vec![0, 0]));
    }
    std::fs::write(authority.directory.path().join("key"), "no key").unwrap();
    assert!(tls.reload().unwrap_err().to_string().contains("`tls-key`"));
    TlsClient::connect_tls(&served.socket(), wish(), now).unwrap();
}

#[test]
fn clients_without_a_certificate_of_the_authority_are_not_served() {
    let (authority, others) = (Authority::new(), Authority::new());
    let files = authority.files(Some(&authority));
    let served =
        Served::start_with(vec![Volume::new("locked", MIB)], Some(files), TlsDemand::Required);
    for identity in [None, Some(&others)] {
        let config = authority.client(identity);
        let refused = TlsClient::connect_tls(&served.socket(), wishes(TlsWish::Required), config);
        assert_eq!(refused.err().unwrap().field(), "TLS");
    }
    let config = authority.client(Some(&authority));
    let mut client =
        TlsClient::connect_tls(&served.socket(), wishes(TlsWish::Required), config).unwrap();
    let read = Request::new(Command::Read, 1, 0, 2);
    assert_eq!(client.call(&read, &[]), Answered::Bytes(vec![0, 0]));
}

#[test]
fn addresses_that_others_reach_are_refused_unless_clients_are_known() {
    let authority = Authority::new();
    let open = |tls: Option<TlsFiles>, tls_demand, access| {
        NbdServer::open(&NbdOptions {
            listen: Listen::Sockets {
                port: Some(0),
                bind: vec!["0.0.0.0".to_owned()],
                unix: None,
                unix_mode: 0o600,
            },
            tls,
            tls_demand,
            access,
            control: None,
            admin_port: None,
            admin_bind: "127.0.0.1".to_owned(),
            admin_token: None,
            admin_tls: None,
        })
    };
    let known = authority.files(Some(&authority));
    for (tls, demand) in [
        (None, TlsDemand::Required),
        (Some(authority.files(None)), TlsDemand::Required),
        (Some(known.clone()), TlsDemand::Optional),
    ] {
        let error = open(tls, demand, Access::Known).unwrap_err().to_string();
        assert!(error.contains("--tls-client-ca") && error.contains("127.0.0.1"), "{error}");
    }
    assert!(open(Some(known), TlsDemand::Required, Access::Known).is_ok());
    assert!(open(None, TlsDemand::Required, Access::Everyone).is_ok());
}

/// It was said that certificate and key do not go together.
#[test]
fn a_key_that_cannot_be_used_is_refused_with_its_file_and_what_can_be() {
    let authority = Authority::new();
    let files = authority.files(None);
    let key = authority.directory.path().join("odd");
    std::fs::write(&key, include_str!("support/rsa-2432.pem")).unwrap();
    let options = NbdOptions {
        listen: Listen::Sockets {
            port: Some(0),
            bind: vec!["127.0.0.1".to_owned()],
            unix: None,
            unix_mode: 0o600,
        },
        tls: Some(TlsFiles { key: key.clone(), ..files }),
        tls_demand: TlsDemand::Required,
        access: Access::Known,
        control: None,
        admin_port: None,
        admin_bind: "127.0.0.1".to_owned(),
        admin_token: None,
        admin_tls: None,
    };
    let refused = NbdServer::open(&options).unwrap_err().to_string();
    assert!(refused.contains(&key.display().to_string()), "{refused}");
    assert!(refused.contains("RSA of 2048, 3072 or 4096 bits"), "{refused}");
}
