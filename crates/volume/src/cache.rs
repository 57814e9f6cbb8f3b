//! The cache: one flash store that holds the blocks of many volumes, and the volumes.

mod ahead;
mod care;
mod clean;
mod core;
mod gate;
mod open;
mod overwrite;
mod perform;
mod places;
mod read;
mod report;
mod run;
mod share;
mod tune;
mod volume;
mod write;

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use entresol_device::Device;
use entresol_flash::{
    Durability, Key, OpenMode, Parallel, Reclaim, SessionOptions, SpaceId, Store, StoreOptions,
    one_after_another,
};

pub use self::care::{Adoption, CheckReport, Dirty};
use self::core::{Core, Limits, PAUSE_NS};
use self::open::{Left, Quiet, attach_all, demand_blocks, enlist, open_own};
use self::volume::{Parts, Volume};
use crate::backing::{Backing, BackingRequest};
use crate::counts::Counts;
use crate::devices::Devices;
use crate::dirty::DirtyLog;
use crate::error::{Error, ErrorKind, Result};
use crate::held::Held;
use crate::meta::{BLOCK_BYTES, SESSION_KEY, SessionRecord, StateRecord, VolumeRecord, key_of};
use crate::ranges::Access;
use crate::request::{Completion, Request};
use crate::types::{Moment, VolumeId, VolumeOptions};
use crate::volumes::{Context, Run, VolumeInfo, Volumes};

/// Where the cache keeps what it knows of itself and its volumes.
pub(crate) const META_SPACE: SpaceId = SpaceId(0);
/// Most volumes of a cache.
pub(crate) const VOLUMES_MAX: u16 = 1024;
/// Partitions of a log's space, used in turn.
pub(crate) const PARTITIONS: u64 = 32;
/// Partitions that entries not yet written back may fill.
pub(crate) const PARTITIONS_FILLED: u64 = 28;
/// Requests a cache has in flight on its device at once.
const DEPTH: usize = 256;

/// Opens the backing that [`VolumeOptions::backing`] names.
pub type OpenBacking = Box<dyn Fn(&str) -> Result<Box<dyn Backing>>>;

/// Called when the cache device has failed, before anything is written around it, with the identity
/// of the cache: must durably note that its clean blocks are not to be trusted any more.
pub type Distrust = Box<dyn Fn(u128, &Error) -> std::result::Result<(), String>>;

/// How a cache is opened.
pub struct CacheOptions {
    /// What to do with what the cache device holds.
    pub mode: OpenMode,
    /// Identifies the cache where it is made: random.
    pub identity: u128,
    /// Directory of the write buffers that outlive the process, normally `/dev/shm`. Without it the
    /// death of the process counts as power loss.
    pub buffer_directory: Option<PathBuf>,
    /// Identifies the boot of the machine; 0: unknown.
    pub boot: u128,
    /// Most bytes the index may use.
    pub index_bytes_max: u64,
    /// Most of the capacity that logs not written back yet may take, percent.
    pub dirty_percent: u8,
    /// How long the first write may wait until writing back begins, milliseconds.
    pub write_back_delay_ms: u64,
    /// How backings are opened.
    pub open_backing: OpenBacking,
    /// Notes durably, outside the cache device, that its clean blocks are stale.
    pub distrust: Option<Distrust>,
    /// Whether that was noted of the cache of an identity.
    pub distrusted: Box<dyn Fn(u128) -> bool>,
    /// Volumes that take the size their backing has now.
    pub resize: Vec<String>,
    /// A volume that takes over a backing as it is now.
    pub adopt: Option<Adoption>,
    /// How the jobs of the open are run.
    pub parallel: Parallel,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            mode: OpenMode::OpenOrCreate,
            identity: 0,
            buffer_directory: None,
            boot: 0,
            index_bytes_max: u64::MAX,
            dirty_percent: 25,
            write_back_delay_ms: 500,
            open_backing: Box::new(|name| {
                let detail = format!("nothing was given to open the backing {name} with");
                Err(Error::new(ErrorKind::Unavailable, detail))
            }),
            distrust: None,
            distrusted: Box::new(|_| false),
            resize: Vec::new(),
            adopt: None,
            parallel: one_after_another,
        }
    }
}

