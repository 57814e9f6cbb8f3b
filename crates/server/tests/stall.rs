//! A device that does not answer.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use entresol_device::{
    Completion, Counters, Device, Doorbell, FileDevice, FileOptions, Geometry, MemoryDevice,
    PendingIo, Queue, QueueOptions, Result, WriteRequest,
};
use entresol_tier::{Admission, Durability, StoreOptions, Tiered, TieredOptions, Timestamp};

use support::{TempDir, TestServer, encode};

/// A device whose queues stop at a gate.
struct GatedDevice {
    memory: MemoryDevice,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        while state.is_closed {
            state = self.changed.wait(state).unwrap();
        }
        state.waiting -= 1;
    }

    fn close(&self) {
        self.state.lock().unwrap().is_closed = true;
    }

    fn open(&self) {
        self.state.lock().unwrap().is_closed = false;
        self.changed.notify_all();
    }

    fn wait_until_somebody_waits(&self) {
        let state = self.state.lock().unwrap();
        let waits = self.changed.wait_while(state, |state| state.waiting == 0);
        drop(waits.unwrap());
    }
}

/// Lets the server end although the test failed.
struct OpenAtEnd<'a>(&'a Gate);

impl Drop for OpenAtEnd<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Device for GatedDevice {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }
    fn name(&self) -> String {
        "gated".to_owned()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.write_at(offset, bytes)
    }
    fn sync(&self) -> Result<()> {
        self.memory.sync()
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.memory.discard(offset, length)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let queue = self.memory.queue(options)?;
        Ok(Box::new(GatedQueue { gathered: false, queue, gate: Arc::clone(&self.gate) }))
    }
    fn oldest_pending(&self, _now: Duration) -> Option<PendingIo> {
        let is_closed = self.gate.state.lock().unwrap().is_closed;
        let age = Duration::from_secs(if is_closed { 45 } else { 29 });
        Some(PendingIo { device: self.name(), age })
    }
    fn counters(&self) -> &Counters {
        self.memory.counters()
    }
}

struct GatedQueue {
    gathered: bool,
    queue: Box<dyn Queue>,
    gate: Arc<Gate>,
}

impl Queue for GatedQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.gathered = true;
        self.queue.read(token, offset, length)
    }
    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.gathered = true;
        self.queue.write(request)
    }
    fn sync(&mut self, token: u64) -> Result<()> {
        self.gathered = true;
        self.queue.sync(token)
    }
    fn submit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.gathered) {
            self.gate.pass();
        }
        self.queue.submit()
    }
    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        self.queue.reap(wait_for, completions)
    }
    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
    fn depth(&self) -> usize {
        self.queue.depth()
    }
    fn poll_fd(&self) -> Option<RawFd> {
        self.queue.poll_fd()
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A device that never answered was waited for in silence, and by whoever asked for health, too:
/// the shard whose write it was had its lock.
#[test]
fn health_and_metrics_tell_of_a_device_that_does_not_answer_without_waiting_for_it() {
    let gate = Arc::new(Gate::default());
    let memory = MemoryDevice::new(64 << 20).unwrap();
    let device = Arc::new(GatedDevice { memory, gate: Arc::clone(&gate) });
    let store = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
    let options = TieredOptions {
        store,
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tier = Tiered::open(device, options, Timestamp(1)).unwrap();
    let server = TestServer::start_on(tier, &[("admin-port", "0")]);
    let address = server.server.ports().admin.unwrap();
    assert!(get(address, "/health").ends_with("{\"status\":\"ok\"}\n"));
    let mut client = server.client();
    assert_eq!(client.call("SET k v"), "+OK\r\n");
    let metrics = get(address, "/metrics");
    assert!(metrics.contains("\nentresol_oldest_pending_io_seconds 29\n"), "{metrics}");
    let _in_any_case = OpenAtEnd(&gate);
    gate.close();
    client.send(&["SAVE"]);
    gate.wait_until_somebody_waits();
    for _ in 0..2 {
        let health = get(address, "/health");
        assert!(health.starts_with("HTTP/1.1 503"), "{health}");
        let expected = "{\"status\":\"stalled\",\"oldest_pending_io_seconds\":45,";
        assert!(health.contains(expected), "{health}");
        let metrics = get(address, "/metrics");
        assert!(metrics.contains("\nentresol_oldest_pending_io_seconds 45\n"), "{metrics}");
        assert!(metrics.contains("entresol_puts_total 1\n"), "those of before: {metrics}");
        assert!(get(address, "/stats").contains("\"write_amplification\":"));
    }
    // `INFO` waited for the shard's lock, and with it all clients of its worker.
    let info = server.client().call("INFO");
    assert!(info.contains("\r\nputs:1\r\n") && info.contains("\r\ndb0:keys=1,"), "{info}");
    assert!(server.client().call("MEMORY STATS").contains("index.bytes"));
    gate.open();
    assert_eq!(client.reply(), b"+OK\r\n");
    assert!(get(address, "/health").ends_with("{\"status\":\"ok\"}\n"));
}

/// A file whose writes are not answered while a gate is closed, as under a frozen file system.
struct FrozenDevice {
    file: FileDevice,
    gate: Arc<Gate>,
}

impl Device for FrozenDevice {
    fn geometry(&self) -> Geometry {
        self.file.geometry()
    }
    fn name(&self) -> String {
        "frozen".to_owned()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(offset, bytes)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.file.discard(offset, length)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let queue = self.file.queue(options)?;
        Ok(Box::new(FrozenQueue { queue, writes: false, gate: Arc::clone(&self.gate) }))
    }
    fn counters(&self) -> &Counters {
        self.file.counters()
    }
}

/// The queue of one: once it has written, its answers are held back while the gate is closed.
struct FrozenQueue {
    queue: Box<dyn Queue>,
    writes: bool,
    gate: Arc<Gate>,
}

impl FrozenQueue {
    fn is_frozen(&self) -> bool {
        self.writes && self.gate.state.lock().unwrap().is_closed
    }
}

impl Queue for FrozenQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.queue.read(token, offset, length)
    }
    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.writes = true;
        self.queue.write(request)
    }
    fn sync(&mut self, token: u64) -> Result<()> {
        self.queue.sync(token)
    }
    fn submit(&mut self) -> Result<()> {
        self.queue.submit()
    }
    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        if self.writes && wait_for > 0 {
            self.gate.pass();
        }
        if self.is_frozen() { self.queue.submit() } else { self.queue.reap(wait_for, completions) }
    }
    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> Result<bool> {
        if self.is_frozen() { Ok(true) } else { self.queue.take_ready(completions) }
    }
    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        self.queue.doorbell()
    }
    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
    fn depth(&self) -> usize {
        self.queue.depth()
    }
    fn poll_fd(&self) -> Option<RawFd> {
        self.queue.poll_fd()
    }
}

