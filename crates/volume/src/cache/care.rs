//! Care of volumes: checking cached blocks against the backing, a new size, removal.

use std::rc::Rc;

use entresol_flash::Key;

use super::{Cache, META_SPACE};
use crate::backing::BackingRequest;
use crate::cache::core::{ABSENT_LABEL, Core, Flash};
use crate::cache::overwrite::OVERWRITES_MAX;
use crate::cache::volume::{Volume, clean_space, log_space};
use crate::dirty::LogKind;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{KINDS, key_of, overwrite_key};
use crate::ranges::Access;
use crate::types::{Moment, VolumeId};

/// Blocks that are checked in one go.
const CHECK_BLOCKS: u64 = 256;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Blocks of the volume.
    pub blocks: u64,
    /// Clean blocks in the cache that read as the backing does.
    pub clean: u64,
    /// Dirty blocks whose bytes can be read.
    pub dirty: u64,
    /// Clean blocks that differ from the backing: none, ever.
    pub wrong: Vec<u64>,
    /// Clean blocks that cannot be read from the cache: they are read from the backing instead.
    pub unreadable: u64,
    /// Dirty blocks that cannot be read: their writes are lost.
    pub lost: Vec<u64>,
}

impl Cache {
    /// Reads everything that is cached of a volume and compares what is clean with the backing.
    /// Waits; `progress` hears how many blocks of how many are done. Changes nothing.
    pub fn check(
        &mut self,
        volume: VolumeId,
        now: Moment,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CheckReport> {
        let of = self.known(volume)?;
        let mut report = CheckReport { blocks: of.blocks(), ..CheckReport::default() };
        report.dirty = zero_blocks(&of);
        for part in may_be_cached(&of) {
            let mut at = part.start;
            while at < part.end {
                let end = part.end.min(at + CHECK_BLOCKS);
                let (core, of) = (Rc::clone(&self.core), Rc::clone(&of));
                let found = self.block_on(now, async move { check(&core, &of, at..end).await })?;
                report.clean += found.clean;
                report.dirty += found.dirty;
                report.wrong.extend(found.wrong);
                report.unreadable += found.unreadable;
                report.lost.extend(found.lost);
                at = end;
                progress(at, report.blocks);
            }
        }
        progress(report.blocks, report.blocks);
        Ok(report)
    }

    /// Removes a volume from the cache; its backing stays. Waits.
    ///
    /// Errors: `Io` if blocks are dirty, unless `dirty` says that they may be lost.
    pub fn remove(&mut self, volume: VolumeId, dirty: Dirty, now: Moment) -> Result<()> {
        let of = self.known(volume)?;
        let core = Rc::clone(&self.core);
        self.block_on(now, async move {
            let all = 0..of.blocks();
            let _alone = of.ranges.lock(&core.tasks, all, Access::Exclusive).await;
            super::tune::remove(&core, &of, dirty).await
        })
    }

    /// Removes a volume whose backing could not be opened, as [`Cache::remove`] does. Whether what
    /// its log holds was written back is not known without the backing: it counts as dirty.
    ///
    /// # Errors
    /// `Name` if no volume of the name is absent, `Io` if its log holds blocks that are to be kept,
    /// and what the store says.
    pub fn remove_absent(&mut self, name: &str, dirty: Dirty, now: Moment) -> Result<()> {
        let Some(at) = self.absent.iter().position(|(absent, _)| absent == name) else {
            let detail = format!("no volume named {name} is absent");
            return Err(Error::new(ErrorKind::Name, detail));
        };
        let volume = self.absent_at[at].0;
        let blocks = self.core.store.count(log_space(volume));
        if blocks > 0 && dirty == Dirty::Keep {
            let detail = format!(
                "volume {name}: {blocks} blocks may be dirty, and only in this cache, and {}; \
                 bring its backing back, or let them go (`--lose-dirty`)",
                self.absent[at].1
            );
            return Err(Error::new(ErrorKind::Io, detail));
        }
        self.forget(volume, now)?;
        self.absent.remove(at);
        self.absent_at.remove(at);
        Ok(())
    }

    /// Drops all that the cache has of a volume.
    fn forget(&mut self, volume: VolumeId, now: Moment) -> Result<()> {
        self.core.store.drop_space(clean_space(volume))?;
        self.core.store.drop_space(log_space(volume))?;
        for place in 0..OVERWRITES_MAX {
            let key = overwrite_key(volume, place);
            if self.core.may_hold(META_SPACE, &key) {
                let core = Rc::clone(&self.core);
                self.block_on(now, async move { Ok(core.remove(META_SPACE, &key).await?) })?;
            }
        }
        for kind in KINDS {
            let core = Rc::clone(&self.core);
            self.block_on(now, async move {
                core.remove(META_SPACE, &key_of(kind, volume)).await?;
                core.sync().await
            })?;
        }
        Ok(())
    }

    fn known(&self, volume: VolumeId) -> Result<Rc<Volume>> {
        self.core.volume(volume).ok_or_else(|| {
            Error::new(ErrorKind::Name, format!("there is no volume of number {}", volume.0))
        })
    }
}

/// A volume that takes over a backing as it is now, whatever it was before. Clean blocks are
/// dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    /// Which volume.
    pub name: String,
    /// Where its backing is now; `None`: where it was.
    pub backing: Option<String>,
    /// What becomes of its dirty blocks: kept, they are written over the backing later.
    pub dirty: Dirty,
}

