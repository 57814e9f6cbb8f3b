//! Servers of one thread each, on a port of the loopback interface.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::contestant::{Fault, Result};
use crate::usage::Usage;

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    /// Kept open: who writes to a pipe that nobody reads from is ended.
    _output: Option<BufReader<ChildStdout>>,
}

impl Server {
    /// `entresol serve` of the program at `program`, its data in `directory`.
    pub fn entresol(
        program: &Path,
        directory: &Path,
        capacity_bytes: u64,
        memory_bytes: u64,
    ) -> Result<Server> {
        let mut command = Command::new(program);
        command.arg("serve").arg("--dir").arg(directory);
        command.args(["--threads", "1", "--port", "0", "--admin-port", "0"]);
        command.args(["--capacity", &capacity_bytes.to_string()]);
        command.args(["--memory", &memory_bytes.to_string()]);
        let mut child = start(command.stdout(Stdio::piped()))?;
        let output = child.stdout.take().ok_or("the server has no standard output")?;
        let mut output = BufReader::new(output);
        let mut first = String::new();
        output.read_line(&mut first)?;
        let port = first.split_whitespace().find_map(|word| word.strip_prefix("port="));
        let port = port.and_then(|port| port.parse().ok());
        let mut server = Server { child, port: port.unwrap_or_default(), _output: Some(output) };
        if port.is_none() {
            let status = server.child.try_wait()?;
            let found = first.trim();
            return Err(Fault::from(format!(
                "{}: expected a first line with port=N, found '{found}' ({status:?})",
                program.display()
            )));
        }
        server.listening()
    }

    /// `redis-server` without persistence.
    pub fn redis(directory: &Path) -> Result<Server> {
        // Free at this moment, which is as much as can be known.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.current_dir(directory).args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no"]).stdout(Stdio::null());
        Server { child: start(&mut command)?, port, _output: None }.listening()
    }

    fn listening(mut self) -> Result<Server> {
        for _ in 0..400 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(self);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(Fault::from(format!("a server ended at once: {status}")));
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Err(Fault::from(format!("nobody listens on port {}", self.port)))
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What its process used so far.
    pub fn usage(&self) -> Usage {
        Usage::of(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Not killed: what a killed server keeps in shared memory for the next would stay there.
        // SAFETY: a signal to a child that was not waited for, so that the number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

fn start(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map_err(|error| Fault::from(format!("cannot start {program}: {error}")))
}
