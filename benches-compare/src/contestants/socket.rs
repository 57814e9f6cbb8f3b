//! A server over a Unix socket, spoken to by a few connections that each keep a pipeline full.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::contestant::{Fault, Result, play_threads};
use crate::turn::{Action, Ticket, Turn};

/// How commands and replies look.
pub(super) trait Protocol: Sync {
    /// Appends a get.
    fn get(&self, key: &[u8], out: &mut Vec<u8>);
    /// Appends a put.
    fn put(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>);
    /// The first reply in `bytes` and its length; `None` where it is not complete yet.
    fn reply<'a>(&self, bytes: &'a [u8]) -> Result<Option<(Reply<'a>, usize)>>;
}

/// A server's answer.
pub(super) enum Reply<'a> {
    /// A get found this.
    Value(&'a [u8]),
    /// A get found nothing.
    Nothing,
    /// A put was done.
    Done,
    /// A put was not done.
    Refused,
}

/// A running server; killed when dropped.
pub(super) struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    /// Starts `command` and waits until it listens on `socket`.
    pub(super) fn start(command: &mut Command, socket: &Path) -> Result<Server> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = child.get_program().to_string_lossy().into_owned();
        let child = child.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let mut server = Server { child, socket: socket.to_owned() };
        for _ in 0..200 {
            if UnixStream::connect(socket).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(Fault::from(format!("{program} ended at once: {status}")));
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Err(Fault::from(format!("{program} does not listen on {}", socket.display())))
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Plays turns, a connection each, `depth` commands in flight on every connection.
    pub(super) fn play(
        &self,
        protocol: &dyn Protocol,
        depth: usize,
        turns: Vec<Turn>,
    ) -> Result<Vec<Turn>> {
        play_threads(turns, |turn| {
            let stream = UnixStream::connect(&self.socket)?;
            let mut connection = Connection { stream, protocol, input: Vec::new(), start: 0 };
            let mut tickets = Vec::with_capacity(depth);
            while connection.exchange(turn, &mut tickets, depth)? {}
            Ok(())
        })
    }

    /// Sends one raw command and returns what comes first.
    pub(super) fn ask(&self, command: &[u8]) -> Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.write_all(command)?;
        let mut bytes = vec![0; 64 << 10];
        let length = stream.read(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection<'a> {
    stream: UnixStream,
    protocol: &'a dyn Protocol,
    input: Vec<u8>,
    start: usize,
}

impl Connection<'_> {
    /// Sends one pipeline of commands and reads all its replies; `false` at the turn's end.
    fn exchange(
        &mut self,
        turn: &mut Turn,
        tickets: &mut Vec<Ticket>,
        depth: usize,
    ) -> Result<bool> {
        tickets.clear();
        let (mut output, mut value) = (Vec::with_capacity(depth * 2048), Vec::new());
        while tickets.len() < depth
            && let Some(ticket) = turn.next()
        {
            match ticket.action {
                Action::Get | Action::Scan | Action::Pop => {
                    self.protocol.get(&ticket.key, &mut output)
                }
                Action::Put => {
                    turn.fill(&ticket, &mut value);
                    self.protocol.put(&ticket.key, &value, &mut output);
                }
            }
            tickets.push(ticket);
        }
        self.stream.write_all(&output)?;
        for ticket in tickets.iter() {
            self.finish(turn, ticket)?;
        }
        Ok(!tickets.is_empty())
    }

    fn finish(&mut self, turn: &mut Turn, ticket: &Ticket) -> Result<()> {
        loop {
            let reply = self.protocol.reply(&self.input[self.start..])?;
            if let Some((reply, length)) = reply {
                match reply {
                    Reply::Value(value) => turn.got(ticket, Some(value)),
                    Reply::Nothing => turn.got(ticket, None),
                    Reply::Done => turn.put(ticket),
                    Reply::Refused => turn.refused(ticket),
                }
                self.start += length;
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<()> {
        self.input.drain(..self.start);
        self.start = 0;
        let old = self.input.len();
        self.input.resize(old + (64 << 10), 0);
        let length = loop {
            match self.stream.read(&mut self.input[old..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.input.truncate(old + length);
        if length == 0 {
            return Err(Fault::from("the server closed the connection"));
        }
        Ok(())
    }
}

/// The first line of `bytes` without its end, and where the next begins.
pub(super) fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], end + 2))
}

/// The decimal number that `text` is.
pub(super) fn number(text: &[u8]) -> Result<usize> {
    let text = std::str::from_utf8(text)?;
    text.parse().map_err(|_| Fault::from(format!("expected a length, found '{text}'")))
}
