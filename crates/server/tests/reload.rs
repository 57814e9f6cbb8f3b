//! What a running server reads again: users, certificates, its configuration file.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use entresol_server::{Config, RunningServer, Server, user_line};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use support::{Client, TempDir, store};

/// A server out of files that tests write anew.
struct Reloaded {
    directory: TempDir,
    server: RunningServer,
}

impl Reloaded {
    fn start() -> Reloaded {
        let directory = TempDir::new();
        let this = |name: &str| directory.path(name).to_str().unwrap().to_owned();
        certify(&directory);
        write_users(&directory, &["alice"]);
        std::fs::write(directory.path("conf"), "memory = 512MiB\nmaxclients = 20\n").unwrap();
        let mut config = Config::default();
        std::fs::write(directory.path("first"), "slowlog-max-len = 7\n").unwrap();
        config.read_file(directory.path("first")).unwrap();
        config.read_file(directory.path("conf")).unwrap();
        let files = [("users", "users"), ("tls-cert", "cert"), ("tls-key", "key")];
        for (key, file) in files {
            config.set(key, &this(file)).unwrap();
        }
        config.set("port", "0").unwrap();
        config.set("admin-port", "0").unwrap();
        let server = Server::start(config, store(None)).unwrap();
        Reloaded { directory, server }
    }

    /// A client that trusts the certificate of now, and is `user`.
    fn client(&self, user: &str) -> (TlsClient, String) {
        let trusted = trusting(&self.directory.path("cert"));
        let mut client = tls_client(self.server.ports().resp[0], &trusted);
        let answer = client.call(&format!("AUTH {user} secret"));
        (client, answer)
    }
}

type TlsClient = Client<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>;

fn certify(directory: &TempDir) {
    certify_until(directory, 2040);
}

/// Seconds since the epoch at which 2040 and 2041 begin.
const BEGIN_2040: &str = "2208988800";
const BEGIN_2041: &str = "2240611200";

/// A certificate that ends with the first second of the year.
fn certify_until(directory: &TempDir, year: i32) {
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    std::fs::write(directory.path("cert"), certificate.pem()).unwrap();
    std::fs::write(directory.path("key"), key.serialize_pem()).unwrap();
}

fn write_users(directory: &TempDir, names: &[&str]) {
    let lines: Vec<String> =
        names.iter().map(|name| user_line(name, "secret", "+@all ~*").unwrap()).collect();
    std::fs::write(directory.path("users"), lines.join("\n")).unwrap();
}