/// A cache and its volumes. One thread owns it; nothing it does waits, but opening, closing and
/// [`Cache::wait`].
pub struct Cache {
    core: Rc<Core>,
    open_backing: OpenBacking,
    incarnation: u32,
    session_record: SessionRecord,
    requests: Rc<std::cell::Cell<usize>>,
    absent: Vec<(String, Error)>,
    /// Their numbers and the places of their backings, in the same order.
    absent_at: Vec<(VolumeId, String)>,
    unverified: Vec<String>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("cache", &self.session_record.cache).finish_non_exhaustive()
    }
}

impl Cache {
    /// Opens the cache on `device`, or makes one, as `options.mode` says, and its volumes. A volume
    /// whose backing cannot be opened stays as it is and is told by [`Cache::absent`].
    ///
    /// Errors: as [`Store::open`], and `Incompatible` if the device holds a store that is no cache.
    pub fn open(device: Arc<dyn Device>, options: CacheOptions, now: Moment) -> Result<Cache> {
        let capacity = device.geometry().capacity_bytes;
        let timestamp = entresol_flash::Timestamp(now.0 / 1_000_000);
        let shared = options.buffer_directory.is_some();
        let store = Store::open(device, store_options(&options, capacity), timestamp)?;
        let mut session =
            store.session(SessionOptions { depth: DEPTH, ..SessionOptions::default() })?;
        session.read_together();
        let mut quiet = Quiet { store: &store, session: &mut session, now: timestamp };
        let before = quiet.session_record()?;
        if before.is_none() && store.spaces().iter().any(|space| store.count(*space) > 0) {
            let detail = format!(
                "{}: a store that is no block cache; name another device, or remove the store",
                store.device().name()
            );
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
        let same_boot = before.is_some_and(|before| before.boot == options.boot);
        let left = match before {
            None => Left::Clean,
            Some(before) if before.clean => Left::Clean,
            Some(_) if same_boot && options.boot != 0 && shared => Left::Killed,
            Some(_) => Left::PowerLost,
        };
        let session_record = SessionRecord {
            clean: false,
            incarnation: before.map_or(0, |before| before.incarnation) + 1,
            boot: options.boot,
            cache: before.map_or(options.identity, |before| before.cache),
        };
        quiet.put(Key::new(META_SPACE, SESSION_KEY), &session_record.encode())?;
        let found = attach_all(&mut quiet, &options, (left, &session_record))?;
        let limits = Limits {
            write_back_delay: options.write_back_delay_ms * 1_000_000,
            dirty_blocks_max: dirty_blocks_max(&store, options.dirty_percent),
            lingering_max: lingering_max(&store),
            distrust: options.distrust.map(|distrust| {
                let identity = session_record.cache;
                Box::new(move |error: &Error| distrust(identity, error)) as self::core::Note
            }),
        };
        let core = Rc::new(Core::new(store, session, limits));
        core.now.set(now);
        found.volumes.into_iter().for_each(|volume| drop(enlist(&core, volume)));
        Ok(Cache {
            core,
            open_backing: options.open_backing,
            incarnation: session_record.incarnation,
            session_record,
            requests: Rc::default(),
            absent: found.absent,
            absent_at: found.absent_at,
            unverified: found.unverified,
        })
    }

    /// Identifies the cache.
    pub fn identity(&self) -> u128 {
        self.session_record.cache
    }

    /// Volumes the cache remembers that could not be opened, and why.
    pub fn absent(&self) -> &[(String, Error)] {
        &self.absent
    }

    /// Volumes of which it is not known whether somebody else wrote to their backing while the
    /// cache was not open: it was not closed in order, so what their backings tell was not noted.
    pub fn unverified(&self) -> &[String] {
        &self.unverified
    }

    /// The volume of a name.
    pub fn find(&self, name: &str) -> Option<VolumeId> {
        let volumes = self.core.volumes.borrow();
        volumes.iter().flatten().find(|volume| volume.name == name).map(|volume| volume.id)
    }

    /// What a volume has counted.
    pub fn counts(&self, volume: VolumeId) -> Option<Counts> {
        Some(*self.core.volume(volume)?.counts.borrow())
    }

    /// Blocks of a volume that are dirty.
    pub fn dirty_blocks(&self, volume: VolumeId) -> Option<u64> {
        Some(self.core.volume(volume)?.log.borrow().dirty_blocks())
    }

    /// Requests submitted that have not completed.
    pub fn in_flight(&self) -> usize {
        self.requests.get()
    }

    /// Takes a turn; where it brings nothing and requests are in flight, waits for a device and
    /// takes another.
    pub fn wait(&mut self, now: Moment, completions: &mut Vec<Completion>) {
        let before = completions.len();
        self.turn(now, completions);
        if completions.len() > before {
            return;
        }
        self.wait_once();
        self.turn(now, completions);
    }

    /// Ends what is in flight, and closes the cache so that its next opening finds it in order.
    /// What is dirty stays in the cache. Completions that nobody took are dropped.
    pub fn close(mut self, mut now: Moment) -> Result<()> {
        self.core.stopping.set(true);
        let mut completions = Vec::new();
        let volumes: Vec<Rc<Volume>> =
            self.core.volumes.borrow().iter().flatten().cloned().collect();
        loop {
            for volume in &volumes {
                volume.kick.raise(&self.core.tasks);
                clean::tell(&self.core, volume);
            }
            self.core.ring_all();
            self.wait(now, &mut completions);
            completions.clear();
            if self.requests.get() == 0 && volumes.iter().all(|v| v.cleaner_stopped.get()) {
                break;
            }
            now = Moment(now.0.saturating_add(PAUSE_NS));
        }
        for volume in &volumes {
            self.finish(volume, now)?;
        }
        let record = SessionRecord { clean: true, ..self.session_record };
        self.put_synced(SESSION_KEY, &record.encode(), now)?;
        self.core.tasks.abandon();
        Ok(self.core.store.close(self.core.timestamp())?)
    }

    /// Brings one volume to rest.
    fn finish(&mut self, volume: &Rc<Volume>, now: Moment) -> Result<()> {
        let (core, of) = (Rc::clone(&self.core), Rc::clone(volume));
        self.block_on(now, async move {
            of.ask(&core.tasks, BackingRequest::Flush).await?;
            clean::settle_state(&core, &of).await?;
            // A state that says it was closed must not outlive what the cache had to forget.
            core.sync().await
        })?;
        // Nor may it stand without the version that the backing is compared with.
        volume.record.borrow_mut().version = volume.with_backing(|backing| backing.version());
        let record = volume.record.borrow().encode();
        self.put_synced(&key_of("volume/", volume.id), &record, now)?;
        let held = volume.held.borrow().record(volume.incarnation).encode();
        self.put_synced(&key_of("held/", volume.id), &held, now)?;
        volume.state.borrow_mut().next = volume.log.borrow().next();
        let state = volume.state.borrow().encode();
        self.put_synced(&key_of("state/", volume.id), &state, now)?;
        let closed = volume.regions.borrow().closed();
        self.put_synced(&key_of("regions/", volume.id), &closed.encode(), now)
    }

    /// Runs one task to its end. Time goes on meanwhile: it may wait for a moment.
    fn block_on<T: 'static>(
        &mut self,
        mut now: Moment,
        task: impl Future<Output = Result<T>> + 'static,
    ) -> Result<T> {
        let ended = Rc::new(std::cell::Cell::new(None));
        let told = Rc::clone(&ended);
        self.core.tasks.spawn(async move { told.set(Some(task.await)) });
        loop {
            self.run(now);
            if let Some(result) = ended.take() {
                return result;
            }
            self.wait_once();
            now = Moment(now.0.saturating_add(PAUSE_NS));
        }
    }

