//! The state that all tasks of a cache share: the flash session, timers and syncs, and their
//! replies.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use entresol_flash::{
    Budget, Condition, ErrorKind as FlashErrorKind, Key, Operation, Outcome, Pinning, PutOptions,
    Session, SpaceId, Store, SyncPoint, Timestamp,
};

use crate::ahead::Ahead;
use crate::cache::gate::Gate;
use crate::cache::run::ReadRun;
use crate::cache::volume::{GHOSTS_MAX, Volume};
use crate::cache::write::partition_of;
use crate::devices::Devices;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::BLOCK_BYTES;
use crate::policy::admission::{Admission, Verdict};
use crate::request::Completion;
use crate::tasks::{Answer, Reply, Signal, Tasks, reply};
use crate::types::{Moment, VolumeId};

/// Notes that the clean blocks of this cache are not to be trusted any more; see
/// [`Distrust`](super::Distrust).
pub(crate) type Note = Box<dyn Fn(&Error) -> std::result::Result<(), String>>;

/// The label of an entry that says that its block is not cached.
pub(crate) const ABSENT_LABEL: u8 = 1;

/// Blocks whose places in the index are loaded ahead: a processor has no more in flight.
const AHEAD_BLOCKS_MAX: usize = 16;
/// Most bytes that are held because they were read ahead.
const AHEAD_BYTES_MAX: usize = 32 << 20;
/// How often the store is asked until it has made room: half a minute in all.
const ATTEMPTS_MAX: u32 = 60_000;
/// How long to wait before it is asked again.
pub(crate) const PAUSE_NS: u64 = 500_000;
/// How long a write waits for room before it looks again unasked.
const ROOM_NS: u64 = 100_000_000;

/// What all tasks of a cache share.
pub(crate) struct Core {
    pub tasks: Rc<Tasks>,
    pub store: Store,
    pub devices: Arc<Devices>,
    pub volumes: RefCell<Vec<Option<Rc<Volume>>>>,
    pub done: RefCell<Vec<Completion>>,
    pub now: Cell<Moment>,
    pub stopping: Cell<bool>,
    pub write_back_delay: u64,
    /// Most blocks that the logs of all volumes hold.
    pub dirty_blocks_max: u64,
    /// Most entries that were written back and wait in the logs for their partitions to be
    /// complete; none once the store was full.
    pub lingering_max: Cell<u64>,
    /// Raised when a log may have become shorter, or what fails to shorten it may be told.
    pub room: Signal,
    /// Whether it is raised before long in any case.
    room_rings: Cell<bool>,
    pub ahead: RefCell<Ahead>,
    pub gate: Gate,
    /// Misses of streams, of all volumes.
    streamed: RefCell<Admission>,
    session: RefCell<Session>,
    replies: RefCell<Places<Waiter>>,
    syncs: RefCell<Vec<(SyncPoint, Answer<Result<()>>)>>,
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    timers_begun: Cell<u64>,
    failed: RefCell<Option<Error>>,
    distrust: Option<Note>,
    distrusted: Cell<bool>,
    awaits_device: Cell<bool>,
}

/// How an operation on the flash store ended.
pub(crate) type FlashReply = std::result::Result<Flash, entresol_flash::Error>;

/// What an operation on the flash store found or did.
#[derive(Debug)]
pub(crate) enum Flash {
    Found(Bytes, u8),
    Missing,
    Done,
}

/// Who waits for an operation on the flash store.
pub(crate) enum Waiter {
    /// The task that began it.
    One(Answer<FlashReply>),
    /// A block of a run.
    Block(Rc<ReadRun>, usize),
}

