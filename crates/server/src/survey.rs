//! What the entries of each database are, as far as a sample tells.
//!
//! The engine counts entries. Of what type and size they are, and whether they end, stands in their
//! records alone. So entries at places drawn at random are read, by a thread of its own, when
//! somebody looks and what was found last is old. Nobody waits for it, and nothing is read while
//! nobody looks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use entresol_host::now;
use entresol_tier::{Error, SamplePlace, Sampled, SessionOptions, SpaceId, Tiered};
use tracing::warn;

use crate::command::types::{HASH, STRING};
use crate::lock::lock;

/// Places of a survey, and about how many entries are read at each.
const PLACES: usize = 64;
const ENTRIES: usize = 12;
/// From when on what was found is old.
const OLD: Duration = Duration::from_secs(60);

/// The latest survey. Thread-safe.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Whether entries are being read.
    reading: AtomicBool,
    /// Leaf: nothing is done while it is held but to copy or replace what it holds.
    found: Mutex<Option<(Instant, BTreeMap<SpaceId, Surveyed>)>>,
}

/// What is known of the entries of a database that were read: how many of them are what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Surveyed {
    pub(crate) entries: u64,
    pub(crate) strings: u64,
    pub(crate) hashes: u64,
    pub(crate) ending: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) record_bytes: u64,
}

impl Survey {
    /// What was found last, by database; nothing so far if nobody looked before.
    pub(crate) fn found(&self) -> BTreeMap<SpaceId, Surveyed> {
        lock(&self.found).as_ref().map(|(_, found)| found.clone()).unwrap_or_default()
    }

    /// Somebody looks: if what was found is old, another survey of `tier` begins, at places that
    /// `draw` gives.
    pub(crate) fn look(self: &Arc<Self>, tier: &Arc<Tiered>, draw: fn() -> u64) {
        let is_old = lock(&self.found).as_ref().is_none_or(|(at, _)| at.elapsed() >= OLD);
        if !is_old || self.reading.swap(true, Ordering::AcqRel) {
            return;
        }
        let (survey, tier) = (Arc::clone(self), Arc::clone(tier));
        let spawned = std::thread::Builder::new().name("survey".to_owned()).spawn(move || {
            match read(&tier, draw) {
                Ok(found) => *lock(&survey.found) = Some((Instant::now(), found)),
                Err(error) => warn!("entries cannot be surveyed: {error}"),
            }
            survey.reading.store(false, Ordering::Release);
        });
        if let Err(error) = spawned {
            warn!("a thread cannot be made: {error}");
            self.reading.store(false, Ordering::Release);
        }
    }
}

/// Reads entries of all databases at places that `draw` gives.
fn read(tier: &Arc<Tiered>, draw: fn() -> u64) -> Result<BTreeMap<SpaceId, Surveyed>, Error> {
    let mut session = tier.session(SessionOptions { depth: 1, ..SessionOptions::default() })?;
    let mut found = BTreeMap::<SpaceId, Surveyed>::new();
    for place in 0..PLACES {
        let place = SamplePlace { hash: draw(), shard: place as u64 };
        let mut visit = |one: Sampled| found.entry(one.space).or_default().add(&one);
        session.sample(place, ENTRIES, now(), &mut visit)?;
    }
    Ok(found)
}

impl Surveyed {
    fn add(&mut self, one: &Sampled) {
        self.entries += 1;
        self.strings += u64::from(one.label == STRING);
        self.hashes += u64::from(one.label == HASH);
        self.ending += u64::from(one.ends);
        self.key_bytes += one.key_bytes;
        self.value_bytes += one.value_bytes;
        self.record_bytes += one.record_bytes;
    }

    /// What `entries` take on flash, if they are as these are in the mean.
    pub(crate) fn estimated_bytes(&self, entries: u64) -> Option<u64> {
        let all = u128::from(self.record_bytes) * u128::from(entries);
        all.checked_div(u128::from(self.entries)).map(|bytes| bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_tells_nothing_of_others() {
        assert_eq!(Surveyed::default().estimated_bytes(7), None);
        let sample = Surveyed { entries: 4, record_bytes: 1000, ..Surveyed::default() };
        assert_eq!(sample.estimated_bytes(1_000_000_000_000), Some(250_000_000_000_000));
    }
}
