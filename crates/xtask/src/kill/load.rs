//! Connections that write and read with many commands on their way, until the server is gone.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use entresol_random::SplitMix;

use super::ledger::{Ledger, State, read_value, write_value};
use super::service::{PATIENCE, Service};

/// Kills the server at one acknowledged write.
#[derive(Debug)]
pub(super) struct Fuse {
    service: Mutex<Service>,
    target: u64,
    acknowledged: AtomicU64,
    is_lit: AtomicBool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Fine,
    Number(i64),
    Value(Option<Vec<u8>>),
    Refused(String),
}

/// A command on its way.
#[derive(Debug)]
enum Sent {
    Value { place: usize, state: usize },
    Removal { place: usize, state: usize, was_there: bool },
    Read { place: usize, expected: State },
    Save,
}

impl Fuse {
    pub(super) fn new(service: Service, target: u64) -> Fuse {
        let service = Mutex::new(service);
        Fuse { service, target, acknowledged: AtomicU64::new(0), is_lit: AtomicBool::new(false) }
    }

    /// Counts one acknowledged write; the last one kills.
    fn burn(&self) -> Result<(), String> {
        match self.acknowledged.fetch_add(1, Ordering::SeqCst) + 1 == self.target {
            true => self.fire(),
            false => Ok(()),
        }
    }

    /// Kills the server now.
    pub(super) fn fire(&self) -> Result<(), String> {
        self.is_lit.store(true, Ordering::SeqCst);
        let mut service = self.service.lock().map_err(|_| "a connection panicked".to_string())?;
        service.kill()?;
        service.wait().map(|_| ())
    }

    fn has_fired(&self) -> bool {
        self.is_lit.load(Ordering::SeqCst)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }
}

/// Writes keys of `ledger` until the server is killed; how many writes stayed unanswered.
pub(super) fn write_until_killed(
    socket: &Path,
    ledger: &mut Ledger,
    mut random: SplitMix,
    fuse: &Fuse,
) -> Result<u64, String> {
    let ended = |fuse: &Fuse, reason: String| match fuse.has_fired() {
        true => Ok(()),
        false => Err(reason),
    };
    let mut connection = match Connection::open(socket) {
        Ok(connection) => connection,
        Err(reason) => return ended(fuse, reason).map(|()| 0),
    };
    let depth = 1 << random.remainder(8);
    let mut sent = VecDeque::new();
    loop {
        if random.remainder(60) == 0 {
            while !sent.is_empty() {
                if !take_answer(&mut connection, &mut sent, ledger, fuse)? {
                    ended(fuse, "the server closed the connection".into())?;
                    return Ok(unanswered(&sent));
                }
            }
            connection.gather(&[b"SAVE"]);
            sent.push_back(Sent::Save);
        }
        while sent.len() < depth {
            gather_command(&mut connection, &mut sent, ledger, &mut random);
        }
        // A server that is gone is seen by reading: what it answered before is taken in first.
        let _ = connection.flush();
        for _ in 0..depth.div_ceil(2) {
            if !take_answer(&mut connection, &mut sent, ledger, fuse)? {
                ended(fuse, "the server closed the connection".into())?;
                return Ok(unanswered(&sent));
            }
        }
    }
}

fn unanswered(sent: &VecDeque<Sent>) -> u64 {
    let is_write = |s: &&Sent| matches!(s, Sent::Value { .. } | Sent::Removal { .. });
    sent.iter().filter(is_write).count() as u64
}

fn gather_command(
    connection: &mut Connection,
    sent: &mut VecDeque<Sent>,
    ledger: &mut Ledger,
    random: &mut SplitMix,
) {
    let place = random.remainder(ledger.len() as u64) as usize;
    let name = ledger.name(place);
    match random.remainder(20) {
        0..3 => {
            let was_there = ledger.newest(place) != State::Absent;
            let state = ledger.send_removal(place);
            connection.gather(&[b"DEL", name.as_bytes()]);
            sent.push_back(Sent::Removal { place, state, was_there });
        }
        3..5 => {
            connection.gather(&[b"GET", name.as_bytes()]);
            sent.push_back(Sent::Read { place, expected: ledger.newest(place) });
        }
        kind => {
            let length = match kind {
                5..14 => random.remainder(2_000),
                14..19 => random.remainder(20_000),
                // Larger than a small segment: such a value is in pieces.
                _ => random.remainder(200_000),
            };
            let (number, state) = ledger.send_value(place, length as usize);
            let value = write_value(&name, number, length as usize);
            connection.gather(&[b"SET", name.as_bytes(), &value]);
            sent.push_back(Sent::Value { place, state });
        }
    }
}

