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
    assert_eq!(certificate["configuration"]["rules"], LENIENT);
    let seed = certificate["configuration"]["seed"].as_str();
    assert!(seed.is_some_and(|seed| seed.parse::<u64>().is_ok()), "{seed:?}");
    let page = std::fs::read_to_string(page).expect("the report is there");
    assert!(page.contains("PASS") && page.contains("<svg") && page.ends_with("</html>"));
}

/// A half of it stayed beside the place of the report, as on a disk that is full. The limit on the
/// size of files stands for such a disk; the target is smaller.
#[test]
fn a_report_that_cannot_be_written_leaves_nothing_behind() {
    let directory = Directory::new("half-report");
    let target = directory.path("target");
    std::fs::write(&target, vec![0; 16 << 10]).expect("it can be written");
    let text = format!(
        "device-names: {target}\nlarge-block-op-kbytes: 4\ntest-duration-sec: 1\n\
         read-reqs-per-sec: 10\nrules: {LENIENT}\nrest-sec: 0\n"
    );
    let config = directory.file("act.conf", &text).display().to_string();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_entresol"), "act", "certify", &config])
        .args(["--skip-prepare", "--skip-steady", "--skip-stress"])
        .args(["--report", &directory.path("report.html")])
        .output()
        .expect("a shell starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("report.html: File too large"), "{said}");
    let mut left: Vec<String> = std::fs::read_dir(directory.path("."))
        .expect("it is there")
        .map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["act.conf", "target"]);
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
    for command in ["certify", "search", "storage", "index"] {
        // It said that there is no such file, and no more.
        let next = ["/nowhere/act.conf", "No such file", "`entresol act config"];
        refused_with(&["act", command, "/nowhere/act.conf"], &next);
    }
    let odd = directory.file("odd.conf", "device-names: /dev/x\nread-reqs: 5\n");
    let odd = odd.display().to_string();
    refused_with(&["act", "certify", &odd], &["odd.conf", "line 2", "read-reqs"]);
    refused_with(&["act", "search", &odd, "--step", "0"], &["--step", "0.001"]);
    // Nothing was tried then, and the verdict was that the device fails.
    refused_with(&["act", "search", &odd, "--tries", "0"], &["--tries", "1.."]);
    refused_with(&["act", "search", &odd, "--max-sec", "0"], &["--max-sec", "1.."]);
    let search = ["act", "search", &odd, "--first", "5", "--most", "2"];
    refused_with(&search, &["--first 5", "--most 2"]);
    let unused = ["--skip-stress", "--stress", "3"];
    refused_with(&[&["act", "certify", &odd], &unused[..]].concat(), &["cannot be used with"]);
    let unused = ["--skip-steady", "--rounds-max", "3"];
    refused_with(&[&["act", "certify", &odd], &unused[..]].concat(), &["cannot be used with"]);
    let gone = "device-names: /nowhere/device\ntest-duration-sec: 1\nread-reqs-per-sec: 100\n";
    let gone = directory.file("gone.conf", gone).display().to_string();
    refused_with(&["act", "certify", &gone], &["/nowhere/device"]);
    let small = configuration(&directory, 1, LENIENT).replace("act.conf", "small.conf");
    let target = directory.path("small");
    let text = format!(
        "device-names: {target}\nfile-size-mbytes: 1\ntest-duration-sec: 1\n\
         read-reqs-per-sec: 100\nlarge-block-op-kbytes: 8192\n"
    );
    std::fs::write(&small, text).expect("the directory is the test's own");
    refused_with(&["act", "certify", &small], &[&target, "1048576 bytes", "blocks of 8388608"]);
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
    // Items that ACT does not know, and its echo does not show, make another configuration too.
    let text = std::fs::read_to_string(&config).expect("it was written") + "model: engine\n";
    std::fs::write(&config, text).expect("the directory is the test's own");
    refused_with(&arguments, &[&state, "another configuration"]);
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

#[test]
fn index_devices_get_a_verdict_and_a_largest_load() {
    let directory = Directory::new("index");
    let target = directory.path("target");
    let text = format!(
        "device-names: {target}\nfile-size-mbytes: 16\ntest-duration-sec: 1\ncache-threads: 2\n\
         read-reqs-per-sec: 100\nwrite-reqs-per-sec: 100\nrules: {LENIENT}\nrest-sec: 0\n\
         verify: yes\n"
    );
    let config = directory.file("index.conf", &text).display().to_string();
    let skip = ["--index", "--json", "--skip-steady", "--stress-sec", "1"];
    let certificate = json(&entresol(&[&["act", "certify", &config], &skip[..]].concat()));
    assert_eq!(certificate["verdict"], "pass", "{certificate}");
    let series = &certificate["test"]["total"]["series"];
    // 100 reads, one read for each of 100 writes, and 200 reads and writes of the cache.
    for (name, expected) in [("reads", 400), ("writes", 200)] {
        let due = series[name]["due"].as_u64();
        assert!(due.is_some_and(|due| due.abs_diff(expected) <= 3), "{name}: {due:?}");
    }
    let stress = &certificate["stress"]["total"]["series"]["writes"]["due"];
    assert!(stress.as_u64().is_some_and(|due| due.abs_diff(400) <= 3), "{stress}");
    let most = ["--index", "--json", "--most", "2"];
    let found = json(&entresol(&[&["act", "search", &config], &most[..]].concat()));
    assert_eq!(found["largest"], 2.0);
    let without = ["act", "certify", &config];
    refused_with(&without, &["line 4", "`cache-threads`", "--index"]);
}

#[test]
fn a_report_that_could_not_be_written_is_refused_before_the_load() {
    let directory = Directory::new("unwritable");
    let config = configuration(&directory, 600, LENIENT);
    let page = directory.path("nowhere/report.html");
    for command in ["certify", "search"] {
        refused_with(&["act", command, &config, "--report", &page], &[&page, "No such file"]);
    }
    let own = directory.path("");
    refused_with(&["act", "certify", &config, "--report", &own], &["it is a directory"]);
    let state = ["act", "search", &config, "--state", &page];
    refused_with(&state, &[&page]);
    assert!(!std::path::Path::new(&directory.path("target")).exists(), "no target was made");
}

#[test]
fn results_are_delivered_though_nobody_reads_the_messages_any_more() {
    let directory = Directory::new("unread");
    let config = configuration(&directory, 1, LENIENT);
    let page = directory.path("report.html");
    let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["act", "certify", &config, "--skip-steady", "--skip-stress", "--json"])
        .args(["--report", &page])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stderr.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout);
    let certificate: Value = serde_json::from_str(&text).expect("the output is JSON");
    assert_eq!(certificate["verdict"], "pass");
    assert!(std::fs::read_to_string(page).is_ok_and(|page| page.contains("PASS")));
}

#[test]
fn a_load_whose_log_cannot_be_written_ends() {
    let directory = Directory::new("full-log");
    let config = configuration(&directory, 3600, LENIENT);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let output = Command::new(env!("CARGO_BIN_EXE_entresol"))
        .args(["act", "storage", &config])
        .stdin(Stdio::null())
        .stdout(full)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("cannot write the log"), "{told}");
}