    /// Waits for the cache device, or for a backing, or for a sync, where one is under way.
    fn wait_once(&self) {
        let core = &self.core;
        let busy = core.volumes.borrow().iter().flatten().find(|v| v.in_flight() > 0).cloned();
        match busy {
            Some(volume) if core.in_flight() == 0 => volume.wait(),
            _ => core.wait_any(),
        }
    }

    fn run(&mut self, now: Moment) {
        self.core.now.set(now);
        loop {
            let mut came = false;
            let volumes = self.core.volumes.borrow().clone();
            for volume in volumes.iter().flatten() {
                came |= volume.reap();
            }
            self.core.gate.turn(&self.core);
            came |= self.core.tasks.run();
            // After the tasks: a device that answers at once has done so when they next run.
            came |= self.core.reap();
            self.core.submit();
            volumes.iter().flatten().for_each(|volume| volume.submit());
            if !came {
                self.core.maintain();
                return;
            }
        }
    }

    fn make(&mut self, options: &VolumeOptions, now: Moment) -> Result<VolumeId> {
        options.check()?;
        let absent = self.absent.iter().any(|(name, _)| *name == options.name);
        if absent || self.find(&options.name).is_some() {
            let detail = format!("there is a volume named {} already", options.name);
            return Err(Error::new(ErrorKind::Name, detail));
        }
        let VolumeOptions { name, backing: place, .. } = options;
        let backing = open_own(&self.open_backing, name, place, &self.places())?;
        let description = backing.description();
        demand_blocks(place, description)?;
        let id = self.unused_id()?;
        let record = VolumeRecord {
            options: options.clone(),
            bytes: description.bytes,
            identity: description.identity.clone(),
            version: String::new(),
            // What was written back stays in the way until its partition is complete.
            partition_entries: (self.core.dirty_blocks_max / 16).max(8),
        };
        let mut state = StateRecord::default();
        state.begin(self.incarnation, 1);
        self.put_synced(&key_of("state/", id), &state.encode(), now)?;
        self.put_synced(&key_of("volume/", id), &record.encode(), now)?;
        let (log, held) = (DirtyLog::new(1, 1), Held::none(record.bytes.div_ceil(BLOCK_BYTES)));
        let incarnation = self.incarnation;
        let parts = Parts { id, record, backing, log, held, state, incarnation };
        enlist(&self.core, Volume::new(parts));
        Ok(id)
    }

