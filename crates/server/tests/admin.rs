//! What the HTTP interface makes of requests.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

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

fn request(address: SocketAddr, what: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{what} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
