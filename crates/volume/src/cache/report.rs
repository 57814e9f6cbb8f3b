//! Reports on volumes: the state of ranges, and the figures.

use std::ops::Range;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::backing::{Extent, ExtentKind};
use crate::cache::core::Core;
use crate::cache::volume::{Volume, log_space};
use crate::counts::Counts;
use crate::dirty::LogKind;
use crate::error::{Error, Result};
use crate::meta::BLOCK_BYTES;
use crate::request::Hole;
use crate::types::VolumeId;
use crate::volumes::{Context, Run, VolumeInfo};

/// Blocks that are looked at for one answer about residency.
const RESIDENCY_BLOCKS: u64 = 1 << 16;
const HOLE: u32 = 1;
const ZERO: u32 = 2;
const CACHED: u32 = 1;
const DIRTY: u32 = 2;

impl Volume {
    /// What a client is told of it.
    pub(crate) fn info(&self) -> VolumeInfo {
        VolumeInfo {
            id: self.id,
            name: self.name.clone(),
            description: self.record.borrow().options.description.clone(),
            bytes: self.bytes.get(),
            mode: self.mode.get(),
            read_only: self.description.read_only,
            can_trim: self.description.can_trim,
            preferred_bytes: BLOCK_BYTES as u32,
        }
    }
}

/// How a range stands.
pub(crate) fn extents(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    context: Context,
    ((offset, length), most): ((u64, u64), usize),
) -> Result<Vec<Run>> {
    let end = offset.saturating_add(length).min(volume.bytes.get()).max(offset);
    match context {
        Context::Residency => Ok(residency(core, volume, offset..end, most)),
        Context::Allocation => {
            let logged = logged(volume, &(offset..end));
            let clean =
                volume.with_backing(|backing| backing.allocation((offset, end - offset), most))?;
            Ok(allocated(&logged, &clean, offset..end, most))
        }
    }
}

/// How a range stands in [`Context::Allocation`], without waiting for the backing in a turn.
pub(crate) async fn allocation(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    (offset, length): (u64, u64),
    most: usize,
) -> Result<Vec<Run>> {
    let (most, end) = (most.max(1), offset.saturating_add(length).min(volume.bytes.get()));
    // Before the backing is asked: what is written back meanwhile may have been a hole there when
    // that looked, and is in the log no more once it has answered.
    let logged = logged(volume, &(offset..end));
    let mut clean: Vec<Extent> = Vec::new();
    let mut at = offset;
    // One more says that the last one is whole: the next piece told of may go on with it.
    while at < end && clean.len() <= most {
        let found = match volume.ask_allocation(&core.tasks, (at, end - at)) {
            Some(told) => Extent::decode(&told.await?),
            None => volume.with_backing(|backing| backing.allocation((at, end - at), most))?,
        };
        let before = at;
        for Extent { length, kind } in found {
            let length = length.min(end - at);
            at += length;
            match clean.last_mut() {
                Some(last) if last.kind == kind => last.length += length,
                _ if length > 0 => clean.push(Extent { length, kind }),
                _ => {}
            }
        }
        if at == before {
            // Nothing known: data, which is always true enough.
            clean.push(Extent { length: end - at, kind: ExtentKind::Data });
            at = end;
        }
    }
    clean.truncate(most);
    Ok(allocated(&logged, &clean, offset..end, most))
}

/// The bytes of a range, in order, and how those stand that the log has.
fn logged(volume: &Volume, range: &Range<u64>) -> Vec<(Range<u64>, Option<ExtentKind>)> {
    let blocks = volume.blocks_of(range.start, range.end.saturating_sub(range.start));
    let log = volume.log.borrow();
    let pieces = log.pieces(blocks).into_iter().map(|piece| {
        let entry = piece.entry.and_then(|number| log.entry(number));
        let kind = entry.map(|entry| match entry.kind {
            LogKind::Data => ExtentKind::Data,
            LogKind::Zeros(Hole::Allowed) => ExtentKind::Hole,
            LogKind::Zeros(Hole::Forbidden) => ExtentKind::Zero,
        });
        (volume.bytes_of(&piece.blocks), kind)
    });
    pieces.collect()
}

/// The runs of a range of which `clean` says how it stands on the backing.
fn allocated(
    logged: &[(Range<u64>, Option<ExtentKind>)],
    clean: &[Extent],
    range: Range<u64>,
    most: usize,
) -> Vec<Run> {
    let offset = range.start;
    // What the backing did not tell of yet is asked for when it is wanted.
    let told: u64 = clean.iter().map(|extent| extent.length).sum();
    let end = range.end.min(offset.saturating_add(told));
    let mut runs = Vec::new();
    // Those that end before what is looked at are done with.
    let (mut done, mut done_to) = (0, offset);
    for (bytes, kind) in logged {
        let (start, stop) = (bytes.start.max(offset), bytes.end.min(end));
        if start >= stop || runs.len() > most {
            break;
        }
        if let Some(kind) = kind {
            push(&mut runs, stop - start, flags_of(*kind));
            continue;
        }
        while let Some(extent) = clean.get(done) {
            let to = done_to + extent.length;
            let told = to.min(stop).saturating_sub(done_to.max(start));
            push(&mut runs, told, flags_of(extent.kind));
            if to > stop {
                break;
            }
            (done, done_to) = (done + 1, to);
        }
    }
    runs.truncate(most);
    runs
}

