//! The order of all changes, and what the store's journal must still hold of them.

use std::collections::VecDeque;

use entresol_flash::{JournalContinuation, JournalRoom, JournalSequence, Outcome};
use entresol_planted::planted;

use crate::format::{BatchBuilder, BatchContext};
use crate::sequence::Sequence;

/// Batches that one mark stands for.
const MARK_BATCHES: u32 = 16;
/// What changes of rows may take of the journal. The rest is left to drops of tables: where it is
/// full and the store is as well, nothing else makes room.
pub(crate) const WRITERS_ROOM: JournalRoom = JournalRoom::Leaving(16 << 10);
/// This part of all marks has the oldest changes.
const OLDEST_PART: usize = 32;

/// The next sequence, and where in the store's journal sequences are.
///
/// Lock order: the journal's lock is taken before a table's, and before any of the store's.
#[derive(Debug)]
pub(crate) struct Journal {
    next: Sequence,
    /// All changes below it are in durable pages.
    low: Sequence,
    marks: VecDeque<Mark>,
    /// A record with changes that are in durable pages, as all before it have.
    passed: Option<JournalSequence>,
    /// Where batches are put together, one at a time.
    pub builder: BatchBuilder,
    tail: Tail,
}

/// The last batch, which the next one may continue.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Where it stands; `None`: that is not known.
    last: Option<JournalSequence>,
    /// It continues a record.
    continues: bool,
    context: BatchContext,
}

/// A segment of the store's journal as an opening found it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The last change that it has.
    pub last: Sequence,
    pub first_record: JournalSequence,
    /// The last record that begins in it.
    pub last_record: JournalSequence,
}

/// A batch as it goes to the store's journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Built<'b> {
    /// As a record of its own.
    pub whole: &'b [u8],
    pub continues: Option<JournalContinuation<'b>>,
}

impl Built<'_> {
    /// How many bytes stand in the journal, where the batch stands at `place` there.
    pub(crate) fn bytes(&self, place: Option<Journaled>) -> usize {
        match &self.continues {
            Some(continues) if place.is_some_and(|place| place.head < place.sequence) => {
                continues.bytes.len()
            }
            _ => self.whole.len(),
        }
    }
}

impl Tail {
    /// The bytes of what `builder` has, as the batch of the change `sequence`.
    pub(crate) fn build<'b>(&self, builder: &'b mut BatchBuilder, sequence: Sequence) -> Built<'b> {
        let before = self.last.map(|_| &self.context);
        let built = builder.build(sequence, before);
        let continues = self.last.zip(built.continuing);
        let continues = continues.map(|(after, bytes)| JournalContinuation { after, bytes });
        Built { whole: built.whole, continues }
    }

    /// That batch was appended, and stands at `place`, where that is known.
    pub(crate) fn moves(
        &mut self,
        builder: &BatchBuilder,
        sequence: Sequence,
        place: Option<Journaled>,
    ) {
        self.last = place.map(|place| place.sequence);
        self.continues = place.is_some_and(|place| place.head < place.sequence);
        if self.last.is_some() {
            builder.end(sequence, &mut self.context);
        }
    }
}

/// Some batches in a row.
#[derive(Debug)]
struct Mark {
    /// The last change of them.
    last: Sequence,
    /// The last record of the store's journal that is known to have any of them, or to be continued
    /// by any. What continues a record is not read without it, and goes with it.
    last_record: Option<JournalSequence>,
    batches: u32,
}

impl Journal {
    /// A journal that goes on behind `last`.
    pub(crate) fn after(last: Sequence) -> Journal {
        let next = Sequence(last.0 + 1);
        let (marks, builder) = (VecDeque::new(), BatchBuilder::default());
        Journal { next, low: Sequence(1), marks, passed: None, builder, tail: Tail::default() }
    }

    /// Takes note of what was in the store's journal when it was opened. Batches may be there twice
    /// and out of order, since openings copy them: a segment goes once all changes are in pages
    /// that it has, or any segment before it.
    pub(crate) fn take_over(&mut self, segments: &[Found]) {
        let mut last = Sequence(0);
        for (at, segment) in segments.iter().enumerate() {
            last = last.max(segment.last);
            // Nothing behind a segment continues a record of it.
            let next = segments.get(at + 1).map(|next| next.first_record);
            let last_record = Some(next.unwrap_or(segment.last_record));
            self.marks.push_back(Mark { last, last_record, batches: MARK_BATCHES });
        }
    }

    /// Up to which change there are the oldest ones that are not known to be merged. Where the
    /// journal is full, they are to be merged first.
    pub(crate) fn oldest(&self) -> Sequence {
        let at = match planted!("no-changes-are-oldest") {
            true => self.marks.len(),
            false => self.marks.len() / OLDEST_PART,
        };
        self.marks.get(at).map_or(Sequence(0), |mark| mark.last)
    }