    /// The names of all volumes, and the places of their backings.
    fn places(&self) -> Vec<(String, String)> {
        let volumes = self.core.volumes.borrow();
        let present = volumes
            .iter()
            .flatten()
            .map(|volume| (volume.name.clone(), volume.record.borrow().options.backing.clone()));
        let absent = self.absent.iter().zip(&self.absent_at);
        present.chain(absent.map(|((name, _), (_, at))| (name.clone(), at.clone()))).collect()
    }

    fn unused_id(&self) -> Result<VolumeId> {
        let volumes = self.core.volumes.borrow();
        let held = |number: u16| {
            let known = volumes.get(usize::from(number)).is_some_and(Option::is_some);
            known || self.core.may_hold(META_SPACE, &key_of("volume/", VolumeId(number)))
        };
        (0..VOLUMES_MAX).find(|number| !held(*number)).map(VolumeId).ok_or_else(|| {
            let detail = format!("a cache has at most {VOLUMES_MAX} volumes");
            Error::new(ErrorKind::NoSpace, detail)
        })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // They hold the core, and the core holds them.
        self.core.tasks.abandon();
    }
}

impl Volumes for Cache {
    fn list(&self) -> Vec<VolumeInfo> {
        let volumes = self.core.volumes.borrow();
        volumes.iter().flatten().map(|volume| volume.info()).collect()
    }

    fn submit(&mut self, volume: VolumeId, token: u64, request: Request, now: Moment) {
        let core = &self.core;
        core.now.set(now);
        let checked = core.volume(volume).ok_or_else(|| {
            Error::new(ErrorKind::Name, format!("there is no volume of number {}", volume.0))
        });
        let checked = checked.and_then(|volume| volume.check(&request).map(|()| volume));
        let of = match checked {
            Ok(of) if !core.stopping.get() => of,
            Ok(of) => {
                let detail = format!("volume {}: it is being closed", of.name);
                return core.complete(volume, token, Err(Error::new(ErrorKind::Closing, detail)));
            }
            Err(error) => return core.complete(volume, token, Err(error)),
        };
        self.requests.set(self.requests.get() + 1);
        let (requests, by) = (Rc::clone(&self.requests), Rc::clone(core));
        let served = serve(Rc::clone(core), of, request);
        core.tasks.spawn(async move {
            let result = served.await;
            by.complete(volume, token, result);
            requests.set(requests.get() - 1);
        });
    }

    fn turn(&mut self, now: Moment, completions: &mut Vec<Completion>) {
        self.run(now);
        completions.append(&mut self.core.done.borrow_mut());
    }

    fn wake_at(&self) -> Option<Moment> {
        self.core.wake_at()
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        let mut all = self.core.poll_fds();
        let volumes = self.core.volumes.borrow();
        all.extend(
            volumes
                .iter()
                .flatten()
                .filter_map(|volume| volume.with_backing(|backing| backing.poll_fd())),
        );
        all
    }

