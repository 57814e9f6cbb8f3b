//! How many connections there are, how they end, and what they wait for.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use support::{Client, TestServer, encode};

/// Where a command and the end of the client's stream came in one event, the end was never read:
/// the connection stayed, and the client waited for its end.
#[test]
fn a_client_that_ends_its_stream_behind_a_command_gets_its_reply_and_the_end() {
    let server = TestServer::start(&[("threads", "1")]);
    for round in 0..200 {
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server has read all there is, and waits for an event.
        stream.write_all(b"PING\r\n").unwrap();
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap_or_else(|e| panic!("round {round}: no end: {e}"));
        assert_eq!(rest, b"+PONG\r\n");
    }
}

/// A command that must be alone waited for everything in flight, passwords being compared too.
#[test]
fn a_command_that_must_be_alone_does_not_wait_for_what_touches_no_entry() {
    let server = TestServer::start(&[("enable-debug-command", "yes")]);
    let (mut sleeping, mut other) = (server.client(), server.client());
    let sleep = encode(&["DEBUG", "SLEEP", "60"]);
    sleeping.send_raw(&[encode(&["PING"]), sleep].concat());
    assert_eq!(sleeping.reply(), b"+PONG\r\n", "it sleeps now");
    assert_eq!(other.call("MSET a 1 b 2"), "+OK\r\n");
    assert_eq!(other.call("MULTI"), "+OK\r\n");
    assert_eq!(other.call("GET a"), "+QUEUED\r\n");
    assert_eq!(other.call("EXEC"), "*1\r\n$1\r\n1\r\n");
}

/// A paused command that had asked to be alone kept everybody out, whoever wanted to end the pause
/// too.
#[test]
fn a_pause_of_writes_holds_writes_and_nobody_else() {
    let server = TestServer::start(&[("threads", "2")]);
    for write in [["MSET", "k", "new"], ["SET", "k", "new"]] {
        let (mut paused, mut other) = (server.client(), server.client());
        other.call("SET k old");
        let pause = encode(&["CLIENT", "PAUSE", "600000", "WRITE"]);
        paused.send_raw(&[pause, encode(&write)].concat());
        assert_eq!(paused.reply(), b"+OK\r\n");
        assert_eq!(other.call("GET k"), "$3\r\nold\r\n");
        assert_eq!(other.call("CLIENT UNPAUSE"), "+OK\r\n");
        assert_eq!(paused.reply(), b"+OK\r\n");
        assert_eq!(other.call("GET k"), "$3\r\nnew\r\n");
    }
}

