//! The order of all changes, and what the store's journal must still hold of them.

use std::collections::VecDeque;

use entresol_flash::JournalSequence;

use crate::format::BatchBuilder;
use crate::sequence::Sequence;

/// Batches that one mark stands for.
const MARK_BATCHES: u32 = 16;

/// The next sequence, and where in the store's journal sequences are.
///
/// Lock order: the journal's lock is taken before a table's, and before any of the store's.
#[derive(Debug)]
pub(crate) struct Journal {
    next: Sequence,
    /// All changes below it are in durable pages.
    low: Sequence,
    marks: VecDeque<Mark>,
    /// Where batches are put together, one at a time.
    pub builder: BatchBuilder,
}

/// Where a batch is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub first: Sequence,
    pub count: u32,
    pub record: JournalSequence,
}

/// Some batches in a row.
#[derive(Debug)]
struct Mark {
    /// The last change of them.
    last: Sequence,
    /// The first record of the store's journal that has any of them.
    first_record: Option<JournalSequence>,
    batches: u32,
}

impl Journal {
    /// A journal that goes on behind `last`.
    pub(crate) fn after(last: Sequence) -> Journal {
        let next = Sequence(last.0 + 1);
        Journal { next, low: Sequence(1), marks: VecDeque::new(), builder: BatchBuilder::default() }
    }

    /// Takes note of batches that were in the store's journal when it was opened.
    pub(crate) fn take_over(&mut self, batches: &[Placed]) {
        let next = self.next;
        for Placed { first, count, record } in batches {
            self.next = *first;
            self.take(*count);
            self.place(*first, *record);
        }
        self.next = next;
    }

    /// The bytes of what the builder has, as the next batch.
    pub(crate) fn built(&mut self) -> &[u8] {
        self.builder.bytes(self.next, self.low)
    }

    /// The sequence of the last change; 0 for none.
    pub(crate) fn last(&self) -> Sequence {
        Sequence(self.next.0 - 1)
    }

    pub(crate) fn low(&self) -> Sequence {
        self.low
    }

    /// Takes the sequences of a batch of `count` changes; the first of them.
    pub(crate) fn take(&mut self, count: u32) -> Sequence {
        let first = self.next;
        self.next = Sequence(first.0 + u64::from(count));
        let last = self.last();
        match self.marks.back_mut() {
            Some(mark) if mark.batches < MARK_BATCHES => {
                (mark.last, mark.batches) = (last, mark.batches + 1);
            }
            _ => self.marks.push_back(Mark { last, first_record: None, batches: 1 }),
        }
        first
    }

    /// The batch that begins with `first` stands at `record` in the store's journal.
    pub(crate) fn place(&mut self, first: Sequence, record: JournalSequence) {
        let at = self.marks.partition_point(|mark| mark.last < first);
        if let Some(mark) = self.marks.get_mut(at) {
            let before = mark.first_record.unwrap_or(record);
            mark.first_record = Some(before.min(record));
        }
    }

    /// Takes note that all changes below `low` are in durable pages. What the store's journal may
    /// drop: all below the answer.
    pub(crate) fn set_low(&mut self, low: Sequence) -> Option<JournalSequence> {
        self.low = self.low.max(low);
        // The last mark stays: batches still join it.
        while self.marks.len() > 1 && self.marks.front().is_some_and(|mark| mark.last < self.low) {
            self.marks.pop_front();
        }
        self.marks.iter().filter_map(|mark| mark.first_record).min()
    }
}
