//! Writing back: the log of a volume, applied to its backing in order.
//!
//! A batch belongs to one epoch. It is durable in the log before any of it is written to the
//! backing, and the backing is flushed before the next batch begins. So at every moment the backing
//! is a state that the volume had after some flush or write with FUA, with some of the later
//! writes.
//!
//! Within a batch only the newest bytes of a block are written. Then these are put into the cache
//! as clean. That is durable before the record of the log's progress is put, so power loss never
//! brings back an older clean copy of a block that is no longer dirty.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use entresol_flash::{ErrorKind as FlashErrorKind, Key};
use entresol_planted::planted;

use crate::backing::BackingRequest;
use crate::cache::core::{Core, Flash};
use crate::cache::read::insert;
use crate::cache::volume::Volume;
use crate::cache::write::{Clearing, all_of, clear, invalidate, partition_of};
use crate::cache::{PARTITIONS, PARTITIONS_FILLED};
use crate::dirty::{DirtyLog, LogEntry, LogKind};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{BLOCK_BYTES, LogHeader, NOT_THE_ENTRY, StateRecord, key_of};
use crate::policy::rate::Allowance;
use crate::ranges::Access;
use crate::request::{Durable, Hole};
use crate::types::Moment;

/// Most data of a batch.
const BATCH_BYTES: u64 = 2 << 20;
/// Most entries of a batch.
const BATCH_ENTRIES: usize = 512;
/// Most partitions' worth of entries of a batch: it completes one more at most.
const BATCH_PARTITIONS: u64 = PARTITIONS - PARTITIONS_FILLED - 2;
/// Most bytes of one write to the backing.
const WRITE_BYTES_MAX: u64 = 1 << 20;
/// Entries that are removed at once.
const REMOVED_AT_ONCE: usize = 64;
/// How long a volume waits after its backing failed a write.
const RETRY_NANOSECONDS: u64 = 1_000_000_000;

/// Entries that are written back together.
struct Batch {
    entries: Vec<LogEntry>,
    last: u64,
}

/// Bytes or zeros for consecutive blocks of the backing.
struct Run {
    blocks: Range<u64>,
    content: Content,
}

enum Content {
    Data(Bytes),
    Zeros(Hole),
}

impl Run {
    fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Data(bytes) => Some(bytes),
            Content::Zeros(_) => None,
        }
    }
}

/// Writes back what is dirty of `volume` until the cache is closed.
pub(crate) async fn clean(core: Rc<Core>, volume: Rc<Volume>) {
    while !core.stopping.get() && !volume.retired.get() {
        let due = due(&core, &volume);
        if due.is_none() && lingers_too_much(&core, &volume) {
            let settled = settle_state(&core, &volume).await;
            tell(&core, &volume);
            if settled.is_ok() {
                continue;
            }
        }
        if due.is_none_or(|due| due > core.now.get()) {
            due.inspect(|due| kick_at(&core, &volume, *due));
            volume.kick.wait(&core.tasks).await;
            continue;
        }
        match clean_batch(&core, &volume).await {
            Ok(()) => {
                *volume.clean_error.borrow_mut() = None;
                tell(&core, &volume);
            }
            Err(error) => {
                *volume.clean_error.borrow_mut() = Some(error);
                tell(&core, &volume);
                let again = Moment(core.now.get().0 + RETRY_NANOSECONDS);
                core.sleep_until(again).await;
            }
        }
    }
    volume.cleaner_stopped.set(true);
    tell(&core, &volume);
}

/// Wakes who waits for what is dirty of `volume`, and all writers that wait for room.
pub(crate) fn tell(core: &Core, volume: &Volume) {
    volume.cleaned.raise(&core.tasks);
    core.room.raise(&core.tasks);
}

/// Waits until what is dirty now is on the backing.
pub(crate) async fn drain(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    let last = volume.log.borrow().next().saturating_sub(1);
    volume.drain_to.set(volume.drain_to.get().max(last));
    *volume.clean_error.borrow_mut() = None;
    loop {
        let oldest = volume.log.borrow().entries().next().map(|entry| entry.number);
        if oldest.is_none_or(|oldest| oldest > last) {
            return Ok(());
        }
        if volume.cleaner_stopped.get() {
            let detail = format!("volume {}: it is being closed", volume.name);
            return Err(Error::new(ErrorKind::Closing, detail));
        }
        volume.kick.raise(&core.tasks);
        volume.cleaned.wait(&core.tasks).await;
        if let Some(error) = volume.clean_error.borrow().clone() {
            return Err(error);
        }
    }
}

