//! What the HTTP interface makes of requests.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use entresol_server::{Config, Server};
use support::{TempDir, TestServer, store};

#[test]
fn a_request_in_pieces_is_answered_when_it_is_whole() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let mut stream = TcpStream::connect(server.server.ports().admin.unwrap()).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in ["GET /hea", "lth HTTP/1.1\r\nHost", ": x\r\n", "\r\n"] {
        stream.write_all(piece.as_bytes()).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("{\"status\":\"ok\"}\n"), "{answer}");
}

#[test]
fn head_is_answered_as_get_without_the_body() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let address = server.server.ports().admin.unwrap();
    for path in ["/health", "/nothing"] {
        let whole = request(address, &format!("GET {path}"));
        let (head, body) = whole.split_once("\r\n\r\n").unwrap();
        assert!(!body.is_empty());
        assert_eq!(request(address, &format!("HEAD {path}")), format!("{head}\r\n\r\n"));
    }
}

/// It was refused, so that neither Prometheus nor the probes of a container reached it.
#[test]
fn figures_are_shown_beyond_loopback_where_that_is_asked_for() {
    let server = TestServer::start(&[("admin-port", "0"), ("admin-bind", "0.0.0.0")]);
    let address = server.server.ports().admin.unwrap();
    assert!(address.ip().is_unspecified());
    let answer = request(SocketAddr::from(([127, 0, 0, 1], address.port())), "GET /health");
    assert!(answer.ends_with("{\"status\":\"ok\"}\n"), "{answer}");
}

