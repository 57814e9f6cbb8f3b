//! One volume while its cache is open.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use entresol_device::{PendingCount, PendingGroup};
use entresol_flash::SpaceId;

use crate::backing::{Backing, BackingCompletion, BackingRequest, Description};
use crate::cache::core::{Core, Places};
use crate::cache::overwrite::Overwrites;
use crate::cache::read::Keep;
use crate::cache::share::Share;
use crate::counts::Counts;
use crate::devices::Devices;
use crate::dirty::DirtyLog;
use crate::error::{Error, ErrorKind, Result};
use crate::held::Held;
use crate::meta::{BLOCK_BYTES, StateRecord, VolumeRecord};
use crate::policy::admission::{Admission, Verdict};
use crate::policy::rate::{Marks, Pace};
use crate::policy::readahead;
use crate::policy::sequential::{Direction, Streams};
use crate::ranges::Ranges;
use crate::regions::Regions;
use crate::request::{Durable, Request};
use crate::tasks::{Answer, Reply, Signal, Tasks, reply};
use crate::types::{Mode, Moment, VolumeId};

/// Blocks whose misses a table remembers at most.
pub(crate) const GHOSTS_MAX: u64 = 1 << 22;

/// One volume while its cache is open.
pub(crate) struct Volume {
    pub id: VolumeId,
    pub name: String,
    pub bytes: Cell<u64>,
    pub description: Description,
    pub record: RefCell<VolumeRecord>,
    pub mode: Cell<Mode>,
    pub counts: RefCell<Counts>,
    pub ranges: Rc<Ranges>,
    /// Held while entries are appended, so that they get their numbers in order.
    pub appends: Rc<Ranges>,
    /// Held while the record of how far the log was written back is put.
    pub settles: Rc<Ranges>,
    pub log: RefCell<DirtyLog>,
    pub state: RefCell<StateRecord>,
    /// Entries of the log before this number were let go, or go with their partition.
    pub let_go_to: Cell<u64>,
    pub incarnation: u32,
    pub fills: RefCell<HashMap<u64, Rc<Fill>>>,
    pub held: RefCell<Held>,
    pub overwrites: RefCell<Overwrites>,
    pub regions: RefCell<Regions>,
    pub regions_changed: Signal,
    /// Whether a record of the regions is being put: one at a time, from its making on.
    pub regions_writer: Cell<bool>,
    pub sweeping: Cell<bool>,
    pub flushes_since_sweep: Cell<u32>,
    /// Raised when entries were written back, or could not be.
    pub cleaned: Signal,
    /// Raised when the cleaner may have something to do.
    pub kick: Signal,
    /// Entries up to this number are wanted on the backing now.
    pub drain_to: Cell<u64>,
    /// When the log was last found empty by a write.
    pub dirty_since: Cell<Moment>,
    /// Entries up to this number survive power loss.
    pub synced_to: Cell<u64>,
    /// When the cleaner will look next by itself.
    pub kick_at: Cell<Option<Moment>>,
    pub clean_error: RefCell<Option<Error>>,
    pub cleaner_stopped: Cell<bool>,
    /// It is being removed.
    pub retired: Cell<bool>,
    pub streams: RefCell<Streams>,
    pub admission: RefCell<Option<Admission>>,
    pub pace: RefCell<Pace>,
    pub share: RefCell<Share>,
    backing: RefCell<Box<dyn Backing>>,
    replies: RefCell<Places<Begun>>,
    /// Requests in flight on the backing, for whoever watches it.
    pending: OnceCell<Arc<PendingCount>>,
    reaped: RefCell<Vec<BackingCompletion>>,
}

/// A request to the backing that has begun.
struct Begun {
    answer: Answer<Result<Bytes>>,
    asked: Asked,
    group: Option<PendingGroup>,
}

/// A read of the backing that several requests wait for.
pub(crate) struct Fill {
    pub first: u64,
    pub value: RefCell<Option<Result<Bytes>>>,
    pub done: Signal,
    /// Blocks that others than who began it wait for.
    pub joined: RefCell<Vec<u64>>,
}

impl Fill {
    /// A read from block `first` on.
    pub(crate) fn new(first: u64) -> Fill {
        Fill {
            first,
            value: RefCell::default(),
            done: Signal::default(),
            joined: RefCell::default(),
        }
    }

    /// Tells those who wait.
    pub(crate) fn finish(&self, tasks: &Tasks, result: Result<Bytes>) {
        *self.value.borrow_mut() = Some(result);
        self.done.raise(tasks);
    }

