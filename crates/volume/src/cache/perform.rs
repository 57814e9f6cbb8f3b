//! Each kind of request, once its blocks are locked.

use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use entresol_flash::Key;
use entresol_planted::planted;

use crate::backing::BackingRequest;
use crate::cache::META_SPACE;
use crate::cache::ahead::read_ahead;
use crate::cache::clean::{drain, settle_state};
use crate::cache::core::Core;
use crate::cache::read::{Keep, assemble, gather};
use crate::cache::report::allocation;
use crate::cache::tune::{remove, resize, tune};
use crate::cache::volume::Volume;
use crate::cache::write::{Change, sync_log, write_back, write_through};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::key_of;
use crate::policy::sequential::Direction;
use crate::ranges::Access;
use crate::request::{Cost, Request};
use crate::types::Mode;
use crate::volumes::Run;

/// Blocks that are prefetched in one go.
const PREFETCH_BLOCKS: u64 = 256;
/// Flushes from one sweep of the regions to the next.
const SWEEP_FLUSHES: u32 = 64;

/// Performs a request whose `blocks` are locked, but for those of a prefetch.
pub(crate) async fn perform(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    request: Request,
    blocks: Range<u64>,
) -> Result<Bytes> {
    let done = match request {
        Request::Read { offset, length } => {
            return read(core, volume, offset..offset + u64::from(length)).await;
        }
        Request::Allocation { offset, length, most } => {
            return Ok(Run::encode(&allocation(core, volume, (offset, length), most).await?));
        }
        Request::Write { bytes, .. } if bytes.is_empty() => Ok(()),
        Request::Write { offset, bytes, durable } => {
            let range = offset..offset + bytes.len() as u64;
            write(core, volume, range, (Change::Data(bytes), durable)).await
        }
        Request::Trim { offset, length, durable } => {
            volume.counts.borrow_mut().trims += 1;
            write(core, volume, offset..offset + length, (Change::Trim, durable)).await
        }
        Request::Zero { cost: Cost::LessThanWrite, .. } if !volume.zeroes_fast() => {
            let detail =
                format!("volume {}: zeros cost as much as a write; write them", volume.name);
            Err(Error::new(ErrorKind::Unsupported, detail))
        }
        Request::Zero { offset, length, hole, durable, .. } => {
            volume.counts.borrow_mut().trims += 1;
            write(core, volume, offset..offset + length, (Change::Zeros(hole), durable)).await
        }
        Request::Flush => flush(core, volume).await,
        Request::Prefetch { .. } => prefetch(core, volume, blocks).await,
        Request::WriteBack => {
            drain(core, volume).await?;
            settle_state(core, volume).await
        }
        Request::SetMode(mode) => set_mode(core, volume, mode).await,
        Request::Tune(tuning) => tune(core, volume, &tuning).await,
        Request::Resize => resize(core, volume).await,
        Request::Remove(dirty) => remove(core, volume, dirty).await,
    };
    done.map(|()| Bytes::new())
}

async fn read(core: &Rc<Core>, volume: &Rc<Volume>, range: Range<u64>) -> Result<Bytes> {
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    let count = blocks.end - blocks.start;
    let mode = volume.mode.get();
    let followed = volume.follow(Direction::Read, &range);
    let keep = match mode {
        Mode::PassThrough => Keep::Around,
        Mode::WriteOnly => Keep::No,
        _ if followed.around => Keep::No,
        _ if followed.streams => Keep::Again,
        _ => Keep::Yes,
    };
    let reads_ahead = !matches!(mode, Mode::PassThrough | Mode::WriteOnly);
    if let Some(ahead) = followed.ahead.filter(|_| reads_ahead) {
        read_ahead(core, volume, ahead);
    }
    let gathered = gather(core, volume, blocks, keep).await?;
    let mut counts = volume.counts.borrow_mut();
    if keep == Keep::Around {
        counts.pass_through_reads += 1;
        counts.blocks_to_clients += count;
    } else {
        counts.count_read(gathered.hits, count);
    }
    Ok(assemble(&gathered.parts, range))
}