/// RFC 9112 has servers take the form of a target that proxies are sent: it was not found.
#[test]
fn a_target_may_be_a_whole_address() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let address = server.server.ports().admin.unwrap();
    for target in ["http://localhost:80/health", "HTTP://x/health?y", "/health?/"] {
        let answer = request(address, &format!("GET {target}"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{target}: {answer}");
    }
    // The name of a host is no path.
    for target in ["http://localhost", "http://health"] {
        let answer = request(address, &format!("GET {target}"));
        assert!(answer.contains("\r\nContent-Type: text/html; charset=utf-8\r\n"), "{target}");
    }
    for target in ["http://localhost/nothing", "*"] {
        let answer = request(address, &format!("GET {target}"));
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{target}: {answer}");
    }
}

/// RFC 9110 has a server that refuses a method name those that it takes.
#[test]
fn a_method_that_there_is_not_is_refused_with_those_that_there_are() {
    let server = TestServer::start(&[("admin-port", "0")]);
    let address = server.server.ports().admin.unwrap();
    for what in ["POST /health", "DELETE /nothing", "OPTIONS *"] {
        let answer = request(address, what);
        assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{answer}");
        assert!(answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
    }
    assert!(!request(address, "GET /health").contains("Allow:"));
}

/// That each stands in the reference, with its type and labels, is tested with the program.
#[test]
fn each_metric_is_described_typed_and_followed_by_its_samples_alone() {
    let server = TestServer::start(&[("admin-port", "0")]);
    server.client().call("SET k v");
    let answer = request(server.server.ports().admin.unwrap(), "GET /metrics");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(&format!("\r\nContent-Type: {content_type}\r\n")), "{head}");
    let text = text.strip_suffix("# EOF\n").unwrap();
    let mut described = BTreeSet::new();
    for block in text.split("# HELP ").skip(1) {
        let mut lines = block.lines();
        let (name, help) = lines.next().unwrap().split_once(' ').unwrap();
        assert!(help.ends_with('.'), "{help}");
        assert!(described.insert(name), "{name} is described twice");
        let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).unwrap();
        let kind = kind.strip_prefix(name).unwrap().trim();
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let unit = lines.clone().next().and_then(|line| line.strip_prefix("# UNIT "));
        let samples: Vec<&str> = lines.skip(usize::from(unit.is_some())).collect();
        assert!(!samples.is_empty(), "{name} has no sample");
        for line in samples {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let ending = sample.split('{').next().unwrap().strip_prefix(name).unwrap();
            assert!(endings.contains(&ending), "{line} is no {kind}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(described.len() > 40, "{described:?}");
}

/// Scripts read it: a key that is gone breaks them.
#[test]
fn statistics_keep_their_keys_in_their_order() {
    let server = TestServer::start(&[("admin-port", "0")]);
    server.client().call("SET k v");
    let answer = request(server.server.ports().admin.unwrap(), "GET /stats");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let all: serde_json::Value = serde_json::from_str(body).unwrap();
    let keys = |path: &str| {
        let keys = all.pointer(path).and_then(|value| value.as_object()).unwrap().keys();
        keys.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let distribution = "n min max mean geometric_mean standard_deviation p50 p90 p99 p999";
    let store = "memory_hit_ratio flash_hit_ratio miss_ratio write_amplification poisoned \
                 key_bytes value_bytes";
    assert!(keys("/store").starts_with("gets memory_hits buffer_hits flash_hits misses "));
    assert!(keys("/store").ends_with(store), "{}", keys("/store"));
    for (path, expected) in [
        (
            "",
            "version uptime_seconds threads store memory clients latency_us commands health second \
             spaces certificate_end_seconds superblock_damage segment_ages \
             admin_certificate_end_seconds",
        ),
        (
            "/memory",
            "cap_bytes resident_bytes index_bytes write_buffer_bytes cache_bytes other_bytes \
             client_buffer_bytes",
        ),
        ("/clients", "connected accepted refused read_bytes written_bytes error_replies"),
        ("/latency_us", "read write other"),
        ("/store/value_bytes", distribution),
        ("/latency_us/write", &format!("{distribution} p9999")),
        ("/segment_ages/0", "segments used_bytes live_bytes age_writes_max"),
        ("/commands/set", "calls rejected failed latency_us"),
    ] {
        assert_eq!(keys(path), expected, "{path}");
    }
}

fn request(address: SocketAddr, what: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{what} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn figures_are_shown_to_whoever_shows_the_token_and_health_to_everybody() {
    let directory = TempDir::new();
    let file = directory.path("token");
    std::fs::write(&file, "0123456789abcdef\nthe second line is nothing\n").unwrap();
    let settings = [("admin-port", "0"), ("admin-token", file.to_str().unwrap())];
    let server = TestServer::start(&settings);
    let address = server.server.ports().admin.unwrap();
    for path in ["/metrics", "/stats", "/nothing"] {
        let refused = request(address, &format!("GET {path}"));
        assert!(refused.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{refused}");
        assert!(refused.contains("\r\nWWW-Authenticate: Bearer\r\n"), "{refused}");
    }
    for header in ["Bearer 0123456789abcdeX", "Bearer 0123", "Basic 0123456789abcdef", ""] {
        let refused = with_header(address, "GET /stats", header);
        assert!(refused.starts_with("HTTP/1.1 401"), "{header}: {refused}");
    }
    let stats = with_header(address, "GET /stats", "bearer 0123456789abcdef");
    assert!(stats.starts_with("HTTP/1.1 200"), "{stats}");
    for path in ["/health", "/health/live", "/health/ready"] {
        assert!(request(address, &format!("GET {path}")).starts_with("HTTP/1.1 200"), "{path}");
    }
}

#[test]
fn a_token_that_is_easily_guessed_is_refused_with_the_next_step() {
    let directory = TempDir::new();
    let file = directory.path("token");
    std::fs::write(&file, "secret\n").unwrap();
    let mut config = Config::default();
    for (key, value) in [("port", "0"), ("admin-token", file.to_str().unwrap())] {
        config.set(key, value).unwrap();
    }
    let error = Server::start(config, store(None)).unwrap_err().to_string();
    assert!(error.contains("key `admin-token`") && error.contains("found 6 bytes"), "{error}");
    assert!(error.contains("`openssl rand -hex 32`"), "{error}");
}

fn with_header(address: SocketAddr, line: &str, authorization: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let text = format!("{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn info_has_the_figures_that_dashboards_of_redis_read() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    assert_eq!(client.call("SET k v"), "+OK\r\n");
    let info = client.call("INFO everything");
    let figure = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("no {name} in {info}")).to_owned()
    };
    for name in ["instantaneous_ops_per_sec", "instantaneous_input_kbps", "used_memory"] {
        assert!(figure(name).parse::<f64>().unwrap() >= 0.0, "{name}");
    }
    let bytes = |name: &str| figure(name).parse::<u64>().unwrap();
    assert!(bytes("used_memory_peak") >= bytes("used_memory"));
    let latencies = figure("latency_percentiles_usec_set");
    assert!(latencies.starts_with("p50=") && latencies.contains(",p99.9="), "{latencies}");
}