    fn extents(
        &mut self,
        volume: VolumeId,
        context: Context,
        range: (u64, u64),
        most: usize,
    ) -> Result<Vec<Run>> {
        let found = self.core.volume(volume).ok_or_else(|| {
            Error::new(ErrorKind::Name, format!("there is no volume of number {}", volume.0))
        })?;
        report::extents(&self.core, &found, context, (range, most.max(1)))
    }

    fn create(&mut self, options: &VolumeOptions, now: Moment) -> Result<VolumeId> {
        self.make(options, now)
    }

    fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.core.devices)
    }

    fn statistics(&self) -> String {
        let ids = self.absent_at.iter().map(|(id, _)| id);
        let absent: Vec<_> = self.absent.iter().zip(ids).collect();
        report::statistics(&self.core, self.session_record.cache, &absent)
    }
}

/// Serves one request. Its place among requests that overlap is taken by the call, not by the
/// first poll.
fn serve(
    core: Rc<Core>,
    volume: Rc<Volume>,
    request: Request,
) -> impl Future<Output = Result<Bytes>> {
    let (blocks, access) = match &request {
        Request::Read { offset, length } => {
            (volume.blocks_of(*offset, u64::from(*length)), Access::Shared)
        }
        Request::Prefetch { offset, length } => {
            (volume.blocks_of(*offset, *length), Access::Shared)
        }
        Request::Write { offset, bytes, .. } => {
            (volume.blocks_of(*offset, bytes.len() as u64), Access::Exclusive)
        }
        Request::Trim { offset, length, .. } | Request::Zero { offset, length, .. } => {
            (volume.blocks_of(*offset, *length), Access::Exclusive)
        }
        Request::SetMode(_) | Request::Resize | Request::Remove(_) => {
            (0..volume.blocks(), Access::Exclusive)
        }
        Request::Flush | Request::WriteBack | Request::Tune(_) | Request::Allocation { .. } => {
            (0..0, Access::Shared)
        }
    };
    let length = match &request {
        Request::Read { length, .. } => Some(u64::from(*length)),
        Request::Write { bytes, .. } => Some(bytes.len() as u64),
        _ => None,
    };
    let admitted = length.and_then(|length| core.gate.enter(&core, volume.id, length));
    let drains =
        matches!(request, Request::SetMode(_) | Request::Resize) && volume.mode.get().is_lazy();
    let by_pieces = matches!(request, Request::Prefetch { .. });
    let lock = (!blocks.is_empty() && !drains && !by_pieces)
        .then(|| volume.ranges.lock(&core.tasks, blocks.clone(), access));
    async move {
        let _place = match admitted {
            Some(admitted) => Some(admitted.await),
            None => None,
        };
        if drains {
            // All but the last of it while requests go on.
            clean::drain(&core, &volume).await?;
        }
        let _guard = match lock {
            Some(lock) => Some(lock.await),
            None if drains => Some(volume.ranges.lock(&core.tasks, blocks.clone(), access).await),
            None => None,
        };
        // It may have become another one while this waited.
        volume.check_present()?;
        perform::perform(&core, &volume, request, blocks).await
    }
}

fn store_options(options: &CacheOptions, capacity: u64) -> StoreOptions {
    let segment_bytes = (capacity / 128).next_power_of_two() / 2;
    StoreOptions {
        mode: options.mode,
        shards: 1,
        segment_bytes: segment_bytes.clamp(64 << 10, 1 << 20) as u32,
        durability: if options.buffer_directory.is_some() {
            Durability::Process
        } else {
            Durability::Memory
        },
        reclaim: Reclaim::Evict,
        buffer_directory: options.buffer_directory.clone(),
        buffers_per_shard: 16,
        index_bytes_max: options.index_bytes_max,
        boot: options.boot,
        parallel: options.parallel,
        seed: options.identity as u64,
        ..StoreOptions::default()
    }
}

/// Entries of logs that an eighth of the capacity holds: with those not written back yet, which
/// take 60 percent at most, there is room for the cache's own records.
fn lingering_max(store: &Store) -> u64 {
    store.statistics().capacity_bytes / 8 / write::ENTRY_BYTES_MAX as u64
}

fn dirty_blocks_max(store: &Store, percent: u8) -> u64 {
    let statistics = store.statistics();
    let bytes = statistics.capacity_bytes / 100 * u64::from(percent.clamp(1, 60));
    // A write of 16 KiB must fit, whatever the percentage.
    (bytes / BLOCK_BYTES).max(16)
}
