//! What clients may rely on beyond what the comparison with redis-server covers.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_random::SplitMix;
use support::{Client, TestServer, encode, store};

#[test]
fn replies_keep_the_order_of_pipelined_commands_while_reads_wait_for_flash() {
    let server = TestServer::start_on(store(Some(0)), &[("threads", "1")]);
    let mut client = server.client();
    let value = |key: usize, round: usize| format!("{key}:{round}:").repeat(150);
    for key in 0..2000 {
        client.send(&["SET", &format!("k{key}"), &value(key, 0)]);
    }
    (0..2000).for_each(|_| assert_eq!(client.reply(), b"+OK\r\n"));
    for seed in 0..20 {
        let mut random = SplitMix::new(seed);
        let mut expected = Vec::new();
        for round in 0..100 {
            let key = random.index(2000);
            client.send(&["GET", &format!("k{key}")]);
            client.send(&["PING", &format!("{round}")]);
            client.send(&["STRLEN", &format!("k{key}")]);
            expected.push((value(key, 0), round));
        }
        for (value, round) in expected {
            let bulk = format!("${}\r\n{value}\r\n", value.len());
            assert_eq!(client.reply(), bulk.as_bytes(), "seed {seed}");
            assert_eq!(
                client.reply(),
                format!("${}\r\n{round}\r\n", round.to_string().len()).into_bytes()
            );
            assert_eq!(client.reply(), format!(":{}\r\n", value.len()).into_bytes());
        }
    }
}

#[test]
fn a_read_ahead_of_a_write_to_the_same_key_answers_the_old_value() {
    let server = TestServer::start_on(store(Some(0)), &[("threads", "1")]);
    let mut client = server.client();
    for round in 0..200 {
        let (old, new) = ("o".repeat(1000 + round), "n".repeat(500 + round));
        client.send(&["SET", "k", &old]);
        client.send(&["GET", "k"]);
        client.send(&["SET", "k", &new]);
        client.send(&["GET", "k"]);
        client.send(&["APPEND", "k", "!"]);
        client.send(&["STRLEN", "k"]);
        assert_eq!(client.reply(), b"+OK\r\n");
        assert_eq!(client.reply(), format!("${}\r\n{old}\r\n", old.len()).into_bytes());
        assert_eq!(client.reply(), b"+OK\r\n");
        assert_eq!(client.reply(), format!("${}\r\n{new}\r\n", new.len()).into_bytes());
        assert_eq!(client.reply(), format!(":{}\r\n", new.len() + 1).into_bytes());
        assert_eq!(client.reply(), format!(":{}\r\n", new.len() + 1).into_bytes());
    }
}

#[test]
fn concurrent_increments_lose_nothing() {
    let server = TestServer::start(&[("threads", "2")]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = server.client();
                (0..500).for_each(|_| client.send(&["INCR", "n"]));
                (0..500).for_each(|_| assert_eq!(client.reply().first(), Some(&b':')));
            });
        }
    });
    assert_eq!(server.client().call("GET n"), "$4\r\n4000\r\n");
}

#[test]
fn nobody_sees_half_of_a_transaction() {
    let server = TestServer::start(&[("threads", "2")]);
    let rounds = 300;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..rounds {
                    for command in ["MULTI", "INCR a", "INCR b", "EXEC"] {
                        client.call(command);
                    }
                }
            });
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..rounds {
                    for command in ["MULTI", "GET a", "GET b"] {
                        client.call(command);
                    }
                    let reply = client.call("EXEC");
                    let values: Vec<&str> =
                        reply.lines().filter(|line| !line.starts_with(['$', '*'])).collect();
                    assert_eq!(values.first(), values.last(), "{reply}");
                }
            });
        }
    });
    assert_eq!(server.client().call("MGET a b"), "*2\r\n$3\r\n600\r\n$3\r\n600\r\n");
}

