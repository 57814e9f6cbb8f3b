//! A server of volumes in memory, and a client that sends what it is told to, legal or not.

#![expect(dead_code, reason = "each test file uses its own part of this")]

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use entresol_nbd::{
    Access, Listen, NbdOptions, NbdPorts, NbdServer, Stopper, Tls, TlsDemand, TlsFiles,
};
use entresol_volume::Moment;
use entresol_wire::nbd::{
    Agreement, Chunk, ClientHandshake, ClientOptions, ClientStep, Error, ErrorCode, ErrorKind,
    ReadAssembly, ReplyHeader, ReplyStyle, Request, StatusExtent,
};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::memory_volumes::{Gate, MemoryVolumes, Volume};
use super::scratch::Scratch;

/// A server of volumes in memory.
pub(crate) struct Served {
    _directory: Scratch,
    pub(crate) ports: NbdPorts,
    pub(crate) gate: Arc<Gate>,
    /// How often it said that it lives.
    pub(crate) alive: Arc<AtomicU64>,
    /// Its certificates.
    pub(crate) tls: Option<Arc<Tls>>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves `volumes` on a Unix socket.
    pub(crate) fn start(volumes: Vec<Volume>) -> Served {
        Served::start_with(volumes, None, TlsDemand::Required)
    }

    /// Serves `volumes` on a Unix socket, with TLS.
    pub(crate) fn start_with(
        volumes: Vec<Volume>,
        tls: Option<TlsFiles>,
        tls_demand: TlsDemand,
    ) -> Served {
        let directory = Scratch::new("nbd");
        let options = NbdOptions {
            listen: Listen::Sockets {
                port: None,
                bind: Vec::new(),
                unix: Some(directory.path().join("nbd")),
                unix_mode: 0o600,
            },
            tls,
            tls_demand,
            access: Access::Known,
            control: Some(directory.path().join("control")),
            admin_port: Some(0),
            admin_bind: "127.0.0.1".to_owned(),
            admin_token: None,
            admin_tls: None,
        };
        let server = NbdServer::open(&options).unwrap();
        let (ports, stopper, tls) = (server.ports().clone(), server.stopper(), server.tls());
        let gate = Arc::new(Gate::default());
        let held = Arc::clone(&gate);
        let alive = Arc::new(AtomicU64::new(0));
        let heard = Arc::clone(&alive);
        let thread = std::thread::spawn(move || {
            let mut volumes = MemoryVolumes::new(volumes, held, 7);
            // Each look at the clock is a moment later than the last.
            let ticks = Cell::new(0);
            let clock = || Moment(ticks.replace(ticks.get() + 1));
            let alive = || {
                heard.fetch_add(1, Ordering::SeqCst);
            };
            server.serve(&mut volumes, &clock, &alive).unwrap();
        });
        Served { _directory: directory, ports, gate, alive, tls, stopper, thread: Some(thread) }
    }

    /// A client that agreed on `style` and all contexts.
    pub(crate) fn client(&self, name: &str, style: ReplyStyle) -> NbdClient {
        let contexts = ["base:allocation", "x-entresol:residency"].map(str::to_owned).to_vec();
        let options = ClientOptions { style, contexts, ..ClientOptions::export(name) };
        NbdClient::connect(&self.socket(), options).unwrap()
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.ports.unix.clone().unwrap()
    }

    /// Asks for a stop.
    pub(crate) fn ask_to_stop(&self) {
        self.stopper.stop();
    }

