//! The socket for administrators of a running server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// A running server.
#[derive(Debug)]
pub(crate) struct Control {
    stream: BufReader<UnixStream>,
}

impl Control {
    /// The server whose socket is at `path`; `None` if no one listens there.
    pub(crate) fn connect(path: &Path) -> Option<Control> {
        let stream = UnixStream::connect(path).ok()?;
        Some(Control { stream: BufReader::new(stream) })
    }

    /// Sends a line and waits for its answer, however long the server needs.
    ///
    /// # Errors
    /// The server refuses, or hangs up.
    pub(crate) fn ask(&mut self, line: &Value) -> Outcome<Value> {
        let doing = |error| Failure::doing("the server's control socket", error);
        let socket = self.stream.get_mut();
        socket.write_all(format!("{line}\n").as_bytes()).map_err(doing)?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer).map_err(doing)?;
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|_| Failure::CannotRun("the server hung up without an answer".to_owned()))?;
        if answer["ok"] == Value::Bool(true) {
            return Ok(answer);
        }
        let error = answer["error"].as_str().unwrap_or("the server refuses and does not say why");
        Err(Failure::CannotRun(error.to_owned()))
    }
}
