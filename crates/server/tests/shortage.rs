//! A process without descriptors for more clients: those that wait are taken once there are some.
//!
//! The limit is the process's, so that this file has one test.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "support/memory_volumes.rs"]
mod memory_volumes;
#[path = "support/nbd_client.rs"]
mod nbd_client;
mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use entresol_wire::nbd::{Command, ReplyStyle, Request};
use memory_volumes::Volume;
use nbd_client::{Answered, Served};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use support::{Client, TestServer};

const LIMIT: u64 = 256;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Takes all descriptors that are left but the one that `connect` needs, and connects.
fn connect_last<S>(connect: impl FnOnce() -> S) -> (S, Vec<File>) {
    let mut fillers: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(fillers.pop().is_some(), "there were descriptors left");
    let stream = connect();
    assert!(File::open("/dev/null").is_err(), "the client has the last one");
    (stream, fillers)
}

/// Administrators of volumes were told of once: one that came while there was no descriptor waited
/// until another one came.
#[test]
fn clients_that_came_while_there_was_no_descriptor_are_taken_later() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let server = TestServer::start(&[("threads", "1"), ("admin-port", "0")]);
    let served = Served::start(vec![Volume::new("plain", 1 << 20)]);
    let mut resp = server.client();
    let mut nbd = served.client("", ReplyStyle::Simple);
    setrlimit(Resource::RLIMIT_NOFILE, LIMIT.min(soft), hard).unwrap();
    // Answers to clients that are there come from the thread that looked at the door before.
    let mut go_round = || {
        assert_eq!(resp.call("PING"), "+PONG\r\n");
        let read = Request::new(Command::Read, 1, 0, 1);
        assert_eq!(nbd.call(&read, &[]), Answered::Bytes(vec![0]));
    };

    let (stream, fillers) = connect_last(|| UnixStream::connect(&server.socket).unwrap());
    go_round();
    drop(fillers);
    stream.set_read_timeout(PATIENCE).unwrap();
    // It stays: a descriptor that is closed later would be one more than the last.
    let mut first = Client::new(stream);
    assert_eq!(first.call("PING"), "+PONG\r\n");

    let (mut second, fillers) = connect_last(|| UnixStream::connect(served.socket()).unwrap());
    go_round();
    drop(fillers);
    second.set_read_timeout(PATIENCE).unwrap();
    let mut greeting = [0; 18];
    second.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..8], b"NBDMAGIC");

    let control = served.ports.control.clone().unwrap();
    let (mut third, fillers) = connect_last(|| UnixStream::connect(&control).unwrap());
    go_round();
    drop(fillers);
    third.set_read_timeout(PATIENCE).unwrap();
    third.write_all(b"{\"command\": \"list\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(&third).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"plain\""), "{answer}");

    let admin = server.server.ports().admin.unwrap();
    let (mut stream, fillers) = connect_last(|| TcpStream::connect(admin).unwrap());
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    go_round();
    drop(fillers);
    stream.set_read_timeout(PATIENCE).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
}
