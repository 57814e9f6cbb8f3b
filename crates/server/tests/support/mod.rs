//! What the tests of the server share: a server on a store in memory, clients that see bytes.

#![expect(dead_code, reason = "each test file uses its own part of this")]

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use entresol_device::MemoryDevice;
use entresol_server::{Config, RunningServer, Server};
use entresol_tier::{Admission, Durability, StoreOptions, Tiered, TieredOptions, Timestamp};

/// A directory that goes when it is dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// A new directory.
    pub(crate) fn new() -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("entresol-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store in memory, with as little cache as `cache_bytes` says.
pub(crate) fn store(cache_bytes: Option<u64>) -> Arc<Tiered> {
    let device = MemoryDevice::new(256 << 20).unwrap();
    let store = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
    let options =
        TieredOptions { store, memory_bytes: 64 << 20, cache_bytes, admission: Admission::Always };
    Tiered::open(Arc::new(device), options, Timestamp(1)).unwrap()
}

/// A running server with its directory.
pub(crate) struct TestServer {
    pub(crate) server: RunningServer,
    pub(crate) directory: TempDir,
    pub(crate) socket: PathBuf,
}

impl TestServer {
    /// A server with further settings.
    pub(crate) fn start(settings: &[(&str, &str)]) -> TestServer {
        TestServer::start_on(store(None), settings)
    }

    /// A server on `tier` with further settings.
    pub(crate) fn start_on(tier: Arc<Tiered>, settings: &[(&str, &str)]) -> TestServer {
        let directory = TempDir::new();
        let socket = directory.path("socket");
        let mut config = Config::default();
        config.set("port", "").unwrap();
        config.set("threads", "2").unwrap();
        config.set("memory", "128MiB").unwrap();
        config.set("unix", socket.to_str().unwrap()).unwrap();
        for (key, value) in settings {
            config.set(key, value).unwrap();
        }
        let server = Server::start(config, tier).unwrap();
        TestServer { server, directory, socket }
    }

    /// A new client.
    pub(crate) fn client(&self) -> Client<UnixStream> {
        Client::unix(&self.socket)
    }
}

/// A client that sees the bytes of replies.
pub(crate) struct Client<S> {
    stream: S,
    buffer: Vec<u8>,
    at: usize,
}

impl Client<UnixStream> {
    /// A client of the Unix socket at `path`.
    pub(crate) fn unix(path: &Path) -> Client<UnixStream> {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client::new(stream)
    }
}

impl<S: Read + Write> Client<S> {
    /// A client over `stream`.
    pub(crate) fn new(stream: S) -> Client<S> {
        Client { stream, buffer: Vec::new(), at: 0 }
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends one command.
    pub(crate) fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        self.send_raw(&encode(arguments));
    }

    /// Sends one command given as words and reads its reply as text.
    pub(crate) fn call(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.send(&words);
        String::from_utf8_lossy(&self.reply()).into_owned()
    }

    /// Sends one command given as words, if the server is still there; the reply, or what the
    /// server said before.
    pub(crate) fn reply_if_sent(&mut self, command: &str) -> Vec<u8> {
        let words: Vec<&str> = command.split(' ').collect();
        // Whether it was is told by what comes back.
        let _gone = self.stream.write_all(&encode(&words));
        self.reply()
    }

    /// The bytes of the next reply; empty if the connection was closed.
    pub(crate) fn reply(&mut self) -> Vec<u8> {
        let start = self.at;
        if self.skip_reply().is_none() {
            return Vec::new();
        }
        let reply = self.buffer[start..self.at].to_vec();
        self.buffer.drain(..self.at);
        self.at = 0;
        reply
    }

    fn skip_reply(&mut self) -> Option<()> {
        let line = self.line()?;
        let number = || -> i64 {
            std::str::from_utf8(&line[1..]).unwrap().parse().expect("a length or a count")
        };
        match line[0] {
            b'$' | b'=' => {
                if let Ok(length) = usize::try_from(number()) {
                    self.need(length + 2)?;
                    self.at += length + 2;
                }
            }
            b'*' | b'~' | b'>' => (0..number()).try_for_each(|_| self.skip_reply())?,
            b'%' => (0..2 * number()).try_for_each(|_| self.skip_reply())?,
            _ => {}
        }
        Some(())
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.buffer[self.at..];
            if let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
                let line = rest[..end].to_vec();
                self.at += end + 2;
                return Some(line);
            }
            self.fill()?;
        }
    }

    fn need(&mut self, length: usize) -> Option<()> {
        while self.buffer.len() < self.at + length {
            self.fill()?;
        }
        Some(())
    }

    fn fill(&mut self) -> Option<()> {
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => None,
            Ok(length) => {
                self.buffer.extend_from_slice(&piece[..length]);
                Some(())
            }
            // A thread that submitted to an io_uring is interrupted by what completes there.
            Err(error) if error.kind() == ErrorKind::Interrupted => Some(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no reply: {error}"),
        }
    }
}

/// A command in the form clients send.
pub(crate) fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}
