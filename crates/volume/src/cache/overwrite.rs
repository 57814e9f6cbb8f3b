//! Writing through over cached blocks: the old copies are replaced. To let go of them first would
//! take a read of each.
//!
//! Before the backing is written, a note in the cache names the blocks. An opening that finds the
//! note after a kill lets go of those blocks whose copies are older than the note. After power loss
//! their regions, which are open, are let go. In between nobody reads the blocks, because the write
//! holds them alone.
//!
//! Invariants:
//! 1. A note's place is used again only once each of its blocks was put anew or let go.
//! 2. A failed write of the backing leaves none of its blocks in the cache.

use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use entresol_flash::Key;

use crate::cache::META_SPACE;
use crate::cache::core::Core;
use crate::cache::read;
use crate::cache::volume::Volume;
use crate::cache::write::{all_of, invalidate};
use crate::error::Result;
use crate::meta::{OverwriteRecord, overwrite_key};
use crate::request::Durable;

/// Notes of one volume at most.
pub(crate) const OVERWRITES_MAX: u16 = 256;

/// The places of a volume's notes.
#[derive(Debug, Default)]
pub(crate) struct Overwrites {
    unused: Vec<u16>,
    used: u16,
}

impl Overwrites {
    fn take(&mut self) -> Option<u16> {
        self.unused.pop().or_else(|| {
            let place = self.used;
            (place < OVERWRITES_MAX).then(|| {
                self.used += 1;
                place
            })
        })
    }

    fn give_back(&mut self, place: u16) {
        self.unused.push(place);
    }
}

/// Of `blocks`, those that may be cached.
pub(crate) fn cached_of(core: &Core, volume: &Volume, blocks: &Range<u64>) -> Vec<u64> {
    let space = volume.clean_space();
    core.load_ahead(space, blocks);
    let parts = volume.held.borrow().within(blocks);
    parts.into_iter().flatten().filter(|block| core.may_hold(space, &block.to_be_bytes())).collect()
}

/// Writes `bytes` of `range` to the backing and puts its whole blocks, some of which are cached. No
/// note could be made if it returns `None`, and nothing was done.
pub(crate) async fn overwrite(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    (range, blocks): (Range<u64>, Range<u64>),
    (bytes, durable): (&Bytes, Durable),
) -> Option<Result<()>> {
    let place = volume.overwrites.borrow_mut().take()?;
    let record = OverwriteRecord { first: blocks.start, blocks: blocks.end - blocks.start };
    let key = overwrite_key(volume.id, place);
    let noted = core.put_pinned(Key::new(META_SPACE, &key), &record.encode()).await;
    let ended = match noted {
        Ok(_) => Some(replace(core, volume, (range, blocks), (bytes, durable)).await),
        Err(error) => {
            core.note_error(&error);
            None
        }
    };
    volume.overwrites.borrow_mut().give_back(place);
    ended
}

async fn replace(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    (range, blocks): (Range<u64>, Range<u64>),
    (bytes, durable): (&Bytes, Durable),
) -> Result<()> {
    let whole = volume.whole_blocks_of(range.start, range.end - range.start);
    for edge in [blocks.start..whole.start.min(blocks.end), whole.end.max(blocks.start)..blocks.end]
    {
        if !edge.is_empty() {
            invalidate(core, volume, edge).await?;
        }
    }
    let requests = volume.writes_of(range.start, bytes, durable).into_iter();
    let begun = requests.map(|request| volume.ask(&core.tasks, request)).collect();
    if let Err(error) = all_of(begun).await {
        invalidate(core, volume, blocks).await?;
        return Err(error);
    }
    let puts: Vec<_> = whole
        .map(|block| {
            let of = volume.bytes_of(&(block..block + 1));
            let bytes = &bytes[(of.start - range.start) as usize..(of.end - range.start) as usize];
            (block, read::insert(core, volume, block, bytes))
        })
        .collect();
    for (block, put) in puts {
        if let Err(error) = put.await {
            volume.counts.borrow_mut().cache_write_errors += 1;
            core.note_error(&error);
            // What it was must not stand where this one found no room.
            invalidate(core, volume, block..block + 1).await?;
        }
    }
    Ok(())
}
