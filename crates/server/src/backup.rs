//! The snapshot of one connection, as `BACKUP` describes it.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_tier::{Snapshot, SnapshotSegment};
use serde_json::json;

/// The snapshot that a client copies.
#[derive(Debug)]
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

    /// What a client has to know to copy it. Of a large store that are some megabytes.
    pub(crate) fn description(&self) -> String {
        let snapshot = &self.snapshot;
        let superblock = snapshot.superblock();
        let hex: String = superblock.iter().map(|byte| format!("{byte:02x}")).collect();
        let described = json!({
            "snapshot": self.number,
            "store": format!("{:016x}", snapshot.store()),
            "device_bytes": snapshot.device_bytes(),
            "segment_bytes": snapshot.segment_bytes(),
            "superblock_bytes": superblock.len(),
            "superblock": hex,
        });
        let mut text = described.to_string();
        text.truncate(text.len() - 1);
        text.push_str(",\"segments\":[");
        // Not as values of JSON: a large store has a million of them.
        for (place, segment) in snapshot.segments().iter().enumerate() {
            let SnapshotSegment { at, sequence, bytes, sealed, .. } = *segment;
            text.push_str(if place == 0 { "{" } else { ",{" });
            let _ = write!(text, "\"at\":{at},\"sequence\":{sequence},");
            let _ = write!(text, "\"bytes\":{bytes},\"sealed\":{sealed}}}");
        }
        text.push_str("]}");
        text
    }

    /// The segment at byte `at` of the device.
    pub(crate) fn segment(&self, at: u64) -> Option<&SnapshotSegment> {
        self.places.get(&at).map(|place| &self.snapshot.segments()[*place])
    }
}

/// What who copies a store gets.
#[derive(Debug)]
pub(crate) enum Copied {
    /// A snapshot, and what a client has to know to copy it.
    Snapshot(Box<(Backup, String)>),
    Bytes(Vec<u8>),
}