struct Timer {
    at: Moment,
    number: u64,
    answer: Answer<()>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.number == other.number
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// How the tasks of a cache are limited.
pub(crate) struct Limits {
    pub write_back_delay: u64,
    pub dirty_blocks_max: u64,
    pub lingering_max: u64,
    pub distrust: Option<Note>,
}

impl Core {
    pub(crate) fn new(store: Store, session: Session, limits: Limits) -> Core {
        // What a stream reads is worth caching only if it is read again soon: before an eighth to a
        // quarter of a cache's worth of other blocks of streams. A cache that remembered more would
        // take all of a set that is read in turn and does not fit.
        let blocks = store.statistics().capacity_bytes / BLOCK_BYTES / 8;
        let streamed = Admission::new(blocks.min(GHOSTS_MAX) as usize);
        Core {
            tasks: Rc::new(Tasks::default()),
            devices: Arc::new(Devices::new(Some(Arc::clone(store.device())))),
            store,
            volumes: RefCell::default(),
            done: RefCell::default(),
            now: Cell::default(),
            stopping: Cell::new(false),
            write_back_delay: limits.write_back_delay,
            dirty_blocks_max: limits.dirty_blocks_max,
            lingering_max: Cell::new(limits.lingering_max),
            room: Signal::default(),
            room_rings: Cell::new(false),
            ahead: RefCell::new(Ahead::new(AHEAD_BYTES_MAX)),
            gate: Gate::default(),
            streamed: RefCell::new(streamed),
            session: RefCell::new(session),
            replies: RefCell::default(),
            syncs: RefCell::default(),
            timers: RefCell::default(),
            timers_begun: Cell::new(0),
            failed: RefCell::default(),
            distrust: limits.distrust,
            distrusted: Cell::new(false),
            awaits_device: Cell::new(false),
        }
    }

    /// The volume of a number.
    pub(crate) fn volume(&self, id: VolumeId) -> Option<Rc<Volume>> {
        self.volumes.borrow().get(usize::from(id.0)).cloned().flatten()
    }

    pub(crate) fn complete(&self, volume: VolumeId, token: u64, result: Result<Bytes>) {
        self.done.borrow_mut().push(Completion { volume, token, result });
    }

    /// Whether a block that a stream missed had been missed by one lately.
    pub(crate) fn admits_again(&self, hash: u64) -> bool {
        self.streamed.borrow_mut().on_miss(hash, 2) == Verdict::Admit
    }

    /// Begins an operation on the flash store.
    pub(crate) fn flash(&self, operation: Operation<'_>) -> Reply<FlashReply> {
        let (answer, told) = reply(&self.tasks);
        self.begin(Waiter::One(answer), operation);
        told
    }

    /// Begins an operation that `waiter` is told of.
    pub(crate) fn begin(&self, waiter: Waiter, operation: Operation<'_>) {
        let token = self.replies.borrow_mut().put(waiter);
        let mut session = self.session.borrow_mut();
        session.submit(token as u64, self.timestamp(), operation, &mut |token, outcome| {
            self.told(token, outcome);
        });
    }

    pub(crate) fn get(&self, space: SpaceId, key: &[u8]) -> Reply<FlashReply> {
        self.flash(Operation::Get { key: Key::new(space, key) })
    }

    /// Begins to read an entry of a volume's log.
    pub(crate) fn get_logged(&self, volume: &Volume, number: u64) -> Reply<FlashReply> {
        let partition = partition_of(number, volume.record.borrow().partition_entries);
        let bytes = &number.to_be_bytes();
        self.flash(Operation::Get { key: Key { space: volume.log_space(), partition, bytes } })
    }

    /// Lets go of an entry of a volume's log.
    pub(crate) fn remove_logged(&self, volume: &Volume, number: u64) -> Reply<FlashReply> {
        let partition = partition_of(number, volume.record.borrow().partition_entries);
        let bytes = &number.to_be_bytes();
        let key = Key { space: volume.log_space(), partition, bytes };
        self.flash(Operation::Remove { key, condition: Condition::Always })
    }

    /// Waits for the removal of an entry of a log as [`Core::removed`] does.
    pub(crate) async fn removed_logged(
        &self,
        begun: Reply<FlashReply>,
        (volume, number): (&Volume, u64),
    ) -> FlashReply {
        let passing = [FlashErrorKind::Busy, FlashErrorKind::Full];
        self.patiently(begun, || self.remove_logged(volume, number), &passing).await
    }

