//! Who gets in, and over what: users, TLS, addresses, configuration, the HTTP interface.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use entresol_server::{Config, Server, user_line};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use support::{Client, TempDir, TestServer, encode, store};

fn users_file(directory: &TempDir, lines: &[String]) -> String {
    let path = directory.path("users");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn nobody_gets_in_without_a_password_where_all_have_one() {
    let directory = TempDir::new();
    let lines = [
        user_line("default", "open sesame", "+@all ~*").unwrap(),
        user_line("reader", "read", "+@read +@connection ~app:*").unwrap(),
    ];
    let server = TestServer::start(&[("users", &users_file(&directory, &lines))]);
    let mut client = server.client();
    assert_eq!(client.call("GET k"), "-NOAUTH Authentication required.\r\n");
    client.send(&["AUTH", "wrong"]);
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    assert_eq!(client.reply(), wrong.as_bytes());
    assert_eq!(client.call("AUTH nobody read"), wrong);
    client.send(&["AUTH", "open sesame"]);
    client.send(&["SET", "app:1", "v"]);
    assert_eq!(client.reply(), b"+OK\r\n");
    assert_eq!(client.reply(), b"+OK\r\n", "what follows AUTH waits for it");
    let mut reader = server.client();
    assert_eq!(reader.call("AUTH reader read"), "+OK\r\n");
    assert_eq!(
        reader.call("ACL WHOAMI"),
        "-NOPERM this user has no permissions to run the 'acl|whoami' command\r\n"
    );
    assert_eq!(reader.call("GET app:1"), "$1\r\nv\r\n");
    assert!(reader.call("SET app:1 w").starts_with("-NOPERM this user has no permissions to run"));
    assert!(reader.call("GET other").starts_with("-NOPERM this user has no permissions to access"));
    assert!(reader.call("KEYS *").starts_with("-NOPERM"), "keys of others are not listed");
    let scan = reader.call("SCAN 0");
    assert!(scan.starts_with("-NOPERM") && scan.contains("some keys only"), "{scan}");
}

#[test]
fn a_peer_that_has_not_authenticated_may_send_little() {
    let directory = TempDir::new();
    let lines = [user_line("default", "secret", "+@all ~*").unwrap()];
    let server = TestServer::start(&[("users", &users_file(&directory, &lines))]);
    let mut client = server.client();
    client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n");
    assert_eq!(client.reply(), b"-ERR Protocol error: unauthenticated bulk length\r\n");
    assert_eq!(client.reply(), b"");
}

/// What was pipelined behind `AUTH` was held to the limits of those who have not authenticated.
#[test]
fn what_follows_the_password_is_held_to_the_limits_of_its_user() {
    let directory = TempDir::new();
    let lines =
        [user_line("default", "secret", "+@all ~*").unwrap(), "guest nopass +@all ~*".to_owned()];
    let server = TestServer::start(&[("users", &users_file(&directory, &lines))]);
    let pairs: Vec<String> = (0..40).map(|n| format!("w{n}")).collect();
    let mset = [&["MSET".to_owned()], pairs.as_slice()].concat();
    for auth in [["AUTH", "default", "secret"], ["AUTH", "guest", ""]] {
        let mut client = server.client();
        client.send_raw(&[encode(&auth), encode(&mset), encode(&mset)].concat());
        for _ in 0..3 {
            assert_eq!(client.reply(), b"+OK\r\n", "{auth:?}");
        }
        client.send_raw(&[encode(&["RESET"]), encode(&mset)].concat());
        assert_eq!(client.reply(), b"+RESET\r\n");
        let error = b"-ERR Protocol error: unauthenticated multibulk length\r\n";
        assert_eq!(client.reply(), error, "whoever is nobody again may send little again");
    }
}

/// The thread that compares passwords ended first, and the stop waited for its answers in vain.
#[test]
fn who_waits_for_a_password_is_answered_before_a_clean_stop() {
    let directory = TempDir::new();
    let lines = [user_line("default", "secret", "+@all ~*").unwrap()];
    let server = TestServer::start(&[
        ("users", &users_file(&directory, &lines)),
        ("threads", "1"),
        ("shutdown-timeout", "60s"),
    ]);
    let mut clients: Vec<_> = (0..12).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send_raw(&[encode(&["HELLO", "x"]), encode(&["AUTH", "secret"])].concat());
        assert!(client.reply().starts_with(b"-ERR Protocol version"), "AUTH has begun now");
    }
    server.server.stop().unwrap();
    for client in &mut clients {
        assert_eq!(client.reply(), b"+OK\r\n");
    }
}