#[test]
fn only_one_of_two_watchers_succeeds() {
    let server = TestServer::start(&[]);
    let (mut first, mut second) = (server.client(), server.client());
    for client in [&mut first, &mut second] {
        assert_eq!(client.call("WATCH k"), "+OK\r\n");
        assert_eq!(client.call("MULTI"), "+OK\r\n");
        assert_eq!(client.call("INCR k"), "+QUEUED\r\n");
    }
    assert_eq!(first.call("EXEC"), "*1\r\n:1\r\n");
    assert_eq!(second.call("EXEC"), "*-1\r\n");
}

#[test]
fn a_watched_absence_ends_though_the_entry_is_gone_again() {
    let server = TestServer::start(&[]);
    let (mut watcher, mut other) = (server.client(), server.client());
    let run = |watcher: &mut Client<UnixStream>| {
        assert_eq!(watcher.call("MULTI"), "+OK\r\n");
        assert_eq!(watcher.call("PING"), "+QUEUED\r\n");
        watcher.call("EXEC")
    };
    for set in ["SET k v", "SETNX k v", "INCR k", "HSET k f v", "MSET a b k v"] {
        for key in ["k", "other"] {
            assert_eq!(watcher.call(&format!("WATCH {key}")), "+OK\r\n");
            other.call(set);
            assert_eq!(other.call("DEL k"), ":1\r\n");
            let wanted = if key == "k" { "*-1\r\n" } else { "*1\r\n+PONG\r\n" };
            assert_eq!(run(&mut watcher), wanted, "{set}, {key} watched");
            assert_eq!(run(&mut watcher), "*1\r\n+PONG\r\n", "nothing is watched after EXEC");
        }
    }
    watcher.call("WATCH k");
    other.call("SET k v XX");
    assert_eq!(run(&mut watcher), "*1\r\n+PONG\r\n", "an absent key is not set with XX");
}

#[test]
fn a_scan_visits_every_key_that_stays() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    let keys = 5000;
    for key in 0..keys {
        client.send(&["SET", &format!("stay:{key}"), "v"]);
    }
    (0..keys).for_each(|_| assert_eq!(client.reply(), b"+OK\r\n"));
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = "0".to_owned();
    let mut round = 0;
    loop {
        let reply = client.call(&format!("SCAN {cursor} COUNT 100 MATCH stay:*"));
        let lines: Vec<&str> = reply.split("\r\n").collect();
        seen.extend(lines.iter().filter(|line| line.starts_with("stay:")).map(|l| l.to_string()));
        cursor = fitting(lines[2]);
        if cursor == "0" {
            break;
        }
        client.call(&format!("SET other:{round} v"));
        round += 1;
    }
    assert_eq!(seen.len(), keys);
}

