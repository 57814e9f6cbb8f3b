//! `entresol serve` in a root of its own, which has nothing but what was laid there, and what
//! clients get from it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::invocation::Invocation;
use crate::scratch::shown;

/// Longest page that is read.
const PAGE_BYTES: u64 = 1 << 16;

/// How the server is started.
#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    pub(crate) root: &'a Path,
    /// `UID:GID`. Where nobody may change the root, the server is root of users of its own instead.
    pub(crate) user: &'a str,
    /// The program, by its path in the root, and its arguments.
    pub(crate) words: &'a [String],
    /// All that its environment has, as `NAME=VALUE`.
    pub(crate) environment: &'a [String],
}

/// A server that is ready. One that is dropped is killed.
#[derive(Debug)]
pub(crate) struct Rooted {
    child: Child,
    /// Kept, so that the server can go on to write its log.
    output: BufReader<ChildStdout>,
    /// What it said until it was ready.
    said: Vec<String>,
}

impl Recipe<'_> {
    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&self) -> Result<Rooted, String> {
        let root = shown(self.root);
        let enter = match Invocation::new("id -u").read()?.trim() {
            "0" => ["/usr/sbin/chroot".to_string(), format!("--userspec={}", self.user), root],
            _ => [
                "/usr/bin/unshare".to_string(),
                "--map-root-user".to_string(),
                format!("--root={root}"),
            ],
        };
        // Its environment says where programs are in its root, not here.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$@\" 2>&1", "sh"])
            .args(&enter)
            .args(self.words)
            .env_clear()
            .envs(self.environment.iter().filter_map(|pair| pair.split_once('=')))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run /bin/sh: {error}"))?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut server = Rooted { child, output: BufReader::new(output), said: Vec::new() };
        server.wait_until_ready()?;
        Ok(server)
    }
}

impl Rooted {
    fn wait_until_ready(&mut self) -> Result<(), String> {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).map_err(|error| error.to_string())?;
            if read == 0 {
                let said = self.said.join(" / ");
                return Err(format!("the server ended before it was ready; it said: {said}"));
            }
            let is_ready = line.trim_end().ends_with(": ready");
            self.said.push(line.trim_end().to_string());
            if is_ready {
                return Ok(());
            }
        }
    }

    /// Whether any line that it said until it was ready has `words`.
    pub(crate) fn has_said(&self, words: &str) -> bool {
        self.said.iter().any(|line| line.contains(words))
    }

    /// What `name`, as in `port=6379`, stands for in the line that says where it listens.
    fn port(&self, name: &str) -> Result<u16, String> {
        let line = self.said.iter().find(|line| line.starts_with("listening "));
        let words = line.into_iter().flat_map(|line| line.split(' '));
        let mut pairs = words.filter_map(|word| word.split_once('='));
        let found = pairs.find(|(key, _)| *key == name).and_then(|(_, port)| port.parse().ok());
        found.ok_or_else(|| {
            format!("the server names no {name}; it said: {}", self.said.join(" / "))
        })
    }

    /// What `redis-cli` prints for a command.
    pub(crate) fn replies(&self, words: &[&str]) -> Result<String, String> {
        let mut ask = Invocation::new("redis-cli -p").with_argument(self.port("port")?.to_string());
        for word in words {
            ask = ask.with_argument(*word);
        }
        Ok(ask.run_quietly()?.output.trim_end().to_string())
    }

    /// The first line of what the HTTP interface answers for a path.
    pub(crate) fn status_of(&self, path: &str) -> Result<String, String> {
        let address = (Ipv4Addr::LOCALHOST, self.port("admin")?);
        let mut text = String::new();
        let mut ask = || {
            let mut stream = TcpStream::connect(address)?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
            stream.take(PAGE_BYTES).read_to_string(&mut text)
        };
        ask().map_err(|error| format!("{path} of the HTTP interface: {error}"))?;
        Ok(text.lines().next().unwrap_or_default().to_string())
    }

    /// Ends it by SIGTERM; whether it then says that all is done.
    pub(crate) fn stop(mut self) -> Result<bool, String> {
        // The shell has become the program, which changed the root and became the server.
        let end = Invocation::new("kill -TERM").with_argument(self.child.id().to_string());
        end.run_quietly()?;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        Ok(status.success())
    }
}

impl Drop for Rooted {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Compares what was found with what was expected, and says where they differ.
pub(crate) fn is_as_expected(what: &str, found: &str, expected: &str) -> bool {
    if found != expected {
        println!("{what}: expected `{expected}`, found `{found}`");
    }
    found == expected
}

/// A server that does not start fails its check, and others go on.
pub(crate) fn as_failure(reason: String) -> Result<bool, String> {
    println!("{reason}");
    Ok(false)
}
