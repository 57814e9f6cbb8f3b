//! What a signal interrupts: files of others stay as they were, and stores are closed.

#[path = "support/interruptible.rs"]
mod interruptible;
mod support;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use interruptible::interruptible;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use support::{Directory, entresol, json, refused_with};

/// What was written of it stayed behind.
#[test]
fn an_interrupted_export_leaves_the_earlier_one_alone() {
    let directory = Directory::new("halfway");
    let out = directory.file("out.jsonl", "precious\n");
    let socket = directory.0.join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket can be made");
    let mut child = interruptible()
        .args(["export", "--target", &format!("unix:{}", socket.display()), "--output"])
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut command = [0; "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n".len()];
    stream.read_exact(&mut command).expect("it asks for its space");
    stream.write_all(b"+OK\r\n").expect("it takes the answer");
    // The first byte of the next command, which is never answered.
    stream.read_exact(&mut command[..1]).expect("it asks for entries");
    assert!(directory.0.join("out.jsonl.partial").exists());
    // A second export at the same time wrote to the same file, and each into what the other had.
    let csv = directory.file("a.csv", "key,value\na,b\n").display().to_string();
    let store = directory.path("store");
    let to = ["--key", "key", "--capacity", "64MiB", "--dir", &store];
    assert!(entresol(&[&["load", &csv], &to[..]].concat()).status.success());
    let output = out.to_str().unwrap();
    refused_with(&["export", "--dir", &store, "--output", output], &["another export to it"]);
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(std::fs::read_to_string(&out).expect("it is there"), "precious\n");
    assert!(!directory.0.join("out.jsonl.partial").exists());
}

/// The store was left as by a kill, and what was in its write buffers could not be seen until a
/// server had been started on it.
#[test]
fn an_interrupted_load_closes_its_store() {
    let directory = Directory::new("interrupted-load");
    let store = directory.path("store");
    let buffers = ["--dir", &store, "--buffer-directory", directory.0.to_str().unwrap()];
    let mut child = interruptible()
        .args(["load", "-", "--format", "jsonl", "--key", "id", "--capacity", "128MiB"])
        .args(buffers)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    let mut written = 0;
    // More than a pipe and a buffer hold: it reads.
    for id in 0.. {
        let line = format!("{{\"id\":{id}}}\n");
        input.write_all(line.as_bytes()).expect("it takes records");
        written += line.len();
        if written > 4 << 20 {
            break;
        }
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let stopped = said.lines().find_map(|line| line.strip_prefix("entresol: stopped; "));
    let loaded = stopped.and_then(|rest| rest.split(' ').next());
    let info = entresol(&[&["store", "info", "--json"], &buffers[..]].concat());
    let said = said.replace('\n', " | ");
    assert!(loaded.is_some(), "it does not say that it stopped: {said}");
    let entries = json(&info)["entries"].to_string();
    assert_eq!(loaded, Some(entries.as_str()), "loaded, and entries of the store: {said}");
    assert_eq!(String::from_utf8_lossy(&info.stderr), "", "it was closed in order");
}

/// It heeded the signal once more came, which may be never, as behind a program that waits.
#[test]
fn a_load_that_waits_for_its_input_is_stopped_by_the_first_signal() {
    const RECORDS: u64 = 10_000;
    let directory = Directory::new("waiting-load");
    let store = directory.path("store");
    let mut child = interruptible()
        .args(["load", "-", "--format", "jsonl", "--key", "id", "--capacity", "128MiB"])
        .args(["--dir", &store])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    // It takes what is written once the program has read all that was before.
    fcntl(&input, FcntlArg::F_SETPIPE_SZ(4096)).expect("it is a pipe");
    let mut write = |text: &str| {
        input.write_all(text.as_bytes()).expect("it takes records");
        let mut descriptor = [PollFd::new(input.as_fd(), PollFlags::POLLOUT)];
        poll(&mut descriptor, PollTimeout::NONE).expect("it can be waited for");
    };
    (0..RECORDS).for_each(|id| write(&format!("{{\"id\":{id}}}\n")));
    // No record: all of those before were loaded when this is read.
    write("{");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let last = format!("entresol: stopped; {RECORDS} records were loaded before");
    assert_eq!(said.lines().last(), Some(&*last), "{said}");
    let info = json(&entresol(&["store", "info", "--json", "--dir", &store]));
    assert_eq!(info["entries"].to_string(), RECORDS.to_string());
}
