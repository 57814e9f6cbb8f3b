//! `act certify` and `act search` as scripts call them, on small files: exit statuses, JSON,
//! reports. Never times.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::{Directory, entresol, json, refused_with};

/// A configuration of a test of `seconds` on a file of 16 MiB.
fn configuration(directory: &Directory, seconds: u32, rules: &str) -> String {
    let target = directory.path("target");
    let text = format!(
        "device-names: {target}\nfile-size-mbytes: 16\ntest-duration-sec: {seconds}\n\
         read-reqs-per-sec: 100\nwrite-reqs-per-sec: 100\nrules: {rules}\nrest-sec: 0\n"
    );
    directory.file("act.conf", &text).display().to_string()
}

/// A bound that a busy machine keeps, and one that no device keeps.
const LENIENT: &str = "100/60000";
const IMPOSSIBLE: &str = "1/0.001";

#[test]
fn a_certificate_is_one_json_object_and_one_html_file() {
    let directory = Directory::new("certificate");
    let config = configuration(&directory, 2, LENIENT);
    let page = directory.path("report.html");
    let arguments = ["act", "certify", &config, "--json", "--report", &page];
    let rounds = ["--round-sec", "1", "--rounds-max", "1", "--stress-sec", "1"];
    let certificate = json(&entresol(&[&arguments[..], &rounds].concat()));
    assert_eq!(certificate["verdict"], "pass", "{certificate}");
    assert_eq!(certificate["steady_state"]["rounds"].as_array().map(Vec::len), Some(1));
    assert_eq!(certificate["prepared"]["targets_left"], 0);
    assert_eq!(certificate["stress"]["factor"], 2.0);
    let due = certificate["test"]["total"]["series"]["reads"]["due"].as_u64();
    assert!(due.is_some_and(|due| due.abs_diff(200) <= 1), "{due:?}");
    assert_eq!(certificate["machine"]["targets"][0]["kind"], "file");
    assert_eq!(certificate["configuration"]["read-reqs-per-sec"], "100");
    let page = std::fs::read_to_string(page).expect("the report is there");
    assert!(page.contains("PASS") && page.contains("<svg") && page.ends_with("</html>"));
}

#[test]
fn a_broken_rule_exits_with_one_and_says_which() {
    let directory = Directory::new("broken-rule");
    let config = configuration(&directory, 1, IMPOSSIBLE);
    let skip = ["--skip-prepare", "--skip-steady"];
    let output = entresol(&[&["act", "certify", &config], &skip[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAIL:") && text.contains("took 0.001 ms or longer"), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("FAIL:"), "{last}");
}

#[test]
fn what_cannot_be_certified_says_why_and_exits_with_two() {
    let directory = Directory::new("cannot");
    refused_with(&["act", "certify", "/nowhere/act.conf"], &["/nowhere/act.conf"]);
    let odd = directory.file("odd.conf", "device-names: /dev/x\nread-reqs: 5\n");
    let odd = odd.display().to_string();
    refused_with(&["act", "certify", &odd], &["odd.conf", "line 2", "read-reqs"]);
    refused_with(&["act", "search", &odd, "--step", "0"], &["--step", "0.001"]);
    let gone = "device-names: /nowhere/device\ntest-duration-sec: 1\nread-reqs-per-sec: 100\n";
    let gone = directory.file("gone.conf", gone).display().to_string();
    refused_with(&["act", "certify", &gone], &["/nowhere/device"]);
}

#[test]
fn a_search_keeps_its_tries_and_does_not_repeat_them() {
    let directory = Directory::new("search");
    let config = configuration(&directory, 1, LENIENT);
    let state = directory.path("state.json");
    let options = ["--state", &state, "--json", "--most", "2"];
    let arguments = [&["act", "search", &config][..], &options].concat();
    let found = json(&entresol(&arguments));
    assert_eq!((&found["outcome"], &found["largest"]), (&"all-pass".into(), &2.0.into()));
    let again = json(&entresol(&arguments));
    assert_eq!(again["largest"], 2.0);
    let tries = again["tries"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(tries.len(), 2);
    assert!(tries.iter().all(|tried| tried.get("total").is_none()), "{again}");
    let other = ["act", "search", &config, "--state", &state, "--step", "2"];
    refused_with(&other, &[&state, "another configuration", "remove the file"]);
}

#[test]
fn the_first_signal_ends_a_test_with_its_report() {
    let directory = Directory::new("signal");
    let config = configuration(&directory, 600, LENIENT);
    let page = directory.path("report.html");
    let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["act", "certify", &config, "--skip-prepare", "--skip-steady", "--json"])
        .args(["--report", &page])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let messages = child.stderr.take().expect("standard error is piped");
    let mut lines = BufReader::new(messages).lines();
    let begun = lines.any(|line| line.is_ok_and(|line| line.starts_with("testing at 1x")));
    assert!(begun, "the test begins");
    let process = Pid::from_raw(i32::try_from(child.id()).expect("a process has a small number"));
    kill(process, Signal::SIGINT).expect("the process is there");
    lines.for_each(drop);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stdout);
    let certificate: Value = serde_json::from_str(&text).expect("the output is JSON");
    assert_eq!(certificate["verdict"], "undecided");
    assert_eq!(certificate["test"]["ending"], "interrupted");
    assert!(std::fs::read_to_string(page).is_ok_and(|page| page.contains("UNDECIDED")));
}
