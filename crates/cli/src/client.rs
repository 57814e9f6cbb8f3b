//! A RESP client that keeps many commands in flight on one connection.
//!
//! Invariants:
//! 1. Replies come in the order of the commands; the caller remembers the command of each.
//! 2. Sending never waits without receiving. So a server whose replies wait and a client whose
//!    commands wait cannot block each other.
//! 3. Sent bytes stay in memory only while more unsent bytes wait behind them.

mod stream;

use std::fmt;
use std::io::ErrorKind;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::address::Address;
use crate::failure::{Failure, Outcome};
use stream::Stream;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Stream,
    name: String,
    output: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    taken: usize,
    filled: usize,
}

/// A reply. Slices live in the connection's buffer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR …`
    Error(&'a [u8]),
    /// `:1`
    Integer(i64),
    /// `$3`
    Bulk(&'a [u8]),
    /// `$-1`, `*-1` or `_`
    Null,
    /// `*2`
    Array(Vec<Reply<'a>>),
}

const READ_BYTES: usize = 256 << 10;

/// As people read it in a message: text as text, and of what is long the beginning.
impl fmt::Debug for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_BYTES: usize = 200;
        const SHOWN_ITEMS: usize = 8;
        let shown = |bytes: &[u8]| match bytes.get(..SHOWN_BYTES) {
            Some(first) => format!("{}…", first.escape_ascii()),
            None => bytes.escape_ascii().to_string(),
        };
        match self {
            Reply::Simple(text) => write!(f, "+{}", shown(text)),
            Reply::Error(text) => write!(f, "-{}", shown(text)),
            Reply::Integer(number) => write!(f, ":{number}"),
            Reply::Bulk(bytes) => write!(f, "\"{}\"", shown(bytes)),
            Reply::Null => f.write_str("null"),
            Reply::Array(items) => {
                let first = &items[..items.len().min(SHOWN_ITEMS)];
                write!(f, "{} items, {first:?}", items.len())
            }
        }
    }
}

