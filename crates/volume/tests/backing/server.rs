//! An NBD server of memory that dies, forgets, refuses and babbles as a test orders.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use entresol_sim::Random;
use entresol_volume::backing::memory::{Loss, MemoryMedium};
use entresol_volume::backing::{Backing, BackingRequest, ExtentKind};
use entresol_volume::{Durable, Error, ErrorKind, Hole};
use entresol_wire::nbd::{
    ALLOCATION_CONTEXT, Agreement, Availability, BlockSizes, Command, CommandFlags, ErrorCode,
    Export, ExportFlags, Offer, ReplyEncoder, ReplyTo, Request, STATE_HOLE, STATE_ZERO,
    ServerHandshake, ServerStep, TlsRule,
};
use parking_lot::Mutex;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::model::perform;
use crate::scratch::Scratch;

/// What the server is, and what happens to it.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) flags: ExportFlags,
    pub(crate) sizes: BlockSizes,
    pub(crate) seed: u64,
    /// It dies at one in so many batches of requests; 0: never.
    pub(crate) dies_one_in: u64,
    /// What it forgets when it dies.
    pub(crate) loss: fn(u64) -> Loss,
    /// It babbles instead of answering at one in so many batches; 0: never.
    pub(crate) babbles_one_in: u64,
    /// It makes a write with FUA durable as a flush does, after all writes of its batch: the error
    /// of one sync is told once.
    pub(crate) syncs_for_fua: bool,
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Plan {
        let flags = [
            ExportFlags::HAS_FLAGS,
            ExportFlags::FLUSH,
            ExportFlags::FUA,
            ExportFlags::TRIM,
            ExportFlags::WRITE_ZEROES,
        ];
        Plan {
            flags: flags.into_iter().fold(ExportFlags::default(), ExportFlags::with),
            sizes: BlockSizes::default(),
            seed,
            dies_one_in: 0,
            loss: |_| Loss::None,
            babbles_one_in: 0,
            syncs_for_fua: false,
            tls: None,
        }
    }
}

/// A running server. It ends with the value.
pub(crate) struct Server {
    scratch: Scratch,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    medium: Mutex<MemoryMedium>,
    plan: Mutex<Plan>,
    is_over: AtomicBool,
    /// It closes every connection at once.
    refuses: AtomicBool,
    connections: AtomicU32,
    /// Clients that took all their answers and said goodbye.
    goodbyes: AtomicU32,
    /// The connection that it serves.
    current: Mutex<Option<UnixStream>>,
}

