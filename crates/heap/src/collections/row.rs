//! A row of words that grows and shrinks at both ends, in stretches: the engine under the deque and
//! the append log.
//!
//! ```text
//! header  0 kind · 8 newest generation · 16 directory · 24 slots in it · 32 first · 40 words
//! stretch 0 generation · 8 words[63]
//! ```
//!
//! Invariants:
//! 1. Words keep their numbers for ever. Word `p` lies in stretch `p / 63` at place `p % 63`;
//!    stretch `s` has slot `s % slots` of the directory. `first` is the lowest present `p`.
//! 2. Only stretches with words exist; all other slots are empty.
//! 3. A stretch that a view sees is copied, not changed. Views do not use the directory: they keep
//!    a list of its stretches.

use crate::collections::anchor::{Anchor, Editor, Kind};
use crate::collections::radix::Checked;
use crate::collections::shared::Hold;
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, Transaction};

/// Bytes of a row's header; kinds may keep words of their own behind it.
pub(super) const HEADER_BYTES: u64 = 48;
const DIRECTORY: u64 = 16;
const SLOTS: u64 = 24;
const FIRST: u64 = 32;
const COUNT: u64 = 40;

const STRETCH_BYTES: u64 = 512;
const STRETCH_WORDS: u64 = 63;
const WORDS: u64 = 8;
const SLOTS_MIN: u64 = 8;

/// A row and its state as it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    header: u64,
    directory: u64,
    slots: u64,
    /// The lowest number of a word.
    pub(super) first: u64,
    /// How many words there are.
    pub(super) count: u64,
}

/// Which end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

/// A new row whose first word will have the number `first`.
pub(super) fn create(transaction: &mut Transaction, kind: Kind, first: u64) -> Result<Anchor> {
    Anchor::create(transaction, kind, kind.header_bytes, &[0, 0, first, 0])
}

impl Row {
    pub(super) fn at(words: &Words<'_>, header: u64) -> Result<Row> {
        let [directory, slots, first, count] = words.load_words(header + DIRECTORY)?;
        let sound = (slots == 0 || slots.is_power_of_two())
            && slots <= words.heap_bytes()
            && first.checked_add(count).is_some();
        if !sound {
            return Err(damaged("a header with impossible figures", slots));
        }
        Ok(Row { header, directory, slots, first, count })
    }

    /// The word of number `position`, if it is there.
    pub(super) fn get(&self, words: &Words<'_>, position: u64) -> Result<Option<u64>> {
        if !self.holds(position) {
            return Ok(None);
        }
        let stretch = words.load(self.slot(position / STRETCH_WORDS)?)?;
        words.load(place(stretch, position)).map(Some)
    }

    pub(super) fn holds(&self, position: u64) -> bool {
        position >= self.first && position - self.first < self.count
    }

    /// Sets the word of number `position`, which is there; returns the one before.
    pub(super) fn set(&self, editor: &mut Editor<'_>, position: u64, value: u64) -> Result<u64> {
        let stretch = self.own_stretch(editor, position)?;
        let at = place(stretch, position);
        let old = editor.load(at)?;
        editor.store(at, value)?;
        Ok(old)
    }

    /// Adds a word at an end; returns its number.
    pub(super) fn push(&mut self, editor: &mut Editor<'_>, end: End, value: u64) -> Result<u64> {
        let position = match end {
            End::Front => self.first.checked_sub(1),
            End::Back => self.first.checked_add(self.count).filter(|p| *p < u64::MAX),
        };
        let Some(position) = position else {
            return Err(Error::new(ErrorKind::Full, "a row has no numbers left at this end"));
        };
        let number = position / STRETCH_WORDS;
        if self.stretches().is_some_and(|(low, high)| low <= number && number <= high) {
            let stretch = self.own_stretch(editor, position)?;
            editor.store(place(stretch, position), value)?;
        } else {
            self.make_slot(editor, number)?;
            let stretch = editor.allocate(STRETCH_BYTES)?;
            let generation = editor.born()?;
            editor.words.put(stretch, generation)?;
            editor.words.put(place(stretch, position), value)?;
            editor.store(self.slot(number)?, stretch)?;
        }
        self.move_ends(editor, self.first.min(position), self.count + 1)?;
        Ok(position)
    }

