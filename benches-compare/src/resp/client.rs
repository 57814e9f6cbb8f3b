//! A client that is to be no bottleneck: where a server is `busy` all the time, it was none.
//!
//! One thread for all connections, each with one pipeline of gets in flight. All values are of one
//! length, so that replies are found by their places and compared as they are; nothing is parsed.
//! A client that parses, as redis-benchmark does, is busy before a server is, and then measures
//! itself.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use entresol_workload::Random;

use crate::contestant::{Fault, Result};

/// What lies in the servers.
#[derive(Debug, Clone, Copy)]
pub struct Data {
    /// Keys, each with a value.
    pub keys: u64,
    /// Bytes of a value, a key's length at least.
    pub value_bytes: usize,
}

/// How gets are sent.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Connections.
    pub connections: usize,
    /// Commands in flight on each.
    pub pipeline: usize,
    /// For how long.
    pub duration: Duration,
    /// Of the choice of keys.
    pub seed: u64,
}

/// What a client did.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Gets that were answered.
    pub gets: u64,
    /// In so many seconds.
    pub seconds: f64,
}

/// One connection and the pipeline on its way.
struct Connection {
    stream: TcpStream,
    keys: Vec<u64>,
    replies: Vec<u8>,
    filled: usize,
}

/// Sets at a time while servers are filled.
const FILL_BATCH: u64 = 256;

impl Data {
    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.keys * self.value_bytes as u64
    }

    /// Puts everything into the server at `port`.
    pub fn fill(&self, port: u16) -> Result<()> {
        let mut stream = connect(port)?;
        let mut answers = Vec::new();
        let mut from = 0;
        while from < self.keys {
            let to = (from + FILL_BATCH).min(self.keys);
            let mut commands = Vec::new();
            for key in from..to {
                commands.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                bulk(key_of(key).as_bytes(), &mut commands);
                bulk(&self.value(key), &mut commands);
            }
            stream.write_all(&commands)?;
            answers.resize((to - from) as usize * b"+OK\r\n".len(), 0);
            stream.read_exact(&mut answers)?;
            if answers.chunks(5).any(|answer| answer != b"+OK\r\n") {
                let text = String::from_utf8_lossy(&answers).into_owned();
                return Err(Fault::from(format!("a SET was answered by '{}'", text.trim())));
            }
            from = to;
        }
        Ok(())
    }

    /// The value of `key`: its name, and bytes that do not repeat soon.
    fn value(&self, key: u64) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        Random::new(key + 1).fill(&mut value);
        let name = key_of(key);
        let length = name.len().min(value.len());
        value[..length].copy_from_slice(&name.as_bytes()[..length]);
        value
    }

    /// How the reply to a get begins, its length after that, and in all.
    fn reply_head(&self) -> (Vec<u8>, usize) {
        let head = format!("${}\r\n", self.value_bytes).into_bytes();
        let length = head.len() + self.value_bytes + 2;
        (head, length)
    }
}

/// Gets keys at random from the server at `port`.
pub fn get(port: u16, data: Data, manner: Manner) -> Result<Done> {
    let (head, length) = data.reply_head();
    let mut random = Random::new(manner.seed);
    let mut commands = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..manner.connections {
        let stream = connect(port)?;
        stream.set_nonblocking(true)?;
        let replies = vec![0; manner.pipeline * length];
        let keys = vec![0; manner.pipeline];
        connections.push(Connection { stream, keys, replies, filled: 0 });
    }
    let mut polled: Vec<libc::pollfd> = connections
        .iter()
        .map(|one| libc::pollfd { fd: one.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let began = Instant::now();
    for connection in &mut connections {
        connection.send(data, &mut random, &mut commands)?;
    }
    let mut gets = 0;
    while began.elapsed() < manner.duration {
        // SAFETY: the array is as long as said and outlives the call.
        let ready =
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 10_000) };
        if ready == 0 {
            return Err(Fault::from("no reply came within ten seconds"));
        }
        for (connection, event) in connections.iter_mut().zip(&polled) {
            if event.revents != 0 && connection.receive(&head, length)? {
                gets += connection.keys.len() as u64;
                connection.send(data, &mut random, &mut commands)?;
            }
        }
    }
    Ok(Done { gets, seconds: began.elapsed().as_secs_f64() })
}

impl Connection {
    /// Sends the next pipeline; its commands are far smaller than a socket's buffer.
    fn send(&mut self, data: Data, random: &mut Random, commands: &mut Vec<u8>) -> Result<()> {
        commands.clear();
        for key in &mut self.keys {
            *key = random.below(data.keys);
            commands.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
            bulk(key_of(*key).as_bytes(), commands);
        }
        self.filled = 0;
        self.stream.write_all(commands)?;
        Ok(())
    }

    /// Takes what has come; whether the whole pipeline is answered, each by its own value.
    fn receive(&mut self, head: &[u8], length: usize) -> Result<bool> {
        match self.stream.read(&mut self.replies[self.filled..]) {
            Ok(0) => return Err(Fault::from("the server closed the connection")),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if self.filled < self.replies.len() {
            return Ok(false);
        }
        for (reply, &key) in self.replies.chunks(length).zip(&self.keys) {
            let name = key_of(key);
            let value = reply.strip_prefix(head).unwrap_or_default();
            if !value.starts_with(name.as_bytes()) || !value.ends_with(b"\r\n") {
                let text = String::from_utf8_lossy(&reply[..reply.len().min(60)]).into_owned();
                return Err(Fault::from(format!("GET {name} was answered by '{text}'")));
            }
        }
        Ok(true)
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The name of the key of that number, 16 bytes.
fn key_of(number: u64) -> String {
    format!("key:{number:012}")
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