    /// Waits for the end.
    pub(crate) fn join(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

/// A client that sends what it is told to.
pub(crate) struct NbdClient<S = UnixStream> {
    pub(crate) stream: S,
    pub(crate) agreement: Agreement,
    input: Vec<u8>,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Success, with the bytes of a read.
    Bytes(Vec<u8>),
    /// Success of a block status: contexts and their extents.
    Status(Vec<(u32, Vec<StatusExtent>)>),
    /// Failure.
    Failed(ErrorCode),
}

impl Answered {
    /// Success without anything.
    pub(crate) const DONE: Answered = Answered::Bytes(Vec::new());
}

/// Goes through a handshake over `stream`.
pub(crate) fn shake_hands(
    stream: &mut (impl Read + Write),
    handshake: &mut ClientHandshake,
    input: &mut Vec<u8>,
) -> Result<Option<Agreement>, Error> {
    let mut out = Vec::new();
    loop {
        let step = handshake.step(input, &mut out)?;
        stream.write_all(&out).unwrap();
        out.clear();
        match step {
            ClientStep::Incomplete { .. } => {
                let mut piece = [0; 512];
                let length = stream.read(&mut piece).unwrap();
                assert!(length > 0, "the server hung up");
                input.extend_from_slice(&piece[..length]);
            }
            ClientStep::Continue { consumed } => drop(input.drain(..consumed)),
            ClientStep::StartTls { consumed } => {
                input.drain(..consumed);
                return Ok(None);
            }
            ClientStep::Ready { consumed, agreement } => {
                input.drain(..consumed);
                return Ok(Some(agreement));
            }
            ClientStep::Listed { .. } => panic!("no list was asked for"),
        }
    }
}

impl NbdClient {
    /// Connects to the Unix socket at `path`.
    pub(crate) fn connect(path: &Path, options: ClientOptions) -> Result<NbdClient, Error> {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut input = Vec::new();
        let mut handshake = ClientHandshake::new(options);
        let agreement = shake_hands(&mut stream, &mut handshake, &mut input)?;
        Ok(NbdClient { stream, agreement: agreement.expect("no TLS"), input })
    }
}

/// A client over TLS.
pub(crate) type TlsClient = NbdClient<StreamOwned<ClientConnection, UnixStream>>;

impl TlsClient {
    /// Connects to the Unix socket at `path` and begins TLS as `config` says.
    pub(crate) fn connect_tls(
        path: &Path,
        options: ClientOptions,
        config: Arc<ClientConfig>,
    ) -> Result<TlsClient, Error> {
        let mut plain = UnixStream::connect(path).unwrap();
        plain.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut input = Vec::new();
        let mut handshake = ClientHandshake::new(options);
        if shake_hands(&mut plain, &mut handshake, &mut input)?.is_some() {
            panic!("expected TLS to begin");
        }
        assert!(input.is_empty());
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = StreamOwned::new(ClientConnection::new(config, name).unwrap(), plain);
        let mut out = Vec::new();
        handshake.secured(&mut out)?;
        let broken =
            |error: std::io::Error| Error::new(ErrorKind::Unsupported, "TLS", error.to_string());
        stream.write_all(&out).map_err(broken)?;
        // A server that dislikes a certificate says so at the first read.
        let mut first = [0; 1];
        stream.read_exact(&mut first).map_err(broken)?;
        input.extend_from_slice(&first);
        let agreement = shake_hands(&mut stream, &mut handshake, &mut input)?;
        Ok(NbdClient { stream, agreement: agreement.expect("TLS stands"), input })
    }
}

impl<S: Read + Write> NbdClient<S> {
    /// Sends a request and its payload.
    pub(crate) fn send(&mut self, request: &Request, payload: &[u8]) {
        let mut bytes = Vec::new();
        request.encode(self.agreement.style, &mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends a request and waits for its reply; nothing else may be in flight.
    pub(crate) fn call(&mut self, request: &Request, payload: &[u8]) -> Answered {
        self.send(request, payload);
        let (cookie, answered) = self.receive(&|_| *request).unwrap();
        assert_eq!(cookie, request.cookie);
        answered
    }

    /// The next whole reply and its cookie; `request_of` says what was asked. `None` at the end of
    /// the stream. Chunks of one reply are taken to come together, as this server sends them.
    pub(crate) fn receive(
        &mut self,
        request_of: &dyn Fn(u64) -> Request,
    ) -> Option<(u64, Answered)> {
        let style = self.agreement.style;
        let mut statuses = Vec::new();
        let mut assembly: Option<ReadAssembly> = None;
        loop {
            let found = ReplyHeader::decode(&self.input, style, 32 << 20).unwrap();
            let Some((header, taken)) = found else {
                if !self.fill() {
                    return None;
                }
                continue;
            };
            let request = request_of(header.cookie());
            let is_read = request.command == 0;
            match header {
                ReplyHeader::Simple { error: Some(code), cookie } => {
                    self.input.drain(..taken);
                    return Some((cookie, Answered::Failed(code)));
                }
                ReplyHeader::Simple { error: None, cookie } => {
                    let length = if is_read { request.length as usize } else { 0 };
                    let bytes = self.take(taken, length);
                    return Some((cookie, Answered::Bytes(bytes)));
                }
                ReplyHeader::Chunk { cookie, offset, kind, is_last, length } => {
                    assert!(offset.is_none_or(|offset| offset == request.offset));
                    let payload = self.take(taken, length as usize);
                    let chunk = Chunk::decode(kind, &payload).unwrap();
                    if let Chunk::Error { code, message, .. } = chunk {
                        assert!(is_last && !message.is_empty(), "an error without a sentence");
                        return Some((cookie, Answered::Failed(code)));
                    }
                    if let Chunk::Status { context, extents } = chunk {
                        statuses.push((context, extents.collect()));
                    } else {
                        let length = if is_read { request.length as u32 } else { 0 };
                        assembly
                            .get_or_insert_with(|| ReadAssembly::new(request.offset, length))
                            .put(chunk)
                            .unwrap();
                    }
                    if is_last && !statuses.is_empty() {
                        return Some((cookie, Answered::Status(statuses)));
                    }
                    if is_last {
                        let bytes = assembly.unwrap().finish().unwrap().unwrap();
                        return Some((cookie, Answered::Bytes(bytes)));
                    }
                }
            }
        }
    }

    /// The `length` bytes after a head of `taken`.
    fn take(&mut self, taken: usize, length: usize) -> Vec<u8> {
        while self.input.len() < taken + length {
            assert!(self.fill(), "the server hung up within a reply");
        }
        let bytes = self.input[taken..taken + length].to_vec();
        self.input.drain(..taken + length);
        bytes
    }

    fn fill(&mut self) -> bool {
        let mut piece = vec![0; 128 << 10];
        let length = self.stream.read(&mut piece).unwrap();
        self.input.extend_from_slice(&piece[..length]);
        length > 0
    }
}
