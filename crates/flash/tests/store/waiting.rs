//! Nobody waits for the device with a shard locked where the device says when it is done, and
//! nobody hands it writes with a shard locked where it has a doorbell.

use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_device::{Completion, Counters, Doorbell, Queue, QueueOptions, WriteRequest};
use entresol_flash::Reclaim;

use super::*;

/// A device in memory whose queues answer at one look of so many, and say all the time that they
/// may.
pub(super) struct Telling {
    memory: MemoryDevice,
    looks: u64,
    _writer: std::io::PipeWriter,
    readable: Arc<std::io::PipeReader>,
    /// Looks at the queue of a shard's log that were to wait.
    waits: Arc<AtomicU64>,
    /// Looks at queues of sessions.
    looks_of_sessions: Arc<AtomicU64>,
    handed: Arc<Handed>,
}

/// How writes of the logs came to the device.
#[derive(Default)]
struct Handed {
    /// By whoever had the queue, and so the shard.
    submits: AtomicU64,
    rings: AtomicU64,
}

impl Doorbell for Handed {
    fn ring(&self) -> entresol_device::Result<()> {
        self.rings.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

struct TellingQueue {
    queue: Box<dyn Queue>,
    readable: Arc<std::io::PipeReader>,
    looks: u64,
    looks_of_answer: u64,
    waits: Option<Arc<AtomicU64>>,
    looks_of_sessions: Arc<AtomicU64>,
    handed: Arc<Handed>,
}

impl Telling {
    pub(super) fn new(bytes: u64, looks: u64) -> Arc<Telling> {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[1]).unwrap();
        Arc::new(Telling {
            memory: MemoryDevice::new(bytes).unwrap(),
            looks,
            _writer: writer,
            readable: Arc::new(reader),
            waits: Arc::default(),
            looks_of_sessions: Arc::default(),
            handed: Arc::default(),
        })
    }
}

impl Device for Telling {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    fn name(&self) -> String {
        self.memory.name()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> entresol_device::Result<()> {
        self.memory.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> entresol_device::Result<()> {
        self.memory.write_at(offset, bytes)
    }

    fn sync(&self) -> entresol_device::Result<()> {
        self.memory.sync()
    }

    fn discard(&self, offset: u64, length: u64) -> entresol_device::Result<()> {
        self.memory.discard(offset, length)
    }

    fn queue(&self, options: QueueOptions) -> entresol_device::Result<Box<dyn Queue>> {
        // Sessions have a depth of their own.
        let of_log = options.depth != SessionOptions::default().depth;
        Ok(Box::new(TellingQueue {
            queue: self.memory.queue(options)?,
            readable: Arc::clone(&self.readable),
            looks: 0,
            looks_of_answer: self.looks,
            waits: of_log.then(|| Arc::clone(&self.waits)),
            looks_of_sessions: Arc::clone(&self.looks_of_sessions),
            handed: Arc::clone(&self.handed),
        }))
    }

    fn counters(&self) -> &Counters {
        self.memory.counters()
    }
}

impl Queue for TellingQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> entresol_device::Result<()> {
        self.queue.read(token, offset, length)
    }

    fn write(&mut self, request: WriteRequest<'_>) -> entresol_device::Result<()> {
        self.queue.write(request)
    }

    fn sync(&mut self, token: u64) -> entresol_device::Result<()> {
        self.queue.sync(token)
    }

