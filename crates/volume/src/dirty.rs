//! The dirty blocks of one volume: a log of writes, oldest first, and for each block the write with
//! its present bytes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::request::Hole;

/// One write in the log of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEntry {
    /// Its number; they follow each other without a gap.
    pub number: u64,
    /// Writes of a higher epoch were begun after a flush, or a write with FUA, that those of this
    /// one came before.
    pub epoch: u64,
    /// The blocks it writes.
    pub blocks: Range<u64>,
    /// What it writes there.
    pub kind: LogKind,
}

/// What an entry of the log writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// Bytes, on the cache device.
    Data,
    /// Zeros, and whether the backing may make a hole of them.
    Zeros(Hole),
}

/// Blocks that have their bytes from the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which blocks.
    pub blocks: Range<u64>,
    /// The entry they have them from; `None`: they are not dirty.
    pub entry: Option<u64>,
}

/// What is dirty of one volume.
#[derive(Debug, Default)]
pub(crate) struct DirtyLog {
    entries: VecDeque<LogEntry>,
    /// Start of a run → its end and entry. Runs do not overlap.
    runs: BTreeMap<u64, (u64, u64)>,
    dirty_blocks: u64,
    logged_blocks: u64,
    next: u64,
    epoch: u64,
}

impl DirtyLog {
    /// An empty log whose first entry will be `next`, in `epoch`.
    pub(crate) fn new(next: u64, epoch: u64) -> DirtyLog {
        DirtyLog { next, epoch, ..DirtyLog::default() }
    }

    /// The number of the next entry.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The number up to which all entries were written back.
    pub(crate) fn ended(&self) -> u64 {
        self.entries.front().map_or(self.next, |oldest| oldest.number).saturating_sub(1)
    }

    /// The epoch of the writes that begin now.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A flush, or a write with FUA: what is written from now on may not reach the backing before
    /// what was.
    pub(crate) fn begin_epoch(&mut self) {
        if self.entries.back().is_some_and(|last| last.epoch == self.epoch) {
            self.epoch += 1;
        }
    }

    /// Appends an entry, which from now on is where its blocks have their bytes from.
    pub(crate) fn append(&mut self, entry: LogEntry) {
        debug_assert!(self.entries.back().is_none_or(|last| last.number < entry.number));
        self.epoch = self.epoch.max(entry.epoch);
        self.next = self.next.max(entry.number + 1);
        self.cut(&entry.blocks, &|_| true);
        let Range { start, end } = entry.blocks;
        self.runs.insert(start, (end, entry.number));
        self.dirty_blocks += end - start;
        if entry.kind == LogKind::Data {
            self.logged_blocks += end - start;
        }
        self.entries.push_back(entry);
    }

    /// The entry of a number that is still in the log.
    pub(crate) fn entry(&self, number: u64) -> Option<&LogEntry> {
        let at = self.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        self.entries.get(at)
    }

    /// The entries, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter()
    }

    /// Where the blocks of `blocks` have their bytes from, in order, all covered.
    pub(crate) fn pieces(&self, blocks: Range<u64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = blocks.start;
        let before = self.runs.range(..=at).next_back();
        let within = self.runs.range(at + 1..blocks.end.max(at + 1));
        for (start, (end, entry)) in before.into_iter().chain(within) {
            let (start, end) = ((*start).max(at), (*end).min(blocks.end));
            if start >= end {
                continue;
            }
            if at < start {
                pieces.push(Piece { blocks: at..start, entry: None });
            }
            pieces.push(Piece { blocks: start..end, entry: Some(*entry) });
            at = end;
        }
        if at < blocks.end {
            pieces.push(Piece { blocks: at..blocks.end, entry: None });
        }
        pieces
    }

    /// Ends the entries up to `number`: the backing has them.
    pub(crate) fn end_up_to(&mut self, number: u64) {
        while self.entries.front().is_some_and(|entry| entry.number <= number) {
            let Some(entry) = self.entries.pop_front() else { break };
            if entry.kind == LogKind::Data {
                self.logged_blocks -= entry.blocks.end - entry.blocks.start;
            }
            self.cut(&entry.blocks, &|from| from <= number);
        }
    }

    /// Blocks whose present bytes are in the log only.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// Blocks of data in the log, superseded ones included.
    pub(crate) fn logged_blocks(&self) -> u64 {
        self.logged_blocks
    }

    /// Entries in the log.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes out of the runs what lies in `blocks` and is of an entry that `which` names.
    fn cut(&mut self, blocks: &Range<u64>, which: &dyn Fn(u64) -> bool) {
        let before = self.runs.range(..blocks.start).next_back();
        let within = self.runs.range(blocks.start..blocks.end.max(blocks.start));
        let touched: Vec<(u64, u64, u64)> = before
            .into_iter()
            .chain(within)
            .filter(|(_, (end, entry))| *end > blocks.start && which(*entry))
            .map(|(start, (end, entry))| (*start, *end, *entry))
            .collect();
        for (start, end, entry) in touched {
            self.runs.remove(&start);
            let cut = start.max(blocks.start)..end.min(blocks.end);
            self.dirty_blocks -= cut.end - cut.start;
            if start < cut.start {
                self.runs.insert(start, (cut.start, entry));
            }
            if cut.end < end {
                self.runs.insert(cut.end, (end, entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_bytes_from_its_newest_entry() {
        let mut state = 11u64;
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let mut log = DirtyLog::new(1, 1);
        let mut model = [0u64; 64];
        let mut oldest = 1;
        for _ in 0..5000 {
            if random(10) == 0 && oldest < log.next() {
                let to = oldest + random(log.next() - oldest);
                log.end_up_to(to);
                oldest = to + 1;
                model.iter_mut().filter(|from| **from <= to).for_each(|from| *from = 0);
            } else {
                let start = random(60);
                let end = start + 1 + random(64 - start);
                let number = log.next();
                let epoch = log.epoch();
                log.append(LogEntry { number, epoch, blocks: start..end, kind: LogKind::Data });
                model[start as usize..end as usize].fill(number);
            }
            let start = random(64);
            let end = start + random(65 - start);
            let mut found = Vec::new();
            for piece in log.pieces(start..end) {
                let blocks = piece.blocks.end - piece.blocks.start;
                found.extend(std::iter::repeat_n(piece.entry.unwrap_or(0), blocks as usize));
            }
            assert_eq!(found, model[start as usize..end as usize]);
            let dirty = model.iter().filter(|from| **from != 0).count();
            assert_eq!(log.dirty_blocks(), dirty as u64);
        }
    }
}
