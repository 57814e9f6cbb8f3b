//! A log of byte strings.

use std::ops::Range;

use crate::collections::anchor::{Anchor, Editor, Kind};
use crate::collections::radix::Checked;
use crate::collections::row::{self, End, HEADER_BYTES, Row, RowView};
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, ReadGuard, Transaction};

/// Byte strings that are appended at the end, read by their number and cut off at the front, in a
/// heap. Entries never change; numbers are never given twice.
///
/// Changes are part of the transaction they are given; the first locks the log until that ends. An
/// append whose transaction is undone gives its number back.
#[derive(Clone)]
pub struct AppendLog {
    anchor: Anchor,
}

/// A row whose words are handles of entries. An entry: its length · its bytes.
const KIND: Kind = Kind { word: *b"append\0\x01", header_bytes: HEADER_BYTES };
const ENTRY_BYTES: u64 = 8;

impl AppendLog {
    /// A new, empty log. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction) -> Result<AppendLog> {
        Ok(AppendLog { anchor: row::create(transaction, KIND, 0)? })
    }

    /// The log at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<AppendLog> {
        Ok(AppendLog { anchor: Anchor::open(heap, handle, KIND)? })
    }

    /// Where the log lies in its heap.
    pub fn handle(&self) -> u64 {
        self.anchor.handle()
    }

    /// The heap it lies in.
    pub fn heap(&self) -> &Heap {
        self.anchor.heap()
    }

    /// The numbers of the entries that are there: those cut off lie before, the next comes behind.
    pub fn numbers(&self) -> Result<Range<u64>> {
        self.anchor.read(|words| {
            let row = Row::at(&words, self.handle())?;
            Ok(row.first..row.first + row.count)
        })
    }

    /// Appends an entry and returns its number.
    pub fn append(&self, transaction: &mut Transaction, bytes: &[u8]) -> Result<u64> {
        let Some(room) = ENTRY_BYTES.checked_add(bytes.len() as u64) else {
            return Err(Error::new(ErrorKind::InvalidInput, "an entry larger than any heap"));
        };
        self.anchor.change(transaction, |editor| {
            let entry = editor.allocate(room)?;
            editor.words.put(entry, bytes.len() as u64)?;
            editor.words.fill(entry + ENTRY_BYTES, bytes)?;
            Row::at(&editor.words, editor.header)?.push(editor, End::Back, entry)
        })
    }

    /// A copy of the entry of this number, if it is there.
    pub fn get(&self, number: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.reader().get(number)?.map(<[u8]>::to_vec))
    }

    /// A door for gets that copy nothing.
    pub fn reader(&self) -> LogReader<'_> {
        LogReader { log: self, _guard: self.anchor.guard() }
    }

    /// Cuts off the entries before `number`; returns how many those were. A number behind the end
    /// cuts off all.
    pub fn truncate_front(&self, transaction: &mut Transaction, number: u64) -> Result<u64> {
        self.anchor.change(transaction, |editor| truncate(editor, number))
    }

    /// Frees the log with all its entries. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            truncate(editor, u64::MAX)?;
            Row::at(&editor.words, editor.header)?.free_all(editor)?;
            editor.free(editor.header)
        })
    }

    /// The log as it is now, once no transaction changes it: it never changes again. Fails with
    /// [`Busy`](crate::ErrorKind::Busy) where a transaction of this thread changes the log.
    pub fn view(&self) -> Result<LogView> {
        Ok(LogView { row: RowView::of(&self.anchor, None)? })
    }

    /// The log as `transaction` sees it now, its own changes included. If that transaction is
    /// undone, the view may show parts of either state.
    pub fn view_in(&self, transaction: &Transaction) -> Result<LogView> {
        Ok(LogView { row: RowView::of(&self.anchor, Some(transaction))? })
    }

    /// Looks at every block; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        let words = self.anchor.words();
        let row = Row::at(&words, self.handle())?;
        let mut checked = row.verify(&words)?;
        for number in row.first..row.first + row.count {
            let Some(entry) = row.get(&words, number)? else {
                return Err(row::damaged("an entry that is not there", number));
            };
            let bytes = ENTRY_BYTES + entry_at(&words, entry)?.len() as u64;
            if !words.is_block(entry, bytes) {
                return Err(row::damaged("an entry that is free", entry));
            }
            checked.blocks += 1;
            checked.bytes += bytes;
        }
        Ok(checked)
    }
}

/// Gets under one guard: what was cut off after this was made is not reused while it lives.
pub struct LogReader<'l> {
    log: &'l AppendLog,
    _guard: ReadGuard,
}

impl LogReader<'_> {
    /// The entry of this number, where it lies, if it is there.
    pub fn get(&self, number: u64) -> Result<Option<&[u8]>> {
        let entry = self
            .log
            .anchor
            .read(|words| Row::at(&words, self.log.handle())?.get(&words, number))?;
        entry.map(|entry| entry_at(&self.log.anchor.words(), entry)).transpose()
    }
}

/// A log at one moment.
pub struct LogView {
    row: RowView,
}

impl LogView {
    /// The numbers of the entries that were there.
    pub fn numbers(&self) -> Range<u64> {
        self.row.first..self.row.first + self.row.count
    }

    /// The entry of this number, where it lies, if it was there.
    pub fn get(&self, number: u64) -> Result<Option<&[u8]>> {
        let entry = self.row.get(number)?;
        entry.map(|entry| entry_at(&self.row.words(), entry)).transpose()
    }

    /// The entries of these numbers, as far as there are any; from the back as well.
    pub fn range(&self, numbers: Range<u64>) -> LogRange<'_> {
        let there = self.numbers();
        let end = numbers.end.min(there.end);
        LogRange { view: self, numbers: numbers.start.max(there.start).min(end)..end }
    }
}

/// Entries of a view in order, with their numbers.
pub struct LogRange<'v> {
    view: &'v LogView,
    numbers: Range<u64>,
}

impl<'v> LogRange<'v> {
    fn entry(&self, number: u64) -> Option<Result<(u64, &'v [u8])>> {
        self.view.get(number).transpose().map(|entry| entry.map(|bytes| (number, bytes)))
    }
}

impl<'v> Iterator for LogRange<'v> {
    type Item = Result<(u64, &'v [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.numbers.next()?;
        self.entry(number)
    }
}

impl DoubleEndedIterator for LogRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let number = self.numbers.next_back()?;
        self.entry(number)
    }
}

fn truncate(editor: &mut Editor<'_>, number: u64) -> Result<u64> {
    let mut row = Row::at(&editor.words, editor.header)?;
    let cut = number.saturating_sub(row.first).min(row.count);
    let first = row.first + cut;
    for number in row.first..first {
        match row.get(&editor.words, number)? {
            Some(entry) => editor.free(entry)?,
            None => return Err(row::damaged("an entry that is not there", number)),
        }
    }
    row.cut(editor, first, row.count - cut)?;
    Ok(cut)
}

fn entry_at<'h>(words: &Words<'h>, entry: u64) -> Result<&'h [u8]> {
    words.bytes(entry.saturating_add(ENTRY_BYTES), words.load(entry)?)
}