    /// The bytes of what the builder has, as the next batch.
    pub(crate) fn build(&mut self) -> Built<'_> {
        self.tail.build(&mut self.builder, self.next)
    }

    /// That batch was appended, and stands at `place`, where that is known. Its sequences are taken
    /// next.
    pub(crate) fn appended(&mut self, place: Option<Journaled>) {
        self.tail.moves(&self.builder, self.next, place);
    }

    /// Whether all changes are in durable pages.
    pub(crate) fn is_merged(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether the last batch continues a record, as far as is known.
    pub(crate) fn continues(&self) -> bool {
        self.tail.continues
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
            _ => self.marks.push_back(Mark { last, last_record: None, batches: 1 }),
        }
        first
    }

    /// The batch that begins with `first` stands at `place` in the store's journal.
    pub(crate) fn place(&mut self, first: Sequence, place: Journaled) {
        let record = match planted!("journal-cut-within-a-record") {
            true => place.sequence,
            false => place.head,
        };
        let at = self.marks.partition_point(|mark| mark.last < first);
        if let Some(mark) = self.marks.get_mut(at) {
            mark.last_record = mark.last_record.max(Some(record));
        }
    }

    /// Takes note that all changes below `low` are in durable pages. What the store's journal may
    /// drop: all below the answer. Records have the order of their changes.
    pub(crate) fn set_low(&mut self, low: Sequence) -> Option<JournalSequence> {
        self.low = self.low.max(low);
        while let Some(mark) = self.marks.pop_front_if(|mark| mark.last < self.low) {
            self.passed = self.passed.max(mark.last_record);
        }
        self.passed
    }
}

/// Where an append stands in the store's journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Journaled {
    pub sequence: JournalSequence,
    /// The record that it continues, or is.
    pub head: JournalSequence,
}

pub(crate) fn journaled(outcome: Outcome<'_>) -> Journaled {
    match outcome {
        Outcome::Journaled { sequence, head } => Journaled { sequence, head },
        other => unreachable!("an append ends as one, not as {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(record: u64) -> Journaled {
        Journaled { sequence: JournalSequence(record), head: JournalSequence(record) }
    }

    /// The last few batches held the journal although all of them were in pages: where each opening
    /// began a segment of its own they filled it, and no batch found room any more.
    #[test]
    fn the_journal_lets_go_of_few_batches_that_are_merged() {
        let mut journal = Journal::after(Sequence(0));
        for record in 10..13 {
            let first = journal.take(2);
            journal.place(first, at(record));
        }
        assert_eq!(journal.set_low(Sequence(6)), None);
        assert_eq!(journal.set_low(Sequence(7)), Some(JournalSequence(12)));
    }

    #[test]
    fn what_was_in_the_journal_goes_once_all_of_it_is_merged() {
        let mut journal = Journal::after(Sequence(40));
        let found = |last, first, end| Found {
            last: Sequence(last),
            first_record: JournalSequence(first),
            last_record: JournalSequence(end),
        };
        // The third one begins with copies.
        journal.take_over(&[found(20, 100, 120), found(38, 121, 130), found(40, 131, 140)]);
        let first = journal.take(1);
        journal.place(first, at(141));
        assert_eq!(journal.oldest(), Sequence(20));
        assert_eq!(journal.set_low(Sequence(20)), None);
        assert_eq!(journal.set_low(Sequence(21)), Some(JournalSequence(121)));
        assert_eq!(journal.set_low(Sequence(40)), Some(JournalSequence(131)));
        assert_eq!(journal.set_low(Sequence(41)), Some(JournalSequence(140)));
        assert_eq!(journal.set_low(Sequence(42)), Some(JournalSequence(141)));
    }

    /// Openings copy batches to the end of the journal.
    #[test]
    fn a_segment_stays_while_one_before_it_has_a_change_that_is_in_no_page() {
        let mut journal = Journal::after(Sequence(40));
        let found = |last, first| Found {
            last: Sequence(last),
            first_record: JournalSequence(first),
            last_record: JournalSequence(first + 9),
        };
        journal.take_over(&[found(40, 100), found(15, 110), found(30, 120)]);
        assert_eq!(journal.set_low(Sequence(31)), None);
        assert_eq!(journal.set_low(Sequence(41)), Some(JournalSequence(129)));
    }

    /// A record that was not placed so far may be lower than those of later batches that were.
    #[test]
    fn the_journal_keeps_a_batch_whose_record_is_not_known() {
        let mut journal = Journal::after(Sequence(0));
        let merged = journal.take(1);
        journal.place(merged, at(10));
        let low = (1..MARK_BATCHES).map(|_| journal.take(1)).last().expect("a mark of batches");
        journal.take(1);
        let later = journal.take(1);
        journal.place(later, at(50));
        assert_eq!(journal.set_low(Sequence(low.0 + 1)), Some(JournalSequence(10)));
    }

    /// What continues a record is not read without it.
    #[test]
    fn the_journal_keeps_a_record_that_is_continued() {
        let mut journal = Journal::after(Sequence(0));
        for record in 10..40 {
            let first = journal.take(1);
            let (sequence, head) = (JournalSequence(record), JournalSequence(record / 15 * 15));
            journal.place(first, Journaled { sequence, head });
        }
        assert_eq!(journal.set_low(Sequence(17)), Some(JournalSequence(15)));
        assert_eq!(journal.set_low(Sequence(31)), Some(JournalSequence(30)));
    }
}
