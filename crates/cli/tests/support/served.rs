//! A server of the real program, and a client that sees its replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::interruptible::interruptible;
use crate::support::Directory;

/// A server on a Unix socket in `directory`, killed when dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    socket: PathBuf,
}

impl Served {
    /// Starts it and waits until it listens.
    pub(crate) fn start(directory: &Directory, options: &[&str]) -> Served {
        Served::start_by(interruptible(), directory, options)
    }

    /// Starts it by `program`, which is given its arguments, and waits until it listens.
    pub(crate) fn start_by(
        mut program: Command,
        directory: &Directory,
        options: &[&str],
    ) -> Served {
        let socket = directory.0.join("socket");
        let mut child = program
            .args(["serve", "--memory", "64MiB", "--port", "", "--unix"])
            .arg(&socket)
            // With the directory go the write buffers of one that is killed.
            .arg("--buffer-directory")
            .arg(&directory.0)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it is text");
        let served = Served { child, socket };
        assert!(line.starts_with("listening"), "{options:?}: {line:?}");
        served
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(&self.socket)
    }

    /// Stops it cleanly.
    pub(crate) fn stop(mut self) {
        self.client().send(&[b"SHUTDOWN"]);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that was stopped needs no killing.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection that sends one command at a time.
pub(crate) struct Client {
    output: UnixStream,
    input: BufReader<UnixStream>,
}

impl Client {
    /// A connection to the server that listens on `socket`.
    pub(crate) fn of(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).expect("the server listens");
        // A reply that never comes fails its test.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
        Client {
            output: stream.try_clone().expect("it can be shared"),
            input: BufReader::new(stream),
        }
    }

    fn send(&mut self, arguments: &[&[u8]]) {
        let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            out.extend_from_slice(argument);
            out.extend_from_slice(b"\r\n");
        }
        self.output.write_all(&out).expect("the server takes it");
    }

    /// Sends a command; its reply, a bulk string without its length. `(nil)` for none.
    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> String {
        self.send(arguments);
        self.reply()
    }

    /// The next reply, or element of one.
    pub(crate) fn reply(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).expect("the server answers");
        let line = line.trim_end();
        let Some(length) = line.strip_prefix('$') else { return line.to_owned() };
        let Ok(length) = length.parse::<usize>() else { return "(nil)".to_owned() };
        let mut bytes = vec![0; length + 2];
        self.input.read_exact(&mut bytes).expect("the reply is whole");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}
