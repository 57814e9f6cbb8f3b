//! What commands and clients may take of the server's memory.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use support::{Client, TestServer, encode, store};

/// `HRANDFIELD` with repetitions built its reply whole, whatever its size: a terabyte if asked for.
#[test]
fn replies_longer_than_the_limit_are_refused_before_they_are_made() {
    let server = TestServer::start(&[("output-limit", "1MiB")]);
    let mut client = server.client();
    client.send(&["HSET", "h", "f", &"v".repeat(10_000)]);
    assert_eq!(client.reply(), b":1\r\n");
    client.send(&["SET", "k", &"v".repeat(10_000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    let refused = "-ERR the reply takes more than 1048576 bytes (`output-limit`); ask for less\r\n";
    assert_eq!(client.call("HRANDFIELD h -1048576 WITHVALUES"), refused);
    assert_eq!(client.call("HRANDFIELD h -9223372036854775807"), refused);
    assert_eq!(client.call("HRANDFIELD none -9223372036854775807"), "*0\r\n");
    assert_eq!(client.call("HRANDFIELD h -2"), "*2\r\n$1\r\nf\r\n$1\r\nf\r\n");
    client.send(&[["MGET"].as_slice(), &["k"; 200]].concat());
    assert_eq!(client.reply(), refused.as_bytes());
    client.send(&[["MGET"].as_slice(), &["k"; 50]].concat());
    assert_eq!(client.reply().len(), 5 + 50 * (10_000 + 10));
}

/// The same field over and over again, and what commands are like, took ten times the memory cap.
#[test]
fn what_is_asked_for_again_and_again_in_one_command_is_refused_beyond_the_limit() {
    for cache in [None, Some(0)] {
        let settings = [("output-limit", "1MiB"), ("threads", "1")];
        let server = TestServer::start_on(store(cache), &settings);
        let mut client = server.client();
        client.send(&["HSET", "h", "f", &"v".repeat(100_000)]);
        assert_eq!(client.reply(), b":1\r\n");
        push_out_of_buffers(&mut client);
        let refused =
            "-ERR the reply takes more than 1048576 bytes (`output-limit`); ask for less\r\n";
        for (few, many) in [(10, 11), (10, 200)] {
            client.send(&[["HMGET", "h"].as_slice(), &vec!["f"; many]].concat());
            assert_eq!(client.reply(), refused.as_bytes(), "{many} fields");
            client.send(&[["HMGET", "h"].as_slice(), &vec!["f"; few]].concat());
            assert_eq!(client.reply().len(), 5 + few * (100_000 + 11));
        }
        for about in ["INFO", "DOCS"] {
            client.send(&[["COMMAND", about].as_slice(), &["client"; 4000]].concat());
            assert_eq!(client.reply(), refused.as_bytes(), "COMMAND {about}");
            client.send(&["COMMAND", about, "client", "client"]);
            assert!(client.reply().len() > 1000);
        }
        assert_eq!(client.call("PING"), "+PONG\r\n");
    }
}

/// Writes so much that what was written before is on the device alone, where there is no cache.
fn push_out_of_buffers(client: &mut Client<UnixStream>) {
    let filler = vec![b'f'; 1 << 20];
    for n in 0..40 {
        client.send(&[b"SET".as_slice(), format!("filler {n}").as_bytes(), &filler]);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
}

/// A read that waited for the device was kept without its key, and of long keys and of many
/// arguments the beginning passed for all.
#[test]
fn slow_commands_are_kept_with_their_keys_and_what_is_cut_off_is_told_of() {
    let settings = [("slowlog-log-slower-than", "0"), ("threads", "1")];
    let server = TestServer::start_on(store(Some(0)), &settings);
    let mut client = server.client();
    let key = "k".repeat(200);
    client.send(&["SET", &key, &"v".repeat(1000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    push_out_of_buffers(&mut client);
    client.send(&["GET", &key]);
    assert!(client.reply().starts_with(b"$1000\r\n"));
    let kept = client.call("SLOWLOG GET 1").to_ascii_lowercase();
    let shown = format!("{}... (72 more bytes)", "k".repeat(128));
    assert!(kept.contains(&format!("*2\r\n$3\r\nget\r\n$147\r\n{shown}\r\n")), "{kept}");
    let keys: Vec<String> = (0..50).map(|key| format!("d{key}")).collect();
    client.send(&[&["DEL".to_owned()], keys.as_slice()].concat());
    assert_eq!(client.reply(), b":0\r\n");
    let kept = client.call("SLOWLOG GET 1");
    assert!(kept.contains("*32\r\n$3\r\nDEL\r\n$2\r\nd0\r\n"), "{kept}");
    assert!(kept.contains("$3\r\nd29\r\n$23\r\n... (20 more arguments)\r\n"), "{kept}");
}

#[test]
fn many_keys_are_read_in_their_order_whether_from_memory_or_flash() {
    for cache in [None, Some(0)] {
        let server = TestServer::start_on(store(cache), &[]);
        let mut client = server.client();
        let value = |key: usize| format!("{key}").repeat(1 + key * 37 % 900);
        for key in (0..3000).step_by(3) {
            client.send(&["SET", &format!("k{key}"), &value(key)]);
            assert_eq!(client.reply(), b"+OK\r\n");
        }
        let keys: Vec<String> = (0..3000).map(|key| format!("k{key}")).collect();
        client.send(&[&["MGET".to_owned()], keys.as_slice()].concat());
        let mut expected = b"*3000\r\n".to_vec();
        for key in 0..3000 {
            let bulk = match key % 3 {
                0 => format!("${}\r\n{}\r\n", value(key).len(), value(key)),
                _ => "$-1\r\n".to_owned(),
            };
            expected.extend_from_slice(bulk.as_bytes());
        }
        assert!(client.reply() == expected, "cache {cache:?}");
        for command in ["EXISTS", "TOUCH"] {
            client.send(&[&[command.to_owned()], keys.as_slice()].concat());
            assert_eq!(client.reply(), b":1000\r\n");
        }
    }
}

/// The memory of a command that is not complete doubled as it grew: clients were closed.
#[test]
fn a_value_of_the_largest_size_passes_with_the_default_memory() {
    let server = TestServer::start(&[("memory", "512MiB")]);
    let mut client = server.client();
    let value = "v".repeat(64 << 20);
    client.send(&["SET", "k", &value]);
    assert_eq!(client.reply(), b"+OK\r\n");
    client.send(&["GET", "k"]);
    let reply = client.reply();
    assert!(reply.starts_with(b"$67108864\r\nv") && reply.ends_with(b"v\r\n"));
    assert_eq!(reply.len(), (64 << 20) + b"$67108864\r\n\r\n".len());
}

/// A client whose commands' replies would have taken more than all clients may was closed.
#[test]
fn a_client_that_pipelines_reads_of_large_values_is_held_back_and_not_closed() {
    for cache in [None, Some(0)] {
        let server = TestServer::start_on(store(cache), &[("memory", "64MiB"), ("threads", "1")]);
        let mut client = server.client();
        let value = |key: usize| format!("{}", key % 10).repeat(50_000);
        for key in 0..300 {
            client.send(&["SET", &format!("k{key}"), &value(key)]);
            assert_eq!(client.reply(), b"+OK\r\n");
        }
        for round in 0..3 {
            let gets = (0..300).map(|key| encode(&["GET", &format!("k{key}")]));
            client.send_raw(&gets.collect::<Vec<_>>().concat());
            for key in 0..300 {
                let expected = format!("$50000\r\n{}\r\n", value(key));
                assert!(client.reply() == expected.as_bytes(), "{cache:?} {round} {key}");
            }
        }
    }
}

/// All that it had taken was kept until it had taken everything: several times what it owed.
#[test]
fn replies_that_a_client_has_taken_are_let_go_though_it_never_catches_up() {
    let settings = [("memory", "64MiB"), ("threads", "1"), ("admin-port", "0")];
    let server = TestServer::start_on(store(None), &settings);
    let (mut client, mut other) = (server.client(), server.client());
    client.send(&["SET", "k", &"v".repeat(50_000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    let get = encode(&["GET", "k"]);
    client.send_raw(&get.repeat(100));
    for reply in 0..600 {
        // Meanwhile the server puts the next replies together: 2 MiB of them.
        assert_eq!(other.call("PING"), "+PONG\r\n");
        assert_eq!(client.reply().len(), 50_010, "{reply}");
        if reply < 500 {
            client.send_raw(&get);
        }
        let kept = if reply % 8 == 0 { counted(&server) } else { 0 };
        assert!(kept < 5 << 20, "{kept} bytes after {reply} replies");
    }
}

/// Transactions, watches and arguments in flight were memory that nobody counted.
#[test]
fn what_a_client_makes_the_server_keep_is_counted() {
    let server = TestServer::start(&[("threads", "1"), ("enable-debug-command", "yes")]);
    let (mut client, mut other) = (server.client(), server.client());
    let counted = |other: &mut Client<UnixStream>| -> usize {
        let info = other.call("INFO clients");
        let line = info.lines().find_map(|line| line.strip_prefix("client_buffer_bytes:"));
        line.unwrap().trim().parse().unwrap()
    };
    let large = "x".repeat(500_000);
    client.call("MULTI");
    client.send(&["SET", "k", &large]);
    assert_eq!(client.reply(), b"+QUEUED\r\n");
    assert!(counted(&mut other) >= 500_000, "queued");
    client.call("DISCARD");
    assert_eq!(counted(&mut other), 0, "forgotten");
    for key in 0..5 {
        client.send(&["WATCH", &format!("{key}{}", "x".repeat(50_000))]);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    assert!(counted(&mut other) >= 250_000, "watched");
    client.call("UNWATCH");
    assert_eq!(counted(&mut other), 0, "no longer watched");
    let sleep = encode(&["DEBUG", "SLEEP", &format!("60.{}", "0".repeat(500_000))]);
    // The server takes a part at a time from the socket, and replies to others in between.
    let (begun, end) = sleep.split_at(sleep.len() - 2);
    client.send_raw(begun);
    assert!((0..1000).any(|_| counted(&mut other) >= 500_000), "not yet complete");
    client.send_raw(end);
    assert!((0..100).all(|_| counted(&mut other) >= 500_000), "in flight");
}

/// `EXEC` took the commands out of what was counted, and had them in memory for as long as it took.
#[test]
fn what_a_transaction_that_is_carried_out_takes_is_counted_until_its_end() {
    let settings = [("threads", "1"), ("enable-debug-command", "yes"), ("admin-port", "0")];
    let server = TestServer::start(&settings);
    let mut client = server.client();
    let counted = || counted(&server);
    let (large, watched) = ("x".repeat(500_000), "w".repeat(60_000));
    let queue = |client: &mut Client<UnixStream>, last: &[&str]| {
        client.send(&["WATCH", &watched]);
        assert_eq!(client.reply(), b"+OK\r\n");
        client.call("MULTI");
        for command in [&["SET", "k", &large][..], last] {
            client.send(command);
            assert_eq!(client.reply(), b"+QUEUED\r\n");
        }
    };
    queue(&mut client, &["PING"]);
    assert!(counted() >= 560_000, "queued");
    assert_eq!(client.call("EXEC"), "*2\r\n+OK\r\n+PONG\r\n");
    assert_eq!(server.client().call("PING"), "+PONG\r\n");
    assert_eq!(counted(), 0, "carried out");
    queue(&mut client, &["DEBUG", "SLEEP", "60"]);
    // The reply before it leaves once the transaction has begun.
    client.send_raw(&[encode(&["PING"]), encode(&["EXEC"])].concat());
    assert_eq!(client.reply(), b"+QUEUED\r\n");
    assert!(counted() >= 560_000, "while it is carried out");
}

#[test]
fn clients_that_make_the_server_keep_more_than_it_has_room_for_are_closed() {
    let server = TestServer::start(&[("memory", "32MiB")]);
    let mut stream = UnixStream::connect(&server.socket).unwrap();
    stream.write_all(&encode(&["MULTI"])).unwrap();
    let set = encode(&["SET", "k", &"x".repeat(500_000)]);
    let mut reply = [0; 16];
    let taken = (0..100)
        .take_while(|_| stream.write_all(&set).is_ok() && stream.read(&mut reply).unwrap_or(0) > 0);
    assert!(taken.count() < 20, "the buffers of clients may take an eighth of the memory");
    assert_eq!(server.client().call("PING"), "+PONG\r\n");
}

/// What had small replies before was thought to have small ones again: many large ones were read at
/// once, and the client was closed for them.
#[test]
fn large_values_that_are_read_after_small_ones_all_arrive() {
    let settings = [("memory", "256MiB"), ("threads", "1")];
    let server = TestServer::start_on(store(Some(0)), &settings);
    let mut client = server.client();
    let value = |key: usize| format!("{}", key % 10).repeat(700_000);
    for key in 0..110 {
        client.send(&["SET", &format!("small{key}"), "v"]);
        assert_eq!(client.reply(), b"+OK\r\n");
        client.send(&["SET", &format!("k{key}"), &value(key)]);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    for key in 0..110 {
        assert_eq!(client.call(&format!("GET small{key}")), "$1\r\nv\r\n");
    }
    let gets = (0..110).map(|key| encode(&["GET", &format!("k{key}")]));
    client.send_raw(&gets.collect::<Vec<_>>().concat());
    for key in 0..110 {
        let expected = format!("$700000\r\n{}\r\n", value(key));
        assert!(client.reply() == expected.as_bytes(), "{key}");
    }
}

/// Of a transaction whose replies were too long the last commands were left out.
#[test]
fn a_transaction_whose_replies_are_too_long_is_carried_out_whole() {
    let server = TestServer::start(&[("output-limit", "1MiB")]);
    let mut client = server.client();
    client.send(&["SET", "big", &"v".repeat(600_000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    client.call("MULTI");
    for command in ["INCR before", "GET big", "GET big", "GET big", "INCR after"] {
        assert_eq!(client.call(command), "+QUEUED\r\n");
    }
    let told = client.call("EXEC");
    assert!(told.starts_with("-ERR the replies of the transaction are too long"), "{told}");
    let mut other = server.client();
    assert_eq!(other.call("MGET before after"), "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
}

/// One that had asked to be alone waited, as clients had much in memory, and all others for it.
#[test]
fn a_command_that_runs_alone_begins_however_much_clients_keep() {
    // On a machine with much else to do the transaction is over before others have sent all.
    assert!(["3", "15", "60"].into_iter().any(owed_beside_a_transaction));
}

/// Has clients keep memory while a transaction sleeps, and one of them ask to run alone. Whether
/// all of that came before the end of the sleep.
fn owed_beside_a_transaction(sleep_seconds: &str) -> bool {
    let settings = [("memory", "64MiB"), ("enable-debug-command", "yes"), ("admin-port", "0")];
    let server = TestServer::start(&settings);
    let mut client = server.client();
    let mut first = UnixStream::connect(&server.socket).unwrap();
    client.send(&["SET", "big", &"v".repeat(300_000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    let mut slow = UnixStream::connect(&server.socket).unwrap();
    slow.write_all(&encode(&["GET", "big"]).repeat(3)).unwrap();
    while counted(&server) < 300_000 {}
    // The reply to the last but one leaves once the transaction has begun.
    let queued = [&["MULTI"][..], &["DEBUG", "SLEEP", sleep_seconds], &["PING"], &["EXEC"]];
    first.write_all(&queued.map(encode).concat()).unwrap();
    let mut replies = [0; "+OK\r\n+QUEUED\r\n+QUEUED\r\n".len()];
    first.read_exact(&mut replies).unwrap();
    assert_eq!(&replies, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    first.set_nonblocking(true).unwrap();
    let mut kept_before_its_end = |bytes: usize| {
        while counted(&server) < bytes {
            if first.read(&mut [0; 64]).is_ok() {
                return false;
            }
        }
        true
    };
    let before = counted(&server);
    slow.write_all(&encode(&["MSET", "m1", &"w".repeat(110_000), "m2", "w"])).unwrap();
    if !kept_before_its_end(before + 110_000) {
        return false;
    }
    let unfinished = encode(&["SET", "k", &"v".repeat(400_000)]);
    let others: Vec<UnixStream> = (0..11)
        .map(|_| {
            let mut other = UnixStream::connect(&server.socket).unwrap();
            other.write_all(&unfinished[..unfinished.len() - 2]).unwrap();
            other
        })
        .collect();
    // From half of what they may have on clients that owe bytes wait.
    if !kept_before_its_end((4 << 20) + 100_000) {
        return false;
    }
    // Whoever has asked to be alone is before this one. It asks once its worker has looked at the
    // command, which may be after the others came: then it waits, and nobody for it.
    let has_asked = client.call("EXISTS m2") == ":1\r\n";
    drop(others);
    has_asked
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
