//! Writing: through to the backing, after letting go of cached blocks, or into the log.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use entresol_flash::{ErrorKind as FlashErrorKind, Key, Pinning, PutOptions};
use entresol_planted::planted;

use crate::backing::BackingRequest;
use crate::cache::core::{ABSENT_LABEL, Core, Flash};
use crate::cache::overwrite::{cached_of, overwrite};
use crate::cache::read::{self, Keep, assemble, gather};
use crate::cache::volume::Volume;
use crate::dirty::{LogEntry, LogKind};
use crate::error::Result;
use crate::meta::{BLOCK_BYTES, LogHeader, key_of};
use crate::policy::sequential::Direction;
use crate::ranges::Access;
use crate::request::{Durable, Hole};
use crate::tasks::Reply;
use crate::types::{Mode, Moment};

/// Data of one log entry at most: what a read of one of its blocks has to fetch.
pub(crate) const ENTRY_BYTES_MAX: usize = 16 << 10;
/// Blocks whose cached copies are let go in one go.
const INVALIDATE_MAX: u64 = 1024;
/// Blocks that are looked at in one turn.
const INVALIDATE_TURN: u64 = 4096;
/// Most blocks that are replaced by one write: after a kill each is looked at.
const OVERWRITE_BLOCKS_MAX: u64 = 128;
/// Most bytes of the backing that one request clears.
const CLEAR_BYTES_MAX: u64 = 64 << 30;

/// What a write makes of its range.
pub(crate) enum Change {
    Data(Bytes),
    Zeros(Hole),
    /// As zeros, where that costs nothing.
    Trim,
}

/// Writes through to the backing; the caller has locked the blocks.
pub(crate) async fn write_through(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    (change, durable): (Change, Durable),
) -> Result<()> {
    let alignment = u64::from(volume.description.alignment.max(1));
    let aligned = range.start.is_multiple_of(alignment)
        && (range.end.is_multiple_of(alignment) || range.end == volume.bytes.get());
    match change {
        Change::Trim if !volume.description.can_trim => Ok(()),
        Change::Trim => {
            let whole = volume.whole_blocks_of(range.start, range.end - range.start);
            through(core, volume, volume.bytes_of(&whole), (Change::Trim, durable)).await
        }
        Change::Data(bytes) if !aligned => {
            let blocks = volume.blocks_of(range.start, range.end - range.start);
            let whole = with_edges(core, volume, range, bytes).await?;
            through(core, volume, volume.bytes_of(&blocks), (Change::Data(whole), durable)).await
        }
        Change::Zeros(hole) if !aligned => {
            let (whole, edges) = split(volume, &range);
            for edge in edges {
                let (range, bytes) = zeroed_edge(core, volume, edge).await?;
                through(core, volume, range, (Change::Data(bytes), durable)).await?;
            }
            through(core, volume, volume.bytes_of(&whole), (Change::Zeros(hole), durable)).await
        }
        change => through(core, volume, range, (change, durable)).await,
    }
}

/// Writes into the log; the caller has locked the blocks.
pub(crate) async fn write_back(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    (change, durable): (Change, Durable),
) -> Result<()> {
    let length = range.end - range.start;
    match change {
        Change::Data(bytes) => {
            let blocks = volume.blocks_of(range.start, length);
            let hits = cached_blocks(core, volume, &blocks);
            let bytes = with_edges(core, volume, range, bytes).await?;
            append_data(core, volume, blocks.clone(), &bytes).await?;
            volume.counts.borrow_mut().count_write(hits, blocks.end - blocks.start);
        }
        Change::Trim => {
            let whole = volume.whole_blocks_of(range.start, length);
            append_zeros(core, volume, whole, Hole::Allowed).await?;
        }
        Change::Zeros(hole) => {
            if hole == Hole::Forbidden {
                // Taken now, it would fail when it is written back, and all behind it.
                volume.with_backing(|backing| backing.check_room((range.start, length)))?;
            }
            let (whole, edges) = split(volume, &range);
            for edge in edges {
                let (range, bytes) = zeroed_edge(core, volume, edge).await?;
                let blocks = volume.blocks_of(range.start, range.end - range.start);
                append_data(core, volume, blocks, &bytes).await?;
            }
            append_zeros(core, volume, whole, hole).await?;
        }
    }
    volume.kick.raise(&core.tasks);
    match durable {
        Durable::AtFlush => Ok(()),
        Durable::AtOnce => sync_log(core, volume).await,
    }
}

