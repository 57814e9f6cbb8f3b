//! Large replies and requests of many clients, which wait for memory and are not cut off.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use entresol_device::MemoryDevice;
use entresol_tier::{
    Admission, Compression, Durability, StoreOptions, Tiered, TieredOptions, Timestamp,
};
use support::{Client, TestServer, encode, store};

/// With 128 MiB of memory clients may take 16 MiB, and the cache lends some of it.
const CLIENTS_BYTES_MAX: usize = 16 << 20;

/// Sixty clients that asked for a large value and read it later had the server take six times its
/// memory, and nearly all of them were cut off.
#[test]
fn replies_of_large_values_wait_for_memory_and_arrive_whole() {
    for (cache, threads) in [(None, "2"), (Some(0), "1")] {
        let server = TestServer::start_on(store(cache), &settings(threads));
        let mut other = server.client();
        let value = "v".repeat(5 << 20);
        other.send(&["SET", "k", &value]);
        assert_eq!(other.reply(), b"+OK\r\n");
        let mut clients: Vec<_> = (0..12).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send(&["GET", "k"]);
        }
        // Some replies are there, and the rest waits.
        while counted(&server) < 5 << 20 {}
        let most = CLIENTS_BYTES_MAX;
        assert!((0..100).all(|_| counted(&server) <= most), "{}", counted(&server));
        assert_eq!(other.call("SET small v"), "+OK\r\n");
        assert_eq!(other.call("GET small"), "$1\r\nv\r\n");
        let read = |mut client: Client<UnixStream>| client.reply().len();
        let readers: Vec<_> =
            clients.into_iter().map(|client| std::thread::spawn(move || read(client))).collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            assert!(counted(&server) <= most, "{}", counted(&server));
        }
        for reader in readers {
            assert_eq!(reader.join().unwrap(), (5 << 20) + b"$5242880\r\n\r\n".len());
        }
    }
}

/// All that many clients ask for in many ways arrives, and small commands go on meanwhile.
#[test]
fn whatever_many_clients_ask_for_at_once_arrives_whole() {
    for (cache, compression) in
        [(None, Compression::None), (Some(0), Compression::None), (Some(0), Compression::Lz4)]
    {
        let server = TestServer::start_on(compressed(cache, compression), &settings("2"));
        let mut other = server.client();
        let value = "v".repeat(3 << 20);
        for key in ["a", "b"] {
            other.send(&["SET", key, &value]);
            assert_eq!(other.reply(), b"+OK\r\n");
        }
        other.send(&["HSET", "h", "f", &value]);
        assert_eq!(other.reply(), b":1\r\n");
        let large = 3 << 20;
        let asked: Vec<(Vec<Vec<u8>>, usize)> = vec![
            (vec![encode(&["GET", "a"])], large),
            (vec![encode(&["GET", "a"]).repeat(4)], 4 * large),
            (vec![encode(&["MGET", "a", "b"])], 2 * large),
            (vec![encode(&["HGETALL", "h"])], large),
            (vec![encode(&["MULTI"]), encode(&["GET", "a"]), encode(&["EXEC"])], large),
            (vec![encode(&["SET", "c", &value]), encode(&["GET", "a"])], large),
            (vec![encode(&["APPEND", "d", &value]), encode(&["STRLEN", "d"])], 0),
            (vec![encode(&["MSET", "e", &value, "f", &value])], 0),
        ];
        let done: Vec<_> = asked
            .iter()
            .cycle()
            .take(24)
            .map(|(commands, bytes)| {
                let socket = server.socket.clone();
                let (bytes_min, commands) = (*bytes, commands.concat());
                std::thread::spawn(move || {
                    let mut stream = UnixStream::connect(socket).unwrap();
                    stream.write_all(&commands).unwrap();
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all).unwrap();
                    assert!(!all.starts_with(b"-"), "{:?}", String::from_utf8_lossy(&all[..99]));
                    assert!(all.len() > bytes_min && all.ends_with(b"\r\n"), "{}", all.len());
                })
            })
            .collect();
        while done.iter().any(|thread| !thread.is_finished()) {
            assert_eq!(other.call("PING"), "+PONG\r\n");
            other.call("INCR n");
        }
        done.into_iter().for_each(|thread| thread.join().unwrap());
        assert!((0..1000).any(|_| counted(&server) == 0), "{}", counted(&server));
    }
}