/// Fills space 0 with many keys and space 1 with one.
fn two_spaces() -> TestServer {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    for batch in 0..20 {
        let mut command = vec!["MSET".to_owned()];
        (0..1000).for_each(|key| command.extend([format!("k{batch}:{key}"), "v".to_owned()]));
        client.send(&command);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    client.call("SELECT 1");
    client.call("SET only v");
    server
}

/// `RANDOMKEY` looked at a few buckets and gave up.
#[test]
fn a_random_key_is_found_wherever_it_is() {
    let server = two_spaces();
    let mut client = server.client();
    client.call("SELECT 1");
    for _ in 0..20 {
        assert_eq!(client.call("RANDOMKEY"), "$4\r\nonly\r\n");
    }
    client.call("SELECT 2");
    assert_eq!(client.call("RANDOMKEY"), "$-1\r\n");
    client.call("SELECT 0");
    assert!(client.call("RANDOMKEY").contains("\r\nk"));
}

/// One call walked the whole store where the space had few keys.
#[test]
fn a_scan_of_a_space_with_few_keys_takes_many_short_calls() {
    let server = two_spaces();
    let mut client = server.client();
    client.call("SELECT 1");
    let (mut cursor, mut found, mut calls) = ("0".to_owned(), 0, 0);
    loop {
        let reply = client.call(&format!("SCAN {cursor}"));
        let lines: Vec<&str> = reply.split("\r\n").collect();
        found += lines.iter().filter(|line| **line == "only").count();
        calls += 1;
        cursor = lines[2].to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert!(found >= 1 && calls > 2, "found {found} times in {calls} calls");
}

#[test]
fn a_large_hash_is_scanned_as_a_whole() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    for field in 0..500 {
        client.send(&["HSET", "h", &format!("f{field}"), &"v".repeat(field % 100)]);
    }
    (0..500).for_each(|_| assert_eq!(client.reply(), b":1\r\n"));
    let (mut cursor, mut seen) = ("0".to_owned(), std::collections::BTreeSet::new());
    loop {
        let reply = client.call(&format!("HSCAN h {cursor} COUNT 50"));
        let lines: Vec<&str> = reply.split("\r\n").collect();
        seen.extend(lines.iter().filter(|line| line.starts_with('f')).map(|l| l.to_string()));
        cursor = fitting(lines[2]);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 500);
}

/// A cursor, which clients that keep it as a floating-point number must be able to give back.
fn fitting(cursor: &str) -> String {
    assert_eq!(cursor.parse::<f64>().unwrap().to_string(), cursor);
    cursor.to_owned()
}

#[test]
fn large_values_arrive_whole() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    let value: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    client.send(&[b"SET".as_slice(), b"big", &value]);
    assert_eq!(client.reply(), b"+OK\r\n");
    client.send(&["GET", "big"]);
    let reply = client.reply();
    assert!(reply.starts_with(b"$3000000\r\n"));
    assert_eq!(&reply[10..reply.len() - 2], value);
}

#[test]
fn keys_and_values_beyond_the_engines_limits_are_refused() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    client.send(&["SET", "", "v"]);
    assert_eq!(client.reply(), b"-ERR a key must have at least one byte\r\n");
    client.send(&["GET", &"k".repeat(70_000)]);
    assert!(client.reply().starts_with(b"-ERR a key has at most 65536 bytes"));
    client.send(&["SETRANGE", "k", "67108864", "x"]);
    assert!(client.reply().starts_with(b"-ERR string exceeds maximum allowed size"));
    assert_eq!(client.call("PING"), "+PONG\r\n");
}

#[test]
fn a_protocol_error_is_answered_and_ends_the_connection() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    client.send_raw(b"PING\r\n*1\r\n:1\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(client.reply(), b"+PONG\r\n");
    assert_eq!(client.reply(), b"-ERR Protocol error: expected '$', got ':'\r\n");
    assert_eq!(client.reply(), b"", "the connection is closed");
}

#[test]
fn commands_in_any_chunks_get_the_same_replies() {
    let server = TestServer::start(&[]);
    let mut bytes = Vec::new();
    for round in 0..50 {
        bytes.extend(encode(&["SET", "k", &"v".repeat(round * 7)]));
        bytes.extend(encode(&["GET", "k"]));
    }
    for seed in 0..10 {
        let mut random = SplitMix::new(seed);
        let mut client = server.client();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((1 + random.index(40)).min(rest.len()));
            client.send_raw(piece);
            rest = tail;
        }
        for round in 0..50 {
            assert_eq!(client.reply(), b"+OK\r\n", "seed {seed}");
            let expected = format!("${}\r\n{}\r\n", round * 7, "v".repeat(round * 7));
            assert_eq!(client.reply(), expected.as_bytes(), "seed {seed}");
        }
    }
}

#[test]
fn more_clients_than_allowed_are_refused() {
    let server = TestServer::start(&[("maxclients", "2"), ("threads", "1")]);
    let mut kept = [server.client(), server.client()];
    kept.iter_mut().for_each(|client| assert_eq!(client.call("PING"), "+PONG\r\n"));
    let mut refused = server.client();
    assert_eq!(refused.reply(), b"-ERR max number of clients reached\r\n");
    assert_eq!(refused.reply(), b"");
    assert_eq!(kept[0].call("PING"), "+PONG\r\n");
}