/// Puts the record of how far the log was written back, once that is safe, and lets go of what
/// lies behind it: by partitions, and of the one that is not complete yet by entries where those
/// would take room that others need.
pub(crate) async fn settle_state(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    // One after the other: the newest record on the medium must be the one that says most.
    let turn = volume.settles.lock(&core.tasks, 0..1, Access::Exclusive).await;
    let ended = volume.log.borrow().ended();
    let before = volume.state.borrow().written_back;
    if ended > before {
        put_state(core, volume, before, ended).await?;
    }
    if lingers_too_much(core, volume) {
        // A record that a power loss took would name entries that are gone.
        core.sync().await?;
        let size = volume.record.borrow().partition_entries;
        let first = volume.let_go_to.get().max((ended + 1) / size * size).max(1);
        remove_entries(core, volume, first..ended + 1).await?;
        volume.let_go_to.set(ended + 1);
        core.tell_lingering();
    }
    drop(turn);
    Ok(())
}

/// Notes durably that entries up to `ended` are on the backing, and drops the partitions that are
/// complete by that. Until all of it is done the volume goes by what was noted before: nothing is
/// let go that the newest record on the medium still names.
async fn put_state(core: &Rc<Core>, volume: &Rc<Volume>, before: u64, ended: u64) -> Result<()> {
    core.sync().await?;
    let state = StateRecord { written_back: ended, ..volume.state.borrow().clone() };
    let key = key_of("state/", volume.id);
    core.put_pinned(Key::new(super::META_SPACE, &key), &state.encode()).await?;
    let size = volume.record.borrow().partition_entries;
    let (from, to) = ((before + 1) / size, (ended + 1) / size);
    if from < to {
        core.sync().await?;
        for whole in from..to {
            let dropped =
                core.store.drop_partition(volume.log_space(), partition_of(whole * size, size));
            match dropped {
                // The store remembers so many dropped partitions and no more.
                Err(error) if error.kind() == FlashErrorKind::Busy => {
                    remove_entries(core, volume, whole * size..(whole + 1) * size).await?;
                }
                other => other?,
            }
        }
    }
    volume.state.borrow_mut().written_back = ended;
    Ok(())
}

/// Whether entries of `volume` that were written back are to go before their partition is complete:
/// the logs of all volumes hold more of them than they may. They are pinned, and nothing else makes
/// room of them.
fn lingers_too_much(core: &Core, volume: &Volume) -> bool {
    let may_go = volume.let_go_to.get() <= volume.log.borrow().ended();
    may_go && core.failure().is_none() && core.lingering() > core.lingering_max.get()
}

/// Lets go of entries one by one. What cannot be read cannot be removed: it goes with its
/// partition.
async fn remove_entries(core: &Rc<Core>, volume: &Rc<Volume>, numbers: Range<u64>) -> Result<()> {
    let held: Vec<u64> = numbers.filter(|number| core.may_hold_logged(volume, *number)).collect();
    for numbers in held.chunks(REMOVED_AT_ONCE) {
        let begun: Vec<_> =
            numbers.iter().map(|number| (*number, core.remove_logged(volume, *number))).collect();
        for (number, removed) in begun {
            if let Err(error) = core.removed_logged(removed, (volume, number)).await
                && core.note_error(&error)
            {
                return Err(error.into());
            }
        }
    }
    Ok(())
}

/// When the oldest entry should be written back; `None`: there is none.
fn due(core: &Core, volume: &Volume) -> Option<Moment> {
    let log = volume.log.borrow();
    let oldest = log.entries().next()?;
    let pressed = log.logged_blocks() * 2 > core.dirty_blocks_max
        || log.len() as u64 * 2 > volume.record.borrow().partition_entries * PARTITIONS_FILLED
        || oldest.number <= volume.drain_to.get();
    if pressed {
        return Some(Moment(0));
    }
    let begins = Moment(volume.dirty_since.get().0 + core.write_back_delay);
    if begins > core.now.get() {
        return Some(begins);
    }
    let dirty = log.logged_blocks().max(1) * BLOCK_BYTES;
    let room = core.dirty_blocks_max * BLOCK_BYTES;
    match volume.pace.borrow_mut().on_turn(dirty, room, core.now.get()) {
        Allowance::Wait(until) => Some(until),
        Allowance::Unlimited | Allowance::Bytes(_) | Allowance::Clean => Some(Moment(0)),
    }
}