/// Makes what is in the log survive power loss. What is written from now on does not reach the
/// backing before it: the backing alone must not lack it and have what was begun later.
pub(crate) async fn sync_log(core: &Core, volume: &Volume) -> Result<()> {
    volume.log.borrow_mut().begin_epoch();
    let last = volume.log.borrow().next().saturating_sub(1);
    core.sync().await?;
    volume.synced_to.set(volume.synced_to.get().max(last));
    Ok(())
}

/// Lets go of the cached copies of `blocks`; which of them were cached.
pub(crate) async fn invalidate(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
) -> Result<Vec<u64>> {
    let mut found = Sought::default();
    if let Some(failure) = core.failure() {
        core.may_write_around(&failure)?;
        return Ok(found.held);
    }
    let parts = volume.held.borrow().within(&blocks);
    let many = parts.iter().map(|part| part.end - part.start).sum::<u64>() > INVALIDATE_MAX;
    if blocks == (0..volume.blocks()) && many {
        core.store.drop_space(volume.clean_space())?;
    } else {
        for part in parts {
            invalidate_part(core, volume, part, &mut found).await?;
        }
    }
    if core.failure().is_none() {
        volume.held.borrow_mut().unmark(&blocks);
    }
    Ok(found.held)
}

/// What was looked for in the cache to be let go.
#[derive(Default)]
struct Sought {
    /// Blocks, cached or not.
    blocks: u64,
    /// Those that were cached.
    held: Vec<u64>,
}

/// Lets go of the cached copies of a part.
async fn invalidate_part(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
    found: &mut Sought,
) -> Result<()> {
    let space = volume.clean_space();
    let mut at = blocks.start;
    while at < blocks.end {
        if let Some(failure) = core.failure() {
            return core.may_write_around(&failure);
        }
        if found.blocks >= INVALIDATE_TURN {
            core.check_open(volume)?;
        }
        let end = blocks.end.min(at + INVALIDATE_MAX);
        volume.counts.borrow_mut().blocks_sought += end - at;
        let removes: Vec<_> =
            (at..end).map(|block| core.remove(space, &block.to_be_bytes())).collect();
        for (block, removed) in (at..end).zip(removes) {
            match core.removed(removed, (space, &block.to_be_bytes())).await {
                Ok(Flash::Missing) => {}
                Ok(_) => found.held.push(block),
                // It could not be read, so not be removed; what takes its place needs no reading.
                Err(error) => {
                    volume.counts.borrow_mut().cache_read_errors += 1;
                    core.note_error(&error);
                    let key = block.to_be_bytes();
                    let options = PutOptions { label: ABSENT_LABEL, ..PutOptions::default() };
                    let put = core.put_patiently(Key::new(space, &key), &[], options);
                    if let Err(error) = put.await {
                        volume.counts.borrow_mut().cache_write_errors += 1;
                        core.note_error(&error);
                        let failure = core.failure().unwrap_or_else(|| error.into());
                        core.may_write_around(&failure)?;
                    }
                }
            }
        }
        let turns = found.blocks / INVALIDATE_TURN;
        found.blocks += end - at;
        at = end;
        if found.blocks / INVALIDATE_TURN > turns {
            // Of what is not cached nothing is waited for: others have their turn.
            core.sleep_until(Moment(core.now.get().0 + 1)).await;
        }
    }
    Ok(())
}

