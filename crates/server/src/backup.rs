//! The snapshot of one connection, as `BACKUP` describes it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_tier::{Snapshot, SnapshotSegment};
use serde_json::json;

/// The snapshot that a client copies.
pub(crate) struct Backup {
    pub(crate) number: u64,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Whether it is read only while nothing else wants a processor.
    pub(crate) when_idle: bool,
    /// Places of the segments in the snapshot's list, by where they are on the device.
    places: HashMap<u64, usize>,
}

impl Backup {
    pub(crate) fn new(snapshot: Arc<Snapshot>, when_idle: bool) -> Backup {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let segments = snapshot.segments().iter().enumerate();
        let places = segments.map(|(place, segment)| (segment.at, place)).collect();
        Backup { number, snapshot, when_idle, places }
    }

    /// What a client has to know to copy it.
    pub(crate) fn description(&self) -> Vec<u8> {
        let snapshot = &self.snapshot;
        let segments = snapshot.segments().iter().map(|segment| {
            let SnapshotSegment { at, sequence, bytes, sealed, .. } = *segment;
            json!({ "at": at, "sequence": sequence, "bytes": bytes, "sealed": sealed })
        });
        let superblock = snapshot.superblock();
        let hex: String = superblock.iter().map(|byte| format!("{byte:02x}")).collect();
        let described = json!({
            "snapshot": self.number,
            "store": format!("{:016x}", snapshot.store()),
            "device_bytes": snapshot.device_bytes(),
            "segment_bytes": snapshot.segment_bytes(),
            "superblock_bytes": superblock.len(),
            "superblock": hex,
            "segments": segments.collect::<Vec<_>>(),
        });
        described.to_string().into_bytes()
    }

    /// The segment at byte `at` of the device.
    pub(crate) fn segment(&self, at: u64) -> Option<&SnapshotSegment> {
        self.places.get(&at).map(|place| &self.snapshot.segments()[*place])
    }
}

/// What who copies a store gets.
#[derive(Debug)]
pub(crate) enum Copied {
    Snapshot(Arc<Snapshot>),
    Bytes(Vec<u8>),
}
