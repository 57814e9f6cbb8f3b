//! The clients of the HTTP interface, served side by side by one thread.
//!
//! What it holds is bounded: so many clients, a request of 8 KiB each. One that sends nothing, as
//! browsers do that connect ahead, keeps nobody waiting: who comes when all places are taken gets
//! the place of whoever has had one longest.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_device::Attended;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};

use super::channel::Channel;
use super::{AdminAccess, Answer, Site, answer};
use crate::stream::Stream;

/// Clients at a time.
const PLACES: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the thread looks whether the server stops, and whom it has waited for too long.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const LISTENER: Token = Token(PLACES);

/// A listening socket, and what its visitors are waited for with.
#[derive(Debug)]
pub(super) struct Door {
    poll: Poll,
    registry: Arc<Registry>,
    listener: TcpListener,
}

/// Who is being served.
pub(super) struct Visitors<'a> {
    poll: Poll,
    registry: Arc<Registry>,
    listener: TcpListener,
    places: [Option<Visitor>; PLACES],
    /// Whether somebody may wait to be accepted: the listener tells of each once.
    waited_for: bool,
    /// How long a client may take to send a request, and to take the answer.
    patience: Duration,
    /// While the process did not run, nobody could be late.
    attended: Attended,
    access: &'a AdminAccess,
    site: &'a dyn Site,
}

/// One client, from its connection to the end of its answer.
struct Visitor {
    stream: Stream,
    request: Vec<u8>,
    /// What is left to send; `None` while the request is incomplete.
    answer: Option<Vec<u8>>,
    sent: usize,
    /// Whether TLS has said goodbye.
    is_dismissed: bool,
    came: Instant,
    deadline: Instant,
}

/// Whether a visitor's connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Waits,
    Leaves,
}

impl Door {
    pub(super) fn open(address: SocketAddr) -> io::Result<Door> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let registry = Arc::new(poll.registry().try_clone()?);
        Ok(Door { poll, registry, listener })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl<'a> Visitors<'a> {
    pub(super) fn new(door: Door, access: &'a AdminAccess, site: &'a dyn Site) -> Visitors<'a> {
        let Door { poll, registry, listener } = door;
        let places = [const { None }; PLACES];
        Visitors {
            poll,
            registry,
            listener,
            places,
            waited_for: true,
            patience: PATIENCE,
            attended: Attended::default(),
            access,
            site,
        }
    }

    /// Serves whoever comes until the site stops.
    pub(super) fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(PLACES + 1);
        let mut rest = POLL_INTERVAL;
        let began = Instant::now();
        while !self.site.is_stopping() {
            match self.poll.poll(&mut events, Some(rest)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.waited_for = true,
                    Token(place) => self.go_on(place),
                }
            }
            let now = Instant::now();
            if self.attended.was_away(now - began) {
                self.places.iter_mut().flatten().for_each(|one| one.deadline = now + self.patience);
            }
            self.dismiss_late(now);
            rest = self.welcome();
        }
        Ok(())
    }

    /// Accepts who waits, some at a time: who comes again and again must not keep the others
    /// waiting. How long the rest may wait: without a descriptor for them, until the next look.
    fn welcome(&mut self) -> Duration {
        for _ in 0..PLACES {
            if !self.waited_for {
                return POLL_INTERVAL;
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let place = self.place();
                    if self.seat(place, stream).is_ok() {
                        self.go_on(place);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.waited_for = false,
                Err(_) => return POLL_INTERVAL,
            }
        }
        Duration::ZERO
    }

    /// A place that is free, or that of whoever came first.
    fn place(&self) -> usize {
        let came = |place: &Option<Visitor>| place.as_ref().map(|visitor| visitor.came);
        let places = self.places.iter().enumerate();
        places.min_by_key(|(_, place)| came(place)).map_or(0, |(number, _)| number)
    }

    fn seat(&mut self, place: usize, stream: TcpStream) -> io::Result<()> {
        self.places[place] = None;
        let tls = self.access.tls().map(|tls| tls.config());
        let mut stream = Stream::tcp(stream, tls.as_ref())?;
        stream.register(&self.registry, Token(place))?;
        let came = Instant::now();
        self.places[place] = Some(Visitor {
            stream,
            request: Vec::new(),
            answer: None,
            sent: 0,
            is_dismissed: false,
            came,
            deadline: came + self.patience,
        });
        Ok(())
    }

    fn go_on(&mut self, place: usize) {
        let Some(visitor) = &mut self.places[place] else { return };
        // A client that breaks off gets no answer; there is nothing else to do about it.
        let was_asking = visitor.answer.is_none();
        if visitor.go_on(self.access, self.site).unwrap_or(Next::Leaves) == Next::Leaves {
            self.places[place] = None;
        } else if was_asking && visitor.answer.is_some() {
            visitor.deadline = Instant::now() + self.patience;
        }
    }

    fn dismiss_late(&mut self, now: Instant) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|visitor| visitor.deadline < now) {
                *place = None;
            }
        }
    }
}

