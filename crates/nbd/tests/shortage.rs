//! A process without descriptors for more clients: those that wait are taken once there are some.
//!
//! The limit is the process's, so that this file has one test.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../../net/tests/descriptors/mod.rs"]
mod descriptors;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use descriptors::{Limit, PATIENCE, connect_last};
use entresol_wire::nbd::{Command, ReplyStyle, Request};
use support::client::{Answered, Served};
use support::memory_volumes::Volume;

/// Administrators of volumes were told of once: one that came while there was no descriptor waited
/// until another one came.
#[test]
fn clients_that_came_while_there_was_no_descriptor_are_taken_later() {
    let served = Served::start(vec![Volume::new("plain", 1 << 20)]);
    let mut there = served.client("", ReplyStyle::Simple);
    let limit = Limit::begin();
    // Answers to a client that is there come from the thread that looked at the door before.
    let mut go_round = || {
        let read = Request::new(Command::Read, 1, 0, 1);
        assert_eq!(there.call(&read, &[]), Answered::Bytes(vec![0]));
    };

    let (mut first, fillers) = connect_last(|| UnixStream::connect(served.socket()).unwrap());
    go_round();
    drop(fillers);
    first.set_read_timeout(PATIENCE).unwrap();
    let mut greeting = [0; 18];
    first.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..8], b"NBDMAGIC");

    let control = served.ports.control.clone().unwrap();
    let (mut second, fillers) = connect_last(|| UnixStream::connect(&control).unwrap());
    go_round();
    drop(fillers);
    second.set_read_timeout(PATIENCE).unwrap();
    second.write_all(b"{\"command\": \"list\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(&second).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"plain\""), "{answer}");

    drop(limit);
}
