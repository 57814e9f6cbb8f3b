//! `act prep`, `act storage` and `act index` as scripts call them, on small files: exit statuses,
//! logs and counts. Never times.

#[path = "support/interruptible.rs"]
mod interruptible;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use interruptible::interruptible;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Directory, entresol, refused_with};

/// A configuration on a file of 16 MiB.
fn configuration(directory: &Directory, more: &str) -> String {
    let target = directory.path("target");
    let text = format!("device-names: {target}\nfile-size-mbytes: 16\n{more}");
    directory.file("act.conf", &text).display().to_string()
}

const LOAD: &str = "test-duration-sec: 2\nread-reqs-per-sec: 100\nwrite-reqs-per-sec: 1000\n\
                    service-threads: 5\n";

/// The totals of a histogram, report by report.
fn totals(log: &str, name: &str) -> Vec<u64> {
    let prefix = format!("{name} (");
    let lines = log.lines().filter_map(|line| line.strip_prefix(&prefix));
    lines.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect()
}

#[test]
fn compatible_runs_print_everything_on_standard_output_and_exit_as_act_does() {
    let directory = Directory::new("compatible");
    let config = configuration(&directory, LOAD);
    // A busy machine does less than is due, but not five times.
    let exact = (0..5).any(|_| {
        let output = entresol(&["act", "storage", "--compat", &config]);
        let log = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{log}");
        assert!(output.stderr.is_empty());
        let line = "target size = 16777216 bytes, 128 large blocks, minimum IO size = 512 bytes\n\n\
                    HISTOGRAM NAMES\nreads\n";
        assert!(log.starts_with("\nACT version 6.6\n") && log.contains(line), "{log}");
        let large = ["large-block-reads", "large-block-writes"].map(|name| (name, [24, 48], 1));
        [[("reads", [100, 200], 5)].as_slice(), &large].concat().iter().all(
            |(name, expected, slack)| {
                let done = totals(&log, name);
                assert_eq!(done.len(), expected.len(), "{log}");
                done.iter().zip(expected).all(|(&done, &expected)| {
                    assert!(done <= expected + slack, "{done} {name} for {expected}");
                    done + slack >= expected
                })
            },
        )
    });
    assert!(exact, "less than is due in five runs");
    let none = directory.path("none");
    let missing = format!("ERROR: couldn't open config file {none} errno 2 'No such file");
    let device = format!("device-names: {none}\n{LOAD}");
    let device = directory.file("device.conf", &device).display().to_string();
    let opened = format!("ERROR: open device {none} errno 2 'No such file or directory'\n");
    let cases: [(&[&str], &str); 4] = [
        (&[], "usage: act_storage [config filename]\n"),
        (&[&config, &config], "usage: act_storage [config filename]\n"),
        (&[&none], &missing),
        (&[&device], &opened),
    ];
    for (arguments, expected) in cases {
        let output = entresol(&[&["act", "storage", "--compat"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(255), "{text}");
        assert!(text.contains(expected) && output.stderr.is_empty(), "{text}");
    }
}

/// Another table of words was printed, which has `I/O error` for the commonest of all errors.
#[test]
fn errors_of_the_system_are_told_in_the_words_that_act_prints() {
    let directory = Directory::new("words");
    let ring = directory.path("ring");
    std::os::unix::fs::symlink(&ring, &ring).expect("there is nothing yet");
    let words = "40 'Too many levels of symbolic links'";
    let device = format!("device-names: {ring}\n{LOAD}");
    let device = directory.file("device.conf", &device).display().to_string();
    for (config, expected) in [
        (&device, format!("ERROR: open device {ring} errno {words}\n")),
        (&ring, format!("ERROR: couldn't open config file {ring} errno {words}\n")),
    ] {
        let output = entresol(&["act", "storage", "--compat", config]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.ends_with(&expected), "{text}");
    }
}

#[test]
fn logs_of_either_tester_hold_service_and_response_and_are_tabulated() {
    let directory = Directory::new("logs");
    for tester in ["storage", "index"] {
        let config = configuration(&directory, LOAD);
        let output = entresol(&["act", tester, &config]);
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(totals(&log, "reads"), totals(&log, "response-reads"));
        assert!(said.contains("100.0 %"), "{said}");
        let path = directory.file("log", &log).display().to_string();
        let options = ["act", "latency", "-l", &path, "-t", "1", "-h", "reads"];
        let table = entresol(&[&options[..], &["-h", "response-reads"]].concat());
        let text = String::from_utf8_lossy(&table.stdout);
        assert_eq!(table.status.code(), Some(0), "{text}");
        assert!(text.contains("  max"), "{text}");
    }
}

#[test]
fn a_signal_ends_a_load_with_a_last_report() {
    let directory = Directory::new("signal");
    let load = LOAD.replace("duration-sec: 2", "duration-sec: 3600");
    let config = configuration(&directory, &load);
    let interrupts = [(&["--compat"][..], Signal::SIGINT), (&[], Signal::SIGINT)];
    // A lost terminal ended it without a word.
    let hangup = (&[][..], Signal::SIGHUP);
    for (manner, signal) in interrupts.into_iter().chain([hangup]) {
        let mut child = interruptible()
            .args([&["act", "storage", &config], manner].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut log = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        while !line.starts_with("after 1 sec:") {
            line.clear();
            assert_ne!(log.read_line(&mut line).expect("the log is text"), 0);
        }
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
        let mut rest = String::new();
        log.read_to_string(&mut rest).expect("the log is text");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(130), "{manner:?} {signal}: {status}");
        let reads = totals(&rest, "reads");
        assert!(reads.len() >= 2 && rest.ends_with("\n\n"), "{manner:?} {signal}: {rest}");
    }
}

/// They were told on standard error alone: a table of the log looked as if nothing had happened.
#[test]
fn failed_transfers_stand_in_the_log_and_fail_its_table() {
    let directory = Directory::new("failing");
    let load = "test-duration-sec: 60\nread-reqs-per-sec: 50\n";
    let config = configuration(&directory, load);
    for manner in [&["--compat"][..], &[]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args([&["act", "storage", &config], manner].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut reader = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut log = String::new();
        while !log.contains("after 1 sec:") {
            assert_ne!(reader.read_line(&mut log).expect("the log is text"), 0);
        }
        let target = std::fs::OpenOptions::new().write(true).open(directory.path("target"));
        target.expect("it was made").set_len(4096).expect("it can be cut");
        while !log.contains("ERROR: reading") {
            assert_ne!(reader.read_line(&mut log).expect("the log is text"), 0);
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it runs");
        reader.read_to_string(&mut log).expect("the log is text");
        child.wait().expect("it ends");
        let target = directory.path("target");
        let lines = format!("ERROR: pread() returned 0\nERROR: reading {target}: 0 'Success'\n");
        assert!(log.contains(&lines), "{manner:?}: {log}");
        let path = directory.file("log", &log).display().to_string();
        let output = entresol(&["act", "latency", "-l", &path, "-t", "1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("transfers failed, which no histogram shows"), "{said}");
        std::fs::remove_file(&target).expect("it is there");
    }
}

#[test]
fn a_load_that_was_not_sustained_is_a_failure() {
    let directory = Directory::new("unsustained");
    let load = "test-duration-sec: 60\nwrite-reqs-per-sec: 400000000\nmax-lag-sec: 1\n";
    let config = configuration(&directory, load);
    let output = entresol(&["act", "storage", &config]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("behind their schedule"), "{said}");
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(log.contains("can't keep up\ndrive(s) can't keep up - test stopped\n"), "{log}");
}

#[test]
fn prepared_files_verify_and_others_are_refused() {
    let directory = Directory::new("prepared");
    let target = directory.path("target");
    refused_with(&["act", "prep", &target], &["no such file"]);
    // It made the file that it was to look at, and found nothing of anybody's in it.
    let made = ["act", "prep", &target, "--verify", "--capacity", "16MiB"];
    refused_with(&made, &["cannot be used with"]);
    let output = entresol(&["act", "prep", &target, "--capacity", "16MiB"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let lines = ["16777216 bytes, 128 large blocks", "cleaning device", "salting device"];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    let verify = || entresol(&["act", "prep", &target, "--verify"]);
    let text = String::from_utf8_lossy(&verify().stdout).into_owned();
    assert!(text.contains("32768 sectors as written, 0 not ours, 0 wrong"), "{text}");
    let mut bytes = std::fs::read(&target).expect("it was made");
    bytes[5_000_000] ^= 4;
    std::fs::write(&target, &bytes).expect("it can be written");
    assert_eq!(verify().status.code(), Some(1));
    let foreign = directory.path("foreign");
    let mut bytes = vec![0; 1 << 20];
    bytes[..4].copy_from_slice(b"XFSB");
    std::fs::write(&foreign, bytes).expect("it can be written");
    refused_with(&["act", "prep", &foreign], &["XFS", "--destroy"]);
    let output = entresol(&["act", "prep", &foreign, "--destroy", &foreign]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_journal_tells_what_is_no_longer_there() {
    let directory = Directory::new("journalled");
    let journal = directory.path("journal");
    let config = configuration(&directory, &format!("{LOAD}journal: {journal}\n"));
    refused_with(&["act", "storage", &config, "--check-journal"], &["journal"]);
    assert_eq!(entresol(&["act", "storage", &config]).status.code(), Some(0));
    let check = || entresol(&["act", "storage", &config, "--check-journal"]);
    let output = check();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("acknowledged writes, 0 of them lost; 0 under way"), "{text}");
    std::fs::write(directory.path("target"), vec![0; 16 << 20]).expect("it can be written");
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("acknowledged writes are lost"));
}