#[test]
fn a_client_that_takes_no_replies_does_not_take_the_memory() {
    let server = TestServer::start(&[("output-limit", "1MiB"), ("threads", "1")]);
    let mut other = server.client();
    other.send(&["SET", "k", &"v".repeat(100_000)]);
    assert_eq!(other.reply(), b"+OK\r\n");
    let mut greedy = UnixStream::connect(&server.socket).unwrap();
    greedy.set_nonblocking(true).unwrap();
    let get = encode(&["GET", "k"]);
    let mut sent = 0;
    while sent < 100_000 {
        match greedy.write_all(&get) {
            Ok(()) => sent += 1,
            Err(_) => break,
        }
    }
    assert!(sent < 100_000, "the server goes on reading without end");
    assert_eq!(other.call("STRLEN k"), ":100000\r\n");
    let info = other.call("INFO clients");
    let buffered = info.lines().find_map(|line| line.strip_prefix("client_buffer_bytes:"));
    let buffered: usize = buffered.unwrap().trim().parse().unwrap();
    assert!(buffered < 4 << 20, "{buffered} bytes are held for one client");
    let mut taken = [0; 4096];
    greedy.set_nonblocking(false).unwrap();
    assert!(greedy.read(&mut taken).unwrap() > 0);
}

#[test]
fn unwanted_replies_are_left_out() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    for command in [
        "CLIENT REPLY OFF",
        "SET k v",
        "NOSUCH",
        "CLIENT REPLY ON",
        "CLIENT REPLY SKIP",
        "GET k",
        "ECHO end",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        client.send(&words);
    }
    assert_eq!(client.reply(), b"+OK\r\n");
    assert_eq!(client.reply(), b"$3\r\nend\r\n");
}

#[test]
fn expired_entries_are_gone_at_once() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    client.call("SET a v PX 100000");
    client.call("SET b v");
    assert_eq!(client.call("PEXPIREAT a 1"), ":1\r\n");
    assert_eq!(client.call("EXPIRE b -1"), ":1\r\n");
    assert_eq!(client.call("SET c v PXAT 5"), "+OK\r\n");
    assert_eq!(client.call("EXISTS a b c"), ":0\r\n");
}

#[test]
fn an_acknowledged_write_outlives_a_clean_stop() {
    let directory = support::TempDir::new();
    let file = directory.path("data");
    let open = || {
        let options = entresol_device::FileOptions {
            capacity_bytes: Some(128 << 20),
            ..entresol_device::FileOptions::default()
        };
        let device = entresol_device::FileDevice::open(&file, &options).unwrap();
        let options = entresol_tier::TieredOptions {
            store: entresol_tier::StoreOptions::default(),
            memory_bytes: 64 << 20,
            cache_bytes: None,
            admission: entresol_tier::Admission::Always,
        };
        let now = entresol_tier::Timestamp(1);
        entresol_tier::Tiered::open(std::sync::Arc::new(device), options, now).unwrap()
    };
    let server = TestServer::start_on(open(), &[]);
    let mut client = server.client();
    client.call("SET k v");
    client.call("HSET h f 1");
    server.server.stop().unwrap();
    let server = TestServer::start_on(open(), &[]);
    let mut client = Client::unix(&server.socket);
    assert_eq!(client.call("GET k"), "$1\r\nv\r\n");
    assert_eq!(client.call("HGET h f"), "$1\r\n1\r\n");
    assert_eq!(client.call("DBSIZE"), ":2\r\n");
}

