//! Reading ahead of a stream: its next blocks come into memory, in large reads of the backing.

use std::ops::Range;
use std::rc::Rc;

use crate::backing::BackingRequest;
use crate::cache::core::Core;
use crate::cache::read::FILL_BYTES_MAX;
use crate::cache::volume::{Fill, Volume};
use crate::meta::BLOCK_BYTES;
use crate::ranges::Access;

/// Blocks that are there already and are read once more, rather than make two reads of one.
const GAP_BLOCKS: u64 = 8;

/// Begins to bring what a reader will want next into memory; it is nobody's loss if that fails.
pub(crate) fn read_ahead(core: &Rc<Core>, volume: &Rc<Volume>, range: Range<u64>) {
    let blocks = volume.blocks_of(range.start, range.end - range.start);
    let lock = volume.ranges.lock(&core.tasks, blocks.clone(), Access::Shared);
    let (by, of) = (Rc::clone(core), Rc::clone(volume));
    core.tasks.spawn(async move {
        let _guard = lock.await;
        if of.retired.get() {
            return;
        }
        bring(&by, &of, blocks).await;
    });
}

/// Reads those of `blocks`, which the caller has locked, that are nowhere yet.
async fn bring(core: &Rc<Core>, volume: &Rc<Volume>, blocks: Range<u64>) {
    let request_bytes = u64::from(volume.description.request_bytes_max).min(FILL_BYTES_MAX);
    let runs = runs(&absent(core, volume, &blocks), (request_bytes / BLOCK_BYTES).max(1));
    let begun: Vec<_> = runs
        .into_iter()
        .map(|wanted| {
            let run = wanted[0]..wanted[wanted.len() - 1] + 1;
            let range = volume.bytes_of(&run);
            let length = (range.end - range.start) as u32;
            let fill = Rc::new(Fill::new(run.start));
            let mut fills = volume.fills.borrow_mut();
            wanted.iter().for_each(|block| drop(fills.insert(*block, Rc::clone(&fill))));
            let request = BackingRequest::Read { offset: range.start, length };
            (wanted, fill, volume.ask(&core.tasks, request))
        })
        .collect();
    for (wanted, fill, read) in begun {
        let result = read.await;
        let mut fills = volume.fills.borrow_mut();
        wanted.iter().for_each(|block| drop(fills.remove(block)));
        drop(fills);
        fill.finish(&core.tasks, result.clone());
        let Ok(bytes) = result else { continue };
        // Those who waited for the read have what they wanted.
        let taken = fill.joined.take();
        for block in wanted.into_iter().filter(|block| !taken.contains(block)) {
            core.ahead.borrow_mut().put(volume.id, block, fill.block_of(&bytes, block));
        }
    }
}

/// Those of `blocks` that are neither dirty nor cached nor in memory nor being read.
fn absent(core: &Core, volume: &Volume, blocks: &Range<u64>) -> Vec<u64> {
    let pieces = volume.log.borrow().pieces(blocks.clone());
    let clean = pieces.into_iter().filter(|piece| piece.entry.is_none());
    let cached = |block: &u64| {
        core.failure().is_none() && core.may_hold(volume.clean_space(), &block.to_be_bytes())
    };
    let fills = volume.fills.borrow();
    let ahead = core.ahead.borrow();
    clean
        .flat_map(|piece| piece.blocks)
        .filter(|block| !fills.contains_key(block) && !ahead.holds(volume.id, *block))
        .filter(|block| !cached(block))
        .collect()
}

/// Cuts blocks, in order, into what is read at once.
fn runs(blocks: &[u64], blocks_max: u64) -> Vec<Vec<u64>> {
    let mut runs: Vec<Vec<u64>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(run)
                if block - run[run.len() - 1] <= GAP_BLOCKS + 1 && block - run[0] < blocks_max =>
            {
                run.push(*block);
            }
            _ => runs.push(vec![*block]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_read_over_and_large_ones_are_not() {
        let cut = |blocks: &[u64]| runs(blocks, 64);
        assert_eq!(cut(&[]), Vec::<Vec<u64>>::new());
        assert_eq!(cut(&[1, 2, 11]), [vec![1, 2, 11]]);
        assert_eq!(cut(&[1, 2, 12]), [vec![1, 2], vec![12]]);
        assert_eq!(cut(&(0..65).collect::<Vec<_>>()), [(0..64).collect(), vec![64]]);
    }
}