/// A client that was gone kept its place among those who waited.
#[test]
fn clients_that_vanish_while_they_wait_for_memory_hold_nobody_up() {
    let server = TestServer::start(&settings("2"));
    let mut other = server.client();
    other.send(&["SET", "k", &"v".repeat(5 << 20)]);
    assert_eq!(other.reply(), b"+OK\r\n");
    let mut gone: Vec<_> = (0..10).map(|_| server.client()).collect();
    for client in &mut gone {
        client.send(&["GET", "k"]);
    }
    while counted(&server) < 5 << 20 {}
    drop(gone);
    other.send(&["GET", "k"]);
    assert_eq!(other.reply().len(), (5 << 20) + b"$5242880\r\n\r\n".len());
    assert!((0..1000).any(|_| counted(&server) == 0), "{}", counted(&server));
}

/// A client that sent all its commands before it read a reply was reset after a minute: it waited
/// for the server, and the server for it.
#[test]
fn a_pipeline_that_is_sent_before_a_reply_is_read_is_answered_whole() {
    const COMMANDS: usize = 40_000;
    let settings = [("output-limit", "1MiB"), ("threads", "1"), ("stall-timeout", "3s")];
    let server = TestServer::start(&settings);
    let mut client = server.client();
    assert_eq!(client.call(&format!("SET k {}", "v".repeat(300))), "+OK\r\n");
    client.send_raw(&encode(&["GET", "k"]).repeat(COMMANDS));
    let reply = format!("$300\r\n{}\r\n", "v".repeat(300));
    for number in 0..COMMANDS {
        assert!(client.reply() == reply.as_bytes(), "{number}");
    }
}

/// The connection was closed without a word.
#[test]
fn a_value_beyond_the_output_limit_is_an_error_and_no_end() {
    let server = TestServer::start(&[("output-limit", "1MiB")]);
    let mut client = server.client();
    client.send(&["SET", "k", &"v".repeat(2 << 20)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    let refused = "-ERR the reply takes more than 1048576 bytes (`output-limit`); ask for less\r\n";
    assert_eq!(client.call("GET k"), refused);
    assert_eq!(client.call("GETRANGE k 0 1500000"), refused);
    assert_eq!(client.call("STRLEN k"), ":2097152\r\n");
    assert_eq!(client.call("GETRANGE k 1 3"), "$3\r\nvvv\r\n");
}

/// What no memory is for is said, before it is sent.
#[test]
fn a_request_that_no_memory_is_for_is_refused_with_the_reason() {
    let server = TestServer::start(&[("memory", "32MiB")]);
    let mut stream = UnixStream::connect(&server.socket).unwrap();
    stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$67000000\r\nvvv").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("-ERR this takes 670000"), "{told}");
    assert!(told.contains("`memory`; raise it"), "{told}");
}

fn settings(threads: &'static str) -> [(&'static str, &'static str); 3] {
    [("memory", "128MiB"), ("threads", threads), ("admin-port", "0")]
}

fn compressed(cache_bytes: Option<u64>, compression: Compression) -> Arc<Tiered> {
    let device = MemoryDevice::new(256 << 20).unwrap();
    let durability = Durability::Memory;
    let store = StoreOptions { durability, compression, ..StoreOptions::default() };
    let options =
        TieredOptions { store, memory_bytes: 64 << 20, cache_bytes, admission: Admission::Always };
    Tiered::open(Arc::new(device), options, Timestamp(1)).unwrap()
}

/// Bytes that all clients have the server keep. Asked for over HTTP nothing waits for its turn.
fn counted(server: &TestServer) -> usize {
    let address = server.server.ports().admin.unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, rest) = answer.split_once("\"client_buffer_bytes\":").unwrap();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
    rest[..end].parse().unwrap()
}