    /// Whether an entry of a volume's log may be there, by the index alone.
    pub(crate) fn may_hold_logged(&self, volume: &Volume, number: u64) -> bool {
        let partition = partition_of(number, volume.record.borrow().partition_entries);
        let bytes = &number.to_be_bytes();
        self.session.borrow().may_hold(Key { space: volume.log_space(), partition, bytes })
    }

    /// Entries that were written back and are in the log of `volume` still.
    pub(crate) fn lingering_of(&self, volume: &Volume) -> u64 {
        self.store.count(volume.log_space()).saturating_sub(volume.log.borrow().len() as u64)
    }

    /// The same of all volumes.
    pub(crate) fn lingering(&self) -> u64 {
        let volumes = self.volumes.borrow();
        volumes.iter().flatten().map(|volume| self.lingering_of(volume)).sum()
    }

    /// Has the volumes look whether their logs hold what is to go.
    pub(crate) fn tell_lingering(&self) {
        let volumes = self.volumes.borrow();
        let lingers = |volume: &&Rc<Volume>| self.lingering_of(volume) > 0;
        volumes.iter().flatten().filter(lingers).for_each(|volume| volume.kick.raise(&self.tasks));
    }

    pub(crate) fn put(&self, key: Key<'_>, value: &[u8], options: PutOptions) -> Reply<FlashReply> {
        self.flash(Operation::Put { key, value, options })
    }

    /// Puts what must not be evicted, and waits as [`Core::put_patiently`] does.
    pub(crate) async fn put_pinned(&self, key: Key<'_>, value: &[u8]) -> FlashReply {
        let options = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
        self.put_patiently(key, value, options).await
    }

    /// Puts, and while the store makes room for it, waits and tries again.
    pub(crate) async fn put_patiently(
        &self,
        key: Key<'_>,
        value: &[u8],
        options: PutOptions,
    ) -> FlashReply {
        let begin = || self.put(key, value, options);
        self.patiently(begin(), begin, &[FlashErrorKind::Busy]).await
    }

    /// Waits for a removal; while the store makes room for its tombstone, tries again.
    pub(crate) async fn removed(
        &self,
        begun: Reply<FlashReply>,
        (space, key): (SpaceId, &[u8]),
    ) -> FlashReply {
        let passing = [FlashErrorKind::Busy, FlashErrorKind::Full];
        self.patiently(begun, || self.remove(space, key), &passing).await
    }

    /// Waits for what has begun; while it ends in an error that passes, begins it again.
    async fn patiently(
        &self,
        mut begun: Reply<FlashReply>,
        begin: impl Fn() -> Reply<FlashReply>,
        passing: &[FlashErrorKind],
    ) -> FlashReply {
        for _ in 0..ATTEMPTS_MAX {
            match begun.await {
                Err(error) if passing.contains(&error.kind()) => {
                    self.sleep_until(Moment(self.now.get().0 + PAUSE_NS)).await;
                    begun = begin();
                }
                other => return other,
            }
        }
        begun.await
    }

    pub(crate) fn remove(&self, space: SpaceId, key: &[u8]) -> Reply<FlashReply> {
        self.flash(Operation::Remove { key: Key::new(space, key), condition: Condition::Always })
    }

    /// Whether a block may be cached, by the index alone.
    pub(crate) fn may_hold(&self, space: SpaceId, key: &[u8]) -> bool {
        self.session.borrow().may_hold(Key::new(space, key))
    }

    /// Starts loading what the index has of `blocks`, which are about to be looked for.
    pub(crate) fn load_ahead(&self, space: SpaceId, blocks: &Range<u64>) {
        let session = self.session.borrow();
        for block in blocks.clone().skip(1).take(AHEAD_BLOCKS_MAX) {
            session.prefetch(Key::new(space, &block.to_be_bytes()));
        }
    }

    /// A block that is cached counts as read.
    pub(crate) fn mark_read(&self, space: SpaceId, key: &[u8]) {
        self.session.borrow().mark_read(Key::new(space, key));
    }