    /// Takes a word off an end.
    pub(super) fn pop(&mut self, editor: &mut Editor<'_>, end: End) -> Result<Option<u64>> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(None) };
        let (position, first) = match end {
            End::Front => (self.first, self.first + 1),
            End::Back => (self.first + last, self.first),
        };
        let Some(value) = self.get(&editor.words, position)? else {
            return Err(damaged("a word that is not there", position));
        };
        self.cut(editor, first, last)?;
        Ok(Some(value))
    }

    /// Keeps only the `count` words from number `first` on, which are there.
    pub(super) fn cut(&mut self, editor: &mut Editor<'_>, first: u64, count: u64) -> Result<()> {
        let before = self.stretches();
        self.move_ends(editor, first, count)?;
        let Some((low, high)) = before else { return Ok(()) };
        let kept = self.stretches();
        let is_kept = |n: &u64| kept.is_some_and(|(low, high)| low <= *n && *n <= high);
        // Those that go lie at the ends, but what is between is skipped as a whole.
        let mut number = low;
        while number <= high {
            if is_kept(&number) {
                number = kept.map_or(number, |(_, high)| high) + 1;
                continue;
            }
            let slot = self.slot(number)?;
            let stretch = editor.load(slot)?;
            editor.store(slot, 0)?;
            editor.free(stretch)?;
            number += 1;
        }
        self.shrink_directory(editor)
    }

    /// Frees everything but the header.
    pub(super) fn free_all(&mut self, editor: &mut Editor<'_>) -> Result<()> {
        self.cut(editor, self.first, 0)?;
        if self.directory != 0 {
            editor.free(self.directory)?;
            self.set_directory(editor, 0, 0)?;
        }
        Ok(())
    }

    /// What a view needs: the stretches in order.
    pub(super) fn list(&self, words: &Words<'_>) -> Result<Vec<u64>> {
        let Some((low, high)) = self.stretches() else { return Ok(Vec::new()) };
        if high - low >= self.slots {
            return Err(damaged("more stretches than slots", self.slots));
        }
        (low..=high).map(|number| words.load(self.slot(number)?)).collect()
    }

    /// Looks at every block.
    pub(super) fn verify(&self, words: &Words<'_>) -> Result<Checked> {
        let stretches = self.list(words)?;
        for stretch in &stretches {
            if !words.is_block(*stretch, STRETCH_BYTES) {
                return Err(damaged("a stretch that is free", *stretch));
            }
        }
        let mut used = 0;
        for slot in 0..self.slots {
            used += u64::from(words.load(self.directory.saturating_add(8 * slot))? != 0);
        }
        if used != stretches.len() as u64 {
            return Err(damaged("other stretches than the words need", used));
        }
        if self.slots > 0 && !words.is_block(self.directory, 8 * self.slots) {
            return Err(damaged("a directory that is free", self.directory));
        }
        let blocks = 1 + used + u64::from(self.slots > 0);
        let bytes = HEADER_BYTES + used * STRETCH_BYTES + 8 * self.slots;
        Ok(Checked { entries: self.count, blocks, bytes })
    }

    /// The lowest and the highest number of a stretch that holds words.
    fn stretches(&self) -> Option<(u64, u64)> {
        let last = self.count.checked_sub(1)?;
        Some((self.first / STRETCH_WORDS, (self.first + last) / STRETCH_WORDS))
    }

    fn slot(&self, number: u64) -> Result<u64> {
        if self.slots == 0 {
            return Err(damaged("words without a directory", self.header));
        }
        Ok(self.directory.saturating_add(8 * (number & (self.slots - 1))))
    }

