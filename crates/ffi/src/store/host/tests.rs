//! A host over a device that does not answer, and one whose ring of outcomes is full.

use entresol_device::{
    Counters, Device, Geometry, MemoryDevice, PendingIo, Queue, QueueOptions, Result,
};
use entresol_tier::{Admission, Durability, StoreOptions, TieredOptions};

use super::super::request::{Row, WORDS};
use super::*;

/// A device that has not answered for 45 seconds.
struct StuckDevice(MemoryDevice);

impl Device for StuckDevice {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
    fn name(&self) -> String {
        "stuck".to_owned()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(offset, bytes)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.0.discard(offset, length)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.0.queue(options)
    }
    fn oldest_pending(&self, _now: Duration) -> Option<PendingIo> {
        Some(PendingIo { device: self.name(), age: Duration::from_millis(45_600) })
    }
    fn counters(&self) -> &Counters {
        self.0.counters()
    }
}

/// It stood in the roster as one that was not answered yet, for ever.
#[test]
fn a_put_whose_outcome_finds_no_room_at_its_place_is_answered_once_by_who_reaps() {
    let device = Arc::new(MemoryDevice::new(64 << 20).unwrap());
    let options = TieredOptions {
        store: StoreOptions { durability: Durability::Memory, ..StoreOptions::default() },
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tiered = Tiered::open(device, options, Timestamp(1)).unwrap();
    let host = Host::over(tiered, ForeignClock::default()).ok().unwrap();
    let key = b"key";
    let mut row: Row = [0; WORDS];
    (row[0], row[1], row[4], row[5]) = (2, 77, key.as_ptr() as u64, key.len() as u64);
    // SAFETY: the key outlives the request, which has no place for outcomes.
    let mut request = unsafe { CallerRequest::of(&row) }.ok().unwrap();
    assert!(!host.begin(&mut request));
    assert_eq!(host.reap().ok().unwrap().records, 1);
    assert_eq!(host.roster.pending_puts(), 0);
    host.close().ok().unwrap();
}

/// A program that embeds a store had no way to know why nothing went on.
#[test]
fn statistics_tell_for_how_long_the_device_has_not_answered() {
    let device = Arc::new(StuckDevice(MemoryDevice::new(64 << 20).unwrap()));
    let options = TieredOptions {
        store: StoreOptions::default(),
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tiered = Tiered::open(device, options, Timestamp(1)).unwrap();
    let store = tiered.store().clone();
    let host = Host::over(tiered, ForeignClock::default()).ok().unwrap();
    let figures = host.statistics().ok().unwrap();
    assert!(figures.ends_with(",\"oldest_pending_io_seconds\":45}"), "{figures}");
    let capacity = store.statistics().capacity_bytes;
    assert!(figures.contains(&format!("\"capacity_bytes\":{capacity},")), "{figures}");
    host.close().ok().unwrap();
}