#[test]
fn other_machines_are_refused_unless_all_have_passwords() {
    let mut config = Config::default();
    config.set("bind", "0.0.0.0").unwrap();
    config.set("port", "0").unwrap();
    let error = Server::start(config, store(None)).unwrap_err().to_string();
    assert!(error.contains("`bind`") && error.contains("without a password"), "{error}");
    assert!(error.contains("entresol user add"), "it names the next step: {error}");
}

/// A server that speaks TLS, and what its clients need to know of it.
fn tls_server() -> (TestServer, SocketAddr, Arc<ClientConfig>) {
    let directory = TempDir::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (directory.path("cert"), directory.path("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = TestServer::start(&[
        ("port", "0"),
        ("memory", "1GiB"),
        ("tls-cert", cert.to_str().unwrap()),
        ("tls-key", key.to_str().unwrap()),
    ]);
    let address = server.server.ports().resp[0];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, address, Arc::new(config))
}

fn tls_client(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> Client<rustls::StreamOwned<rustls::ClientConnection, TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::clone(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::new(rustls::StreamOwned::new(connection, stream))
}

#[test]
fn tls_clients_are_served_and_plain_ones_are_not() {
    let (_server, address, config) = tls_server();
    let mut client = tls_client(address, &config);
    let value = "v".repeat(1_000_000);
    client.send(&["SET", "k", &value]);
    assert_eq!(client.reply(), b"+OK\r\n");
    for _ in 0..5 {
        client.send(&["GET", "k"]);
    }
    for _ in 0..5 {
        assert_eq!(client.reply().len(), value.len() + 12);
    }
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+PONG"), "{answer:?}");
}

/// What TLS had taken and not given to the socket yet was lost when the connection was closed, and
/// nobody was told of room in the socket when TLS had found some by itself.
#[test]
fn a_tls_client_that_quits_gets_all_replies_however_slowly_it_reads() {
    let (_server, address, config) = tls_server();
    let value = "v".repeat(20 << 20);
    let mut client = tls_client(address, &config);
    client.send(&["SET", "k", &value]);
    assert_eq!(client.reply(), b"+OK\r\n");
    client.send(&["GET", "k"]);
    client.send(&["QUIT"]);
    assert_eq!(client.reply().len(), value.len() + 13);
    assert_eq!(client.reply(), b"+OK\r\n");
    assert_eq!(client.reply(), b"", "the connection is closed");
}

#[test]
fn configuration_errors_name_place_key_and_what_was_expected() {
    let file_error = |text: &str| {
        let mut config = Config::default();
        config.read_text("entresol.conf", text).unwrap_err().to_string()
    };
    assert_eq!(
        file_error("# comment\n\nmemroy = 1GiB"),
        "entresol.conf line 3: key `memroy`: there is no such key; did you mean `memory`?"
    );
    assert_eq!(
        file_error("[network]\nport = many"),
        "entresol.conf line 2: key `port`: expected a port from 0 (any free one) to 65535, found \
         `many`"
    );
    assert_eq!(
        file_error("memory"),
        "entresol.conf line 1: expected `key = value`, found `memory`"
    );
    // Half of a quoted path was a path, and a new store was made there.
    for half in ["dir = \"/var/lib/data", "dir = \"/var\" /lib", "dir = \""] {
        let told = file_error(half);
        let start = "entresol.conf line 1: key `dir`: expected a `\"` at the end as at the begin";
        assert!(told.starts_with(start), "{told}");
    }
    let given = Config::default().give("command line", "durability", "perhaps");
    let error = given.unwrap_err().to_string();
    assert_eq!(
        error,
        "command line: key `durability`: expected one of memory, process, flushed, \
         periodic:MILLISECONDS, synced, found `perhaps`"
    );
}

#[test]
fn what_is_given_wins_over_a_file_that_is_read_later() {
    let directory = TempDir::new();
    let file = directory.path("conf");
    std::fs::write(&file, "port = 1234 # a comment\nmemory = \"64MiB\"\n").unwrap();
    let mut config = Config::default();
    config.give("command line", "port", "4321").unwrap();
    config.read_file(file).unwrap();
    assert_eq!(config.get("port"), Some("4321"));
    assert_eq!(config.get("memory"), Some("64MiB"));
}

/// Queues of jobs ask before they trust a server with them: caches said `noeviction`, too.
#[test]
fn caches_say_that_they_evict() {
    for (reclaim, policy) in [("store", "noeviction"), ("cache", "allkeys-lru")] {
        let server = TestServer::start(&[("reclaim", reclaim)]);
        let mut client = server.client();
        let shown = client.call("CONFIG GET maxmemory-policy");
        assert!(shown.ends_with(&format!("\r\n{policy}\r\n")), "{shown}");
        assert!(client.call("INFO memory").contains(&format!("maxmemory_policy:{policy}\r\n")));
        assert_eq!(client.call(&format!("CONFIG SET maxmemory-policy {policy}")), "+OK\r\n");
    }
}

#[test]
fn live_keys_change_and_others_do_not() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    assert_eq!(client.call("CONFIG SET maxclients 77"), "+OK\r\n");
    assert_eq!(client.call("CONFIG GET maxclients"), "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n");
    assert!(client.call("CONFIG SET port 1").contains("can't set immutable config"));
    assert!(client.call("CONFIG SET maxclients x").contains("expected a whole number"));
    assert!(client.call("CONFIG SET nothing 1").contains("Unknown option"));
    assert_eq!(client.call("CONFIG GET nothing"), "*0\r\n");
}