/// Writes a range that the backing takes as it is.
async fn through(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    (change, durable): (Change, Durable),
) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    // What of a range is not cached, and not put into the cache, cannot be stale there.
    let stale = match change {
        Change::Data(_) => vec![blocks.clone()],
        Change::Zeros(_) | Change::Trim => volume.held.borrow().within(&blocks),
    };
    stale.iter().for_each(|blocks| volume.regions.borrow_mut().begin_write(blocks));
    let opened = open_all(core, volume, &stale).await;
    let written = match opened {
        Ok(()) => write_in_regions(core, volume, (range, blocks), (change, durable)).await,
        Err(error) => Err(error),
    };
    stale.iter().for_each(|blocks| volume.regions.borrow_mut().end_write(blocks));
    written
}

async fn open_all(core: &Rc<Core>, volume: &Rc<Volume>, stale: &[Range<u64>]) -> Result<()> {
    for blocks in stale {
        open_regions(core, volume, blocks).await?;
    }
    Ok(())
}

async fn write_in_regions(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    (range, blocks): (Range<u64>, Range<u64>),
    (change, durable): (Change, Durable),
) -> Result<()> {
    let follows = matches!(change, Change::Data(_)) && volume.mode.get() != Mode::PassThrough;
    let goes_around = follows && volume.follow(Direction::Write, &range).around;
    if let Change::Data(bytes) = &change
        && volume.mode.get() == Mode::WriteThrough
        && core.failure().is_none()
    {
        let cached = cached_of(core, volume, &blocks);
        let few = blocks.end - blocks.start <= OVERWRITE_BLOCKS_MAX;
        if !cached.is_empty() && !goes_around && few {
            let to = (range.clone(), blocks.clone());
            if let Some(written) = overwrite(core, volume, to, (bytes, durable)).await {
                written?;
                volume.count_write(cached.len() as u64, blocks.end - blocks.start);
                let space = volume.clean_space();
                cached.iter().for_each(|block| core.mark_read(space, &block.to_be_bytes()));
                return Ok(());
            }
        }
    }
    let held = if planted!("write-through-keeps-old-blocks") {
        Vec::new()
    } else {
        invalidate(core, volume, blocks.clone()).await?
    };
    match &change {
        Change::Data(bytes) => {
            let requests = volume.writes_of(range.start, bytes, durable).into_iter();
            let begun = requests.map(|request| volume.ask(&core.tasks, request)).collect();
            all_of(begun).await?;
        }
        Change::Zeros(hole) => clear(core, volume, range.clone(), Clearing::Zeros(*hole)).await?,
        Change::Trim => clear(core, volume, range.clone(), Clearing::Trim).await?,
    }
    if !matches!(change, Change::Data(_)) && durable == Durable::AtOnce {
        volume.ask(&core.tasks, BackingRequest::Flush).await?;
    }
    let mode = volume.mode.get();
    volume.count_write(held.len() as u64, blocks.end - blocks.start);
    if mode == Mode::PassThrough {
        return Ok(());
    }
    let Change::Data(bytes) = change else { return Ok(()) };
    if goes_around || core.failure().is_some() {
        return Ok(());
    }
    let whole = volume.whole_blocks_of(range.start, range.end - range.start);
    let kept = whole.filter(|block| mode != Mode::WriteAround || held.contains(block));
    let puts = kept.map(|block| {
        let of = volume.bytes_of(&(block..block + 1));
        let bytes = &bytes[(of.start - range.start) as usize..(of.end - range.start) as usize];
        read::insert(core, volume, block, bytes)
    });
    let puts = puts.collect();
    read::settle(core, volume, puts).await;
    // Written over while it was cached: it is in use.
    held.iter().for_each(|block| core.mark_read(volume.clean_space(), &block.to_be_bytes()));
    Ok(())
}

/// What is made of a range of the backing without bytes being sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clearing {
    Zeros(Hole),
    Trim,
}

/// Clears a range of the backing piece by piece: what is asked to stop waits for a piece only.
pub(crate) async fn clear(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    clearing: Clearing,
) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        if at > range.start {
            core.check_open(volume)?;
        }
        // To its next multiple, so that pieces are aligned where the range is not.
        let end = range.end.min((at / CLEAR_BYTES_MAX + 1) * CLEAR_BYTES_MAX);
        let (offset, length) = (at, end - at);
        let request = match clearing {
            Clearing::Zeros(hole) => BackingRequest::Zero { offset, length, hole },
            Clearing::Trim => BackingRequest::Trim { offset, length },
        };
        volume.ask(&core.tasks, request).await?;
        at = end;
    }
    Ok(())
}

