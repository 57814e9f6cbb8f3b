//! Commands that random streams meet rarely or never.

use entresol_server::user_line;

use super::redis::{Compare, Redis, same};
use super::support::{Client, TestServer};

const CORNERS: &[&str] = &[
    "SET k v",
    "GETEX k EX 1000 EX 2000",
    "GETEX k PERSIST PERSIST",
    "TTL k",
    "GETEX k PERSIST EX 10",
    "GETEX k EX 10 PERSIST",
    "GETEX k EX 10 PX 10",
    "GETEX k EX",
    "GETEX k EX 0 EX 1000",
    "GETEX k EX 1000 EX x",
    "HSET h a 1 b 2",
    "HRANDFIELD h 9223372036854775807",
    "HRANDFIELD h 9223372036854775807 WITHVALUES",
    "HRANDFIELD h 4611686018427387903 WITHVALUES",
    "HRANDFIELD h 4611686018427387904 WITHVALUES",
    "HRANDFIELD h -9223372036854775808",
    "HRANDFIELD h -9223372036854775807 WITHVALUES",
    "HRANDFIELD h 9223372036854775808",
    "HRANDFIELD none -9223372036854775807",
    "HRANDFIELD h x y",
    "HRANDFIELD h 9223372036854775807 y",
    "HRANDFIELD h 1 WITHVALUES y",
    "MOVE k 4294967296",
    "MOVE k -1",
    "MOVE k 0",
    "SELECT 4294967296",
    "SELECT -2147483649",
    "SELECT 2147483647",
    "COPY k l DB 4294967296",
    "COPY k l DB 99",
    "SHUTDOWN ABORT",
    "SHUTDOWN ABORT NOW",
    "SHUTDOWN SAVE NOSAVE",
    "SHUTDOWN x",
    "BGSAVE x",
    "BGSAVE SCHEDULE x",
    "EXEC x",
    "MULTI",
    "EXEC x",
    "PING",
    "EXEC",
    "WATCH k",
    "EXEC x",
    "SET k w",
    "MULTI",
    "PING",
    "EXEC",
    "MULTI",
    "SAVE",
    "PING",
    "EXEC",
    "MULTI",
    "SHUTDOWN",
    "EXEC",
    "MULTI",
    "SHUTDOWN ABORT",
    "DISCARD",
    "CLIENT KILL TYPE x",
    "CLIENT KILL TYPE pubsub",
    "CLIENT KILL TYPE replica SKIPME no",
    "CLIENT PAUSE x",
    "CLIENT PAUSE -1",
    "CLIENT PAUSE 1 x",
    "CLIENT UNPAUSE",
    "CONFIG SET appendonly no",
    "CONFIG SET maxmemory-policy noeviction",
    "CONFIG SET databases 3",
    "CONFIG SET nothing 3",
    "CONFIG SET Nothing 3",
    "CONFIG SET timeout 10 TIMEOUT 20",
    "CONFIG SET timeout 10 appendonly no timeout 20",
    "CONFIG GET timeout",
    "SETBIT b x 1",
    "SETBIT b -1 1",
    "SETBIT b 4294967296 1",
    "SETBIT b 5 2",
    "SETBIT b 01 1",
    "SETBIT b 17 0",
    "STRLEN b",
    "SETBIT b 7 1",
    "GETBIT b 4294967296",
    "GETBIT b 4294967295",
    "GETBIT none 600000000",
    "BITCOUNT b 0",
    "BITCOUNT b -1 -2 x",
    "BITCOUNT b 0 -1 BIT x",
    "BITCOUNT none x y z",
    "BITPOS b 0 0 -1 BIT x",
    "BITPOS b 1 BIT",
    "BITPOS none 0 x",
    "BITPOS h 2",
    "BITPOS h 1 x",
    "SETBIT h 1 1",
    "RANDOMKEY x",
    "SCAN x",
    "SCAN 0 COUNT 0",
    "SCAN 0 TYPE",
    "COMMAND INFO nothing x|y",
    "COMMAND GETKEYS",
    "COMMAND GETKEYS GET",
    "COMMAND GETKEYS GET a",
    "COMMAND GETKEYS GET a b",
    "COMMAND GETKEYS nothing",
    "COMMAND GETKEYS nothing a",
    "COMMAND GETKEYS PING a",
    "ACL CAT x",
    "acl cat x y",
    "ACL Cat read y z",
    "COMMAND GETKEYS OBJECT NOTHING x",
    "COMMAND GETKEYS OBJECT",
    "COMMAND GETKEYS OBJECT ENCODING x",
    "COMMAND LIST FILTERBY NOTHING x",
    "COMMAND LIST FILTERBY MODULE x",
    "COMMAND LIST FILTERBY ACLCAT nothing",
    "COMMAND LIST FILTERBY PATTERN GET",
    "COMMAND LIST FILTERBY pattern G[E]t",
    "COMMAND LIST FILTERBY PATTERN get x",
    "CONFIG SET timeout",
    "CONFIG SET timeout 10 nothing",
    "SLOWLOG GET -2",
    "SLOWLOG GET 1 2",
    "slowlog get x y",
    "MEMORY USAGE none SAMPLES",
    "MEMORY USAGE none SAMPLES -1",
    "MEMORY USAGE none SAMPLES 1 samples 2",
    "MEMORY USAGE none SAMPLES x y",
    "MEMORY USAGE none y SAMPLES 1",
    "MULTI",
    "MONITOR",
    "EXEC",
    "PING",
    "SCAN  COUNT 1000",
    "SCAN + COUNT 1000",
    "SCAN - COUNT 1000",
    "SCAN +0 COUNT 1000",
    "SCAN -0 COUNT 1000",
    "SCAN +-0 COUNT 1000",
    "SCAN 0x COUNT 1000",
    "SCAN 18446744073709551616 COUNT 1000",
    "SCAN -1 FOO x",
    "SCAN x FOO x",
    "HSCAN h ",
    "HSCAN h -0",
    "HSCAN h 00",
    "HSCAN h \t0",
    "NOTHING a\0b c\0d",
    "no\0thing a",
    "CLIENT no\0thing a",
];