/// Which blocks of a range are in the cache, and which of those are dirty.
fn residency(core: &Core, volume: &Volume, range: Range<u64>, most: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    let blocks = blocks.start..blocks.end.min(blocks.start + RESIDENCY_BLOCKS);
    for piece in volume.log.borrow().pieces(blocks) {
        for block in piece.blocks {
            let flags = match piece.entry {
                Some(_) => CACHED | DIRTY,
                None if core.may_hold(volume.clean_space(), &block.to_be_bytes()) => CACHED,
                None => 0,
            };
            let bytes = volume.bytes_of(&(block..block + 1));
            let length = bytes.end.min(range.end) - bytes.start.max(range.start);
            push(&mut runs, length, flags);
        }
        if runs.len() > most {
            break;
        }
    }
    runs.truncate(most);
    runs
}

/// Figures of the cache and its volumes.
pub(crate) fn statistics(
    core: &Core,
    identity: u128,
    absent: &[(&(String, Error), &VolumeId)],
) -> String {
    let flash = core.store.statistics();
    let volumes = core.volumes.borrow();
    let volumes: Vec<Value> = volumes.iter().flatten().map(|volume| one(core, volume)).collect();
    let absent: Vec<Value> = absent
        .iter()
        .map(|((name, error), id)| {
            let log_entries = core.store.count(log_space(**id));
            json!({ "name": name, "error": error.to_string(), "log_entries": log_entries })
        })
        .collect();
    json!({
        "cache": {
            "identity": format!("{identity:032x}"),
            "device": core.store.device().name(),
            "block_bytes": BLOCK_BYTES,
            "capacity_bytes": flash.capacity_bytes,
            "live_bytes": flash.stored_live_bytes,
            "segments": flash.segments,
            "segments_free": flash.segments_free,
            "segments_reclaimed": flash.segments_reclaimed,
            "moved_bytes": flash.moved_bytes,
            "index_bytes": flash.index_bytes,
            "evicted": flash.evicted,
            "dirty_blocks_max": core.dirty_blocks_max,
            "failed": core.failure().map(|failure| failure.to_string()),
        },
        "volumes": volumes,
        "absent": absent,
    })
    .to_string()
}

fn one(core: &Core, volume: &Volume) -> Value {
    let Counts {
        read_hits,
        read_partial_misses,
        read_full_misses,
        write_hits,
        write_partial_misses,
        write_full_misses,
        pass_through_reads,
        pass_through_writes,
        ..
    } = *volume.counts.borrow();
    let counts = *volume.counts.borrow();
    let clean = core.store.count(volume.clean_space());
    let log = volume.log.borrow();
    let record = volume.record.borrow();
    let reads = read_hits + read_partial_misses + read_full_misses;
    let writes = write_hits + write_partial_misses + write_full_misses;
    let requests = json!({
        "read_hits": read_hits,
        "read_partial_misses": read_partial_misses,
        "read_full_misses": read_full_misses,
        "reads": reads,
        "write_hits": write_hits,
        "write_partial_misses": write_partial_misses,
        "write_full_misses": write_full_misses,
        "writes": writes,
        "pass_through_reads": pass_through_reads,
        "pass_through_writes": pass_through_writes,
        "serviced": reads + writes,
        "total": reads + writes + pass_through_reads + pass_through_writes,
        "flushes": counts.flushes,
        "trims": counts.trims,
        "prefetches": counts.prefetches,
        "coalesced": counts.coalesced,
    });
    json!({
        "name": volume.name,
        "number": volume.id.0,
        "bytes": volume.bytes.get(),
        "backing": record.options.backing,
        "mode": volume.mode.get().name(),
        "usage": {
            "occupancy": clean + log.logged_blocks(),
            "clean": clean,
            "dirty": log.dirty_blocks(),
            "logged": log.logged_blocks(),
            "log_entries": log.len(),
            "share_bytes": record.options.share_bytes,
        },
        "requests": requests,
        "backing_requests": backing_requests(&counts),
        "blocks": blocks(&counts),
        "errors": {
            "cache_reads": counts.cache_read_errors,
            "cache_writes": counts.cache_write_errors,
            "backing_reads": counts.backing_read_errors,
            "backing_writes": counts.backing_write_errors,
            "write_back": volume.clean_error.borrow().as_ref().map(ToString::to_string),
        },
    })
}

fn backing_requests(counts: &Counts) -> Value {
    json!({
        "reads": counts.backing_reads,
        "writes": counts.backing_writes,
        "flushes": counts.backing_flushes,
    })
}

fn blocks(counts: &Counts) -> Value {
    json!({
        "read": counts.blocks_read,
        "read_hit": counts.blocks_read_hit,
        "written": counts.blocks_written,
        "written_hit": counts.blocks_written_hit,
        "insertions": counts.insertions,
        "from_backing": counts.blocks_from_backing,
        "to_backing": counts.blocks_to_backing,
        "to_clients": counts.blocks_to_clients,
        "from_clients": counts.blocks_from_clients,
        "cleaned": counts.cleaned_blocks,
    })
}

fn flags_of(kind: ExtentKind) -> u32 {
    match kind {
        ExtentKind::Data => 0,
        ExtentKind::Zero => ZERO,
        ExtentKind::Hole => HOLE | ZERO,
    }
}

fn push(runs: &mut Vec<Run>, length: u64, flags: u32) {
    match runs.last_mut() {
        _ if length == 0 => {}
        Some(last) if last.flags == flags => last.length += length,
        _ => runs.push(Run { length, flags }),
    }
}