/// Under a frozen file system the thread that found no write buffer waited until the thaw, and all
/// of its clients with it.
#[test]
fn writes_that_the_device_does_not_take_hold_nobody_else_up() {
    const WRITES: usize = 400;
    let directory = TempDir::new();
    let gate = Arc::new(Gate::default());
    let options = FileOptions { capacity_bytes: Some(128 << 20), ..FileOptions::default() };
    let file = FileDevice::open(directory.path("device"), &options).unwrap();
    let device = Arc::new(FrozenDevice { file, gate: Arc::clone(&gate) });
    let store = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
    let options = TieredOptions {
        store,
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tier = Tiered::open(device, options, Timestamp(1)).unwrap();
    let server = TestServer::start_on(tier, &[("threads", "1"), ("output-limit", "1MiB")]);
    let mut other = server.client();
    assert_eq!(other.call("SET cached value"), "+OK\r\n");
    let _in_any_case = OpenAtEnd(&gate);
    gate.close();
    let mut writers: Vec<_> = (0..4).map(|_| server.client()).collect();
    let value = vec![b'v'; 50_000];
    let writing: Vec<_> = writers
        .drain(..)
        .enumerate()
        .map(|(number, mut writer)| {
            let value = value.clone();
            std::thread::spawn(move || {
                for write in 0..WRITES {
                    let key = format!("{number}:{write}");
                    writer.send_raw(&encode(&[b"SET".as_slice(), key.as_bytes(), &value]));
                    assert_eq!(writer.reply(), b"+OK\r\n");
                }
                // Whoever would be alone waits, and keeps nobody waiting.
                assert_eq!(writer.call("MSET a 1 b 2"), "+OK\r\n");
            })
        })
        .collect();
    let puts = |other: &mut support::Client<std::os::unix::net::UnixStream>| {
        let info = other.call("INFO");
        let line = info.lines().find_map(|line| line.strip_prefix("puts:")).map(str::to_owned);
        line.and_then(|count| count.trim().parse::<usize>().ok()).unwrap_or_default()
    };
    // All buffers are full once as many looks as these find nothing more written.
    let (mut last, mut same) = (0, 0);
    while same < 200 {
        let now = puts(&mut other);
        same = if now == last && now > 100 { same + 1 } else { 0 };
        last = now;
        assert_eq!(other.call("PING"), "+PONG\r\n");
        assert_eq!(other.call("GET cached"), "$5\r\nvalue\r\n");
    }
    assert!(last < 4 * WRITES, "{last} writes found room: the device was not frozen");
    gate.open();
    writing.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(other.call("DBSIZE").starts_with(&format!(":{}", 4 * WRITES + 3)));
}