fn trusting(certificate: &Path) -> Arc<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn tls_client(address: SocketAddr, config: &Arc<ClientConfig>) -> TlsClient {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::clone(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::new(rustls::StreamOwned::new(connection, stream))
}

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

#[test]
fn certificates_and_users_that_are_swapped_under_load_count_for_new_clients_and_lose_nobody() {
    let reloaded = Reloaded::start();
    let (mut watcher, answer) = reloaded.client("alice");
    assert_eq!(answer, "+OK\r\n");
    let loaders: Vec<_> = (0..4)
        .map(|number| {
            let (mut client, answer) = reloaded.client("alice");
            assert_eq!(answer, "+OK\r\n");
            std::thread::spawn(move || {
                let mut calls = 0;
                // Until the end of the load is said through the server itself.
                while client.call("GET over") == "$-1\r\n" {
                    assert_eq!(client.call(&format!("SET k{number} {calls}")), "+OK\r\n");
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    for swap in 0..5 {
        let user = format!("user{swap}");
        certify(&reloaded.directory);
        write_users(&reloaded.directory, &[&user]);
        reloaded.server.reload().unwrap();
        assert_eq!(reloaded.client(&user).1, "+OK\r\n", "it shows the new certificate");
        assert_eq!(reloaded.client("alice").1, WRONG);
        assert_eq!(watcher.call("ACL WHOAMI"), "$5\r\nalice\r\n");
    }
    assert_eq!(watcher.call("SET over yes"), "+OK\r\n");
    for loader in loaders {
        assert!(loader.join().unwrap() > 0);
    }
}

/// What is at `path` of the HTTP interface.
fn page(server: &RunningServer, path: &str) -> String {
    let mut stream = TcpStream::connect(server.ports().admin.unwrap()).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// What `/metrics` says of a metric.
fn metric(server: &RunningServer, name: &str) -> String {
    let page = page(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
}

#[test]
fn the_end_of_the_certificate_is_told_as_of_the_last_reload() {
    let reloaded = Reloaded::start();
    let name = "entresol_certificate_end_timestamp_seconds{use=\"clients\"}";
    let end = || metric(&reloaded.server, name);
    assert_eq!(end(), BEGIN_2040);
    certify_until(&reloaded.directory, 2041);
    reloaded.server.reload().unwrap();
    assert_eq!(end(), BEGIN_2041);
    let told = reloaded.client("alice").0.call("INFO server");
    assert!(told.contains(&format!("\r\ncertificate_end_seconds:{BEGIN_2041}\r\n")), "{told}");
    assert!(!told.contains("admin_certificate_end_seconds"), "HTTP is in plain: {told}");
    assert!(page(&reloaded.server, "/").contains("Healthy"));
    certify_until(&reloaded.directory, 2001);
    reloaded.server.reload().unwrap();
    let console = page(&reloaded.server, "/");
    assert!(console.contains("The certificate that clients are shown ended "), "{console}");
    assert_eq!(metric(&reloaded.server, "entresol_superblock_damaged"), "0");
}

#[test]
fn the_token_of_the_http_interface_is_read_again() {
    let directory = TempDir::new();
    let file = directory.path("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let mut config = Config::default();
    for (key, value) in
        [("port", "0"), ("admin-port", "0"), ("admin-token", file.to_str().unwrap())]
    {
        config.set(key, value).unwrap();
    }
    let server = Server::start(config, store(None)).unwrap();
    let opens = |word: &str| {
        let mut stream = TcpStream::connect(server.ports().admin.unwrap()).unwrap();
        let request = format!("GET /stats HTTP/1.1\r\nAuthorization: Bearer {word}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200")
    };
    std::fs::write(&file, "short\n").unwrap();
    let refused = server.reload().unwrap_err();
    assert!(refused[0].ends_with("tokens of the HTTP interface stay as they were"), "{refused:?}");
    assert!(opens("0123456789abcdef"));
    std::fs::write(&file, "fedcba9876543210\n").unwrap();
    server.reload().unwrap();
    assert!(opens("fedcba9876543210") && !opens("0123456789abcdef"));
}

#[test]
fn the_http_interface_speaks_tls_by_certificates_that_are_read_again() {
    let directory = TempDir::new();
    certify(&directory);
    let mut config = Config::default();
    let (cert, key) = (directory.path("cert"), directory.path("key"));
    config.set("admin-tls-cert", cert.to_str().unwrap()).unwrap();
    config.set("port", "0").unwrap();
    config.set("admin-port", "0").unwrap();
    let refused = Server::start(config.clone(), store(None)).unwrap_err().to_string();
    assert!(refused.contains("`admin-tls-key`: expected a file, found none"), "{refused}");
    assert!(refused.contains("`admin-tls-cert` is given"), "{refused}");
    config.set("admin-tls-key", key.to_str().unwrap()).unwrap();
    let server = Server::start(config, store(None)).unwrap();
    let get = |path: &str, trusted: &Arc<ClientConfig>| {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = rustls::ClientConnection::new(Arc::clone(trusted), name).unwrap();
        let stream = TcpStream::connect(server.ports().admin.unwrap()).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let request = format!("GET {path} HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer).map_err(|error| error.to_string())
    };
    let health = |trusted: &Arc<ClientConfig>| get("/health", trusted);
    let before = trusting(&cert);
    let end =
        |end: &str| format!("entresol_certificate_end_timestamp_seconds{{use=\"http\"}} {end}\n");
    let metrics = get("/metrics", &before).unwrap();
    assert!(metrics.contains(&end(BEGIN_2040)) && !metrics.contains("use=\"clients\"} 22"));
    assert!(health(&before).unwrap().ends_with("{\"status\":\"ok\"}\n"));
    std::fs::write(&key, "no key").unwrap();
    let refused = server.reload().unwrap_err();
    assert!(refused[0].contains("key `admin-tls-key`"), "{refused:?}");
    assert!(
        refused[0].ends_with("certificates of the HTTP interface stay as they were"),
        "{refused:?}"
    );
    assert!(health(&before).is_ok());
    certify_until(&directory, 2041);
    server.reload().unwrap();
    assert!(health(&before).is_err(), "the certificate of before is shown");
    let now = trusting(&cert);
    assert!(get("/metrics", &now).unwrap().contains(&end(BEGIN_2041)));
    let stats = get("/stats", &now).unwrap();
    assert!(stats.contains(&format!("\"admin_certificate_end_seconds\":{BEGIN_2041}")), "{stats}");
    assert!(get("/", &now).unwrap().contains("Healthy"));
}

#[test]
fn files_that_cannot_be_used_leave_everything_as_it_was() {
    let reloaded = Reloaded::start();
    let before = trusting(&reloaded.directory.path("cert"));
    std::fs::write(reloaded.directory.path("users"), "bob secret +@all").unwrap();
    std::fs::write(reloaded.directory.path("key"), "no key").unwrap();
    std::fs::write(reloaded.directory.path("conf"), "maxclients = many\n").unwrap();
    let refused = reloaded.server.reload().unwrap_err();
    let expected = [
        ("users line 1: key `users`", "users stay as they were"),
        ("key `tls-key`", "certificates stay as they were"),
        ("conf line 1: key `maxclients`", "the configuration stays as it was"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for (said, (what, end)) in refused.iter().zip(expected) {
        assert!(said.contains(what) && said.ends_with(end), "{said}");
    }
    let mut client = tls_client(reloaded.server.ports().resp[0], &before);
    assert_eq!(client.call("AUTH alice secret"), "+OK\r\n");
    let refused = client.call("ACL LOAD");
    assert!(refused.contains("users line 1") && refused.contains("as they were"), "{refused}");
}

#[test]
fn live_keys_are_as_a_start_would_make_them_and_others_wait_for_it() {
    let reloaded = Reloaded::start();
    let (mut client, _) = reloaded.client("alice");
    assert_eq!(client.call("CONFIG SET maxclients 30"), "+OK\r\n");
    std::fs::write(
        reloaded.directory.path("conf"),
        "memory = 256MiB\nmaxclients = 40\nlog-level = warn\n",
    )
    .unwrap();
    reloaded.server.reload().unwrap();
    assert!(client.call("CONFIG GET maxclients").ends_with("\r\n40\r\n"));
    assert!(client.call("CONFIG GET log-level").ends_with("\r\nwarn\r\n"));
    assert!(client.call("CONFIG GET memory").ends_with("\r\n512MiB\r\n"));
    let of_the_first_file = client.call("CONFIG GET slowlog-max-len");
    assert!(of_the_first_file.ends_with("\r\n7\r\n"), "{of_the_first_file}");
    write_users(&reloaded.directory, &["alice", "carol"]);
    assert_eq!(client.call("ACL LOAD"), "+OK\r\n");
    assert_eq!(client.call("ACL USERS"), "*2\r\n$5\r\nalice\r\n$5\r\ncarol\r\n");
}
