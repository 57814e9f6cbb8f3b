//! How `entresol serve` ends.

#[path = "support/interruptible.rs"]
mod interruptible;
#[path = "support/served.rs"]
mod served;
#[expect(dead_code, reason = "a server is started by what has a socket for it")]
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use served::{Client, Served};
use support::Directory;

/// A server that waits for its encryption key before it opens its store.
struct Unopened {
    child: Child,
    socket: PathBuf,
    /// A pipe: who opens it to read the key waits for who writes it, and the other way round.
    key: PathBuf,
}

impl Unopened {
    /// Starts one that listens.
    fn start(directory: &Directory, output: fn() -> Stdio) -> Unopened {
        let (key, socket) = (directory.0.join("key"), directory.0.join("socket"));
        mkfifo(&key, Mode::S_IRWXU).expect("a pipe can be made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_entresol"))
            .args(["serve", "--memory", "64MiB", "--port", "", "--durability", "memory"])
            .args(["--capacity", "160MiB", "--dir", &directory.path("data"), "--unix"])
            .arg(&socket)
            .arg("--encryption-key")
            .arg(&key)
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("the server starts");
        // It listens before it opens the store.
        while UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
            std::thread::yield_now();
        }
        Unopened { child, socket, key }
    }

    /// Gives it its key.
    fn open(self) -> Child {
        fs::write(&self.key, [7; 32]).expect("it takes the key");
        self.child
    }
}

/// Ctrl-C went unheard until a data file had been made, which takes minutes.
#[test]
fn a_signal_ends_a_server_that_has_not_opened_its_store() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let directory = Directory::new(&format!("unopened-{signal}"));
        let mut server = Unopened::start(&directory, Stdio::null);
        kill(Pid::from_raw(server.child.id().cast_signed()), signal).expect("it runs");
        let status = server.child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
    }
}

/// It took clients and left them without an answer, for as long as a data file was being made.
#[test]
fn clients_that_come_before_the_store_is_open_are_told_and_then_served() {
    let directory = Directory::new("loading");
    let server = Unopened::start(&directory, Stdio::piped);
    let socket = server.socket.clone();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::of(&socket)).collect();
    for client in clients.iter_mut().chain(&mut [Client::of(&socket)]) {
        for command in [&[&b"PING"[..]][..], &[b"SET", b"key", b"value"], &[b"NONSENSE"]] {
            assert!(client.call(command).starts_with("-LOADING "));
        }
    }
    let mut child = server.open();
    let mut line = String::new();
    let output = child.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it is text");
    for client in &mut clients {
        assert_eq!(client.call(&[b"PING"]), "+PONG");
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("making the data file: 0 % of 160 MiB\n"), "{said}");
}

/// Where a shell lets programs have 64 files open, client 48 was neither taken nor refused, though
/// the server could have had more for the asking; so it was at a thousand with the usual 1024.
#[test]
fn clients_are_taken_however_few_files_a_shell_lets_programs_open() {
    let directory = Directory::new("files");
    let mut shell = Command::new("sh");
    let limited = "ulimit -S -n 64 && ulimit -H -n 900 && exec \"$0\" \"$@\"";
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_entresol")]);
    let (data, file) = (directory.path("data"), directory.path("conf"));
    fs::write(&file, "slowlog-max-len = 5\n").expect("a file is written");
    let options =
        ["--dir", &data, "--capacity", "160MiB", "--durability", "memory", "--config", &file];
    let served = Served::start_by(shell, &directory, &options);
    let mut clients: Vec<_> = (0..100).map(|_| served.client()).collect();
    for client in &mut clients {
        assert_eq!(client.call(&[b"PING"]), "+PONG");
    }
    // Half of so few are for what else is open.
    let refused = clients[0].call(&[b"CONFIG", b"SET", b"maxclients", b"451"]);
    assert!(refused.ends_with("number of clients, try with 450"), "{refused}");
    assert_eq!(clients[0].call(&[b"CONFIG", b"SET", b"maxclients", b"450"]), "+OK");
    // The default of ten thousand kept the file from being read again.
    fs::write(&file, "slowlog-max-len = 6\nmaxclients = 449\n").expect("a file is written");
    kill(Pid::from_raw(served.pid().cast_signed()), Signal::SIGHUP).expect("it runs");
    while !clients[0].call(&[b"INFO", b"clients"]).contains("maxclients:449") {}
    fs::write(&file, "slowlog-max-len = 6\n").expect("a file is written");
    kill(Pid::from_raw(served.pid().cast_signed()), Signal::SIGHUP).expect("it runs");
    while !clients[0].call(&[b"INFO", b"clients"]).contains("maxclients:450") {}
    drop(clients);
    served.stop();
}

#[test]
fn a_hangup_has_the_configuration_read_again_and_ends_nothing() {
    let directory = Directory::new("hangup");
    let (data, file) = (directory.path("data"), directory.path("conf"));
    fs::write(&file, "maxclients = 20\n").expect("a file is written");
    let options =
        ["--dir", &data, "--capacity", "160MiB", "--durability", "memory", "--config", &file];
    let served = Served::start(&directory, &options);
    let mut client = served.client();
    assert_eq!(client.call(&[b"SET", b"k", b"v"]), "+OK");
    fs::write(&file, "maxclients = 30\n").expect("a file is written");
    kill(Pid::from_raw(served.pid().cast_signed()), Signal::SIGHUP).expect("it runs");
    // The signal is heard within a twentieth of a second; each look is a request of its own.
    while !client.call(&[b"INFO", b"clients"]).contains("maxclients:30") {}
    assert_eq!(client.call(&[b"GET", b"k"]), "v");
    served.stop();
}
