//! Reclaim beside others that wait for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use entresol_device::{
    Counters, Device, Geometry, IoBuffer, MemoryDevice, Queue, QueueOptions, Result,
};

use crate::format::{
    RECORD_ALIGNMENT, RecordHeader, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader,
};
use crate::session::SessionOptions;
use crate::types::{Durability, Key, Operation, Outcome, PutOptions, SpaceId, Timestamp};
use crate::{Budget, Store, StoreOptions};

/// A device that does something when a segment is read.
struct WatchedDevice {
    memory: MemoryDevice,
    at_read: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Device for WatchedDevice {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }
    fn name(&self) -> String {
        "watched".to_owned()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if let Some(act) = self.at_read.lock().unwrap().take() {
            act();
        }
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
        self.memory.queue(options)
    }
    fn counters(&self) -> &Counters {
        self.memory.counters()
    }
}

fn filled(device: &Arc<WatchedDevice>, segment_bytes: u32) -> Store {
    let options = StoreOptions {
        shards: 1,
        segment_bytes,
        durability: Durability::Memory,
        ..StoreOptions::default()
    };
    let device: Arc<dyn Device> = Arc::<WatchedDevice>::clone(device);
    let store = Store::open(device, options, Timestamp(1)).unwrap();
    let mut session = store.session(SessionOptions::default()).unwrap();
    for number in 0..3000_u64 {
        let name = (number % 1000).to_be_bytes();
        let key = Key::new(SpaceId(0), &name);
        let put = Operation::Put { key, value: &[7; 1000], options: PutOptions::default() };
        session
            .run(Timestamp(1), put, &mut |o| assert!(matches!(o, Outcome::Stored { .. })))
            .unwrap();
    }
    store
}

/// A reclaim that began while somebody waited for another one was none to those who wait: they
/// asked again and again, gave up after 64 times, and their writes were refused as `Full`.
#[test]
fn whoever_waits_for_reclaims_waits_for_those_that_begin_meanwhile() {
    let memory = MemoryDevice::new(16 << 20).unwrap();
    let device = Arc::new(WatchedDevice { memory, at_read: Mutex::default() });
    let store = filled(&device, 64 << 10);
    let engine = Arc::clone(&store.engine);
    // Another reclaim, and one who waits for it.
    let (other, begun, end, ended) = other_reclaim(&store);
    begun.recv().unwrap();
    let has_waited = Arc::new(AtomicBool::new(false));
    let waiter = {
        let (engine, has_waited) = (Arc::clone(&engine), Arc::clone(&has_waited));
        std::thread::spawn(move || {
            drop(engine.reclaims[0].write());
            has_waited.store(true, Ordering::SeqCst);
        })
    };
    while !engine.reclaims[0].is_locked_exclusive() && !is_awaited(&engine) {
        std::thread::yield_now();
    }
    let went_on = Arc::new(AtomicBool::new(false));
    let (seen, noted) = (Arc::clone(&has_waited), Arc::clone(&went_on));
    *device.at_read.lock().unwrap() = Some(Box::new(move || {
        // The other one ends while this one is on.
        end.send(()).unwrap();
        ended.recv().unwrap();
        let went = (0..20_000).any(|_| {
            std::thread::yield_now();
            seen.load(Ordering::SeqCst)
        });
        noted.store(went, Ordering::SeqCst);
    }));
    engine.reclaim_one(0, Timestamp(1)).unwrap();
    assert!(device.at_read.lock().unwrap().is_none(), "a victim was read");
    assert!(!went_on.load(Ordering::SeqCst), "one who waits went on in the middle of a reclaim");
    waiter.join().unwrap();
    other.join().unwrap();
}

/// Each release padded what every stream had begun, one sync unit in some hundred in all.
#[test]
fn released_segments_become_free_with_little_padding_while_puts_go_on() {
    for maintained in [false, true] {
        let memory = MemoryDevice::new(64 << 20).unwrap();
        let device = Arc::new(WatchedDevice { memory, at_read: Mutex::default() });
        let store = filled(&device, 512 << 10);
        let mut session = store.session(SessionOptions::default()).unwrap();
        for number in 0..120_000_u64 {
            let name = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 40_000;
            let name = name.to_be_bytes();
            let key = Key::new(SpaceId(0), &name);
            let put = Operation::Put { key, value: &[7; 1000], options: PutOptions::default() };
            session.run(Timestamp(1), put, &mut |_| {}).unwrap();
            if maintained && number % 16 == 0 {
                store.maintain(Timestamp(1), Budget { segments: 1 }).unwrap();
            }
        }
        assert!(store.statistics().segments_reclaimed > 200);
        let (segments, paddings) = paddings(&store);
        println!("{segments} segments, {paddings} paddings");
        assert!(paddings * 4 < segments * 3, "{paddings} paddings in {segments} segments");
    }
}

/// Segments on the device and the padding records in them.
fn paddings(store: &Store) -> (usize, usize) {
    let shape = store.engine.shards[0].lock().log.shape();
    let (mut segments, mut paddings) = (0, 0);
    for segment in 0..shape.segments {
        let mut bytes = IoBuffer::aligned(shape.segment_bytes as usize);
        store.engine.device.read_at(shape.offset_of(segment), &mut bytes).unwrap();
        let Some(header) = SegmentHeader::decode(&bytes) else { continue };
        segments += 1;
        let mut at = SEGMENT_HEADER_BYTES;
        while let Some(record) = bytes.get(at..).and_then(RecordHeader::decode)
            && record.generation == header.sequence as u32
        {
            paddings += usize::from(record.flags.kind == RecordKind::Padding);
            at += record.record_bytes().next_multiple_of(RECORD_ALIGNMENT);
        }
    }
    (segments, paddings)
}

/// Whether somebody waits for the reclaims: nobody else may begin one the plain way.
fn is_awaited(engine: &crate::engine::Engine) -> bool {
    engine.reclaims[0].try_read().is_none()
}

type Ends = (std::thread::JoinHandle<()>, Receiver<()>, Sender<()>, Receiver<()>);

/// A thread that reclaims, as far as others can tell, until it is told to end.
fn other_reclaim(store: &Store) -> Ends {
    let (tell_begun, begun) = channel();
    let (end, told) = channel::<()>();
    let (tell_ended, ended) = channel();
    let engine = Arc::clone(&store.engine);
    let thread = std::thread::spawn(move || {
        let held = engine.reclaims[0].read();
        tell_begun.send(()).unwrap();
        told.recv().unwrap();
        drop(held);
        tell_ended.send(()).unwrap();
    });
    (thread, begun, end, ended)
}