impl Client {
    /// Connects, says who asks, and chooses the database that the address names.
    pub(crate) fn connect(address: &Address) -> Outcome<Client> {
        let failed = |error: std::io::Error| {
            let next = match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                    "; is a server running there? `entresol serve` prints where it listens"
                }
                _ => "",
            };
            Failure::CannotRun(format!("cannot connect to {address}: {error}{next}"))
        };
        let stream = Stream::connect(&address.way).map_err(failed)?;
        let mut client = Client {
            stream,
            name: address.to_string(),
            output: Vec::new(),
            sent: 0,
            input: vec![0; READ_BYTES],
            taken: 0,
            filled: 0,
        };
        if let Some(login) = address.login() {
            client.authenticate(&login)?;
        }
        if let Some(database) = address.database {
            client.select(database)?;
        }
        Ok(client)
    }

    /// Chooses the database that commands work on.
    pub(crate) fn select(&mut self, database: u16) -> Outcome<()> {
        let number = database.to_string();
        self.demand(&[b"SELECT", number.as_bytes()], &format!("refuses database {database}"))
    }

    fn authenticate(&mut self, login: &[&[u8]]) -> Outcome<()> {
        let arguments = [&[&b"AUTH"[..]], login].concat();
        let answered = self.demand(&arguments, "lets nobody in");
        // What was sent is kept for a while; the password is not.
        self.output.fill(0);
        self.output.clear();
        self.sent = 0;
        answered
    }

    /// Removes all keys of the database that commands work on.
    pub(crate) fn empty_database(&mut self) -> Outcome<()> {
        self.demand(&[b"FLUSHDB"], "keeps the keys of the bench")
    }

    /// Carries out a command. Where the server refuses it, `meaning` says what that comes to.
    fn demand(&mut self, arguments: &[&[u8]], meaning: &str) -> Outcome<()> {
        let refused = self.call(arguments, |reply| match reply {
            Reply::Error(text) => Some(refusal(text)),
            _ => None,
        })?;
        let Some(text) = refused else { return Ok(()) };
        Err(Failure::CannotRun(format!("{} {meaning}: {text}", self.name)))
    }

    /// Gathers a command; [`Client::flush`] or [`Client::receive`] sends it.
    pub(crate) fn gather(&mut self, arguments: &[&[u8]]) {
        if self.sent * 2 >= self.output.len() {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        push_length(&mut self.output, b'*', arguments.len());
        for argument in arguments {
            push_length(&mut self.output, b'$', argument.len());
            self.output.extend_from_slice(argument);
            self.output.extend_from_slice(b"\r\n");
        }
    }

    /// Bytes of commands that the server did not take yet.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Bytes of commands that are in memory.
    #[cfg(test)]
    pub(crate) fn output_bytes(&self) -> usize {
        self.output.len()
    }

    /// Sends what the server takes without waiting.
    pub(crate) fn flush(&mut self) -> Outcome<()> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(self.lost("the server closed the connection")),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broken_off(&e)),
            }
        }
        match self.stream.flush() {
            Err(e) if !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Err(self.broken_off(&e))
            }
            _ => Ok(()),
        }
    }

    /// Waits until at least `at_least` replies came and gives all that came to `visit`, in order.
    /// Returns how many those were.
    pub(crate) fn receive(
        &mut self,
        at_least: usize,
        visit: &mut dyn FnMut(Reply<'_>),
    ) -> Outcome<usize> {
        let mut count = 0;
        self.take_in()?;
        loop {
            while let Some((reply, length)) = self.parse()? {
                visit(reply);
                self.taken += length;
                count += 1;
            }
            if count >= at_least {
                return Ok(count);
            }
            self.fill()?;
        }
    }

    /// Sends one command and waits for its reply; nothing else may be in flight.
    pub(crate) fn call<T>(
        &mut self,
        arguments: &[&[u8]],
        visit: impl FnOnce(Reply<'_>) -> T,
    ) -> Outcome<T> {
        self.gather(arguments);
        self.flush()?;
        loop {
            if let Some((reply, length)) = self.parse()? {
                let result = visit(reply);
                self.taken += length;
                return Ok(result);
            }
            self.fill()?;
        }
    }

    fn parse(&self) -> Outcome<Option<(Reply<'_>, usize)>> {
        let bytes = &self.input[self.taken..self.filled];
        parse(bytes).map_err(|what| match bytes.starts_with(b"HTTP/") {
            true => Failure::CannotRun(format!(
                "{} answers by HTTP: it is the port that `admin-port` names, or another server's. \
                 Name the one that `entresol serve` prints as `port=`; it is 6379 unless `port` \
                 says otherwise",
                self.name
            )),
            false => self.lost(format!("the reply is not RESP: {what}")),
        })
    }

    /// Waits for bytes to come, sending what the server takes meanwhile.
    fn fill(&mut self) -> Outcome<()> {
        while !self.take_in()? {
            self.wait()?;
        }
        Ok(())
    }

    /// Sends what the server takes and takes what it sent, without waiting. Whether bytes came.
    fn take_in(&mut self) -> Outcome<bool> {
        if self.taken > 0 {
            self.input.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.input.len() - self.filled < READ_BYTES / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
        loop {
            self.flush()?;
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(self.closed()),
                Ok(count) => {
                    self.filled += count;
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.lost(e)),
            }
        }
    }

    fn wait(&self) -> Outcome<()> {
        let mut flags = PollFlags::POLLIN;
        if self.sent < self.output.len() || self.stream.holds_output() {
            flags |= PollFlags::POLLOUT;
        }
        let mut descriptors = [PollFd::new(self.stream.as_fd(), flags)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
    }

    /// The server takes no more. Where it said something before, that is why.
    fn broken_off(&mut self, error: &std::io::Error) -> Failure {
        while let Some(room) = self.input.get_mut(self.filled..).filter(|room| !room.is_empty()) {
            match self.stream.read(room) {
                Ok(count) if count > 0 => self.filled += count,
                _ => break,
            }
        }
        let (mut at, mut said) = (self.taken, None);
        while let Ok(Some((reply, length))) = parse(&self.input[at..self.filled]) {
            at += length;
            said = match reply {
                Reply::Error(text) => Some(refusal(text)),
                _ => None,
            };
        }
        match said {
            Some(said) => self.lost(format!("{error}; before that the server said: {said}")),
            None => self.lost(error),
        }
    }

    /// The server sends no more.
    fn closed(&self) -> Failure {
        /// How an alert of TLS begins (RFC 8446, 5.1).
        const ALERT: &[u8] = &[21, 3];
        match self.input[..self.filled].starts_with(ALERT) {
            true => Failure::CannotRun(format!(
                "{} speaks TLS: write the address as rediss://, and name the authorities of its \
                 certificate with --tls-ca FILE",
                self.name
            )),
            false => self.lost("the server closed the connection"),
        }
    }

    fn lost(&self, error: impl fmt::Display) -> Failure {
        Failure::doing(format!("connection to {} lost", self.name), error)
    }
}

/// What a server refused a command with, and what to do where it does not know who asks.
pub(crate) fn refusal(text: &[u8]) -> String {
    let next = match text.starts_with(b"NOAUTH") {
        true => " Name the user with --target redis://USER@HOST:PORT --password-file FILE.",
        false => "",
    };
    format!("{}{next}", String::from_utf8_lossy(text))
}

/// The first reply in `bytes` and its length; `None` where it is not complete.
fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, String> {
    const DEPTH_MAX: u32 = 16;
    parse_nested(bytes, DEPTH_MAX)
}

fn parse_nested(bytes: &[u8], depth: u32) -> Result<Option<(Reply<'_>, usize)>, String> {
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return Ok(None);
    };
    let kind = bytes[0];
    let line = &bytes[1..end.saturating_sub(1).max(1)];
    let after = end + 1;
    let number = || {
        let text = std::str::from_utf8(line).unwrap_or_default();
        text.parse::<i64>().map_err(|_| format!("'{text}' is no number"))
    };
    let reply = match kind {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(number()?),
        b'_' => Reply::Null,
        b'$' => {
            let Ok(length) = usize::try_from(number()?) else {
                return Ok(Some((Reply::Null, after)));
            };
            if bytes.len() < after + length + 2 {
                return Ok(None);
            }
            return Ok(Some((Reply::Bulk(&bytes[after..after + length]), after + length + 2)));
        }
        b'*' | b'~' | b'>' => {
            let Ok(count) = usize::try_from(number()?) else {
                return Ok(Some((Reply::Null, after)));
            };
            if depth == 0 {
                return Err("arrays are nested too deep".to_owned());
            }
            let mut items = Vec::new();
            let mut at = after;
            for _ in 0..count {
                let Some((item, length)) = parse_nested(&bytes[at..], depth - 1)? else {
                    return Ok(None);
                };
                items.push(item);
                at += length;
            }
            return Ok(Some((Reply::Array(items), at)));
        }
        other => return Err(format!("a reply cannot begin with byte {other}")),
    };
    Ok(Some((reply, after)))
}

fn push_length(output: &mut Vec<u8>, kind: u8, length: usize) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = length;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    output.push(kind);
    output.extend_from_slice(&digits[at..]);
    output.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_parse_whole_or_not_at_all() {
        let text = b"*3\r\n$3\r\nabc\r\n:-5\r\n*2\r\n+OK\r\n$-1\r\n";
        let (reply, length) = parse(text).unwrap().unwrap();
        assert_eq!(length, text.len());
        let inner = Reply::Array(vec![Reply::Simple(b"OK"), Reply::Null]);
        assert_eq!(reply, Reply::Array(vec![Reply::Bulk(b"abc"), Reply::Integer(-5), inner]));
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]).unwrap(), None, "cut at {end}");
        }
        assert!(parse(b"!x\r\n").is_err());
        assert!(parse(b":x\r\n").is_err());
        assert!(parse(b"\n").is_err());
    }

    /// A server refuses a value that is too long before it has read it, and closes: all that was
    /// heard of it was that the connection was reset.
    #[test]
    fn what_the_server_said_before_it_broke_off_is_told() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
            stream.write_all(b"+OK\r\n-ERR Protocol error: invalid bulk length\r\n").unwrap();
        });
        let mut client = Client::connect(&address.parse().unwrap()).unwrap();
        client.gather(&[b"SET", b"k", &vec![b'x'; 32 << 20]]);
        let ended = loop {
            match client.flush() {
                Ok(()) => std::thread::yield_now(),
                Err(ended) => break ended.to_string(),
            }
        };
        server.join().unwrap();
        let expected = "before that the server said: ERR Protocol error: invalid bulk length";
        assert!(ended.contains(expected), "{ended}");
    }

    /// Whoever gave the port of the HTTP interface was told of a byte 72.
    #[test]
    fn an_answer_by_http_is_told_with_the_port_that_was_meant() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").unwrap();
        });
        let mut client = Client::connect(&address.parse().unwrap()).unwrap();
        let told = client.call(&[b"BACKUP", b"BEGIN"], |_| ()).unwrap_err().to_string();
        server.join().unwrap();
        assert!(told.starts_with(&format!("{address} answers by HTTP: ")), "{told}");
        assert!(told.contains("`admin-port`") && told.contains("prints as `port=`"), "{told}");
    }

    /// Messages had the bytes of replies as numbers.
    #[test]
    fn replies_are_told_as_text() {
        let told = |reply: &Reply<'_>| format!("{reply:?}");
        assert_eq!(told(&Reply::Error(b"OOM full")), "-OOM full");
        assert_eq!(told(&Reply::Bulk(b"a\xFF\"")), r#""a\xff\"""#);
        let items = vec![Reply::Null, Reply::Integer(-1)];
        assert_eq!(told(&Reply::Array(items)), "2 items, [null, :-1]");
        assert!(told(&Reply::Bulk(&[b'x'; 5000])).len() < 300);
    }

    #[test]
    fn commands_are_written_as_bulk_arrays() {
        let mut output = Vec::new();
        push_length(&mut output, b'*', 0);
        push_length(&mut output, b'$', 1_700);
        assert_eq!(output, b"*0\r\n$1700\r\n");
    }
}