#[test]
fn commands_that_are_rarely_given_get_the_replies_of_redis() {
    let Some(redis) = Redis::start() else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let server = TestServer::start(&[]);
    let mut theirs = Client::unix(&redis.directory.path("redis"));
    let mut ours = server.client();
    for command in CORNERS {
        let compare = match command.split(' ').next() {
            Some("TTL") => Compare::Near,
            Some("SCAN" | "HSCAN") => Compare::Sorted,
            _ => Compare::Bytes,
        };
        let (our_reply, their_reply) = (ours.call(command), theirs.call(command));
        let equal = same(compare, our_reply.as_bytes(), their_reply.as_bytes());
        assert!(equal, "{command}: ours {our_reply:?}, theirs {their_reply:?}");
    }
}

/// `EXEC` stood before the commands that it carries out, and `SELECT` with the space before it.
#[test]
fn a_monitor_is_told_of_commands_in_the_order_of_redis() {
    let Some(redis) = Redis::start() else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let server = TestServer::start(&[]);
    let commands = [
        "SET a 1", "MULTI", "SET a 2", "SELECT 1", "INCR a", "EXEC", "exec", "SELECT 3", "GET a",
        "WATCH a", "MULTI", "EXEC", "MULTI", "GET", "EXEC", "RESET", "ECHO end",
    ];
    let told = |mut monitor: Client<_>, mut client: Client<_>| -> Vec<String> {
        assert_eq!(monitor.call("MONITOR"), "+OK\r\n");
        for command in commands {
            client.call(command);
        }
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(|line| !line.contains("end")) {
            // The space, and what is behind the address.
            let line = String::from_utf8(monitor.reply()).unwrap();
            let (_, line) = line.split_once('[').unwrap();
            let (space, line) = line.split_once(' ').unwrap();
            let (_, command) = line.split_once(']').unwrap();
            lines.push(format!("{space}{command}"));
        }
        lines
    };
    let theirs = || Client::unix(&redis.directory.path("redis"));
    assert_eq!(told(server.client(), server.client()), told(theirs(), theirs()));
}

