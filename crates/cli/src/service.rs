//! A server as a child process, for benches and the demo: started, asked, stopped, killed.
//!
//! A service does not outlive its owner: dropping the service kills the child.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::address::Address;
use crate::cleanup::{self, forget_child};
use crate::client::{Client, Reply};
use crate::failure::{Failure, Outcome};
use crate::serve;

/// A running `entresol serve`.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    address: Address,
    ready: Duration,
    said: Said,
}

impl Service {
    /// Starts `entresol serve` with `options` on a free port of the loopback and waits until it
    /// answers.
    pub(crate) fn start(options: &[OsString]) -> Outcome<Service> {
        let began = Instant::now();
        let program = std::env::current_exe()
            .map_err(|e| Failure::doing("cannot find this program's own file", e))?;
        let mut command = Command::new(program);
        command.arg("serve").args(["--port", "0"]).args(options);
        // The server is this command's own: what the user's environment says is for another.
        for name in serve::variables() {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = cleanup::spawn(&mut command)
            .map_err(|e| Failure::doing("cannot start the server", e))?;
        let output = child.stdout.take();
        let said = Said::listen(child.stderr.take());
        let mut service = Service { child, address: Address::tcp(""), ready: Duration::ZERO, said };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(|e| Failure::doing("cannot read the server's first line", e))?;
        }
        let Some(port) = port_of(&line) else {
            // Once it has ended, all it said is there.
            drop(service.child.wait());
            return Err(Failure::CannotRun(format!(
                "the server did not start: expected its first line to name a port, found '{}'; \
                 it said: {}",
                line.trim(),
                service.said.end()
            )));
        };
        service.address = Address::tcp(format!("127.0.0.1:{port}"));
        let pong = service.connect()?.call(&[b"PING"], |reply| reply == Reply::Simple(b"PONG"))?;
        if !pong {
            return Err(Failure::Failed("the server answers PING with something else".into()));
        }
        service.ready = began.elapsed();
        Ok(service)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// From its start to its first answer.
    pub(crate) fn ready(&self) -> Duration {
        self.ready
    }

    /// A new connection to it.
    pub(crate) fn connect(&self) -> Outcome<Client> {
        Client::connect(&self.address)
    }

    /// Ends it at once, as a crash would (`SIGKILL`).
    pub(crate) fn kill(mut self) -> Outcome<()> {
        self.child.kill().map_err(|e| Failure::doing("cannot kill the server", e))?;
        self.child.wait().map_err(|e| Failure::doing("cannot wait for the server", e))?;
        Ok(())
    }

    /// Asks it to end (`SIGTERM`) and waits until it has. Returns how long that took.
    pub(crate) fn stop(mut self) -> Outcome<Duration> {
        let began = Instant::now();
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)
            .map_err(|e| Failure::doing("cannot signal the server", e))?;
        let status =
            self.child.wait().map_err(|e| Failure::doing("cannot wait for the server", e))?;
        match status.success() {
            true => Ok(began.elapsed()),
            false => Err(Failure::Failed(format!(
                "the server stopped with {status}; it said: {}",
                self.said.end()
            ))),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // After `kill` or `stop` there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
        forget_child(self.child.id());
    }
}

/// The last lines that a child wrote to its standard error, kept for when something goes wrong.
#[derive(Debug)]
struct Said(Option<JoinHandle<VecDeque<String>>>);

impl Said {
    fn listen(stream: Option<ChildStderr>) -> Said {
        const LINES_MAX: usize = 5;
        Said(stream.map(|stream| {
            std::thread::spawn(move || {
                let mut last = VecDeque::new();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if last.len() == LINES_MAX {
                        last.pop_front();
                    }
                    last.push_back(line);
                }
                last
            })
        }))
    }

    /// What it said last, once it has ended.
    fn end(&mut self) -> String {
        let lines = self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        lines.into_iter().collect::<Vec<_>>().join(" / ")
    }
}

/// The port in a line such as `listening port=36379 unix=/run/x`.
fn port_of(line: &str) -> Option<u16> {
    line.split_whitespace().find_map(|word| word.strip_prefix("port=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::port_of;

    #[test]
    fn the_first_line_names_the_port() {
        assert_eq!(port_of("listening port=36379 unix=/x admin=38111\n"), Some(36379));
        assert_eq!(port_of("error: no"), None);
    }
}