/// Waits until all that was begun has ended, whatever fails; the first error.
pub(crate) async fn all_of(begun: Vec<Reply<Result<Bytes>>>) -> Result<()> {
    let mut failed = None;
    for request in begun {
        let ended = request.await;
        failed = failed.or(ended.err());
    }
    failed.map_or(Ok(()), Err)
}

/// Waits until the regions of `blocks` are open durably.
async fn open_regions(core: &Rc<Core>, volume: &Rc<Volume>, blocks: &Range<u64>) -> Result<()> {
    loop {
        if volume.regions.borrow().are_open(blocks) || planted!("regions-not-opened") {
            return Ok(());
        }
        if let Some(failure) = core.failure() {
            return core.may_write_around(&failure);
        }
        if volume.regions_writer.get() {
            volume.regions_changed.wait(&core.tasks).await;
            continue;
        }
        volume.regions_writer.set(true);
        let record = volume.regions.borrow_mut().record();
        let key = key_of("regions/", volume.id);
        let put = core.put_pinned(Key::new(super::META_SPACE, &key), &record.encode()).await;
        let synced = match &put {
            Ok(_) => core.sync().await,
            Err(_) => Ok(()),
        };
        if put.is_ok() && synced.is_ok() {
            volume.regions.borrow_mut().opened();
        }
        volume.regions_writer.set(false);
        volume.regions_changed.raise(&core.tasks);
        if let Err(error) = put
            && !core.note_error(&error)
        {
            return Err(error.into());
        }
    }
}

/// The whole blocks of a range, and what of it lies before and after them.
fn split(volume: &Volume, range: &Range<u64>) -> (Range<u64>, Vec<Range<u64>>) {
    let whole = volume.whole_blocks_of(range.start, range.end - range.start);
    if whole.is_empty() {
        return (whole, vec![range.clone()]);
    }
    let inner = volume.bytes_of(&whole);
    let edges = [range.start..inner.start, inner.end..range.end];
    (whole, edges.into_iter().filter(|edge| !edge.is_empty()).collect())
}

/// The blocks around an edge, with zeros in it.
async fn zeroed_edge(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    edge: Range<u64>,
) -> Result<(Range<u64>, Bytes)> {
    let blocks = volume.blocks_of(edge.start, edge.end - edge.start);
    let zeros = BytesMut::zeroed((edge.end - edge.start) as usize).freeze();
    Ok((volume.bytes_of(&blocks), with_edges(core, volume, edge, zeros).await?))
}

/// `bytes` for `range`, completed to whole blocks with what stands there.
async fn with_edges(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    bytes: Bytes,
) -> Result<Bytes> {
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    let whole = volume.bytes_of(&blocks);
    if whole == range {
        return Ok(bytes);
    }
    let mut out = BytesMut::with_capacity((whole.end - whole.start) as usize);
    if whole.start < range.start {
        let first = blocks.start..blocks.start + 1;
        let present = gather(core, volume, first, Keep::No).await?;
        out.extend_from_slice(&assemble(&present.parts, whole.start..range.start));
    }
    out.extend_from_slice(&bytes);
    if range.end < whole.end {
        let last = blocks.end - 1..blocks.end;
        let present = gather(core, volume, last, Keep::No).await?;
        out.extend_from_slice(&assemble(&present.parts, range.end..whole.end));
    }
    Ok(out.freeze())
}

/// How many of `blocks` are cached, by what is in memory.
fn cached_blocks(core: &Core, volume: &Volume, blocks: &Range<u64>) -> u64 {
    let space = volume.clean_space();
    let pieces = volume.log.borrow().pieces(blocks.clone());
    pieces
        .into_iter()
        .map(|piece| match piece.entry {
            Some(_) => piece.blocks.end - piece.blocks.start,
            None => piece.blocks.filter(|block| core.may_hold(space, &block.to_be_bytes())).count()
                as u64,
        })
        .sum()
}

