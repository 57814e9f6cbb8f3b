//! What the HTTP interface makes of requests.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use support::TestServer;

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
    for target in ["http://localhost", "http://health", "*"] {
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

/// Ten metrics stood in no row of the reference, which had three names that there are not.
#[test]
fn each_metric_is_well_formed_and_in_the_reference_with_its_kind() {
    let server = TestServer::start(&[("admin-port", "0")]);
    server.client().call("SET k v");
    let text = request(server.server.ports().admin.unwrap(), "GET /metrics");
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut current = "";
    for line in text.split_once("\r\n\r\n").unwrap().1.lines() {
        if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|declared| declared.split_once(' '))
        {
            assert_eq!(kinds.insert(name, kind), None, "{name} is declared twice");
            current = name;
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let part = sample.split('{').next().unwrap().strip_prefix(current).unwrap();
        let parts: &[&str] =
            if kinds[current] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(parts.contains(&part), "{line} follows {current}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    let reference = include_str!("../../../docs/reference/http.md");
    let section = reference.split("## ").find(|text| text.starts_with("`/metrics`")).unwrap();
    let names = |cell: &str| -> Vec<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        let short = quoted.filter_map(|name| {
            let name = name.strip_prefix("entresol_").or(name.strip_prefix('…'))?;
            name.split('{').next()
        });
        short.filter(|name| !name.is_empty()).map(|name| format!("entresol_{name}")).collect()
    };
    let rows = section.lines().filter_map(|row| row.strip_prefix("| `"));
    for row in rows {
        // A label's bars are escaped, so the first plain one ends the names.
        let (first, rest) = row.split_once(" | ").unwrap();
        let kind = rest.split(" | ").next().unwrap();
        for name in names(&format!("`{first}")) {
            let found = kinds.get(name.as_str());
            assert!(found.is_some_and(|found| kind.contains(found)), "{name} is {found:?}");
        }
    }
    let described = names(section);
    let missing: Vec<_> =
        kinds.keys().filter(|name| !described.contains(&name.to_string())).collect();
    assert!(missing.is_empty(), "in no row: {missing:?}");
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
        ("", "version uptime_seconds threads store memory clients latency_us commands"),
        (
            "/memory",
            "cap_bytes resident_bytes index_bytes write_buffer_bytes cache_bytes other_bytes \
             client_buffer_bytes",
        ),
        ("/clients", "connected accepted refused read_bytes written_bytes error_replies"),
        ("/latency_us", "read write other"),
        ("/store/value_bytes", distribution),
        ("/latency_us/write", &format!("{distribution} p9999")),
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