/// `blocked_clients` was always 0: who looked there for the clients that a pause holds saw none.
#[test]
fn clients_that_a_pause_holds_are_counted_and_marked_until_it_ends() {
    let server = TestServer::start(&[("threads", "2")]);
    let (mut paused, mut other) = (server.client(), server.client());
    assert_eq!(other.call("CLIENT PAUSE 600000 WRITE"), "+OK\r\n");
    paused.send_raw(&encode(&["SET", "k", "new"]));
    let is_counted = (0..1_000_000).any(|_| blocked_clients(&mut other) == "1");
    assert!(is_counted, "{}", other.call("INFO clients"));
    assert!(other.call("CLIENT LIST").contains(" flags=b "));
    assert_eq!(other.call("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(paused.reply(), b"+OK\r\n");
    assert_eq!(blocked_clients(&mut other), "0");
    assert!(!other.call("CLIENT LIST").contains(" flags=b "));
}

fn blocked_clients(client: &mut Client<UnixStream>) -> String {
    let info = client.call("INFO clients");
    let value = info.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    value.unwrap_or_default().to_owned()
}

/// Every `EXEC` waited for the end of a pause of writes.
#[test]
fn a_pause_of_writes_holds_transactions_that_write_and_no_others() {
    let server = TestServer::start(&[("threads", "2")]);
    let (mut paused, mut other) = (server.client(), server.client());
    other.call("SET k old");
    assert_eq!(paused.call("CLIENT PAUSE 600000 WRITE"), "+OK\r\n");
    assert_eq!(paused.call("EXEC"), "-ERR EXEC without MULTI\r\n");
    assert_eq!(paused.call("MULTI"), "+OK\r\n");
    assert_eq!(paused.call("GET k"), "+QUEUED\r\n");
    assert_eq!(paused.call("EXEC"), "*1\r\n$3\r\nold\r\n");
    let write = [encode(&["MULTI"]), encode(&["SET", "k", "new"]), encode(&["EXEC"])];
    paused.send_raw(&write.concat());
    assert_eq!((paused.reply(), paused.reply()), (b"+OK\r\n".into(), b"+QUEUED\r\n".into()));
    assert_eq!(other.call("GET k"), "$3\r\nold\r\n");
    assert_eq!(other.call("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(paused.reply(), b"*1\r\n+OK\r\n");
}

/// Pages that a browser shows may have it post anything to an address of its own machine: what
/// stood in the body was carried out.
#[test]
fn commands_in_a_request_of_http_are_not_carried_out() {
    let server = TestServer::start(&[]);
    let requests = [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k stolen\r\n",
        "post /\r\nSET k stolen\r\n",
        "GET / HTTP/1.1\r\nAccept: */*\r\nhost: localhost\r\n\r\nSET k stolen\r\n",
        "*1\r\n$4\r\nPOST\r\nSET k stolen\r\n",
    ];
    for request in requests {
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // A socket that is closed with unread bytes ends in a reset.
        drop(stream.read_to_end(&mut Vec::new()));
        assert_eq!(server.client().call("EXISTS k"), ":0\r\n", "{request}");
    }
    assert_eq!(server.client().call("SET host: post"), "+OK\r\n");
}

/// Those on their way to another thread did not count: twice as many were let in.
#[test]
fn no_more_clients_than_allowed_are_served_however_quickly_they_come() {
    let server = TestServer::start(&[("maxclients", "10"), ("threads", "2")]);
    for _ in 0..20 {
        let mut clients: Vec<_> = (0..40).map(|_| server.client()).collect();
        let served = |client: &mut Client<UnixStream>| {
            // One that is refused may be gone before it has sent anything.
            client.reply_if_sent("PING") == b"+PONG\r\n"
        };
        let count = clients.iter_mut().filter_map(|client| served(client).then_some(())).count();
        assert!(count <= 10, "{count} clients are served");
    }
}

#[test]
fn clients_are_listed_named_and_killed() {
    let server = TestServer::start(&[("threads", "2")]);
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!(first.call("CLIENT SETNAME one"), "+OK\r\n");
    assert_eq!(second.call("CLIENT SETNAME two"), "+OK\r\n");
    let list = first.call("CLIENT LIST");
    assert!(list.contains("name=one") && list.contains("name=two"), "{list}");
    let id = second.call("CLIENT ID");
    let id = id.trim().trim_start_matches(':').to_owned();
    assert_eq!(first.call(&format!("CLIENT KILL ID {id}")), ":1\r\n");
    assert_eq!(second.reply(), b"");
    assert_eq!(first.call("CLIENT KILL ID 99999"), ":0\r\n");
}

/// `CLIENT KILL TYPE` read the type and killed everybody else, whatever it was.
#[test]
fn killing_a_type_of_clients_that_there_is_none_of_kills_nobody() {
    let server = TestServer::start(&[("threads", "2")]);
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!(second.call("PING"), "+PONG\r\n");
    for kind in ["pubsub", "replica", "slave", "MASTER"] {
        assert_eq!(first.call(&format!("CLIENT KILL TYPE {kind}")), ":0\r\n");
    }
    assert_eq!(first.call("CLIENT KILL TYPE foo"), "-ERR Unknown client type 'foo'\r\n");
    assert_eq!(second.call("PING"), "+PONG\r\n");
    assert_eq!(first.call("CLIENT KILL TYPE normal"), ":1\r\n");
    assert_eq!(second.reply(), b"");
}