#[test]
fn a_monitor_sees_the_commands_of_all_clients_without_their_secrets() {
    let server = TestServer::start(&[]);
    let mut monitor = server.client();
    assert_eq!(monitor.call("MONITOR"), "+OK\r\n");
    // Clients are spread over the workers.
    for number in 0..4 {
        let mut client = server.client();
        client.send(&[b"SET".as_slice(), b"a\n\"b", &[number, 0xff]]);
        assert_eq!(client.reply(), b"+OK\r\n");
        let line = String::from_utf8(monitor.reply()).unwrap();
        let shown = format!("\"SET\" \"a\\n\\\"b\" \"\\x0{number}\\xff\"\r\n");
        assert!(line.starts_with('+') && line.ends_with(&shown), "{line}");
        assert!(line.contains(" [0 unix:/"), "{line}");
    }
    let mut client = server.client();
    client.call("MULTI");
    client.call("INCR n");
    client.call("EXEC");
    client.call("AUTH default secret");
    client.call("CONFIG GET port");
    client.call("SELECT 3");
    client.call("GET n");
    for expected in [
        "\"MULTI\"",
        "\"INCR\" \"n\"",
        "\"EXEC\"",
        "\"AUTH\" \"(redacted)\"",
        "\"SELECT\" \"3\"",
        "[3 unix:",
    ] {
        let line = String::from_utf8(monitor.reply()).unwrap();
        assert!(line.contains(expected) && !line.contains("secret"), "{expected}: {line}");
    }
    assert_eq!(monitor.call("RESET"), "+RESET\r\n");
    client.call("PING");
    assert_eq!(monitor.call("ECHO done"), "$4\r\ndone\r\n");
}

/// Only commands that had waited for the device were kept, however long the others took.
#[test]
fn commands_that_took_long_are_kept_also_if_they_were_answered_from_memory() {
    let server = TestServer::start(&[("slowlog-log-slower-than", "0"), ("threads", "1")]);
    let mut client = server.client();
    client.send_raw(&[["SET", "k", "v"].as_slice(), &["GET", "k"]].map(encode).concat());
    assert_eq!((client.reply(), client.reply()), (b"+OK\r\n".into(), b"$1\r\nv\r\n".into()));
    assert_eq!(client.call("HSET h f v"), ":1\r\n");
    assert_eq!(client.call("MSET a 1 b 2"), "+OK\r\n");
    assert_eq!(client.call("AUTH default secret"), "+OK\r\n");
    let kept = client.call("SLOWLOG GET -1");
    let names = ["AUTH", "MSET", "HSET", "GET", "SET"];
    let kept: Vec<&str> =
        kept.lines().filter(|line| names.iter().any(|n| line.eq_ignore_ascii_case(n))).collect();
    assert_eq!(kept.join(" ").to_ascii_uppercase(), names.join(" "));
}

/// It took half a second.
#[test]
fn a_threshold_of_slow_commands_holds_from_the_next_command_on() {
    let server = TestServer::start(&[("slowlog-log-slower-than", "-1"), ("threads", "2")]);
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    let set = ["CONFIG", "SET", "slowlog-log-slower-than", "0"];
    clients[0].send_raw(&[set.as_slice(), &["PING"]].map(encode).concat());
    assert_eq!((clients[0].reply(), clients[0].reply()), (b"+OK\r\n".into(), b"+PONG\r\n".into()));
    for client in &mut clients[1..] {
        assert_eq!(client.call("PING"), "+PONG\r\n");
    }
    let kept = clients[0].call("SLOWLOG GET -1").to_ascii_lowercase();
    assert_eq!(kept.matches("$4\r\nping\r\n").count(), 4, "{kept}");
}

#[test]
fn fields_of_a_hash_are_scanned_without_their_values() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    assert_eq!(client.call("HSET h f v"), ":1\r\n");
    let expected = "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nf\r\n";
    for options in ["NOVALUES", "novalues COUNT 5", "MATCH f NOVALUES"] {
        assert_eq!(client.call(&format!("HSCAN h 0 {options}")), expected);
    }
    assert!(client.call("SCAN 0 NOVALUES").starts_with("-ERR syntax error"));
}