    fn submit(&mut self) -> entresol_device::Result<()> {
        if self.waits.is_some() {
            self.handed.submits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> entresol_device::Result<bool> {
        self.reap(0, completions).map(|()| false)
    }

    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        self.waits.as_ref()?;
        let handed = Arc::clone(&self.handed);
        Some(handed)
    }

    fn reap(
        &mut self,
        wait_for: usize,
        completions: &mut Vec<Completion>,
    ) -> entresol_device::Result<()> {
        self.looks += 1;
        if self.waits.is_none() {
            self.looks_of_sessions.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(waits) = self.waits.as_ref().filter(|_| wait_for > 0) {
            waits.fetch_add(1, Ordering::Relaxed);
        } else if wait_for == 0 && !self.looks.is_multiple_of(self.looks_of_answer) {
            return Ok(());
        }
        self.queue.reap(wait_for, completions)
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    fn depth(&self) -> usize {
        self.queue.depth()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.readable.as_raw_fd())
    }
}

#[test]
fn a_write_that_waits_for_its_durability_or_for_room_has_no_shard_locked() {
    let telling = Telling::new(16 << 20, 2);
    let waits = || telling.waits.load(Ordering::Relaxed);
    let device: Arc<dyn Device> = telling.clone();
    for reclaim in [Reclaim::Compact, Reclaim::Evict] {
        let options = StoreOptions { reclaim, shards: 1, mode: OpenMode::Reformat, ..small() };
        let (store, mut session) = open(&device, options);
        let before = waits();
        for n in 0..40_000u64 {
            let name = (n % 9_000).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let durability = if n % 50 == 0 { Durability::Synced } else { Durability::Memory };
            let options = PutOptions { durability: Some(durability), ..PutOptions::default() };
            put(&mut session, &name, &value_of(n, 900), options).unwrap();
            if n % 1000 == 999 {
                store.sync().unwrap();
            }
        }
        assert!(store.statistics().segments_reclaimed > 100);
        assert_eq!(waits() - before, 0, "{reclaim:?}");
        drop((session, store));
    }
}

#[test]
fn puts_and_removes_hand_their_segments_to_the_device_with_no_shard_locked() {
    let telling = Telling::new(64 << 20, 2);
    let device: Arc<dyn Device> = telling.clone();
    let handed = |count: fn(&Handed) -> &AtomicU64| count(&telling.handed).load(Ordering::Relaxed);
    let (store, mut session) =
        open(&device, StoreOptions { shards: 1, mode: OpenMode::Reformat, ..small() });
    let segment_bytes = u64::from(store.options().segment_bytes);
    let written = || store.device().counters().written_bytes.load(Ordering::Relaxed);
    let (submits, rings, before) = (handed(|h| &h.submits), handed(|h| &h.rings), written());
    for n in 0..20_000u64 {
        put(&mut session, &n.to_be_bytes(), &value_of(n, 900), PutOptions::default()).unwrap();
        if n % 3 == 0 {
            assert!(remove(&mut session, &n.to_be_bytes()));
        }
    }
    let sealed = (written() - before) / segment_bytes;
    assert!(sealed > 100, "{sealed} segments");
    assert_eq!(handed(|h| &h.submits) - submits, 0, "with the shard locked");
    assert!(handed(|h| &h.rings) - rings >= sealed, "each by a doorbell");
    let synced = PutOptions { durability: Some(Durability::Synced), ..PutOptions::default() };
    let submits = handed(|h| &h.submits);
    put(&mut session, b"synced", &value_of(1, 900), synced).unwrap();
    assert_eq!(handed(|h| &h.submits) - submits, 0, "a synced put, with the shard locked");
}

#[test]
fn a_put_or_remove_that_finds_all_write_buffers_with_the_device_waits_with_no_shard_locked() {
    // So slow that puts are far ahead of it.
    let telling = Telling::new(32 << 20, 40);
    let device: Arc<dyn Device> = telling.clone();
    let (store, mut session) =
        open(&device, StoreOptions { shards: 1, mode: OpenMode::Reformat, ..small() });
    let before = telling.waits.load(Ordering::Relaxed);
    for n in 0..40_000u64 {
        let name = n % 9_000;
        put(&mut session, &name.to_be_bytes(), &value_of(n, 900), PutOptions::default()).unwrap();
        if n % 5 == 0 {
            assert!(remove(&mut session, &name.to_be_bytes()));
        }
    }
    assert!(store.statistics().segments_reclaimed > 100);
    assert_eq!(telling.waits.load(Ordering::Relaxed) - before, 0);
    for name in (0..9_000u64).filter(|name| name % 5 != 0) {
        let last = 36_000 + name;
        let put = if last < 40_000 { last } else { 27_000 + name };
        assert_eq!(get(&mut session, &name.to_be_bytes()), Some(value_of(put, 900)), "{name}");
    }
}

#[test]
fn a_get_that_is_waited_for_is_handed_over_and_awaited_by_one_look_at_the_queue() {
    let telling = Telling::new(32 << 20, 2);
    let device: Arc<dyn Device> = telling.clone();
    let (store, mut session) =
        open(&device, StoreOptions { shards: 1, mode: OpenMode::Reformat, ..small() });
    for n in 0..10_000u64 {
        put(&mut session, &n.to_be_bytes(), &value_of(n, 900), PutOptions::default()).unwrap();
    }
    store.sync().unwrap();
    let reads = || store.device().counters().reads.load(Ordering::Relaxed);
    let (before, looks) = (reads(), telling.looks_of_sessions.load(Ordering::Relaxed));
    for n in 0..1000u64 {
        assert_eq!(get(&mut session, &n.to_be_bytes()), Some(value_of(n, 900)));
    }
    let (read, looked) =
        (reads() - before, telling.looks_of_sessions.load(Ordering::Relaxed) - looks);
    assert_eq!((read, looked), (1000, 1000));
}
