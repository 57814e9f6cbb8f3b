//! `-cache`: the data store and the user store as volumes of a block cache; the log goes around it,
//! as in the original.
//!
//! The cache is write-through and takes every block at its first miss, so that it counts what the
//! original's would, as long as it has room. It describes itself: there is no file of metadata.

use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use entresol_device::{Device, FileDevice, FileOptions, Force};
use entresol_flash::OpenMode;
use entresol_volume::{
    Cache, CacheOptions, Completion, Durable, Moment, Request, VolumeId, VolumeOptions, Volumes,
};
use entresol_workload::oltp::CacheCounters;
use serde_json::Value;

use super::lanes::{Contents, Done};
use super::options::PblioArgs;
use super::report::CacheName;
use super::units::open_backing;
use crate::failure::{Failure, Outcome};

/// An open cache with a volume for each piece of the two units.
pub(super) struct Cached {
    cache: Cache,
    volumes: Vec<VolumeId>,
    epoch: Instant,
    completions: Vec<Completion>,
    /// Blocks that it held when it was opened.
    held: u64,
    name: CacheName,
}

impl Cached {
    /// Opens the cache in the file or device `path`, or makes one there, before `pieces`: the names
    /// of volumes, each with where its backing is.
    pub(super) fn open(
        args: &PblioArgs,
        path: &str,
        pieces: &[(String, String)],
    ) -> Outcome<Cached> {
        let cannot = |e: entresol_volume::Error| Failure::doing(format!("-cache {path}"), e);
        if !Path::new(path).exists() {
            return Err(Failure::CannotRun(format!(
                "-cache is `{path}`, which does not exist; make it first, as in \
                 `fallocate -l 10MiB {path}`"
            )));
        }
        let force = if args.force { Force::Yes } else { Force::No };
        let options = FileOptions { force, ..FileOptions::default() };
        let device = FileDevice::open(path, &options).map_err(|e| Failure::doing("-cache", e))?;
        let capacity_bytes = device.geometry().capacity_bytes;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = CacheOptions {
            mode: OpenMode::OpenOrCreate,
            identity: now.as_nanos(),
            open_backing: Box::new(move |name| open_backing(name, force)),
            ..CacheOptions::default()
        };
        let mut cache = Cache::open(Arc::new(device), options, Moment(0)).map_err(cannot)?;
        if let Some((name, error)) = cache.absent().first() {
            return Err(Failure::CannotRun(format!(
                "-cache {path}: it holds {name}, which cannot be used: {error}; give the units it \
                 was made for, or an empty cache"
            )));
        }
        let mut volumes = Vec::new();
        for (name, backing) in pieces {
            let id = match cache.find(name) {
                Some(id) => id,
                None => cache.create(&options_of(name, backing), Moment(0)).map_err(cannot)?,
            };
            volumes.push(id);
        }
        let mut cached = Cached {
            cache,
            volumes,
            epoch: Instant::now(),
            completions: Vec::new(),
            held: 0,
            name: CacheName { name: path.to_owned(), capacity_bytes, is_loaded: false },
        };
        cached.demand_backings(path, pieces)?;
        cached.held = cached.occupancy();
        cached.name.is_loaded = cached.held > 0;
        Ok(cached)
    }

    /// The volumes, in the order of the pieces.
    pub(super) fn volumes(&self) -> &[VolumeId] {
        &self.volumes
    }

    /// What the report calls it.
    pub(super) fn name(&self) -> &CacheName {
        &self.name
    }

    pub(super) fn read(&mut self, volume: VolumeId, token: u64, offset: u64, length: u32) {
        let now = self.now();
        self.cache.submit(volume, token, Request::Read { offset, length }, now);
    }

    pub(super) fn write(&mut self, volume: VolumeId, token: u64, offset: u64, bytes: Bytes) {
        let now = self.now();
        let durable = Durable::AtFlush;
        self.cache.submit(volume, token, Request::Write { offset, bytes, durable }, now);
    }

    /// Takes a turn and appends what is done.
    pub(super) fn collect(&mut self, done: &mut Vec<Done>) -> Outcome<()> {
        let now = self.now();
        self.cache.turn(now, &mut self.completions);
        for completion in self.completions.drain(..) {
            let bytes = completion.result.map_err(|e| Failure::CannotRun(e.to_string()))?;
            done.push(Done { token: completion.token, contents: Contents::Shared(bytes) });
        }
        Ok(())
    }

    pub(super) fn in_flight(&self) -> usize {
        self.cache.in_flight()
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.cache.poll_fds()
    }

    pub(super) fn wake_in_ns(&self) -> Option<u64> {
        Some(self.cache.wake_at()?.0.saturating_sub(self.now().0))
    }

    /// What was counted since the cache was opened, in the original's words.
    pub(super) fn counters(&self) -> CacheCounters {
        let mut counters = CacheCounters::default();
        for counts in self.volumes.iter().filter_map(|volume| self.cache.counts(*volume)) {
            counters.reads += counts.blocks_read;
            // The original finds what an earlier read put; here that read may still be under way.
            counters.read_hits += counts.blocks_read_hit + counts.coalesced;
            counters.invalidations += counts.blocks_written;
            counters.invalidate_hits += counts.blocks_written_hit;
            counters.insertions += counts.insertions;
        }
        let held = self.held + counters.insertions;
        counters.evictions = held.saturating_sub(counters.invalidate_hits + self.occupancy());
        counters
    }

    /// Closes the cache; what it holds stays.
    pub(super) fn close(self) -> Outcome<()> {
        let now = self.now();
        self.cache.close(now).map_err(|e| Failure::doing("-cache", e))
    }

    /// Blocks that the cache holds.
    fn occupancy(&self) -> u64 {
        let figures: Value = serde_json::from_str(&self.cache.statistics()).unwrap_or_default();
        let volumes = figures["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
        volumes.iter().filter_map(|volume| volume["usage"]["occupancy"].as_u64()).sum()
    }

    /// Refuses a cache whose volumes are of other units.
    fn demand_backings(&self, path: &str, pieces: &[(String, String)]) -> Outcome<()> {
        let figures: Value = serde_json::from_str(&self.cache.statistics()).unwrap_or_default();
        let volumes = figures["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
        for volume in volumes {
            let (name, backing) = (volume["name"].as_str(), volume["backing"].as_str());
            let is_ours =
                pieces.iter().any(|piece| Some(&*piece.0) == name && Some(&*piece.1) == backing);
            if !is_ours {
                return Err(Failure::CannotRun(format!(
                    "-cache {path}: it holds {} of {}, which is no piece of these units; give the \
                     units it was made for, or an empty cache",
                    name.unwrap_or("a volume"),
                    backing.unwrap_or("an unknown backing"),
                )));
            }
        }
        Ok(())
    }

    fn now(&self) -> Moment {
        Moment(self.epoch.elapsed().as_nanos() as u64)
    }
}

/// As the original caches: everything, at once.
fn options_of(name: &str, backing: &str) -> VolumeOptions {
    VolumeOptions {
        name: name.to_owned(),
        backing: backing.to_owned(),
        sequential_cutoff_bytes: 0,
        admission_hits: 1,
        read_ahead_bytes: 0,
        ..VolumeOptions::default()
    }
}