    /// The stretch of a word, such that no view sees it.
    fn own_stretch(&self, editor: &mut Editor<'_>, position: u64) -> Result<u64> {
        let slot = self.slot(position / STRETCH_WORDS)?;
        let stretch = editor.load(slot)?;
        let generation = editor.load(stretch)?;
        if !editor.is_seen(generation) {
            return Ok(stretch);
        }
        let copy = editor.allocate(STRETCH_BYTES)?;
        let words = editor.words;
        for at in (WORDS..STRETCH_BYTES).step_by(8) {
            words.put(copy + at, words.load(stretch + at)?)?;
        }
        let generation = editor.born()?;
        words.put(copy, generation)?;
        editor.store(slot, copy)?;
        editor.free(stretch)?;
        Ok(copy)
    }

    /// Makes sure that stretch `number`, next to those there are, has a slot of its own.
    fn make_slot(&mut self, editor: &mut Editor<'_>, number: u64) -> Result<()> {
        let (low, high) = self.stretches().unwrap_or((number, number));
        let needed = high.max(number) - low.min(number) + 1;
        if needed <= self.slots {
            return Ok(());
        }
        self.move_directory(editor, needed.next_power_of_two().max(SLOTS_MIN))
    }

    fn shrink_directory(&mut self, editor: &mut Editor<'_>) -> Result<()> {
        let needed = self.stretches().map_or(0, |(low, high)| high - low + 1);
        if self.slots <= SLOTS_MIN || needed > self.slots / 4 {
            return Ok(());
        }
        match self.move_directory(editor, (self.slots / 2).max(SLOTS_MIN)) {
            // One that is larger than it must be serves as well: taking words off needs no room.
            Err(error) if error.kind() == ErrorKind::Full => Ok(()),
            moved => moved,
        }
    }

    fn move_directory(&mut self, editor: &mut Editor<'_>, slots: u64) -> Result<()> {
        let stretches = self.list(&editor.words)?;
        let low = self.stretches().map_or(0, |(low, _)| low);
        let old = self.directory;
        let directory = editor.allocate(8 * slots)?;
        for (number, stretch) in (low..).zip(&stretches) {
            editor.words.put(directory + 8 * (number & (slots - 1)), *stretch)?;
        }
        self.set_directory(editor, directory, slots)?;
        if old == 0 { Ok(()) } else { editor.free(old) }
    }

    fn set_directory(&mut self, editor: &mut Editor<'_>, handle: u64, slots: u64) -> Result<()> {
        (self.directory, self.slots) = (handle, slots);
        editor.store(self.header + DIRECTORY, handle)?;
        editor.store(self.header + SLOTS, slots)
    }

    fn move_ends(&mut self, editor: &mut Editor<'_>, first: u64, count: u64) -> Result<()> {
        (self.first, self.count) = (first, count);
        editor.store(self.header + FIRST, first)?;
        editor.store(self.header + COUNT, count)
    }
}

/// The words of a row at one moment.
pub(super) struct RowView {
    stretches: Vec<u64>,
    pub(super) first: u64,
    pub(super) count: u64,
    heap: Heap,
    _hold: Hold,
}

impl RowView {
    pub(super) fn of(anchor: &Anchor, transaction: Option<&Transaction>) -> Result<RowView> {
        let (hold, (row, stretches)) = anchor.freeze(transaction, |words| {
            let row = Row::at(&words, anchor.handle())?;
            Ok((row, row.list(&words)?))
        })?;
        let heap = anchor.heap().clone();
        Ok(RowView { stretches, first: row.first, count: row.count, heap, _hold: hold })
    }

    pub(super) fn words(&self) -> Words<'_> {
        Words::of(&self.heap)
    }

    /// The word of number `position`, if it was there.
    pub(super) fn get(&self, position: u64) -> Result<Option<u64>> {
        if position < self.first || position - self.first >= self.count {
            return Ok(None);
        }
        let index = position / STRETCH_WORDS - self.first / STRETCH_WORDS;
        match self.stretches.get(index as usize) {
            Some(stretch) => self.words().load(place(*stretch, position)).map(Some),
            None => Ok(None),
        }
    }
}

fn place(stretch: u64, position: u64) -> u64 {
    stretch.saturating_add(WORDS + 8 * (position % STRETCH_WORDS))
}

#[cold]
pub(super) fn damaged(what: &str, found: u64) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a row of words is damaged: {what} ({found:#x})"))
}