/// Sees to it that the cleaner looks again at a moment.
fn kick_at(core: &Rc<Core>, volume: &Rc<Volume>, at: Moment) {
    if volume.kick_at.get().is_some_and(|set| set <= at) {
        return;
    }
    volume.kick_at.set(Some(at));
    // It may be removed until then, and its backing be wanted by somebody else.
    let (core, volume) = (Rc::clone(core), Rc::downgrade(volume));
    let tasks = Rc::clone(&core.tasks);
    tasks.spawn(async move {
        core.sleep_until(at).await;
        if let Some(volume) = volume.upgrade() {
            volume.kick_at.set(None);
            volume.kick.raise(&core.tasks);
        }
    });
}

async fn clean_batch(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    if let Some(failure) = core.failure() {
        return Err(failure);
    }
    settle_state(core, volume).await?;
    let Some(batch) = take_batch(volume) else { return Ok(()) };
    if batch.last > volume.synced_to.get() && !planted!("write-back-before-sync") {
        let last = volume.log.borrow().next() - 1;
        core.sync().await?;
        volume.synced_to.set(last);
    }
    let runs = read_batch(core, volume, &batch).await?;
    let bytes = runs.iter().filter_map(Run::bytes).map(|bytes| bytes.len() as u64).sum();
    volume.pace.borrow_mut().on_written_back(bytes);
    write_runs(core, volume, &runs).await?;
    volume.ask(&core.tasks, BackingRequest::Flush).await?;
    keep_clean(core, volume, &runs).await?;
    volume.log.borrow_mut().end_up_to(batch.last);
    if volume.log.borrow().len() == 0 {
        settle_state(core, volume).await?;
    }
    Ok(())
}

fn take_batch(volume: &Volume) -> Option<Batch> {
    let log = volume.log.borrow();
    let epoch = log.entries().next()?.epoch;
    let mut bytes = 0;
    // Partitions are used in turn: those that a batch completes are dropped before writers, who go
    // on meanwhile, come round to them.
    let most = volume.record.borrow().partition_entries.saturating_mul(BATCH_PARTITIONS);
    let entries: Vec<LogEntry> = log
        .entries()
        .take(BATCH_ENTRIES.min(most as usize))
        .take_while(|entry| {
            if entry.kind == LogKind::Data {
                bytes += (entry.blocks.end - entry.blocks.start) * BLOCK_BYTES;
            }
            let same = entry.epoch == epoch || planted!("write-back-across-epochs");
            same && bytes <= BATCH_BYTES
        })
        .cloned()
        .collect();
    let last = entries.last()?.number;
    Some(Batch { entries, last })
}

/// The newest bytes of each block of a batch, in order of blocks.
async fn read_batch(core: &Rc<Core>, volume: &Rc<Volume>, batch: &Batch) -> Result<Vec<Run>> {
    let mut newest = DirtyLog::new(0, 0);
    batch.entries.iter().for_each(|entry| newest.append(entry.clone()));
    let mut all: Vec<_> = batch.entries.iter().map(|entry| entry.blocks.clone()).collect();
    all.sort_by_key(|blocks| blocks.start);
    let (mut pieces, mut at) = (Vec::new(), 0);
    for blocks in all {
        let blocks = blocks.start.max(at)..blocks.end;
        if !blocks.is_empty() {
            at = blocks.end;
            pieces.extend(newest.pieces(blocks));
        }
    }
    let begun: Vec<_> = pieces
        .into_iter()
        .filter_map(|piece| {
            let entry = newest.entry(piece.entry?)?.clone();
            let begun = match entry.kind {
                LogKind::Data => Ok(core.get_logged(volume, entry.number)),
                LogKind::Zeros(hole) => Err(hole),
            };
            Some((piece.blocks, entry, begun))
        })
        .collect();
    let mut runs: Vec<Run> = Vec::with_capacity(begun.len());
    for (blocks, entry, reply) in begun {
        let content = match reply {
            Err(hole) => Content::Zeros(hole),
            Ok(reply) => Content::Data(entry_bytes(volume, &blocks, &entry, reply.await)?),
        };
        runs.push(Run { blocks, content });
    }
    Ok(runs)
}

