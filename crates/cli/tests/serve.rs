//! How `entresol serve` ends.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use served::Served;
use support::Directory;

/// Ctrl-C went unheard until a data file had been made, which takes minutes.
#[test]
fn a_signal_ends_a_server_that_has_not_opened_its_store() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let directory = Directory::new(&format!("unopened-{signal}"));
        let (key, socket) = (directory.0.join("key"), directory.0.join("socket"));
        mkfifo(&key, Mode::S_IRWXU).expect("a pipe can be made");
        // Open for both, it keeps whoever reads the key waiting.
        let mut pipe = OpenOptions::new().read(true).write(true).open(&key).expect("it is there");
        let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(["serve", "--memory", "64MiB", "--port", "", "--durability", "memory"])
            .args(["--capacity", "160MiB", "--dir", &directory.path("data"), "--unix"])
            .arg(&socket)
            .arg("--encryption-key")
            .arg(&key)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        // It listens before it opens the store.
        while UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
            std::thread::yield_now();
        }
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
        pipe.write_all(&[7; 32]).expect("it takes the key");
        drop(pipe);
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
    }
}

/// The server was gone with its terminal, and what only a clean stop keeps with it.
#[test]
fn a_hangup_is_a_clean_stop() {
    let directory = Directory::new("hangup");
    let data = directory.path("data");
    let options = ["--dir", &data, "--capacity", "160MiB", "--durability", "memory"];
    let mut served = Served::start(&directory, &options);
    assert_eq!(served.client().call(&[b"SET", b"k", b"v"]), "+OK");
    kill(Pid::from_raw(served.pid().cast_signed()), Signal::SIGHUP).expect("it runs");
    let status = served.child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    let again = Served::start(&directory, &options);
    assert_eq!(again.client().call(&[b"GET", b"k"]), "v");
    again.stop();
}
