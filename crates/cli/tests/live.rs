//! `entresol status` and `entresol top` on a server that runs.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "these tests kill no server")]
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::process::{Command, Output};

use serde_json::Value;
use served::Served;
use support::Directory;

/// A server with a hundred entries, of which some were read.
fn with_server(name: &str, act: impl FnOnce(&str)) {
    let directory = Directory::new(name);
    let data = directory.path("data");
    let options = ["--dir", &data, "--capacity", "160MiB", "--durability", "memory"];
    let served = Served::start(&directory, &options);
    let mut client = served.client();
    for number in 0..100 {
        assert_eq!(client.call(&[b"SET", format!("k{number}").as_bytes(), b"v"]), "+OK");
    }
    assert_eq!(client.call(&[b"GET", b"k1"]), "v");
    assert_eq!(client.call(&[b"GET", b"absent"]), "(nil)");
    act(&format!("unix:{}", directory.path("socket")));
    served.stop();
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entresol")).args(arguments).output().expect("it runs")
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn status_says_how_a_server_is_to_people_and_to_programs() {
    with_server("status", |target| {
        let shown = text(&run(&["status", "--target", target]));
        for part in ["entresol 0.1.0, up ", "health", "serves", "cache 50.0 %", "absent 50.0 %"] {
            assert!(shown.contains(part), "{part} is not in:\n{shown}");
        }
        let object: Value =
            serde_json::from_str(&text(&run(&["status", "--target", target, "--json"])))
                .expect("it is an object");
        assert_eq!(object["entries"], 100);
        assert_eq!(object["poisoned"], 0);
        assert_eq!(object["entresol_version"], "0.1.0");
    });
}

#[test]
fn top_ends_after_as_many_lines_as_were_asked_for() {
    with_server("top", |target| {
        let words = ["top", "--target", target, "--interval", "100ms", "--count", "2"];
        let shown = text(&run(&words));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "a heading and two lines: {shown}");
        assert!(lines[0].contains("reads/s") && lines[0].contains("device %"), "{shown}");
        let objects = text(&run(&[&words[..], &["--json"]].concat()));
        for line in objects.lines() {
            let object: Value = serde_json::from_str(line).expect("it is an object");
            assert_eq!(object["reads/s"], 0.0, "nobody reads: {line}");
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_next_step() {
    let directory = Directory::new("nobody");
    let target = format!("unix:{}", directory.path("nothing"));
    let output = run(&["status", "--target", &target]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains(&target) && said.contains("is a server running there?"), "{said}");
    let output = run(&["top", "--interval", "never"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("expected a time of 100ms or more, such as 1s, found 'never'"), "{said}");
}
