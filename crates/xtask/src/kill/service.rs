//! `entresol serve` as a child that gets killed. One that is dropped is killed too.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A server that does not answer for so long hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is started, again and again.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) program: PathBuf,
    pub(super) options: Vec<String>,
    pub(super) socket: PathBuf,
    /// Where its standard error goes.
    pub(super) errors: PathBuf,
}

/// A server.
#[derive(Debug)]
pub(super) struct Service {
    child: Child,
    first_line: Receiver<String>,
}

impl Recipe {
    /// Starts it and does not wait for it.
    pub(super) fn begin(&self) -> Result<Service, String> {
        let cannot = |error| format!("cannot start {}: {error}", self.program.display());
        let errors = File::options().create(true).append(true).open(&self.errors);
        let mut child = Command::new(&self.program)
            .arg("serve")
            .args(&self.options)
            .args(["--port", "", "--unix"])
            .arg(&self.socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.map_err(cannot)?)
            .spawn()
            .map_err(cannot)?;
        let (sender, first_line) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                // Without a line the sender goes, and that is seen.
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Service { child, first_line })
    }

    /// Starts it and waits until it listens.
    pub(super) fn start(&self) -> Result<Service, String> {
        let mut service = self.begin()?;
        match service.first_line.recv_timeout(PATIENCE) {
            Ok(line) if line.starts_with("listening") => Ok(service),
            Ok(line) => Err(format!("the server's first line is `{line}`")),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("the server does not listen after {} s", PATIENCE.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = service.wait()?;
                let said = last_lines(&self.errors);
                Err(format!("the server ended with {status} before it listened; it said: {said}"))
            }
        }
    }
}

impl Service {
    /// Ends it with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| format!("cannot kill the server: {error}"))
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) -> Result<ExitStatus, String> {
        self.child.wait().map_err(|error| format!("cannot wait for the server: {error}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn last_lines(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