    /// Blocks of a volume that are cached clean, where its share is limited; else 0.
    pub(crate) fn held(&self, volume: &Volume) -> u64 {
        if volume.record.borrow().options.share_bytes == 0 {
            return 0;
        }
        self.store.count(volume.clean_space())
    }

    /// Waits until all that was put so far survives power loss.
    pub(crate) async fn sync(&self) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let point = self.session.borrow().sync_point();
        let (answer, told) = reply(&self.tasks);
        self.syncs.borrow_mut().push((point, answer));
        told.await
    }

    /// Refuses to begin or go on with what takes long while the cache is being closed.
    pub(crate) fn check_open(&self, volume: &Volume) -> Result<()> {
        if !self.stopping.get() {
            return Ok(());
        }
        let detail = format!("volume {}: it is being closed", volume.name);
        Err(Error::new(ErrorKind::Closing, detail))
    }

    /// Waits until a log may have become shorter, or for a while: the store finds room by itself,
    /// too, and nobody hears of it.
    pub(crate) async fn await_room(self: &Rc<Core>) {
        if !self.room_rings.replace(true) {
            let core = Rc::clone(self);
            self.tasks.spawn(async move {
                core.sleep_until(Moment(core.now.get().0 + ROOM_NS)).await;
                core.room_rings.set(false);
                core.room.raise(&core.tasks);
            });
        }
        self.room.wait(&self.tasks).await;
    }

    /// Waits for a moment.
    pub(crate) fn sleep_until(&self, at: Moment) -> Reply<()> {
        let (answer, told) = reply(&self.tasks);
        self.timers_begun.set(self.timers_begun.get() + 1);
        let number = self.timers_begun.get();
        self.timers.borrow_mut().push(Reverse(Timer { at, number, answer }));
        told
    }

    /// Takes note of an error of the store: whether it means that the cache device has failed.
    pub(crate) fn note_error(&self, error: &entresol_flash::Error) -> bool {
        let fatal = matches!(
            error.kind(),
            FlashErrorKind::Poisoned | FlashErrorKind::Device | FlashErrorKind::Incompatible
        );
        if fatal && self.failed.borrow().is_none() {
            let detail = format!("the cache device failed: {error}");
            *self.failed.borrow_mut() = Some(Error::new(ErrorKind::Io, detail));
        }
        fatal
    }

