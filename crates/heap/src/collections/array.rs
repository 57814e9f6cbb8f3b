//! An array of numbers of one width.

use crate::collections::anchor::{Anchor, Editor, Kind};
use crate::collections::radix::Checked;
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, Transaction};

/// How wide the elements of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Eight bits.
    U8 = 1,
    /// Sixteen bits.
    U16 = 2,
    /// Thirty-two bits.
    U32 = 4,
    /// Sixty-four bits.
    U64 = 8,
}

impl Width {
    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        self as u64
    }

    fn of(bytes: u64) -> Option<Width> {
        [Width::U8, Width::U16, Width::U32, Width::U64].into_iter().find(|w| w.bytes() == bytes)
    }

    /// The largest element.
    fn most(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}

/// An array of a fixed number of unsigned numbers, in one block of a heap; zeros to begin with.
///
/// Changes are part of the transaction they are given; the first locks the array until that ends.
/// A get takes no lock and sees changes at once, committed or not.
#[derive(Clone)]
pub struct Array {
    anchor: Anchor,
    width: Width,
    elements: u64,
}

/// Header: kind · generation · bytes of an element · number of elements · the elements.
const KIND: Kind = Kind { word: *b"array\0\0\x01", header_bytes: ELEMENTS };
const WIDTH: u64 = 16;
const COUNT: u64 = 24;
const ELEMENTS: u64 = 32;

impl Array {
    /// A new array of zeros. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction, width: Width, elements: u64) -> Result<Array> {
        let body = elements.checked_mul(width.bytes()).filter(|bytes| *bytes < 1 << 47);
        let Some(body) = body else {
            let detail = format!("an array of {elements} elements is larger than any heap");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        };
        let bytes = ELEMENTS + body.next_multiple_of(8);
        let anchor = Anchor::create(transaction, KIND, bytes, &[width.bytes(), elements])?;
        Ok(Array { anchor, width, elements })
    }

    /// The array at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<Array> {
        let anchor = Anchor::open(heap, handle, KIND)?;
        let words = anchor.words();
        let (bytes, elements) = (words.load(handle + WIDTH)?, words.load(handle + COUNT)?);
        let usable = heap.usable_bytes(handle).unwrap_or(0) - ELEMENTS;
        let fits = elements.checked_mul(bytes).is_some_and(|bytes| bytes <= usable);
        let (Some(width), true) = (Width::of(bytes), fits) else {
            let detail = format!(
                "the array at {handle} tells {elements} elements of {bytes} bytes, in {usable}"
            );
            return Err(Error::new(ErrorKind::Corrupt, detail));
        };
        Ok(Array { anchor, width, elements })
    }

    /// Where the array lies in its heap.
    pub fn handle(&self) -> u64 {
        self.anchor.handle()
    }

    /// The heap it lies in.
    pub fn heap(&self) -> &Heap {
        self.anchor.heap()
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// How wide they are.
    pub fn width(&self) -> Width {
        self.width
    }

    /// The element at `index`.
    #[inline]
    pub fn get(&self, index: u64) -> Result<u64> {
        self.check(index, 1)?;
        self.element(&self.anchor.words(), index)
    }

    /// Copies of `count` elements from `index` on, as they were together.
    pub fn copy(&self, index: u64, count: u64) -> Result<Vec<u64>> {
        self.check(index, count)?;
        self.anchor
            .read(|words| (index..index + count).map(|index| self.element(&words, index)).collect())
    }

    /// Sets an element and returns the one before.
    pub fn set(&self, transaction: &mut Transaction, index: u64, value: u64) -> Result<u64> {
        self.check(index, 1)?;
        self.check_value(value)?;
        self.anchor.change(transaction, |editor| {
            let old = self.element(&editor.words, index)?;
            self.log(editor, index, 1)?;
            self.put(&editor.words, index, value)?;
            Ok(old)
        })
    }

    /// Sets the elements from `index` on.
    pub fn set_all(&self, transaction: &mut Transaction, index: u64, values: &[u64]) -> Result<()> {
        self.check(index, values.len() as u64)?;
        values.iter().try_for_each(|value| self.check_value(*value))?;
        self.anchor.change(transaction, |editor| {
            self.log(editor, index, values.len() as u64)?;
            for (at, value) in (index..).zip(values) {
                self.put(&editor.words, at, *value)?;
            }
            Ok(())
        })
    }

    /// Sets `count` elements from `index` on to `value`.
    pub fn fill(
        &self,
        transaction: &mut Transaction,
        index: u64,
        count: u64,
        value: u64,
    ) -> Result<()> {
        self.check(index, count)?;
        self.check_value(value)?;
        self.anchor.change(transaction, |editor| {
            self.log(editor, index, count)?;
            (index..index + count).try_for_each(|index| self.put(&editor.words, index, value))
        })
    }

    /// Frees the array. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.anchor.change(transaction, |editor| editor.free(editor.header))
    }

    /// What the array takes; an error says what is damaged.
    pub fn verify(&self) -> Result<Checked> {
        let array = Array::open(self.heap(), self.handle())?;
        let bytes = ELEMENTS + array.elements * array.width.bytes();
        Ok(Checked { entries: array.elements, blocks: 1, bytes })
    }

    fn element(&self, words: &Words<'_>, index: u64) -> Result<u64> {
        let (word, shift) = self.place(index);
        Ok(words.load(word)? >> shift & self.width.most())
    }

    fn put(&self, words: &Words<'_>, index: u64, value: u64) -> Result<()> {
        let (word, shift) = self.place(index);
        let others = words.load(word)? & !(self.width.most() << shift);
        words.put(word, others | value << shift)
    }

    fn log(&self, editor: &mut Editor<'_>, index: u64, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let width = self.width.bytes();
        editor.transaction.add(editor.header + ELEMENTS + index * width, count * width)
    }

    /// The word that an element lies in, and how many bits from its lowest.
    fn place(&self, index: u64) -> (u64, u64) {
        let at = self.handle() + ELEMENTS + index * self.width.bytes();
        (at & !7, 8 * (at & 7))
    }

    fn check(&self, index: u64, count: u64) -> Result<()> {
        if index.checked_add(count).is_some_and(|end| end <= self.elements) {
            return Ok(());
        }
        let detail = format!("{count} elements at {index} of an array of {}", self.elements);
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }

    fn check_value(&self, value: u64) -> Result<()> {
        if value <= self.width.most() {
            return Ok(());
        }
        let detail = format!("{value} does not fit into an element of {:?}", self.width);
        Err(Error::new(ErrorKind::InvalidInput, detail))
    }
}