/// The valid keys before it were removed, and what waited for that was kept for ever.
#[test]
fn many_keys_of_which_one_is_invalid_are_all_left_alone() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    assert_eq!(client.call("SET a v"), "+OK\r\n");
    for command in ["DEL", "UNLINK"] {
        client.send(&[command, "a", "b", ""]);
        assert!(client.reply().starts_with(b"-ERR"), "{command}");
        assert_eq!(client.call("GET a"), "$1\r\nv\r\n");
    }
    assert_eq!(client.call("DEL a b"), ":1\r\n");
}

/// `BITCOUNT` of a whole value that was on the device alone was refused: a syntax error.
#[test]
fn a_command_with_a_key_alone_is_answered_from_the_device_as_from_memory() {
    const READS: &[&str] = &[
        "GET s",
        "GETEX s",
        "STRLEN s",
        "BITCOUNT s",
        "BITCOUNT s 0 -1",
        "BITPOS s 0",
        "EXISTS s",
        "TOUCH s",
        "TYPE s",
        "TTL s",
        "EXPIRETIME s",
        "OBJECT ENCODING s",
        "OBJECT REFCOUNT s",
        "MEMORY USAGE s",
        "BITCOUNT h",
        "TYPE h",
        "HGETALL h",
        "HKEYS h",
        "HVALS h",
        "HLEN h",
        "HRANDFIELD h",
        "OBJECT ENCODING h",
    ];
    let server = TestServer::start_on(store(Some(0)), &[("threads", "1")]);
    let mut client = server.client();
    client.send(&["SET", "s", &"v".repeat(1000)]);
    assert_eq!(client.reply(), b"+OK\r\n");
    client.send(&["HSET", "h", "f", &"v".repeat(1000)]);
    assert_eq!(client.reply(), b":1\r\n");
    let from_memory: Vec<String> = READS.iter().map(|read| client.call(read)).collect();
    let filler = vec![b'f'; 1 << 20];
    for n in 0..40 {
        client.send(&[b"SET".as_slice(), format!("filler {n}").as_bytes(), &filler]);
        assert_eq!(client.reply(), b"+OK\r\n");
    }
    for (read, expected) in READS.iter().zip(from_memory) {
        assert_eq!(client.call(read), expected, "{read}");
    }
    assert_eq!(client.call("DEL s s"), ":1\r\n");
}

/// What moved while a part of them was read was told of once more.
#[test]
fn keys_names_each_key_once_while_others_are_written() {
    let server = TestServer::start_on(store(Some(0)), &[]);
    let value = "v".repeat(300);
    let set = |key: usize| encode(&["SET", &format!("k{key}"), &value]);
    let mut client = server.client();
    client.send_raw(&(0..5000).map(set).collect::<Vec<_>>().concat());
    (0..5000).for_each(|_| assert_eq!(client.reply(), b"+OK\r\n"));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (mut other, ended) = (server.client(), &ended);
            scope.spawn(move || {
                let mut key = writer;
                while !ended.load(Ordering::Relaxed) {
                    let many: Vec<Vec<u8>> = (0..100)
                        .map(|_| {
                            key = (key * 1_103_515_245 + 12_345) % 2_147_483_648;
                            set(key % 5000)
                        })
                        .collect();
                    other.send_raw(&many.concat());
                    (0..100).for_each(|_| assert_eq!(other.reply(), b"+OK\r\n"));
                }
            });
        }
        for _ in 0..8 {
            let reply = client.call("KEYS *");
            let keys: Vec<&str> = reply.lines().filter(|line| line.starts_with('k')).collect();
            let distinct: HashSet<&str> = keys.iter().copied().collect();
            ended.store(keys.len() != distinct.len(), Ordering::Relaxed);
            assert_eq!((keys.len(), distinct.len()), (5000, 5000));
        }
        ended.store(true, Ordering::Relaxed);
    });
}
