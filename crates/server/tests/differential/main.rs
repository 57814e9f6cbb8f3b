//! The judge: the same random commands to redis-server and to us, and the same bytes back.
//!
//! Needs redis-server 7.0 on the path; where there is none the test says so and passes.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod corners;
mod redis;
#[path = "../support/mod.rs"]
mod support;

use entresol_random::SplitMix;
use redis::{Compare, Redis, same};
use support::{Client, TestServer, store};

/// Seeds of the command streams; `ENTRESOL_SEED` names another one.
const SEEDS: std::ops::Range<u64> = 0..60;
/// Commands of one stream.
const COMMANDS: usize = 500;

type Words = Vec<Vec<u8>>;

/// What `EXPIRE` takes, and what it does not.
const EXPIRY_OPTIONS: &[&str] = &["NX", "XX", "GT", "LT", "YY"];

fn words(parts: &[&str]) -> Words {
    parts.iter().map(|part| part.as_bytes().to_vec()).collect()
}

/// Random commands over few keys, so that they meet.
struct Stream {
    random: SplitMix,
}

impl Stream {
    fn key(&mut self) -> String {
        format!("key:{}", self.random.index(8))
    }

    fn word(&mut self, all: &[&'static str]) -> &'static str {
        all[self.random.index(all.len())]
    }

    fn field(&mut self) -> String {
        format!("f{}", self.random.index(6))
    }

    fn value(&mut self) -> String {
        match self.random.index(8) {
            0 => self.random.index(1000).to_string(),
            1 => (self.random.next_u64() as i64).to_string(),
            2 => format!("{}.{}", self.random.index(100), self.random.index(1000)),
            3 => String::new(),
            4 => "x".repeat(self.random.index(60)),
            5 => "y".repeat(self.random.index(3000)),
            6 => format!("-{}", self.random.index(50)),
            _ => "value".to_owned(),
        }
    }

    fn number(&mut self) -> String {
        match self.random.index(8) {
            0 => i64::MAX.to_string(),
            1 => i64::MIN.to_string(),
            2 => "abc".to_owned(),
            3 => "1.5".to_owned(),
            4 => format!("-{}", self.random.index(20)),
            _ => self.random.index(20).to_string(),
        }
    }

    fn seconds(&mut self) -> String {
        self.word(&["100000", "200000", "0", "-5", "x", "9223372036854775807"]).to_string()
    }

    fn next(&mut self) -> (Words, Compare) {
        let command = match self.random.index(11) {
            0..=3 => self.string_command(),
            9 => self.bit_command(),
            4..=6 => self.hash_command(),
            7 => self.expiry_command(),
            8 => self.key_command(),
            _ => return self.other_command(),
        };
        let compare = match command[0].as_slice() {
            b"PTTL" | b"TTL" | b"EXPIRETIME" | b"PEXPIRETIME" => Compare::Near,
            b"HGETALL" | b"HKEYS" | b"HVALS" | b"HSCAN" | b"HRANDFIELD" => Compare::Sorted,
            b"SCAN" => Compare::Sorted,
            _ => Compare::Bytes,
        };
        (command, compare)
    }

    fn string_command(&mut self) -> Words {
        let (key, other, value, number) = (self.key(), self.key(), self.value(), self.number());
        let index = self.word(&["0", "-1", "3", "-4", "100", "x"]).to_string();
        let small = self.random.index(40).to_string();
        match self.random.index(25) {
            0..=2 => words(&["GET", &key]),
            3..=5 => words(&["SET", &key, &value]),
            6 | 7 => self.set_with_options(&key, &value),
            8 => words(&["SETNX", &key, &value]),
            9 => words(&["SETEX", &key, &self.seconds(), &value]),
            10 => words(&["PSETEX", &key, "90000000", &value]),
            11 => words(&["GETSET", &key, &value]),
            12 => words(&["GETDEL", &key]),
            13 => self.getex(&key),
            14 => words(&["MGET", &key, &other, &key]),
            15 => words(&["MSET", &key, &value, &other, "second"]),
            16 => words(&["MSETNX", &key, &value, &other, "second"]),
            17 => words(&["APPEND", &key, &value]),
            18 => words(&["STRLEN", &key]),
            19 => words(&["GETRANGE", &key, &index, &number]),
            20 => words(&["SETRANGE", &key, &small, &value]),
            21 => words(&[self.word(&["INCR", "DECR"]), &key]),
            22 => words(&[self.word(&["INCRBY", "DECRBY"]), &key, &number]),
            23 => words(&["INCRBYFLOAT", &key, self.word(&["1", "0.1", "-2.5", "x", "3e2"])]),
            _ => words(&["SUBSTR", &key, &index, "5"]),
        }
    }

    fn bit_command(&mut self) -> Words {
        let (key, number, bit) = (self.key(), self.number(), self.word(&["0", "1", "0", "1", "2"]));
        let offset = match self.random.index(4) {
            0 => number.clone(),
            1 => self.random.index(30_000).to_string(),
            _ => self.random.index(100).to_string(),
        };
        let place = |stream: &mut Stream| {
            let place = stream.random.index(60) as i64 - 25;
            if stream.random.index(10) == 0 { stream.number() } else { place.to_string() }
        };
        let (start, end) = (place(self), place(self));
        let unit = self.word(&["BIT", "BYTE", "bit", "BIT", "x"]);
        let given = self.random.index(5);
        match self.random.index(4) {
            0 => words(&["SETBIT", &key, &offset, bit]),
            1 => words(&["GETBIT", &key, &offset]),
            2 => words(&["BITCOUNT", &key, &start, &end, unit][..2 + given.min(3)]),
            _ => words(&["BITPOS", &key, bit, &start, &end, unit][..3 + given.min(3)]),
        }
    }

    fn set_with_options(&mut self, key: &str, value: &str) -> Words {
        let mut command = words(&["SET", key, value]);
        for _ in 0..1 + self.random.index(3) {
            let option: &[&str] = match self.random.index(8) {
                0 => &["NX"],
                1 => &["XX"],
                2 => &["GET"],
                3 => &["KEEPTTL"],
                4 => &["EX", "100000"],
                5 => &["px", "90000000"],
                6 => &["EXAT", "4000000000"],
                _ => &["EX", "-1"],
            };
            command.extend(words(option));
        }
        command
    }

    fn getex(&mut self, key: &str) -> Words {
        let mut command = words(&["GETEX", key]);
        for _ in 0..self.random.index(3) {
            let option: &[&str] = match self.random.index(6) {
                0 => &[],
                1 => &["PERSIST"],
                2 => &["EX", "100000"],
                3 => &["PXAT", "4000000000000"],
                4 => &["EX", "0"],
                _ => &["KEEPTTL"],
            };
            command.extend(words(option));
        }
        command
    }

    /// Options of `COPY`, in any order and more than once.
    fn copy_with_options(&mut self, key: &str, other: &str) -> Words {
        let mut command = words(&["COPY", key, other]);
        for _ in 0..self.random.index(4) {
            let option: &[&str] = match self.random.index(6) {
                0 | 1 => &["REPLACE"],
                2 => &["DB", "1"],
                3 => &["db", "0"],
                4 => &["DB", "99"],
                _ => &["x"],
            };
            command.extend(words(option));
        }
        command
    }

    /// A walk of one call, whose options may stand more than once.
    fn scan(&mut self, first: &[&str]) -> Words {
        let mut command = words(first);
        command.extend(words(&["COUNT", "1000"]));
        for _ in 0..self.random.index(3) {
            let option: &[&str] = match self.random.index(9) {
                0 => &["MATCH", "*[1-4]"],
                1 => &["match", "?e*"],
                2 => &["MATCH", "[^k]*"],
                3 => &["TYPE", "hash"],
                4 => &["TYPE", "STRING"],
                5 => &["TYPE", "x"],
                6 => &["COUNT", "0"],
                7 => &["COUNT", "1.0"],
                _ => &["MATCH"],
            };
            command.extend(words(option));
        }
        command
    }

    fn hash_command(&mut self) -> Words {
        let (key, field, value, number) = (self.key(), self.field(), self.value(), self.number());
        let other = self.field();
        match self.random.index(20) {
            0..=3 => words(&["HSET", &key, &field, &value, &other, "2"]),
            4 => words(&["HSETNX", &key, &field, &value]),
            5 => words(&["HMSET", &key, &field, &value]),
            6..=8 => words(&["HGET", &key, &field]),
            9 => words(&["HMGET", &key, &field, &other, "nothing"]),
            10 => words(&["HGETALL", &key]),
            11 => words(&["HDEL", &key, &field, &other]),
            12 => words(&["HLEN", &key]),
            13 => words(&["HEXISTS", &key, &field]),
            14 => words(&[self.word(&["HKEYS", "HVALS"]), &key]),
            15 => words(&["HINCRBY", &key, &field, &number]),
            16 => {
                let by = self.word(&["1.25", "x", "-3", "1e3", "inf", "nan", "1e-9", " 1", ""]);
                words(&["HINCRBYFLOAT", &key, &field, by])
            }
            17 => words(&["HSTRLEN", &key, &field]),
            18 => self.scan(&["HSCAN", &key, "0"]),
            _ => words(&["HRANDFIELD", &key, "100", "WITHVALUES"]),
        }
    }

    fn expiry_command(&mut self) -> Words {
        let (key, seconds) = (self.key(), self.seconds());
        match self.random.index(11) {
            10 => {
                // As below, no two ends are about the same.
                let seconds = (50_000 + self.random.index(1 << 20)).to_string();
                let (one, other) = (self.word(EXPIRY_OPTIONS), self.word(EXPIRY_OPTIONS));
                words(&["EXPIRE", &key, &seconds, one, other])
            }
            0 | 1 => words(&["EXPIRE", &key, &seconds]),
            2 => words(&["PEXPIRE", &key, "90000000"]),
            3 => words(&["EXPIREAT", &key, "4000000000"]),
            4 => words(&["PEXPIREAT", &key, "4000000000000", "LT"]),
            5 => {
                let option = self.word(EXPIRY_OPTIONS).to_string();
                // Two ends of the same number of seconds are equal or not as the clock's
                // milliseconds fall, for which neither server answers.
                let seconds = match option.as_str() {
                    "GT" | "LT" => (50_000 + self.random.index(1 << 20)).to_string(),
                    _ => seconds,
                };
                words(&["EXPIRE", &key, &seconds, &option])
            }
            6 => words(&["TTL", &key]),
            7 => words(&["PTTL", &key]),
            8 => words(&[self.word(&["EXPIRETIME", "PEXPIRETIME"]), &key]),
            _ => words(&["PERSIST", &key]),
        }
    }

    fn key_command(&mut self) -> Words {
        let (key, other) = (self.key(), self.key());
        match self.random.index(12) {
            0 => words(&["DEL", &key]),
            1 => words(&["UNLINK", &key, &other]),
            2 => words(&["EXISTS", &key, &other, &key]),
            3 => words(&["TYPE", &key]),
            4 => words(&["RENAME", &key, &other]),
            5 => words(&["RENAMENX", &key, &other]),
            6 => self.copy_with_options(&key, &other),
            7 => words(&["COPY", &key, &other]),
            8 => words(&["MOVE", &key, self.word(&["1", "0", "99", "x"])]),
            9 => words(&["TOUCH", &key, &other]),
            10 => words(&["OBJECT", "REFCOUNT", "absent"]),
            _ => words(&["EXISTS", &key]),
        }
    }

    fn other_command(&mut self) -> (Words, Compare) {
        let (key, value) = (self.key(), self.value());
        let command = match self.random.index(20) {
            0 => words(&["PING"]),
            1 => words(&["PING", &value]),
            2 => words(&["ECHO", &value]),
            3 => words(&["SELECT", self.word(&["0", "1", "0", "99", "x"])]),
            4 => words(&["DBSIZE"]),
            5 => words(&["MULTI"]),
            6 | 7 => words(&["EXEC"]),
            8 => words(&["DISCARD"]),
            9 => words(&["WATCH", &key]),
            10 => words(&["UNWATCH"]),
            11 => words(&["NOSUCH", &key, &value]),
            12 => words(&["GET"]),
            13 => words(&["SET", &key]),
            14 => return (words(&["KEYS", "key:*"]), Compare::Sorted),
            15 => return (self.scan(&["SCAN", "0"]), Compare::Sorted),
            16 => words(&["CLIENT", "NOSUCH"]),
            17 => words(&["MSET", &key]),
            18 => words(&["CLIENT", "SETNAME", self.word(&["a", "b c"])]),
            _ => words(&["CLIENT", "GETNAME"]),
        };
        (command, Compare::Bytes)
    }
}

#[test]
fn random_commands_get_the_replies_of_redis() {
    let Some(redis) = Redis::start() else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    for cache in [None, Some(0)] {
        let server = TestServer::start_on(store(cache), &[]);
        let seeds = match std::env::var("ENTRESOL_SEED") {
            Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
            Err(_) => SEEDS,
        };
        for seed in seeds {
            let mut theirs = Client::unix(&redis.directory.path("redis"));
            let mut ours = server.client();
            compare_streams(seed, &mut ours, &mut theirs);
        }
    }
}

fn compare_streams<S: std::io::Read + std::io::Write>(
    seed: u64,
    ours: &mut Client<S>,
    theirs: &mut Client<S>,
) {
    let mut stream = Stream { random: SplitMix::new(seed) };
    assert_eq!(ours.call("FLUSHALL"), theirs.call("FLUSHALL"));
    if seed % 2 == 1 {
        ours.call("HELLO 3");
        theirs.call("HELLO 3");
    }
    let mut history: Vec<String> = Vec::new();
    let mut sent = 0;
    while sent < COMMANDS {
        let batch: Vec<(Words, Compare)> =
            (0..1 + stream.random.index(20)).map(|_| stream.next()).collect();
        sent += batch.len();
        for (command, _) in &batch {
            ours.send(command);
            theirs.send(command);
        }
        for (command, compare) in batch {
            let shown: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word)).collect();
            history.push(shown.join(" "));
            let (our_reply, their_reply) = (ours.reply(), theirs.reply());
            // A transaction's replies are compared by their lines, for some are in no order.
            let timed = || history.iter().any(|command| command.contains("TTL"));
            let compare = match command[0].as_slice() {
                b"EXEC" if timed() => Compare::Near,
                b"EXEC" => Compare::Sorted,
                _ => compare,
            };
            let their_text = String::from_utf8_lossy(&their_reply);
            assert!(
                same(compare, &our_reply, &their_reply),
                "replay with: ENTRESOL_SEED={seed} cargo x conformance\n\
                 {}\nours:   {:?}\ntheirs: {their_text:?}",
                history.iter().rev().take(40).rev().cloned().collect::<Vec<_>>().join("\n"),
                String::from_utf8_lossy(&our_reply),
            );
        }
    }
}