fn entry_bytes(
    volume: &Volume,
    blocks: &Range<u64>,
    entry: &LogEntry,
    reply: crate::cache::core::FlashReply,
) -> Result<Bytes> {
    let why = match reply {
        Ok(Flash::Found(found, _)) => {
            match LogHeader::bytes_of(volume.id, &volume.bytes_of(blocks), &found) {
                Some((first, bytes)) if first == entry.blocks.start => return Ok(bytes),
                _ => NOT_THE_ENTRY.to_owned(),
            }
        }
        Ok(_) => "it is not there".to_owned(),
        Err(error) => error.to_string(),
    };
    let detail = format!(
        "volume {}: entry {} of the log (blocks {} to {}) cannot be read, so nothing after it is \
         written back: {why}",
        volume.name,
        entry.number,
        entry.blocks.start,
        entry.blocks.end - 1
    );
    Err(Error::new(ErrorKind::Io, detail))
}

/// Writes runs to the backing, adjacent ones as one.
async fn write_runs(core: &Rc<Core>, volume: &Rc<Volume>, runs: &[Run]) -> Result<()> {
    let most = u64::from(volume.description.request_bytes_max).min(WRITE_BYTES_MAX);
    let mut begun = Vec::new();
    let mut at = 0;
    while at < runs.len() {
        let run = &runs[at];
        let range = volume.bytes_of(&run.blocks);
        let bytes = match &run.content {
            Content::Data(bytes) => bytes,
            Content::Zeros(hole) => {
                all_of(std::mem::take(&mut begun)).await?;
                write_zeros(core, volume, range, *hole).await?;
                at += 1;
                continue;
            }
        };
        let mut end = at + 1;
        let mut length = bytes.len() as u64;
        while let Some(next) = runs.get(end)
            && let Some(more) = next.bytes()
            && next.blocks.start == runs[end - 1].blocks.end
            && length + more.len() as u64 <= most
        {
            length += more.len() as u64;
            end += 1;
        }
        let whole = if end == at + 1 {
            bytes.clone()
        } else {
            let mut whole = BytesMut::with_capacity(length as usize);
            runs[at..end].iter().filter_map(Run::bytes).for_each(|b| whole.extend_from_slice(b));
            whole.freeze()
        };
        let writes = volume.writes_of(range.start, &whole, Durable::AtFlush);
        begun.extend(writes.into_iter().map(|write| volume.ask(&core.tasks, write)));
        at = end;
    }
    all_of(begun).await
}

/// Makes zeros of a range of the backing: where it fails to, as a backing may that does not do what
/// it offers, by writing them, so that what lies behind them is written back.
async fn write_zeros(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    hole: Hole,
) -> Result<()> {
    let failed = match clear(core, volume, range.clone(), Clearing::Zeros(hole)).await {
        Err(error) if error.kind() != ErrorKind::Closing => error,
        cleared => return cleared,
    };
    let most = u64::from(volume.description.request_bytes_max).min(WRITE_BYTES_MAX);
    let zeros = Bytes::from(vec![0; most.min(range.end - range.start) as usize]);
    let mut at = range.start;
    while at < range.end {
        core.check_open(volume)?;
        let length = most.min(range.end - at);
        let writes = volume.writes_of(at, &zeros.slice(..length as usize), Durable::AtFlush);
        let begun = writes.into_iter().map(|write| volume.ask(&core.tasks, write)).collect();
        // Whatever keeps it from being written: the first reason tells more.
        all_of(begun).await.map_err(|_| failed.clone())?;
        at += length;
    }
    Ok(())
}

/// Puts what was written back into the cache as clean. Blocks that were written since, too: should
/// power loss take the newer write, no older copy may stand where this one is on the backing.
async fn keep_clean(core: &Rc<Core>, volume: &Rc<Volume>, runs: &[Run]) -> Result<()> {
    let mut puts = Vec::new();
    for run in runs {
        let Some(bytes) = run.bytes() else {
            invalidate(core, volume, run.blocks.clone()).await?;
            continue;
        };
        volume.counts.borrow_mut().cleaned_blocks += run.blocks.end - run.blocks.start;
        for block in run.blocks.clone() {
            let at = ((block - run.blocks.start) * BLOCK_BYTES) as usize;
            let end = (at + BLOCK_BYTES as usize).min(bytes.len());
            puts.push((block, insert(core, volume, block, &bytes[at..end])));
        }
    }
    for (block, put) in puts {
        if let Err(error) = put.await {
            volume.counts.borrow_mut().cache_write_errors += 1;
            core.note_error(&error);
            // An older clean copy must not stand where this one found no room.
            invalidate(core, volume, block..block + 1).await?;
        }
    }
    match core.failure() {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}