async fn write(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    range: Range<u64>,
    change: (Change, crate::request::Durable),
) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    if !planted!("ahead-outlives-writes") {
        core.ahead.borrow_mut().forget(volume.id, &blocks);
    }
    if volume.mode.get().is_lazy() {
        write_back(core, volume, range, change).await
    } else {
        write_through(core, volume, range, change).await
    }
}

async fn flush(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    volume.counts.borrow_mut().flushes += 1;
    if volume.mode.get().is_lazy() {
        return sync_log(core, volume).await;
    }
    let flushes = volume.flushes_since_sweep.get() + 1;
    let sweeps = flushes >= SWEEP_FLUSHES
        && !volume.sweeping.get()
        && core.failure().is_none()
        && volume.regions.borrow().any_open();
    volume.flushes_since_sweep.set(if sweeps { 0 } else { flushes });
    if sweeps {
        volume.sweeping.set(true);
        volume.regions.borrow_mut().begin_sweep();
    }
    let flushed = volume.ask(&core.tasks, BackingRequest::Flush).await;
    if sweeps {
        if flushed.is_ok() {
            sweep(core, volume).await;
        }
        volume.sweeping.set(false);
    }
    flushed.map(drop)
}

/// Closes regions that are not written any more; they stay open where that fails.
async fn sweep(core: &Rc<Core>, volume: &Rc<Volume>) {
    if core.sync().await.is_err() {
        return;
    }
    // One record after the other: the newest on the medium must be the newest that was made.
    while volume.regions_writer.get() {
        volume.regions_changed.wait(&core.tasks).await;
    }
    volume.regions_writer.set(true);
    let record = volume.regions.borrow_mut().end_sweep();
    if let Some(record) = record {
        let key = key_of("regions/", volume.id);
        let put = core.put_pinned(Key::new(META_SPACE, &key), &record.encode()).await;
        if let Err(error) = put {
            core.note_error(&error);
        }
    }
    volume.regions_writer.set(false);
    volume.regions_changed.raise(&core.tasks);
}

async fn prefetch(core: &Rc<Core>, volume: &Rc<Volume>, blocks: Range<u64>) -> Result<()> {
    volume.counts.borrow_mut().prefetches += 1;
    let mut at = blocks.start;
    while at < blocks.end && volume.mode.get() != Mode::PassThrough {
        let end = blocks.end.min(at + PREFETCH_BLOCKS);
        // Piece by piece: a write waits for the one that it touches, and not for all of them.
        let guard = volume.ranges.lock(&core.tasks, at..end, Access::Shared).await;
        volume.check_present()?;
        gather(core, volume, at..end, Keep::Yes).await?;
        drop(guard);
        at = end;
    }
    Ok(())
}

/// Lets go of all clean blocks, durably.
fn forget_clean(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    if let Some(failure) = core.failure() {
        return core.may_write_around(&failure);
    }
    if core.store.count(volume.clean_space()) > 0 {
        core.store.drop_space(volume.clean_space()).map_err(|error| {
            core.note_error(&error);
            Error::from(error)
        })?;
    }
    Ok(())
}

async fn set_mode(core: &Rc<Core>, volume: &Rc<Volume>, mode: Mode) -> Result<()> {
    let before = volume.mode.get();
    if before == mode {
        return Ok(());
    }
    if before.is_lazy() && !mode.is_lazy() {
        drain(core, volume).await?;
        settle_state(core, volume).await?;
    }
    if (before == Mode::PassThrough || mode == Mode::PassThrough)
        && !planted!("trusted-after-passing-through")
    {
        // The cache is out of the way so that others may write to the backing: what it holds is
        // believed no more. Leaving, too: a prefetch may have waited for this to end.
        core.ahead.borrow_mut().forget(volume.id, &(0..volume.blocks()));
        forget_clean(core, volume)?;
    }
    if !before.is_lazy() && mode.is_lazy() {
        // What was answered so far is on the backing only: the log begins after it.
        volume.ask(&core.tasks, BackingRequest::Flush).await?;
    }
    let mut record = volume.record.borrow().clone();
    record.options.mode = mode;
    let key = key_of("volume/", volume.id);
    core.put_pinned(Key::new(META_SPACE, &key), &record.encode()).await?;
    core.sync().await?;
    volume.record.borrow_mut().options.mode = mode;
    volume.mode.set(mode);
    Ok(())
}
