//! A hosted store over a device that does not answer, and answers that find no room.

use entresol_device::{
    Counters, Device, Geometry, MemoryDevice, PendingIo, Queue, QueueOptions, Result,
};
use entresol_tier::{Admission, Durability, Key, PutOptions, SpaceId, StoreOptions, TieredOptions};
use entresol_tree::TreeOptions;

use super::*;

/// The tokens of answers.
#[derive(Debug, Default)]
struct Tokens(Vec<u64>);

impl Outbox for Tokens {
    fn add(&mut self, token: u64, _answer: &Answer<'_>) {
        self.0.push(token);
    }
    fn append(&mut self, others: &mut Tokens) {
        self.0.append(&mut others.0);
    }
    fn extent(&self) -> Extent {
        Extent { answers: self.0.len(), bytes: self.0.len() * 8 }
    }
    fn truncate(&mut self, extent: Extent) {
        self.0.truncate(extent.answers);
    }
}

fn hosted(tiered: Arc<Tiered>) -> Arc<HostedStore<Tokens>> {
    let tables = Tables::new(TreeOptions::default());
    HostedStore::over(tiered, tables, ForeignClock::default()).unwrap()
}

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
    let host = hosted(tiered);
    let key = Key { space: SpaceId(0), partition: 0, bytes: b"key" };
    let options = PutOptions::default();
    let operation = Operation::Put { key, value: b"", options };
    let request = Request { token: 77, now_ms: 0, operation, waiter: Waiter::Reaper };
    assert_eq!(host.begin(&request, &mut |_| Given::Reaped), Given::Reaped);
    assert_eq!(host.reap(|tokens| tokens.0.clone()).unwrap(), [77]);
    assert_eq!(host.roster.pending_puts(), 0);
    host.close().unwrap();
}

/// A program that embeds a store had no way to know why nothing went on.
#[test]
fn figures_tell_for_how_long_the_device_has_not_answered() {
    let device = Arc::new(StuckDevice(MemoryDevice::new(64 << 20).unwrap()));
    let options = TieredOptions {
        store: StoreOptions::default(),
        memory_bytes: 64 << 20,
        cache_bytes: None,
        admission: Admission::Always,
    };
    let tiered = Tiered::open(device, options, Timestamp(1)).unwrap();
    let host = hosted(tiered);
    let oldest = host.figures().unwrap().oldest_pending.unwrap();
    assert_eq!((&*oldest.device, oldest.age.as_secs()), ("stuck", 45));
    host.close().unwrap();
}