    /// One block of what was read; the last one of a volume may be shorter.
    pub(crate) fn block_of<'a>(&self, bytes: &'a [u8], block: u64) -> &'a [u8] {
        let at = ((block - self.first) * BLOCK_BYTES) as usize;
        &bytes[at..(at + BLOCK_BYTES as usize).min(bytes.len())]
    }
}

/// What is known of a request from the ones before it.
pub(crate) struct Followed {
    /// It belongs to a stream so long that it goes around the cache.
    pub around: bool,
    /// It belongs to a stream, and streams are told apart.
    pub streams: bool,
    /// What to read ahead of it.
    pub ahead: Option<Range<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Read,
    Write,
}

/// What a volume is made of.
pub(crate) struct Parts {
    pub id: VolumeId,
    pub record: VolumeRecord,
    pub backing: Box<dyn Backing>,
    pub log: DirtyLog,
    pub held: Held,
    pub state: StateRecord,
    pub incarnation: u32,
}

impl Volume {
    pub(crate) fn new(parts: Parts) -> Volume {
        let Parts { id, record, backing, log, held, state, incarnation } = parts;
        let admission = admission_of(record.options.admission_hits, record.bytes);
        Volume {
            id,
            name: record.options.name.clone(),
            bytes: Cell::new(record.bytes),
            description: backing.description().clone(),
            mode: Cell::new(record.options.mode),
            counts: RefCell::default(),
            ranges: Rc::default(),
            appends: Rc::default(),
            settles: Rc::default(),
            let_go_to: Cell::new(0),
            log: RefCell::new(log),
            state: RefCell::new(state),
            incarnation,
            fills: RefCell::default(),
            held: RefCell::new(held),
            overwrites: RefCell::default(),
            regions: RefCell::new(Regions::new(record.bytes)),
            regions_changed: Signal::default(),
            regions_writer: Cell::new(false),
            sweeping: Cell::new(false),
            flushes_since_sweep: Cell::new(0),
            cleaned: Signal::default(),
            kick: Signal::default(),
            drain_to: Cell::new(0),
            dirty_since: Cell::default(),
            synced_to: Cell::new(0),
            kick_at: Cell::new(None),
            clean_error: RefCell::default(),
            cleaner_stopped: Cell::new(false),
            retired: Cell::new(false),
            streams: RefCell::default(),
            admission: RefCell::new(admission),
            pace: RefCell::new(Pace::new(Marks::default(), Moment(0))),
            share: RefCell::new(Share::new(record.options.share_bytes)),
            record: RefCell::new(record),
            backing: RefCell::new(backing),
            replies: RefCell::default(),
            pending: OnceCell::new(),
            reaped: RefCell::default(),
        }
    }

    /// What remembers misses where a block is cached at its so-many-th.
    pub(crate) fn admission_of(&self, hits: u8) -> Option<Admission> {
        admission_of(hits, self.bytes.get())
    }

    /// Where its clean blocks are.
    pub(crate) fn clean_space(&self) -> SpaceId {
        clean_space(self.id)
    }

    /// Where its log is.
    pub(crate) fn log_space(&self) -> SpaceId {
        log_space(self.id)
    }

    /// Blocks of the volume; the last one may be shorter.
    pub(crate) fn blocks(&self) -> u64 {
        self.bytes.get().div_ceil(BLOCK_BYTES)
    }

    /// The blocks that a range of bytes touches.
    pub(crate) fn blocks_of(&self, offset: u64, length: u64) -> Range<u64> {
        if length == 0 {
            return 0..0;
        }
        offset / BLOCK_BYTES..(offset + length).div_ceil(BLOCK_BYTES)
    }

    /// The bytes of blocks.
    pub(crate) fn bytes_of(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(self.bytes.get())
    }

    /// The blocks that lie in a range of bytes as a whole.
    pub(crate) fn whole_blocks_of(&self, offset: u64, length: u64) -> Range<u64> {
        let end = offset + length;
        let last = if end == self.bytes.get() { self.blocks() } else { end / BLOCK_BYTES };
        let first = offset.div_ceil(BLOCK_BYTES);
        first..last.max(first)
    }