impl Visitor {
    /// Reads and writes what can be without waiting.
    fn go_on(&mut self, access: &AdminAccess, site: &dyn Site) -> io::Result<Next> {
        while self.answer.is_none() {
            let mut piece = [0; 2048];
            let length = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // The client may wait for the rest of the handshake, and send nothing before.
                    self.flush()?;
                    return Ok(Next::Waits);
                }
                read => read?,
            };
            self.request.extend_from_slice(&piece[..length]);
            let channel = Channel::of(&self.stream);
            self.answer = answer(&self.request, channel, access, site).as_ref().map(Answer::encode);
            if self.answer.is_none() && length == 0 {
                return Ok(Next::Leaves);
            }
        }
        let answer = self.answer.as_deref().unwrap_or_default();
        while self.sent < answer.len() {
            match self.stream.write(&answer[self.sent..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Next::Waits),
                Ok(0) => return Ok(Next::Leaves),
                written => self.sent += written?,
            }
        }
        if self.flush()? == Next::Waits {
            return Ok(Next::Waits);
        }
        if !self.is_dismissed {
            self.is_dismissed = true;
            self.stream.close();
        }
        // The goodbye may have found no room; without it the answer looks cut off.
        self.flush()
    }

    /// Writes what TLS holds back; who waits has to take more of it first.
    fn flush(&mut self) -> io::Result<Next> {
        match self.stream.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Next::Waits),
            flushed => flushed.map(|()| Next::Leaves),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::admin::Asked;

    #[derive(Default)]
    struct Page {
        stops: AtomicBool,
    }

    impl Site for Page {
        fn is_stopping(&self) -> bool {
            self.stops.load(Ordering::Relaxed)
        }

        fn page(&self, _asked: &Asked<'_>) -> Option<Answer> {
            Some(Answer::json("200 OK", "{}".to_owned()))
        }
    }

    #[test]
    fn a_client_that_sends_nothing_keeps_nobody_waiting() {
        while_served(&|address| {
            let idle = connected(address, 3);
            assert!(answered(address));
            // They were neither served nor given up for that.
            assert!(idle.iter().all(waits));
        });
    }

    #[test]
    fn who_comes_when_all_places_are_taken_gets_that_of_whoever_came_first() {
        while_served(&|address| {
            let idle = connected(address, PLACES + 2);
            assert!(answered(address));
            let (gone, left) = idle.split_at(3);
            assert!(gone.iter().all(|stream| !waits(stream)));
            assert!(left.iter().all(waits));
        });
    }

    #[test]
    fn a_crowd_is_let_in_by_turns_with_those_who_are_served() {
        let (page, access) = (Page::default(), AdminAccess::open(None, None).unwrap());
        let door = Door::open(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let crowd = connected(door.address().unwrap(), 2 * PLACES);
        let mut visitors = Visitors::new(door, &access, &page);
        let rests = [(); 3].map(|()| visitors.welcome());
        assert_eq!(rests, [Duration::ZERO, Duration::ZERO, POLL_INTERVAL]);
        let (gone, left) = crowd.split_at(PLACES);
        assert!(gone.iter().all(|stream| !waits(stream)));
        assert!(left.iter().all(waits));
    }

    #[test]
    fn who_takes_too_long_loses_the_place() {
        let (page, access) = (Page::default(), AdminAccess::open(None, None).unwrap());
        let door = Door::open(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let stream = TcpStream::connect(door.address().unwrap()).unwrap();
        let mut visitors = Visitors::new(door, &access, &page);
        visitors.welcome();
        let came = visitors.places[0].as_ref().unwrap().came;
        visitors.dismiss_late(came + PATIENCE);
        assert!(waits(&stream));
        visitors.dismiss_late(came + PATIENCE + Duration::from_millis(1));
        assert!(!waits(&stream));
    }

    /// With clients that may take as long as the machine does.
    fn while_served(body: &dyn Fn(SocketAddr)) {
        let (page, access) = (Page::default(), AdminAccess::open(None, None).unwrap());
        let door = Door::open(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = door.address().unwrap();
        std::thread::scope(|scope| {
            let mut visitors = Visitors {
                patience: Duration::from_secs(3600),
                ..Visitors::new(door, &access, &page)
            };
            scope.spawn(move || visitors.serve().unwrap());
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(address)));
            page.stops.store(true, Ordering::Relaxed);
            ended.unwrap();
        });
    }

    fn connected(address: SocketAddr, count: usize) -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(address).unwrap()).collect()
    }

    fn answered(address: SocketAddr) -> bool {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n{}")
    }

    /// Whether the connection is there, and nothing came by it.
    fn waits(mut stream: &TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 1]);
        stream.set_nonblocking(false).unwrap();
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}