/// Takes one answer in; false if the server is gone.
fn take_answer(
    connection: &mut Connection,
    sent: &mut VecDeque<Sent>,
    ledger: &mut Ledger,
    fuse: &Fuse,
) -> Result<bool, String> {
    let Some(answer) = connection.receive()? else { return Ok(false) };
    let Some(command) = sent.pop_front() else {
        return Err(format!("an answer to nothing: {answer:?}"));
    };
    match (&command, &answer) {
        (Sent::Value { place, state }, Answer::Fine) => {
            ledger.acknowledge(*place, *state);
            fuse.burn()?;
        }
        (Sent::Removal { place, state, was_there }, Answer::Number(number))
            if *number == i64::from(*was_there) =>
        {
            ledger.acknowledge(*place, *state);
            fuse.burn()?;
        }
        (Sent::Save, Answer::Fine) => ledger.save(),
        (Sent::Read { place, expected }, Answer::Value(value)) => {
            let name = ledger.name(*place);
            let found = match value {
                None => State::Absent,
                Some(value) => read_value(&name, value).map_err(|what| format!("{name} {what}"))?,
            };
            if found != *expected {
                return Err(format!("{name} was read as {found:?}, just written: {expected:?}"));
            }
        }
        _ => return Err(format!("{command:?} was answered {answer:?}")),
    }
    Ok(true)
}

impl Connection {
    pub(super) fn open(socket: &Path) -> Result<Connection, String> {
        let cannot = |error| format!("cannot connect to {}: {error}", socket.display());
        let stream = UnixStream::connect(socket).map_err(cannot)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(cannot)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(cannot)?;
        Ok(Connection { stream, input: Vec::new(), taken: 0, output: Vec::new() })
    }

    /// Adds a command to what [`Connection::flush`] sends.
    pub(super) fn gather(&mut self, arguments: &[&[u8]]) {
        self.output.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
        for argument in arguments {
            self.output.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            self.output.extend_from_slice(argument);
            self.output.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was gathered.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent
    }

    /// The next answer; `None` once the server is gone.
    pub(super) fn receive(&mut self) -> Result<Option<Answer>, String> {
        loop {
            if let Some((answer, length)) = parse(&self.input[self.taken..])? {
                self.taken += length;
                return Ok(Some(answer));
            }
            self.input.drain(..self.taken);
            self.taken = 0;
            let mut piece = [0; 64 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(length) => self.input.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("no answer came: {error}")),
            }
        }
    }
}

/// The answer at the start of `bytes` and its length; `None` if it is not all there.
fn parse(bytes: &[u8]) -> Result<Option<(Answer, usize)>, String> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (kind, rest) = line.split_at(line.len().min(1));
    let number = || rest.parse::<i64>().map_err(|_| format!("`{line}` is no answer"));
    let start = end + 2;
    let answer = match kind {
        "+" => Answer::Fine,
        "-" => Answer::Refused(rest.to_string()),
        ":" => Answer::Number(number()?),
        "$" => match usize::try_from(number()?) {
            Err(_) => Answer::Value(None),
            Ok(length) => {
                let Some(value) = bytes.get(start..start + length) else { return Ok(None) };
                if bytes.len() < start + length + 2 {
                    return Ok(None);
                }
                return Ok(Some((Answer::Value(Some(value.to_vec())), start + length + 2)));
            }
        },
        _ => return Err(format!("`{line}` is no answer")),
    };
    Ok(Some((answer, start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_whole_or_not_at_all() {
        let whole = |bytes: &[u8]| parse(bytes).expect("these are answers");
        assert_eq!(whole(b"+OK\r\n:1\r\n"), Some((Answer::Fine, 5)));
        assert_eq!(whole(b":-2\r\n"), Some((Answer::Number(-2), 5)));
        assert_eq!(whole(b"$-1\r\n"), Some((Answer::Value(None), 5)));
        assert_eq!(whole(b"$3\r\nabc\r\n+"), Some((Answer::Value(Some(b"abc".to_vec())), 9)));
        assert_eq!(whole(b"$3\r\nabc\r"), None);
        assert_eq!(whole(b"-ERR no\r\n"), Some((Answer::Refused("ERR no".into()), 9)));
        assert!(parse(b"what\r\n").is_err());
    }
}