    /// Whether `request` is one this volume takes.
    pub(crate) fn check(&self, request: &Request) -> Result<()> {
        let (offset, length, writes) = match request {
            Request::Read { offset, length } => (*offset, u64::from(*length), false),
            Request::Write { offset, bytes, .. } => (*offset, bytes.len() as u64, true),
            Request::Trim { offset, length, .. } | Request::Zero { offset, length, .. } => {
                (*offset, *length, true)
            }
            Request::Prefetch { offset, length } | Request::Allocation { offset, length, .. } => {
                (*offset, *length, false)
            }
            Request::Flush
            | Request::WriteBack
            | Request::SetMode(_)
            | Request::Tune(_)
            | Request::Resize
            | Request::Remove(_) => return Ok(()),
        };
        if writes && self.description.read_only {
            let detail = format!("volume {}: its backing may only be read", self.name);
            return Err(Error::new(ErrorKind::ReadOnly, detail));
        }
        if offset.checked_add(length).is_some_and(|end| end <= self.bytes.get()) {
            return Ok(());
        }
        let kind = match request {
            Request::Write { .. } | Request::Zero { .. } => ErrorKind::NoSpace,
            _ => ErrorKind::InvalidInput,
        };
        let detail = format!(
            "volume {}: {length} bytes at offset {offset} end past its {} bytes",
            self.name,
            self.bytes.get()
        );
        Err(Error::new(kind, detail))
    }

    /// Refuses what waited for a volume that was removed meanwhile.
    pub(crate) fn check_present(&self) -> Result<()> {
        if !self.retired.get() {
            return Ok(());
        }
        let detail = format!("volume {}: it was removed", self.name);
        Err(Error::new(ErrorKind::Name, detail))
    }

    /// Whether zeros cost less than a write of them, as the volume is now.
    pub(crate) fn zeroes_fast(&self) -> bool {
        self.mode.get().is_lazy() || self.description.zeroes_fast
    }

    /// The requests that write `bytes` to the backing, none longer than it takes.
    pub(crate) fn writes_of(
        &self,
        offset: u64,
        bytes: &Bytes,
        durable: Durable,
    ) -> Vec<BackingRequest> {
        let alignment = self.description.alignment.max(1);
        let most = self.description.request_bytes_max / alignment * alignment;
        let most = most.max(alignment) as usize;
        let starts = (0..bytes.len()).step_by(most);
        let piece = |start: usize| BackingRequest::Write {
            offset: offset + start as u64,
            bytes: bytes.slice(start..bytes.len().min(start + most)),
            durable,
        };
        starts.map(piece).collect()
    }

    /// Has `devices` know of what the backing does not answer.
    pub(crate) fn be_watched(&self, devices: &Devices) {
        let backing = &self.record.borrow().options.backing;
        self.pending.get_or_init(|| devices.add(&self.name, backing));
    }

    /// Begins a request to the backing.
    pub(crate) fn ask(&self, tasks: &Rc<Tasks>, request: BackingRequest) -> Reply<Result<Bytes>> {
        let asked = self.count(&request);
        let (answer, told) = reply(tasks);
        let group = self.pending.get().map(|pending| pending.begin());
        let token = self.replies.borrow_mut().put(Begun { answer, asked, group });
        self.backing.borrow_mut().begin(token as u64, request);
        told
    }

    /// Asks the backing what stands in a range; `None` if it tells at once.
    pub(crate) fn ask_allocation(
        &self,
        tasks: &Rc<Tasks>,
        range: (u64, u64),
    ) -> Option<Reply<Result<Bytes>>> {
        let (answer, told) = reply(tasks);
        let group = self.pending.get().map(|pending| pending.begin());
        let token = self.replies.borrow_mut().put(Begun { answer, asked: Asked::Read, group });
        if self.backing.borrow_mut().begin_allocation(token as u64, range) {
            return Some(told);
        }
        let begun = self.replies.borrow_mut().take(token)?;
        if let (Some(pending), Some(group)) = (self.pending.get(), begun.group) {
            pending.end(group);
        }
        None
    }

    /// Takes what the backing has; whether anything came.
    pub(crate) fn reap(&self) -> bool {
        let mut reaped = self.reaped.take();
        self.backing.borrow_mut().reap(&mut reaped);
        self.tell(reaped)
    }

    /// Waits for the backing, where anything is in flight on it.
    pub(crate) fn wait(&self) {
        let mut reaped = self.reaped.take();
        let mut backing = self.backing.borrow_mut();
        backing.submit();
        if backing.in_flight() > 0 {
            backing.wait(&mut reaped);
        }
        drop(backing);
        self.tell(reaped);
    }