#[test]
fn the_http_interface_shows_health_metrics_and_figures() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let mut client = server.client();
    client.call("SET k v");
    client.call("GET k");
    let address = server.server.ports().admin.unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/health").ends_with("{\"status\":\"ok\"}\n"));
    assert_eq!(get("/health/ready"), get("/health"));
    assert!(get("/health/live").ends_with("{\"status\":\"live\"}\n"));
    let metrics = get("/metrics");
    assert!(metrics.contains("entresol_puts_total 1\n"), "{metrics}");
    assert!(metrics.contains("entresol_commands_total{command=\"get\"} 1\n"), "{metrics}");
    assert!(metrics.contains("entresol_command_latency_seconds_count{kind=\"write\"} 1\n"));
    let stats = get("/stats");
    assert!(stats.contains("\"write_amplification\":") && stats.contains("\"geometric_mean\":"));
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&vec![b'x'; 20_000]).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[test]
fn generated_documents_and_samples_are_up_to_date() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).unwrap_or_default();
    let update = std::env::var_os("ENTRESOL_UPDATE_DOCS").is_some();
    for (path, text) in [
        ("docs/reference/configuration.md", Config::reference()),
        ("docs/reference/resp-commands.md", entresol_server::command_reference()),
    ] {
        if update {
            std::fs::write(format!("{root}/{path}"), &text).unwrap();
        }
        assert!(
            read(path) == text,
            "{path} is not what the table says; run `ENTRESOL_UPDATE_DOCS=1 cargo test -p \
             entresol-server --test access generated`"
        );
    }
    let sample = read("packaging/entresol.conf");
    let mut config = Config::default();
    config.read_text("packaging/entresol.conf", &sample).unwrap();
    assert_eq!(config.get("dir"), Some("/var/lib/entresol"));
}

#[test]
fn config_rewrite_writes_what_was_set_and_leaves_the_rest_of_the_file() {
    let directory = TempDir::new();
    let file = directory.path("entresol.conf");
    let text = "# mine\nport =\nmaxclients = 5 # few\n";
    std::fs::write(&file, text).unwrap();
    let mut config = Config::default();
    config.read_file(file.clone()).unwrap();
    let socket = directory.path("socket");
    config.set("unix", socket.to_str().unwrap()).unwrap();
    config.set("threads", "1").unwrap();
    let _server = Server::start(config, store(None)).unwrap();
    let mut client = Client::unix(&socket);
    assert_eq!(client.call("CONFIG REWRITE"), "+OK\r\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "nothing was set");
    assert_eq!(client.call("CONFIG SET maxclients 77 timeout 5m"), "+OK\r\n");
    let timeout = client.call("CONFIG GET timeout");
    assert_eq!(timeout, "*2\r\n$7\r\ntimeout\r\n$3\r\n300\r\n", "as redis-server, in seconds");
    assert_eq!(client.call("CONFIG REWRITE"), "+OK\r\n");
    let expected = "# mine\nport =\nmaxclients = 77 # few\ntimeout = 5m\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    std::fs::remove_file(&file).unwrap();
    assert!(client.call("CONFIG REWRITE").starts_with("-ERR Rewriting config file: "));
    assert_eq!(client.call("SAVE"), "+OK\r\n");
}