async fn append_data(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
    bytes: &Bytes,
) -> Result<()> {
    let step = ENTRY_BYTES_MAX as u64 / BLOCK_BYTES;
    let turn = volume.appends.lock(&core.tasks, 0..1, Access::Exclusive).await;
    let mut at = blocks.start;
    while at < blocks.end {
        let end = blocks.end.min(at + step);
        let start = ((at - blocks.start) * BLOCK_BYTES) as usize;
        let chunk = &bytes[start..bytes.len().min(start + ENTRY_BYTES_MAX)];
        append(core, volume, at..end, (LogKind::Data, chunk)).await?;
        at = end;
    }
    drop(turn);
    Ok(())
}

async fn append_zeros(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
    hole: Hole,
) -> Result<()> {
    if blocks.is_empty() {
        return Ok(());
    }
    let turn = volume.appends.lock(&core.tasks, 0..1, Access::Exclusive).await;
    let appended = append(core, volume, blocks, (LogKind::Zeros(hole), &[])).await;
    drop(turn);
    appended
}

/// Appends one entry, once there is room.
async fn append(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
    (kind, bytes): (LogKind, &[u8]),
) -> Result<()> {
    loop {
        if let Some(failure) = core.failure() {
            return Err(failure);
        }
        if has_room(core, volume) {
            let (number, epoch) = {
                let log = volume.log.borrow();
                (log.next(), log.epoch())
            };
            let header = LogHeader {
                volume: volume.id.0,
                kind,
                incarnation: volume.incarnation,
                epoch,
                first: blocks.start,
                blocks: blocks.end - blocks.start,
            };
            let value = [&header.encode()[..], bytes].concat();
            let key = number.to_be_bytes();
            let partition = partition_of(number, volume.record.borrow().partition_entries);
            let key = Key { space: volume.log_space(), partition, bytes: &key };
            let options = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
            match core.put_patiently(key, &value, options).await {
                Ok(_) => {
                    if volume.log.borrow().len() == 0 {
                        volume.dirty_since.set(core.now.get());
                    }
                    volume.log.borrow_mut().append(LogEntry { number, epoch, blocks, kind });
                    return Ok(());
                }
                Err(error) => {
                    volume.counts.borrow_mut().cache_write_errors += 1;
                    if error.kind() != FlashErrorKind::Full || !gains_room(core) {
                        core.note_error(&error);
                        return Err(error.into());
                    }
                    core.lingering_max.set(0);
                    core.tell_lingering();
                }
            }
        }
        core.check_open(volume)?;
        ask_for_room(core, volume);
        core.await_room().await;
    }
}

fn has_room(core: &Core, volume: &Volume) -> bool {
    let entries_max = volume.record.borrow().partition_entries * super::PARTITIONS_FILLED;
    is_within_budget(core) && (volume.log.borrow().len() as u64) < entries_max
}

/// Whether writing back, or letting go of what was, makes any room.
fn gains_room(core: &Core) -> bool {
    let volumes = core.volumes.borrow();
    volumes.iter().flatten().any(|volume| core.store.count(volume.log_space()) > 0)
}

/// Whether the logs of all volumes together may grow.
fn is_within_budget(core: &Core) -> bool {
    let volumes = core.volumes.borrow();
    let logged = volumes.iter().flatten().map(|volume| volume.log.borrow().logged_blocks());
    logged.sum::<u64>() < core.dirty_blocks_max
}

/// Has the logs written back that are in the way of a write to `volume`.
fn ask_for_room(core: &Core, volume: &Volume) {
    let of_all = !is_within_budget(core) || core.lingering_max.get() == 0;
    for holder in core.volumes.borrow().iter().flatten() {
        if of_all || holder.id == volume.id {
            let last = holder.log.borrow().next().saturating_sub(1);
            holder.drain_to.set(holder.drain_to.get().max(last));
            holder.kick.raise(&core.tasks);
        }
    }
}

/// The partition of the log's space that an entry is in.
pub(crate) fn partition_of(number: u64, partition_entries: u64) -> u16 {
    (number / partition_entries % super::PARTITIONS) as u16
}
