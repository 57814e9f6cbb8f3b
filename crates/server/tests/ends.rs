//! Commands that change when a key ends, beside others that change its value: each is one step.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod support;

use std::os::unix::net::UnixStream;

use support::{Client, TestServer, store};

const KEYS: usize = 3000;

/// A server that has to read each of the keys from the device.
fn server_with_keys() -> TestServer {
    let server = TestServer::start_on(store(Some(0)), &[("threads", "2")]);
    let mut client = server.client();
    let value = "old".repeat(300);
    for key in 0..KEYS {
        client.send(&["SET", &format!("k{key}"), &value]);
    }
    for _ in 0..KEYS {
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    // Pushes them out of the write buffers.
    let filler = vec![b'f'; 1 << 20];
    for n in 0..40 {
        client.send(&[b"SET".as_slice(), format!("filler {n}").as_bytes(), &filler]);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    server
}

/// Has two clients send a command for each key at once, and gives the replies of both.
fn beside(server: &TestServer, commands: [fn(&str) -> Vec<String>; 2]) -> [Vec<Vec<u8>>; 2] {
    let replies = |command: fn(&str) -> Vec<String>| {
        let mut client: Client<UnixStream> = server.client();
        for batch in (0..KEYS).collect::<Vec<_>>().chunks(100) {
            batch.iter().for_each(|key| client.send(&command(&format!("k{key}"))));
        }
        (0..KEYS).map(|_| client.reply()).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let [first, second] = commands.map(|command| scope.spawn(move || replies(command)));
        [first.join().unwrap(), second.join().unwrap()]
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn an_end_that_is_set_while_the_value_changes_stays() {
    let server = server_with_keys();
    let commands: [fn(&str) -> Vec<String>; 2] =
        [|key| words(&["EXPIRE", key, "1000"]), |key| words(&["APPEND", key, "x"])];
    let [ends, lengths] = beside(&server, commands);
    let mut client = server.client();
    for key in 0..KEYS {
        assert_eq!(ends[key], b":1\r\n");
        assert_eq!(lengths[key], b":901\r\n");
        let left = client.call(&format!("TTL k{key}"));
        assert!(left.starts_with(":9") || left == ":1000\r\n", "k{key}: {left}");
        assert_eq!(client.call(&format!("STRLEN k{key}")), ":901\r\n");
    }
}

#[test]
fn one_of_two_who_set_an_end_where_there_is_none_succeeds() {
    let server = server_with_keys();
    let commands: [fn(&str) -> Vec<String>; 2] =
        [|key| words(&["EXPIRE", key, "100", "NX"]), |key| words(&["EXPIRE", key, "1000", "NX"])];
    let [short, long] = beside(&server, commands);
    let mut client = server.client();
    for key in 0..KEYS {
        let left = client.call(&format!("TTL k{key}"));
        let is_long = left.len() > ":100\r\n".len() || left.starts_with(":9") && left.len() == 6;
        let expected: [&[u8]; 2] =
            if is_long { [b":0\r\n", b":1\r\n"] } else { [b":1\r\n", b":0\r\n"] };
        assert_eq!([&short[key][..], &long[key][..]], expected, "k{key} ends in {left}");
    }
}

#[test]
fn who_reads_a_value_and_sets_its_end_never_ends_a_newer_one() {
    let server = server_with_keys();
    let commands: [fn(&str) -> Vec<String>; 2] =
        [|key| words(&["GETEX", key, "EX", "1000"]), |key| words(&["SET", key, "new"])];
    let [values, _] = beside(&server, commands);
    let mut client = server.client();
    for (key, value) in values.iter().enumerate() {
        let ends = client.call(&format!("TTL k{key}")) != ":-1\r\n";
        let read_new = value == b"$3\r\nnew\r\n";
        assert_eq!(ends, read_new, "k{key}");
        assert_eq!(client.call(&format!("GET k{key}")), "$3\r\nnew\r\n");
    }
}
