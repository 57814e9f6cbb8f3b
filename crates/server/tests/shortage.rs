//! A process without descriptors for more clients: those that wait are taken once there are some.
//!
//! The limit is the process's, so that this file has one test.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../../net/tests/descriptors/mod.rs"]
mod descriptors;
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use descriptors::{Limit, PATIENCE, connect_last};
use support::{Client, TestServer};

#[test]
fn clients_that_came_while_there_was_no_descriptor_are_taken_later() {
    let server = TestServer::start(&[("threads", "1"), ("admin-port", "0")]);
    let mut there = server.client();
    // It has its descriptor before the others are taken.
    while there.call("PING") != "+PONG\r\n" {}
    let limit = Limit::begin();
    // Answers to a client that is there come from the thread that looked at the door before.
    let mut go_round = || assert_eq!(there.call("PING"), "+PONG\r\n");

    let (stream, fillers) = connect_last(|| UnixStream::connect(&server.socket).unwrap());
    go_round();
    drop(fillers);
    stream.set_read_timeout(PATIENCE).unwrap();
    // It stays: a descriptor that is closed later would be one more than the last.
    let mut first = Client::new(stream);
    assert_eq!(first.call("PING"), "+PONG\r\n");

    let admin = server.server.ports().admin.unwrap();
    let (mut stream, fillers) = connect_last(|| TcpStream::connect(admin).unwrap());
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    go_round();
    drop(fillers);
    stream.set_read_timeout(PATIENCE).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    drop(limit);
}