    /// Why the cache device is not written any more, if so.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.borrow().clone()
    }

    /// Whether the backing may be written although the failed cache will not hear of it: only once
    /// it is durably known that what the cache holds is not to be trusted.
    pub(crate) fn may_write_around(&self, failure: &Error) -> Result<()> {
        if self.distrusted.get() {
            return Ok(());
        }
        let noted = match &self.distrust {
            Some(distrust) => distrust(failure),
            None => Err("no place to note it was given".to_owned()),
        };
        match noted {
            Ok(()) => {
                self.distrusted.set(true);
                Ok(())
            }
            Err(why) => {
                let detail = format!(
                    "{failure}; writes are refused, for it could not be noted elsewhere that the \
                     cache is stale from now on: {why}"
                );
                Err(Error::new(ErrorKind::Io, detail))
            }
        }
    }

    /// Takes what the cache device and the timers have; whether anything came.
    pub(crate) fn reap(&self) -> bool {
        let mut came = false;
        let mut session = self.session.borrow_mut();
        let polled = session.poll(0, self.timestamp(), &mut |token, outcome| {
            came = true;
            self.told(token, outcome);
        });
        if let Err(error) = polled {
            self.note_error(&error);
        }
        let mut syncs = self.syncs.borrow_mut();
        let mut at = 0;
        while at < syncs.len() {
            let reached = match session.reach(&syncs[at].0) {
                Ok(false) => {
                    at += 1;
                    continue;
                }
                Ok(true) => Ok(()),
                Err(error) => {
                    self.note_error(&error);
                    Err(error.into())
                }
            };
            let (_, answer) = syncs.swap_remove(at);
            answer.give(reached);
            came = true;
        }
        drop((session, syncs));
        came | self.ring_timers()
    }

    /// Hands gathered reads to the cache device.
    pub(crate) fn submit(&self) {
        let mut session = self.session.borrow_mut();
        if let Err(error) = session.flush() {
            self.note_error(&error);
        }
    }

    /// Does a step of the store's background work.
    pub(crate) fn maintain(&self) {
        if self.failed.borrow().is_some() {
            return;
        }
        match self.store.maintain(self.timestamp(), Budget { segments: 1 }) {
            Ok(done) => self.awaits_device.set(done.awaits_device || done.more),
            Err(error) => {
                self.note_error(&error);
            }
        }
    }

    /// When a turn is due although nothing is signalled.
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        let timer = self.timers.borrow().peek().map(|timer| timer.0.at);
        let soon = self.awaits_device.get() || !self.syncs.borrow().is_empty();
        let soon = soon.then(|| Moment(self.now.get().0 + 1_000_000));
        timer.into_iter().chain(soon).min()
    }

    pub(crate) fn poll_fds(&self) -> Vec<std::os::fd::RawFd> {
        self.session.borrow().poll_fds()
    }

    /// Whether the device still owes replies.
    pub(crate) fn in_flight(&self) -> usize {
        self.session.borrow().in_flight()
    }

    /// Waits for the cache device, where anything is in flight on it.
    pub(crate) fn wait(&self) {
        let mut session = self.session.borrow_mut();
        if session.in_flight() == 0 {
            return;
        }
        let polled = session.poll(1, self.timestamp(), &mut |token, outcome| {
            self.told(token, outcome);
        });
        if let Err(error) = polled {
            self.note_error(&error);
        }
    }

    /// Waits for the cache device: for reads, or for a sync that is under way.
    pub(crate) fn wait_any(&self) {
        if self.in_flight() > 0 {
            return self.wait();
        }
        if !self.syncs.borrow().is_empty()
            && let Err(error) = self.store.sync()
        {
            self.note_error(&error);
        }
    }

    /// Ends all timers.
    pub(crate) fn ring_all(&self) {
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        timers.into_iter().for_each(|timer| timer.0.answer.give(()));
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp(self.now.get().0 / 1_000_000)
    }

    fn told(&self, token: u64, outcome: entresol_flash::Result<Outcome<'_>>) {
        let waiter = self.replies.borrow_mut().take(token as usize);
        let answer = match waiter {
            None => return,
            Some(Waiter::Block(run, at)) => return run.told(at, outcome),
            Some(Waiter::One(answer)) => answer,
        };
        answer.give(outcome.map(|outcome| match outcome {
            Outcome::Found(entry) => Flash::Found(Bytes::copy_from_slice(entry.value), entry.label),
            Outcome::Missing | Outcome::Larger { .. } | Outcome::Refused { .. } => Flash::Missing,
            Outcome::Stored { .. }
            | Outcome::Removed { .. }
            | Outcome::Touched { .. }
            | Outcome::Journaled { .. } => Flash::Done,
        }));
    }

    fn ring_timers(&self) -> bool {
        let mut rang = false;
        loop {
            let mut timers = self.timers.borrow_mut();
            if timers.peek().is_none_or(|timer| timer.0.at > self.now.get()) {
                return rang;
            }
            let Some(Reverse(timer)) = timers.pop() else { return rang };
            drop(timers);
            timer.answer.give(());
            rang = true;
        }
    }
}

/// Things that wait under a number.
#[derive(Debug)]
pub(crate) struct Places<T> {
    places: Vec<Option<T>>,
    unused: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { places: Vec::new(), unused: Vec::new() }
    }
}

impl<T> Places<T> {
    pub(crate) fn put(&mut self, thing: T) -> usize {
        match self.unused.pop() {
            Some(place) => {
                self.places[place] = Some(thing);
                place
            }
            None => {
                self.places.push(Some(thing));
                self.places.len() - 1
            }
        }
    }

    pub(crate) fn take(&mut self, place: usize) -> Option<T> {
        let taken = self.places.get_mut(place)?.take();
        if taken.is_some() {
            self.unused.push(place);
        }
        taken
    }
}