/// What becomes of dirty blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dirty {
    /// They are kept. What they would be lost by is not done while there are any.
    Keep,
    /// They are lost.
    Lose,
}

/// The parts of a volume that may have blocks in the cache, clean ones or data of the log, in
/// order. Zeros of the log are not read from the device.
fn may_be_cached(volume: &Volume) -> Vec<std::ops::Range<u64>> {
    let all = 0..volume.blocks();
    let mut parts = volume.held.borrow().within(&all);
    let log = volume.log.borrow();
    let is_data = |number| log.entry(number).is_some_and(|entry| entry.kind == LogKind::Data);
    let pieces = log.pieces(all).into_iter().filter(|piece| piece.entry.is_some_and(is_data));
    parts.extend(pieces.map(|piece| piece.blocks));
    parts.sort_by_key(|part| part.start);
    let mut joined: Vec<std::ops::Range<u64>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined
}

/// Dirty blocks that are zeros: the log has nothing to be read for them.
fn zero_blocks(volume: &Volume) -> u64 {
    let log = volume.log.borrow();
    let is_zeros = |number| log.entry(number).is_some_and(|entry| entry.kind != LogKind::Data);
    let pieces = log.pieces(0..volume.blocks()).into_iter();
    let zeros = pieces.filter(|piece| piece.entry.is_some_and(is_zeros));
    zeros.map(|piece| piece.blocks.end - piece.blocks.start).sum()
}

async fn check(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: std::ops::Range<u64>,
) -> Result<CheckReport> {
    let _guard = volume.ranges.lock(&core.tasks, blocks.clone(), Access::Exclusive).await;
    let mut report = CheckReport::default();
    let pieces = volume.log.borrow().pieces(blocks);
    for piece in pieces {
        let zeros = piece.entry.and_then(|number| {
            volume.log.borrow().entry(number).map(|entry| entry.kind != LogKind::Data)
        });
        if zeros == Some(true) {
            continue;
        }
        volume.counts.borrow_mut().blocks_sought += piece.blocks.end - piece.blocks.start;
        for block in piece.blocks.clone() {
            let of = block..block + 1;
            if piece.entry.is_some() {
                let read = super::read::gather(core, volume, of, super::read::Keep::No).await;
                match read {
                    Ok(_) => report.dirty += 1,
                    Err(_) => report.lost.push(block),
                }
                continue;
            }
            let key = block.to_be_bytes();
            if !core.may_hold(volume.clean_space(), &key) {
                continue;
            }
            let range = volume.bytes_of(&of);
            let length = (range.end - range.start) as u32;
            match core.get(volume.clean_space(), &key).await {
                Ok(Flash::Found(bytes, label)) => {
                    if label == ABSENT_LABEL || bytes.len() as u64 != range.end - range.start {
                        continue;
                    }
                    let request = BackingRequest::Read { offset: range.start, length };
                    let expected = volume.ask(&core.tasks, request).await?;
                    match expected == bytes {
                        true => report.clean += 1,
                        false => report.wrong.push(block),
                    }
                }
                Ok(_) => {}
                Err(_) => report.unreadable += 1,
            }
        }
    }
    Ok(report)
}

impl Cache {
    /// Puts a record and waits until it survives power loss.
    pub(super) fn put_synced(&mut self, key: &[u8], value: &[u8], now: Moment) -> Result<()> {
        let core = Rc::clone(&self.core);
        let (key, value) = (key.to_vec(), value.to_vec());
        self.block_on(now, async move {
            core.put_pinned(Key::new(META_SPACE, &key), &value).await?;
            core.sync().await
        })
    }
}
