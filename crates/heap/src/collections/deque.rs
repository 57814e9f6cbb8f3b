//! A deque of words.

use std::ops::Range;

use crate::collections::anchor::{Anchor, Kind};
use crate::collections::radix::Checked;
use crate::collections::row::{self, End, HEADER_BYTES, Row, RowView};
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, Transaction};

/// Words that come and go at both ends and are found by their index, in a heap.
///
/// A push or pop stores a few words, whatever the length; once for a directory's worth of them the
/// directory is made anew. Changes are part of the transaction they are given; the first locks the
/// deque until that ends. Reads see changes at once, committed or not, but never half of one.
#[derive(Clone)]
pub struct Deque {
    anchor: Anchor,
}

const KIND: Kind = Kind { word: *b"deque\0\0\x01", header_bytes: HEADER_BYTES };
/// As many may come before it as behind.
const MIDDLE: u64 = 1 << 63;

impl Deque {
    /// A new, empty deque. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction) -> Result<Deque> {
        Ok(Deque { anchor: row::create(transaction, KIND, MIDDLE)? })
    }

    /// The deque at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<Deque> {
        Ok(Deque { anchor: Anchor::open(heap, handle, KIND)? })
    }

    /// Where the deque lies in its heap.
    pub fn handle(&self) -> u64 {
        self.anchor.handle()
    }

    /// The heap it lies in.
    pub fn heap(&self) -> &Heap {
        self.anchor.heap()
    }

    /// Number of elements.
    pub fn elements(&self) -> Result<u64> {
        self.anchor.read(|words| Ok(Row::at(&words, self.handle())?.count))
    }

    /// The element at `index` from the front, if there are so many.
    pub fn get(&self, index: u64) -> Result<Option<u64>> {
        self.anchor.read(|words| {
            let row = Row::at(&words, self.handle())?;
            match row.first.checked_add(index) {
                Some(position) => row.get(&words, position),
                None => Ok(None),
            }
        })
    }

    /// The first element.
    pub fn front(&self) -> Result<Option<u64>> {
        self.get(0)
    }

    /// The last element.
    pub fn back(&self) -> Result<Option<u64>> {
        self.anchor.read(|words| {
            let row = Row::at(&words, self.handle())?;
            match row.count.checked_sub(1) {
                Some(last) => row.get(&words, row.first + last),
                None => Ok(None),
            }
        })
    }

    /// Sets the element at `index` and returns the one before.
    pub fn set(&self, transaction: &mut Transaction, index: u64, value: u64) -> Result<u64> {
        self.anchor.change(transaction, |editor| {
            let row = Row::at(&editor.words, editor.header)?;
            if index >= row.count {
                let detail = format!("index {index} of a deque of {} elements", row.count);
                return Err(Error::new(ErrorKind::InvalidInput, detail));
            }
            row.set(editor, row.first + index, value)
        })
    }

    /// Adds an element before all others.
    pub fn push_front(&self, transaction: &mut Transaction, value: u64) -> Result<()> {
        self.push(transaction, End::Front, value)
    }

    /// Adds an element behind all others.
    pub fn push_back(&self, transaction: &mut Transaction, value: u64) -> Result<()> {
        self.push(transaction, End::Back, value)
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&self, transaction: &mut Transaction) -> Result<Option<u64>> {
        self.pop(transaction, End::Front)
    }

    /// Removes the last element and returns it.
    pub fn pop_back(&self, transaction: &mut Transaction) -> Result<Option<u64>> {
        self.pop(transaction, End::Back)
    }

    /// Removes all elements.
    pub fn clear(&self, transaction: &mut Transaction) -> Result<()> {
        self.anchor
            .change(transaction, |editor| Row::at(&editor.words, editor.header)?.free_all(editor))
    }

    /// Frees the deque with all its elements. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            Row::at(&editor.words, editor.header)?.free_all(editor)?;
            editor.free(editor.header)
        })
    }

    /// The deque as it is now, once no transaction changes it: it never changes again. Fails with
    /// [`Busy`](crate::ErrorKind::Busy) where a transaction of this thread changes the deque.
    pub fn view(&self) -> Result<DequeView> {
        Ok(DequeView { row: RowView::of(&self.anchor, None)? })
    }

    /// The deque as `transaction` sees it now, its own changes included. If that transaction is
    /// undone, the view may show parts of either state.
    pub fn view_in(&self, transaction: &Transaction) -> Result<DequeView> {
        Ok(DequeView { row: RowView::of(&self.anchor, Some(transaction))? })
    }

    /// Looks at every block; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        let words = self.anchor.words();
        Row::at(&words, self.handle())?.verify(&words)
    }

    fn push(&self, transaction: &mut Transaction, end: End, value: u64) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            Row::at(&editor.words, editor.header)?.push(editor, end, value).map(drop)
        })
    }

    fn pop(&self, transaction: &mut Transaction, end: End) -> Result<Option<u64>> {
        self.anchor
            .change(transaction, |editor| Row::at(&editor.words, editor.header)?.pop(editor, end))
    }
}

/// A deque at one moment.
pub struct DequeView {
    row: RowView,
}

impl DequeView {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.row.count
    }

    /// The element at `index` from the front, if there were so many.
    pub fn get(&self, index: u64) -> Result<Option<u64>> {
        self.row.first.checked_add(index).map_or(Ok(None), |position| self.row.get(position))
    }

    /// The elements at these indices, as far as there are any; from the back as well.
    pub fn range(&self, indices: Range<u64>) -> DequeRange<'_> {
        let end = indices.end.min(self.row.count);
        DequeRange { view: self, indices: indices.start.min(end)..end }
    }
}

/// Elements of a view in order.
pub struct DequeRange<'v> {
    view: &'v DequeView,
    indices: Range<u64>,
}

impl Iterator for DequeRange<'_> {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Result<u64>> {
        let index = self.indices.next()?;
        self.view.get(index).transpose()
    }
}

impl DoubleEndedIterator for DequeRange<'_> {
    fn next_back(&mut self) -> Option<Result<u64>> {
        let index = self.indices.next_back()?;
        self.view.get(index).transpose()
    }
}