/// Hits and misses, connections and expired keys were those since the start all the same.
#[test]
fn what_config_resetstat_forgets_is_what_redis_forgets() {
    let Some(redis) = Redis::start() else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let server = TestServer::start(&[]);
    let mut theirs = Client::unix(&redis.directory.path("redis"));
    let mut ours = server.client();
    let commands = ["SET k v", "GET k", "GET none", "CONFIG RESETSTAT", "GET none"];
    let counted = |info: String| -> Vec<String> {
        let names = ["total_connections", "rejected_", "expired_keys", "evicted_keys", "keyspace_"];
        let wanted = |line: &&str| names.iter().any(|name| line.starts_with(name));
        let mut lines: Vec<String> = info.lines().filter(wanted).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    for command in commands {
        assert_eq!(ours.call(command), theirs.call(command), "{command}");
    }
    let expected = counted(theirs.call("INFO stats"));
    assert_eq!(expected.len(), 6, "{expected:?}");
    assert_eq!(counted(ours.call("INFO stats")), expected);
}

/// What clients say who have a password, and who have not said it, in any order.
const LOGINS: &[&str] = &[
    "PING",
    "GET",
    "NOSUCH",
    "CLIENT",
    "CLIENT NOSUCH",
    "CLIENT ID",
    // Another sentence told that the version of the protocol has to be named.
    "HELLO",
    "HELLO 3",
    "HELLO 4",
    "HELLO x",
    "HELLO 3 SETNAME x",
    "HELLO 3 x",
    "HELLO 3 AUTH default",
    "HELLO 3 AUTH default wrong",
    "HELLO 3 AUTH nobody secret",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH k",
    "RESET",
    "COMMAND",
    "AUTH",
    "AUTH wrong",
    "AUTH nobody secret",
    "AUTH default wrong",
    "AUTH a b c",
    "AUTH secret",
    "PING",
    "AUTH wrong",
    "PING",
    "MULTI",
    "AUTH wrong",
    "AUTH secret",
    "HELLO 2 AUTH default wrong",
    "PING",
    "EXEC",
    "RESET",
    "PING",
    "HELLO 3 AUTH default secret x",
    "PING",
    "RESET",
    "HELLO 3 x AUTH default secret",
    "PING",
    "HELLO 9 AUTH default secret",
    "PING",
    "AUTH default secret",
    "HELLO 3 AUTH default secret SETNAME \n",
    "PING",
    "QUIT",
];

#[test]
fn who_has_to_say_a_password_gets_the_replies_of_redis() {
    let Some(redis) = Redis::start_with(&["--requirepass", "secret"]) else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let users = redis.directory.path("users");
    std::fs::write(&users, user_line("default", "secret", "+@all ~*").unwrap()).unwrap();
    let server = TestServer::start(&[("users", users.to_str().unwrap())]);
    let mut theirs = Client::unix(&redis.directory.path("redis"));
    let mut ours = server.client();
    for (place, command) in LOGINS.iter().enumerate() {
        assert_eq!(ours.call(command), theirs.call(command), "number {place}: {command}");
    }
}

/// There is no such command here; clients know that from servers whose administrator disabled it.
#[test]
fn swapdb_is_answered_as_by_a_redis_that_has_it_disabled() {
    let Some(redis) = Redis::start_with(&["--rename-command", "SWAPDB", ""]) else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let server = TestServer::start(&[]);
    let mut theirs = Client::unix(&redis.directory.path("redis"));
    let mut ours = server.client();
    for command in [
        "SET k v",
        "SWAPDB 0 1",
        "swapdb 0 99",
        "SWAPDB x y",
        "SWAPDB",
        "COMMAND INFO SWAPDB",
        "GET k",
        "MULTI",
        "SWAPDB 0 1",
        "GET k",
        "EXEC",
        "SELECT 1",
        "GET k",
    ] {
        assert_eq!(ours.call(command), theirs.call(command), "{command}");
    }
}

/// What another client does to a string, a hash, a string that ends and a key that is absent, all
/// of them watched.
const CHANGES: &[&str] = &[
    "SET a 1",
    "SET a 1 XX",
    "SET absent 1 XX",
    "SET absent 1 PXAT 1",
    "SETNX a 1",
    "MSETNX absent 1 a 2",
    "GETSET a 1",
    "GETDEL absent",
    "GETEX a",
    "GETEX a PERSIST",
    "GETEX a PXAT 1",
    "GETEX t PERSIST",
    "APPEND a ",
    "APPEND absent ",
    "SETRANGE a 0 ",
    "SETRANGE a 0 1",
    "SETRANGE absent 5 ",
    "INCRBY a 0",
    "INCRBYFLOAT a 0",
    "INCR h",
    // Each of these was a change, though the bit was what it became.
    "SETBIT a 1 0",
    "SETBIT a 2 1",
    "SETBIT a 1 1",
    "SETBIT a 100 0",
    "SETBIT absent 0 0",
    "EXPIRE a 100",
    "EXPIRE a 100 XX",
    "EXPIRE a -1",
    "EXPIRE t 50000 GT",
    "EXPIRE t 50000 LT",
    "EXPIRE absent 5",
    "PERSIST a",
    "PERSIST t",
    "DEL absent",
    "RENAME a a",
    "RENAMENX t a",
    "RENAME t absent",
    "COPY t a",
    "COPY t a REPLACE",
    "COPY a absent DB 1",
    "MOVE a 1",
    "TOUCH a",
    "FLUSHDB",
    "HSET h f 1",
    "HSETNX h f 1",
    "HSETNX h g 1",
    "HDEL h f",
    "HDEL h g",
    "HINCRBY h f 0",
    "HINCRBY h s 1",
    "HINCRBYFLOAT h f 0",
];

#[test]
fn a_watch_sees_the_changes_that_those_of_redis_see() {
    let Some(redis) = Redis::start() else {
        eprintln!("skipped: there is no redis-server on the path");
        return;
    };
    let server = TestServer::start(&[]);
    let theirs = || Client::unix(&redis.directory.path("redis"));
    let ends = |mut watcher: Client<_>, mut other: Client<_>, change: &str| {
        for command in ["FLUSHALL", "SET a 1", "HSET h f 1 s x", "SET t 1 EX 100000"] {
            other.call(command);
        }
        watcher.call("WATCH a h t absent");
        other.call(change);
        watcher.call("MULTI");
        watcher.call("PING");
        watcher.call("EXEC")
    };
    for change in CHANGES {
        let expected = ends(theirs(), theirs(), change);
        assert_eq!(ends(server.client(), server.client(), change), expected, "{change}");
    }
}
