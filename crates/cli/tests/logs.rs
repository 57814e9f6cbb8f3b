//! What a server's log says, and how.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "these tests kill no server")]
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::fs;
use std::process::Command;

use serde_json::Value;
use served::Served;
use support::Directory;

const OPTIONS: [&str; 4] = ["--capacity", "160MiB", "--durability", "memory"];

/// The log of a server with these options, whose clients do what `act` does.
fn log_of(directory: &Directory, options: &[&str], act: impl FnOnce(&Served)) -> String {
    let log = directory.path("log");
    let mut shell = Command::new("sh");
    let redirected = "log=$1; shift; exec \"$0\" \"$@\" 2> \"$log\"";
    shell.args(["-c", redirected, env!("CARGO_BIN_EXE_entresol"), &log]);
    let data = directory.path("data");
    let all = [&["--dir", &data][..], &OPTIONS, options].concat();
    let served = Served::start_by(shell, directory, &all);
    act(&served);
    served.stop();
    fs::read_to_string(log).expect("the server has a log")
}

#[test]
fn a_line_for_people_has_its_time_its_level_and_who_says_it() {
    let directory = Directory::new("text-log");
    let log = log_of(&directory, &[], |_| {});
    let ready = log.lines().find(|line| line.ends_with(": ready")).expect("it says so");
    let words: Vec<&str> = ready.split_whitespace().collect();
    let [time, level, target, _] = words[..] else { panic!("{ready}") };
    assert!(time.starts_with("20") && time.contains('T') && time.ends_with('Z'), "{ready}");
    assert_eq!((level, target), ("INFO", "entresol_server::server:"));
    let first = log.lines().next().expect("there are lines");
    assert!(first.contains(concat!("entresol ", env!("CARGO_PKG_VERSION"))), "{first}");
}

#[test]
fn a_line_for_programs_is_an_object_and_the_level_changes_while_the_server_runs() {
    let directory = Directory::new("json-log");
    let log = log_of(&directory, &["--log-format", "json"], |served| {
        let mut client = served.client();
        let mut set = |level: &[u8]| client.call(&[b"CONFIG", b"SET", b"log-level", level]);
        assert_eq!(set(b"debug"), "+OK");
        assert_eq!(served.client().call(&[b"PING"]), "+PONG");
        let refused = set(b"loud");
        assert!(refused.contains("expected one of error, warn, info, debug, trace"), "{refused}");
        assert_eq!(set(b"error"), "+OK");
    });
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("it is an object")).collect();
    let said = |text: &str| {
        lines.iter().find(|line| line["message"].as_str().is_some_and(|said| said.contains(text)))
    };
    let served = said(" is served").expect("a client came while the level was debug");
    assert_eq!(served["level"], "DEBUG");
    assert!(served["timestamp"].is_string() && served["target"].is_string(), "{served}");
    assert!(said("sets `log-level` to `error`").is_some(), "{log}");
    assert!(said("stopped").is_none(), "the level was error: {log}");
}