    pub(crate) fn submit(&self) {
        self.backing.borrow_mut().submit();
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.backing.borrow().in_flight()
    }

    pub(crate) fn with_backing<T>(&self, what: impl FnOnce(&mut dyn Backing) -> T) -> T {
        what(&mut **self.backing.borrow_mut())
    }

    /// Whether a block that missed is to be cached.
    pub(crate) fn admits(&self, core: &Core, block: u64, keep: Keep) -> bool {
        if matches!(keep, Keep::No | Keep::Around) {
            return false;
        }
        // Neighbours must not share a set of a table, nor volumes their blocks.
        let place = (block + 1) ^ u64::from(self.id.0) << 48;
        let hash = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = hash ^ hash >> 32;
        let hits = self.record.borrow().options.admission_hits;
        match &mut *self.admission.borrow_mut() {
            Some(admission) => admission.on_miss(hash, hits) == Verdict::Admit,
            None if keep == Keep::Again => core.admits_again(hash),
            None => true,
        }
    }

    /// Whether what streams read is cached otherwise than the rest.
    pub(crate) fn tells_streams(&self) -> bool {
        self.record.borrow().options.sequential_cutoff_bytes > 0
    }

    /// What the stream of a request, if it belongs to one, has to do with it.
    pub(crate) fn follow(&self, direction: Direction, range: &Range<u64>) -> Followed {
        let record = self.record.borrow();
        let options = &record.options;
        let cutoff = options.sequential_cutoff_bytes;
        let mut streams = self.streams.borrow_mut();
        let stream = streams.on_request(direction, range.start, range.end - range.start);
        let most = u64::from(options.read_ahead_bytes);
        Followed {
            around: stream.goes_around(cutoff),
            streams: self.tells_streams() && stream.is_established(),
            ahead: readahead::on_read(stream, range.end, most, self.bytes.get()),
        }
    }

    /// Counts a client's write.
    pub(crate) fn count_write(&self, hits: u64, blocks: u64) {
        let mut counts = self.counts.borrow_mut();
        if self.mode.get() == Mode::PassThrough {
            counts.pass_through_writes += 1;
            counts.blocks_from_clients += blocks;
        } else {
            counts.count_write(hits, blocks);
        }
    }

    fn count(&self, request: &BackingRequest) -> Asked {
        let mut counts = self.counts.borrow_mut();
        match request {
            BackingRequest::Read { length, .. } => {
                counts.backing_reads += 1;
                counts.blocks_from_backing += u64::from(*length).div_ceil(BLOCK_BYTES);
                Asked::Read
            }
            BackingRequest::Write { bytes, .. } => {
                counts.backing_writes += 1;
                counts.blocks_to_backing += (bytes.len() as u64).div_ceil(BLOCK_BYTES);
                Asked::Write
            }
            BackingRequest::Flush => {
                counts.backing_flushes += 1;
                Asked::Write
            }
            BackingRequest::Trim { .. } | BackingRequest::Zero { .. } => {
                counts.backing_writes += 1;
                Asked::Write
            }
        }
    }

    fn tell(&self, mut reaped: Vec<BackingCompletion>) -> bool {
        let came = !reaped.is_empty();
        for completion in reaped.drain(..) {
            let place = completion.token as usize;
            let Some(begun) = self.replies.borrow_mut().take(place) else { continue };
            let Begun { answer, asked, group } = begun;
            if let (Some(pending), Some(group)) = (self.pending.get(), group) {
                pending.end(group);
            }
            if completion.result.is_err() {
                let mut counts = self.counts.borrow_mut();
                match asked {
                    Asked::Read => counts.backing_read_errors += 1,
                    Asked::Write => counts.backing_write_errors += 1,
                }
            }
            answer.give(completion.result);
        }
        self.reaped.replace(reaped);
        came
    }
}

fn admission_of(hits: u8, bytes: u64) -> Option<Admission> {
    let blocks = bytes.div_ceil(BLOCK_BYTES).min(GHOSTS_MAX) as usize;
    (hits > 1).then(|| Admission::new(blocks))
}

/// Where the clean blocks of a volume are.
pub(crate) fn clean_space(id: VolumeId) -> SpaceId {
    SpaceId(1 + 2 * id.0)
}

/// Where the log of a volume is.
pub(crate) fn log_space(id: VolumeId) -> SpaceId {
    SpaceId(2 + 2 * id.0)
}
