//! The target of a bench: the embedded engine or a RESP server, behind one small interface.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_tier::{
    Condition, Key, Operation, Outcome as EngineOutcome, PutOptions, Session, SpaceId, Timestamp,
};

use entresol_workload::key_bytes;

use crate::cleanup::STOPPED;
use crate::client::{Client, Reply, refusal};
use crate::engine::now;
use crate::failure::{Failure, Outcome};

/// One thing to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// Read a key.
    Get(&'a [u8]),
    /// Write a key.
    Put(&'a [u8], &'a [u8], PutOptions),
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// Get: the value.
    Value(&'a [u8]),
    /// Get: there is none.
    Missing,
    /// Put: done.
    Done,
    /// Scan: so many entries.
    Rows(u64),
    /// Refused or failed, and why.
    Failed(String),
}

/// Where a scan begins, and how far it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    /// From this key on, where the target keeps keys in order.
    pub(crate) key: &'a [u8],
    /// From the place that this draws, where it does not (a server: from where the last one ended).
    pub(crate) draw: u64,
    /// Most entries; about so many, where they are not in order.
    pub(crate) limit: usize,
}

/// Called with the token and the answer of each finished request.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(u64, Answer<'_>);

/// One thread's connection to what is driven: many requests in flight.
pub(crate) trait Connection {
    /// Begins a request; `visit` may be called before return.
    fn begin(&mut self, token: u64, request: Request<'_>, visit: Visit<'_>);