impl Server {
    pub(crate) fn start(medium: &MemoryMedium, plan: Plan) -> Server {
        let scratch = Scratch::new("server");
        let listener = UnixListener::bind(scratch.path().join("socket")).unwrap();
        let shared = Arc::new(Shared {
            medium: Mutex::new(medium.clone()),
            plan: Mutex::new(plan),
            is_over: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            connections: AtomicU32::new(0),
            goodbyes: AtomicU32::new(0),
            current: Mutex::new(None),
        });
        let ours = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || serve(&listener, &ours)));
        Server { scratch, shared, thread }
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///volume?socket={}", self.scratch.path().join("socket").display())
    }

    /// Becomes another server at the same place, and lets go of whoever is connected.
    pub(crate) fn change(&self, medium: &MemoryMedium, plan: Plan) {
        *self.shared.medium.lock() = medium.clone();
        *self.shared.plan.lock() = plan;
        self.cut();
    }

    /// Closes every connection from now on, or no longer.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
        self.cut();
    }

    pub(crate) fn connections(&self) -> u32 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn goodbyes(&self) -> u32 {
        self.shared.goodbyes.load(Ordering::SeqCst)
    }

    fn cut(&self) {
        if let Some(stream) = &*self.shared.current.lock() {
            let _gone = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.cut();
        let _either_way = UnixStream::connect(self.scratch.path().join("socket"));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

fn serve(listener: &UnixListener, shared: &Shared) {
    loop {
        let (stream, _) = listener.accept().unwrap();
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        if shared.refuses.load(Ordering::SeqCst) {
            continue;
        }
        *shared.current.lock() = Some(stream.try_clone().unwrap());
        let (medium, mut plan) = (shared.medium.lock().clone(), shared.plan.lock().clone());
        plan.seed = plan.seed.wrapping_mul(1000).wrapping_add(u64::from(number));
        // However it ended: the next one begins anew.
        if let Ok(Ending::Goodbye) = Connection::serve(stream, &medium, &plan) {
            shared.goodbyes.fetch_add(1, Ordering::SeqCst);
        }
        *shared.current.lock() = None;
    }
}

/// How a connection ended, if not by an error.
enum Ending {
    Goodbye,
    AsPlanned,
}

trait Bytestream: Read + Write {}

impl<T: Read + Write> Bytestream for T {}

struct Connection<'a> {
    stream: Box<dyn Bytestream>,
    input: Vec<u8>,
    medium: &'a MemoryMedium,
    plan: &'a Plan,
    random: Random,
    /// The client said goodbye.
    is_over: bool,
}

impl Connection<'_> {
    fn serve(stream: UnixStream, medium: &MemoryMedium, plan: &Plan) -> io::Result<Ending> {
        let random = Random::new(plan.seed);
        let stream = Box::new(stream);
        let (input, is_over) = (Vec::new(), false);
        let mut connection = Connection { stream, input, medium, plan, random, is_over };
        let agreement = connection.shake_hands()?;
        connection.answer(&agreement)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 65536];
        match self.stream.read(&mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }

    fn shake_hands(&mut self) -> io::Result<Agreement> {
        let exports = [Export {
            name: "volume".to_owned(),
            description: String::new(),
            bytes: self.medium.contents().len() as u64,
            flags: self.plan.flags,
            sizes: self.plan.sizes,
        }];
        let tls = if self.plan.tls.is_some() { TlsRule::Required } else { TlsRule::Off };
        let contexts = [ALLOCATION_CONTEXT];
        let mut output = Vec::new();
        let mut handshake = ServerHandshake::begin(&mut output);
        loop {
            let availability = Availability::Serving;
            let offer = Offer { exports: &exports, contexts: &contexts, tls, availability };
            let step = handshake.step(&self.input, offer, &mut output);
            self.stream.write_all(&output)?;
            output.clear();
            match step.map_err(io::Error::other)? {
                ServerStep::Incomplete { .. } => self.read()?,
                ServerStep::Continue { consumed } => drop(self.input.drain(..consumed)),
                ServerStep::StartTls { consumed } => {
                    self.input.drain(..consumed);
                    let config = Arc::clone(self.plan.tls.as_ref().unwrap());
                    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
                    let plain = std::mem::replace(&mut self.stream, Box::new(io::empty()));
                    self.stream = Box::new(StreamOwned::new(connection, plain));
                    handshake.secured();
                }
                ServerStep::Ready { consumed, agreement } => {
                    self.input.drain(..consumed);
                    return Ok(agreement);
                }
                ServerStep::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Answers batches of requests, those of a batch in any order, until it dies.
    fn answer(&mut self, agreement: &Agreement) -> io::Result<Ending> {
        let mut backing = self.medium.open().map_err(io::Error::other)?;
        loop {
            let mut batch = self.requests(agreement)?;
            while batch.is_empty() && !self.is_over {
                self.read()?;
                batch = self.requests(agreement)?;
            }
            for last in (1..batch.len()).rev() {
                batch.swap(last, self.random.below(last as u64 + 1) as usize);
            }
            let dies = self.plan.dies_one_in > 0 && self.random.one_in(self.plan.dies_one_in);
            let survives =
                if dies { self.random.below(batch.len() as u64 + 1) as usize } else { 0 };
            let mut output = Vec::new();
            if self.plan.syncs_for_fua {
                batch.iter_mut().for_each(|one| write_ahead_of_sync(&mut backing, one));
            }
            for (at, (request, payload)) in batch.into_iter().enumerate() {
                if dies && at >= survives {
                    break;
                }
                answer(&mut backing, agreement, (request, payload), &mut output);
            }
            if self.plan.babbles_one_in > 0 && self.random.one_in(self.plan.babbles_one_in) {
                self.random.fill(&mut output);
                self.stream.write_all(&output)?;
                return Ok(Ending::AsPlanned);
            }
            if dies {
                let sent = self.random.below(output.len() as u64 + 1) as usize;
                self.stream.write_all(&output[..sent])?;
                self.stream.flush()?;
                drop(backing);
                self.medium.crash((self.plan.loss)(self.random.next_u64()));
                return Ok(Ending::AsPlanned);
            }
            self.stream.write_all(&output)?;
            self.stream.flush()?;
            if self.is_over {
                return Ok(Ending::Goodbye);
            }
        }
    }

    /// The requests that came in whole.
    fn requests(&mut self, agreement: &Agreement) -> io::Result<Vec<(Request, Bytes)>> {
        let mut requests = Vec::new();
        loop {
            let request = Request::decode(&self.input, agreement.style);
            let Some(request) = request.map_err(io::Error::other)? else { return Ok(requests) };
            let head = Request::head_bytes(agreement.style);
            let end = head + request.payload_bytes(agreement.style) as usize;
            if self.input.len() < end {
                return Ok(requests);
            }
            let payload = Bytes::copy_from_slice(&self.input[head..end]);
            self.input.drain(..end);
            if Command::from_number(request.command) == Some(Command::Disconnect) {
                self.is_over = true;
                return Ok(requests);
            }
            requests.push((request, payload));
        }
    }
}

/// Has a write with FUA written, and leaves a flush of it.
fn write_ahead_of_sync(backing: &mut dyn Backing, (request, payload): &mut (Request, Bytes)) {
    if request.flags.contains(CommandFlags::FUA) {
        let (offset, bytes) = (request.offset, std::mem::take(payload));
        let durable = Durable::AtFlush;
        perform(backing, BackingRequest::Write { offset, bytes, durable }).unwrap();
        *request = Request::new(Command::Flush, request.cookie, 0, 0);
    }
}

fn answer(
    backing: &mut dyn Backing,
    agreement: &Agreement,
    (request, payload): (Request, Bytes),
    output: &mut Vec<u8>,
) {
    let to = ReplyTo { cookie: request.cookie, offset: request.offset };
    let encoder = ReplyEncoder::new(agreement.style);
    let Request { offset, length, flags, .. } = request;
    let limit = u64::from(agreement.sizes.payload_max);
    let unit = u64::from(agreement.sizes.minimum);
    let command = Command::from_number(request.command).unwrap();
    let carries = matches!(command, Command::Read | Command::Write);
    if (carries && length > limit) || !offset.is_multiple_of(unit) || !length.is_multiple_of(unit) {
        return encoder.error(to, ErrorCode::Invalid, "not as agreed on", output);
    }
    let durable =
        if flags.contains(CommandFlags::FUA) { Durable::AtOnce } else { Durable::AtFlush };
    let hole = if flags.contains(CommandFlags::NO_HOLE) { Hole::Forbidden } else { Hole::Allowed };
    let request = match command {
        Command::Read => BackingRequest::Read { offset, length: length as u32 },
        Command::Write => BackingRequest::Write { offset, bytes: payload, durable },
        Command::Flush => BackingRequest::Flush,
        Command::Trim => BackingRequest::Trim { offset, length },
        Command::WriteZeroes => BackingRequest::Zero { offset, length, hole },
        Command::BlockStatus => {
            let extents = backing.allocation((offset, length), 3).unwrap();
            let flags = |kind| match kind {
                ExtentKind::Data => 0,
                ExtentKind::Zero => STATE_ZERO,
                ExtentKind::Hole => STATE_HOLE | STATE_ZERO,
            };
            // A few at a time: the client asks again.
            let runs = extents.iter().take(2).map(|extent| (extent.length, flags(extent.kind)));
            let runs: Vec<(u64, u32)> = runs.collect();
            encoder.status(to, agreement.contexts[0].0, &runs, output);
            return encoder.done(to, output);
        }
        Command::Disconnect | Command::Cache => panic!("nobody asks for {command:?}"),
    };
    match perform(backing, request) {
        Ok(bytes) if bytes.is_empty() => encoder.done(to, output),
        Ok(bytes) => {
            encoder.data(to, bytes.len() as u32, output);
            output.extend_from_slice(&bytes);
        }
        Err(error) => encoder.error(to, code_of(&error), &error.to_string(), output),
    }
}

fn code_of(error: &Error) -> ErrorCode {
    match error.kind() {
        ErrorKind::NoSpace => ErrorCode::NoSpace,
        ErrorKind::InvalidInput => ErrorCode::Invalid,
        ErrorKind::ReadOnly => ErrorCode::NotPermitted,
        _ => ErrorCode::Io,
    }
}
