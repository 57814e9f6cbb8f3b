//! A device that does not answer.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use entresol_device::{
    Completion, Counters, Device, Geometry, MemoryDevice, PendingIo, Queue, QueueOptions, Result,
    WriteRequest,
};
use entresol_tier::{Admission, Durability, StoreOptions, Tiered, TieredOptions, Timestamp};

use support::TestServer;

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