    /// Says which keys the next requests are about.
    fn prefetch(&self, _ids: &mut (dyn Iterator<Item = u64> + '_)) {}

    /// Hands over what was begun, without waiting.
    fn flush(&mut self) -> Outcome<()>;

    /// Waits for at least `at_least` answers and visits all that are there.
    fn wait(&mut self, at_least: usize, visit: Visit<'_>) -> Outcome<()>;

    /// Begins to visit the entries of `span` in the target's order; a target that has no order
    /// waits for them.
    fn scan(&mut self, token: u64, span: Span<'_>, visit: Visit<'_>) -> Outcome<()>;
}

/// The engine in this process.
pub(crate) struct Embedded {
    session: Session,
    now: Timestamp,
}

impl Embedded {
    pub(crate) fn new(session: Session) -> Embedded {
        Embedded { session, now: now() }
    }
}

impl Connection for Embedded {
    fn prefetch(&self, ids: &mut (dyn Iterator<Item = u64> + '_)) {
        let mut keys = [[0; 16]; 16];
        let count = ids.zip(&mut keys).map(|(id, key)| *key = key_bytes(id)).count();
        self.session.prefetch(keys[..count].iter().map(|key| Key::new(SpaceId(0), key)));
    }

    #[inline]
    fn begin(&mut self, token: u64, request: Request<'_>, visit: Visit<'_>) {
        let operation = match request {
            Request::Get(key) => Operation::Get { key: Key::new(SpaceId(0), key) },
            Request::Put(key, value, options) => {
                Operation::Put { key: Key::new(SpaceId(0), key), value, options }
            }
        };
        self.session.submit(token, self.now, operation, &mut |token, outcome| {
            visit(token, answer(outcome));
        });
    }

    fn flush(&mut self) -> Outcome<()> {
        self.now = now();
        Ok(self.session.flush()?)
    }

    fn wait(&mut self, at_least: usize, visit: Visit<'_>) -> Outcome<()> {
        self.session.poll(at_least, self.now, &mut |token, outcome| {
            visit(token, answer(outcome));
        })?;
        self.now = now();
        Ok(())
    }

    fn scan(&mut self, token: u64, span: Span<'_>, visit: Visit<'_>) -> Outcome<()> {
        // A cursor is a place in the order of hashes above the number of a shard.
        const SHARD_MASK: u64 = 0xFFFF;
        let (mut count, mut ended) = (0, Ok(()));
        let from = span.draw & !SHARD_MASK;
        self.session.scan(SpaceId(0), (from, span.limit), self.now, &mut |entry| match entry {
            Ok(_) => count += 1,
            Err(error) => ended = Err(Failure::Failed(format!("a scan failed: {error}"))),
        })?;
        ended.map(|()| visit(token, Answer::Rows(count)))
    }
}

/// A server at the other end of a socket.
pub(crate) struct Remote {
    client: Client,
    pending: VecDeque<(u64, Expected)>,
    cursor: Vec<u8>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    Value,
    Done,
}

impl Remote {
    /// Drives a server by `client` until `stop` is set.
    pub(crate) fn new(client: Client, stop: Arc<AtomicBool>) -> Remote {
        Remote { client, pending: VecDeque::new(), cursor: b"0".to_vec(), stop }
    }

    /// Takes the replies to what was sent, and ends the bench.
    fn drain(&mut self) -> Outcome<()> {
        self.client.receive(self.pending.len(), &mut |_| {})?;
        Err(Failure::Told(STOPPED))
    }
}

impl Connection for Remote {
    fn begin(&mut self, token: u64, request: Request<'_>, _visit: Visit<'_>) {
        match request {
            Request::Get(key) => {
                self.client.gather(&[b"GET", key]);
                self.pending.push_back((token, Expected::Value));
            }
            Request::Put(key, value, options) => {
                match options.condition {
                    Condition::Absent => self.client.gather(&[b"SET", key, value, b"NX"]),
                    _ => self.client.gather(&[b"SET", key, value]),
                }
                self.pending.push_back((token, Expected::Done));
            }
        }
    }

    fn flush(&mut self) -> Outcome<()> {
        if self.stop.load(Ordering::Relaxed) {
            return self.drain();
        }
        self.client.flush()
    }

    fn wait(&mut self, at_least: usize, visit: Visit<'_>) -> Outcome<()> {
        let pending = &mut self.pending;
        let (mut surplus, mut unknown) = (false, None);
        self.client.receive(at_least, &mut |reply| match (pending.pop_front(), reply) {
            (Some(_), Reply::Error(text)) if text.starts_with(b"NOAUTH") => {
                unknown = Some(refusal(text));
            }
            (Some((token, expected)), reply) => visit(token, read_reply(reply, expected)),
            (None, _) => surplus = true,
        })?;
        match unknown {
            // Whom the server does not know it refuses everything: nothing was tested.
            Some(said) => Err(Failure::CannotRun(format!("the server lets nobody in: {said}"))),
            None if surplus => {
                Err(Failure::Failed("the server sent a reply that nobody asked for".into()))
            }
            None => Ok(()),
        }
    }

    fn scan(&mut self, token: u64, span: Span<'_>, visit: Visit<'_>) -> Outcome<()> {
        let count = span.limit.to_string();
        if !self.pending.is_empty() {
            return Err(Failure::CannotRun(
                "a scan over RESP needs a connection with nothing else in flight; use \
                 --in-flight 1"
                    .into(),
            ));
        }
        let from = std::mem::take(&mut self.cursor);
        let scanned = self.client.call(&[b"SCAN", &from, b"COUNT", count.as_bytes()], read_page)?;
        let (next, entries) =
            scanned.map_err(|why| Failure::Failed(format!("a scan failed: {why}")))?;
        self.cursor = next;
        visit(token, Answer::Rows(entries));
        Ok(())
    }
}

/// The cursor and the count of keys of a scan's page.
fn read_page(reply: Reply<'_>) -> Result<(Vec<u8>, u64), String> {
    match reply {
        Reply::Error(text) => Err(refusal(text)),
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Bulk(next), Reply::Array(keys)] => Ok((next.to_vec(), keys.len() as u64)),
            _ => Err("the reply has no cursor".to_owned()),
        },
        other => Err(format!("unexpected reply {other:?}")),
    }
}

fn answer<'a>(outcome: entresol_tier::Result<EngineOutcome<'a>>) -> Answer<'a> {
    match outcome {
        Ok(EngineOutcome::Found(entry)) => Answer::Value(entry.value),
        Ok(EngineOutcome::Missing) => Answer::Missing,
        Ok(EngineOutcome::Refused { .. }) => Answer::Failed("the condition did not hold".into()),
        Ok(_) => Answer::Done,
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn read_reply(reply: Reply<'_>, expected: Expected) -> Answer<'_> {
    match (reply, expected) {
        (Reply::Bulk(value), Expected::Value) => Answer::Value(value),
        (Reply::Null, Expected::Value) => Answer::Missing,
        (Reply::Simple(_), Expected::Done) => Answer::Done,
        (Reply::Error(text), _) => Answer::Failed(refusal(text)),
        (other, _) => Answer::Failed(format!("unexpected reply {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::address::Address;

    /// It counted as a scan that found nothing, and was the fastest of all.
    #[test]
    fn a_scan_that_the_server_refuses_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let command = b"*4\r\n$4\r\nSCAN\r\n$1\r\n0\r\n$5\r\nCOUNT\r\n$1\r\n5\r\n";
            let mut bytes = vec![0; command.len()];
            stream.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, command);
            stream.write_all(b"-NOPERM no scans for you\r\n").unwrap();
        });
        let mut remote = Remote::new(Client::connect(&address).unwrap(), Arc::default());
        let span = Span { key: b"", draw: 0, limit: 5 };
        let ended = remote.scan(0, span, &mut |_, answer| panic!("{answer:?}"));
        server.join().unwrap();
        assert!(matches!(ended, Err(Failure::Failed(said)) if said.contains("NOPERM no scans")));
    }
}
