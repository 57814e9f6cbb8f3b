//! Clients that come while the store is made or opened: every command is answered with `-LOADING`,
//! as redis-server does, so that nobody takes the wait for a hang.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_net::{Listener, Stream};
use entresol_wire::resp::{Decoded, Decoder, Limits};
use mio::{Events, Interest, Poll, Registry, Token, Waker};

/// What a command is answered with.
const REPLY: &[u8] = b"-LOADING Entresol is opening its store; try again soon\r\n";
/// Clients at a time; those beyond wait until the store is open.
const CLIENTS_MAX: usize = 128;
/// What a command may be; one beyond it is told and loses its connection.
const LIMITS: Limits = Limits {
    bulk_bytes_max: 64 << 10,
    arguments_max: 1024,
    line_bytes_max: 64 << 10,
    request_bytes_max: 256 << 10,
};
/// Bytes of replies that a client does not take before it is closed.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;
const END: Token = Token(usize::MAX);
const FIRST_LISTENER: usize = CLIENTS_MAX;

/// What `open` gives, and the clients that came to `listeners` meanwhile and are there still: they
/// have nothing owed and nothing begun. At most `clients_max` are answered.
///
/// # Errors
/// The system has no event queue for it.
pub(crate) fn answer_while<T>(
    listeners: &mut [Listener],
    clients_max: usize,
    open: impl FnOnce() -> T,
) -> io::Result<(T, Vec<Stream>)> {
    let poll = Poll::new()?;
    let (over, waker) = (AtomicBool::new(false), Waker::new(poll.registry(), END)?);
    let hall = Hall::new(poll, listeners, clients_max.min(CLIENTS_MAX))?;
    std::thread::scope(|scope| {
        let (over, waker) = (&over, &waker);
        let answering = scope.spawn(move || hall.answer(over));
        let opened = {
            // Also where it panics: the scope waits for the thread.
            let _end = End { over, waker };
            open()
        };
        let streams = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((opened, streams))
    })
}

/// Ends the answering when it is dropped. The waker outlives it: one that is closed wakes nobody.
struct End<'a> {
    over: &'a AtomicBool,
    waker: &'a Waker,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The queue is there for as long as the thread.
        let _woken = self.waker.wake();
    }
}

/// Listeners, and clients that wait for the store.
struct Hall<'a> {
    poll: Poll,
    registry: Arc<Registry>,
    listeners: &'a mut [Listener],
    clients: Vec<Option<Waiting>>,
    free: Vec<usize>,
}

/// A client that waits for the store.
struct Waiting {
    stream: Stream,
    decoder: Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Hall<'_> {
    fn new(poll: Poll, listeners: &mut [Listener], clients_max: usize) -> io::Result<Hall<'_>> {
        for (number, listener) in listeners.iter_mut().enumerate() {
            let token = Token(FIRST_LISTENER + number);
            poll.registry().register(listener.source(), token, Interest::READABLE)?;
        }
        let registry = Arc::new(poll.registry().try_clone()?);
        let clients = (0..clients_max).map(|_| None).collect();
        Ok(Hall { poll, registry, listeners, clients, free: (0..clients_max).rev().collect() })
    }

    /// Answers until it is `over`; the clients that go on to whoever serves the store.
    fn answer(mut self, over: &AtomicBool) -> io::Result<Vec<Stream>> {
        let mut events = Events::with_capacity(128);
        while !over.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    END => {}
                    Token(place) if place < FIRST_LISTENER => self.serve(place),
                    Token(listener) => self.accept(listener - FIRST_LISTENER),
                }
            }
        }
        for listener in self.listeners.iter_mut() {
            self.registry.deregister(listener.source())?;
        }
        let idle = self.clients.into_iter().flatten().filter(Waiting::is_idle);
        let left = idle.map(|mut client| client.stream.deregister().map(|()| client.stream));
        // One that cannot go on is closed, as by a network that failed.
        Ok(left.filter_map(Result::ok).collect())
    }

    /// Takes the clients of a listener, as many as there is room for. The others stay: whoever
    /// listens next is told of them.
    fn accept(&mut self, listener: usize) {
        while let Some(place) = self.free.last().copied() {
            let Ok(Some(mut stream)) = self.listeners[listener].accept() else { return };
            if stream.register(&self.registry, Token(place)).is_err() {
                continue;
            }
            self.free.pop();
            let decoder = Decoder::new(LIMITS);
            let (input, output) = (Vec::new(), Vec::new());
            self.clients[place] = Some(Waiting { stream, decoder, input, output });
            self.serve(place);
        }
    }

    fn serve(&mut self, place: usize) {
        let Some(client) = &mut self.clients[place] else { return };
        if client.serve().is_err() {
            client.stream.close();
            self.clients[place] = None;
            self.free.push(place);
        }
    }
}

impl Waiting {
    /// Answers what came; an error ends the connection.
    fn serve(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.take(&buffer[..count])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.write()
    }

    /// Owes a reply to each command in `bytes`.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            match self.decoder.decode(&self.input[at..]) {
                Ok(Decoded::Incomplete { .. }) => break,
                Ok(Decoded::Empty { consumed }) => at += consumed,
                Ok(Decoded::Command { consumed }) => {
                    at += consumed;
                    self.output.extend_from_slice(REPLY);
                }
                Err(_) => {
                    self.output.extend_from_slice(REPLY);
                    self.write()?;
                    return Err(ErrorKind::InvalidData.into());
                }
            }
        }
        self.input.drain(..at);
        if self.output.len() > OUTPUT_BYTES_MAX {
            self.write()?;
        }
        match self.output.len() > OUTPUT_BYTES_MAX {
            true => Err(ErrorKind::OutOfMemory.into()),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let wrote = |result: io::Result<usize>| match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            other => other,
        };
        while !self.output.is_empty() {
            match wrote(self.stream.write(&self.output))? {
                0 => return Ok(()),
                count => drop(self.output.drain(..count)),
            }
        }
        wrote(self.stream.flush().map(|()| 0)).map(|_| ())
    }

    /// Whether it may go on with another who serves: nothing is begun or owed.
    fn is_idle(&self) -> bool {
        self.input.is_empty() && self.output.is_empty() && !self.stream.holds_output()
    }
}
