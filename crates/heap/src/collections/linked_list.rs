//! A list of words, linked both ways.

use crate::collections::anchor::{Anchor, Editor, Kind};
use crate::collections::radix::Checked;
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, Transaction};

/// A list of words in a heap, linked both ways: elements come and go anywhere, and the others stay
/// where they are.
///
/// An index is found by walking from the nearer end. Changes are part of the transaction they are
/// given; the first locks the list until that ends. Reads see changes at once, committed or not,
/// but never half of one.
#[derive(Clone)]
pub struct LinkedList {
    anchor: Anchor,
}

/// Header: kind · generation · first · last · number of elements.
/// Element: value · next · previous. 0 is none.
const KIND: Kind = Kind { word: *b"list\0\0\0\x01", header_bytes: 40 };
const FIRST: u64 = 16;
const LAST: u64 = 24;
const COUNT: u64 = 32;
const VALUE: u64 = 0;
const NEXT: u64 = 8;
const PREVIOUS: u64 = 16;
const ELEMENT_BYTES: u64 = 24;

impl LinkedList {
    /// A new, empty list. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction) -> Result<LinkedList> {
        Ok(LinkedList { anchor: Anchor::create(transaction, KIND, KIND.header_bytes, &[])? })
    }

    /// The list at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<LinkedList> {
        Ok(LinkedList { anchor: Anchor::open(heap, handle, KIND)? })
    }

    /// Where the list lies in its heap.
    pub fn handle(&self) -> u64 {
        self.anchor.handle()
    }

    /// The heap it lies in.
    pub fn heap(&self) -> &Heap {
        self.anchor.heap()
    }

    /// Number of elements.
    pub fn elements(&self) -> Result<u64> {
        count_in(&self.anchor.words(), self.handle())
    }

    /// The element at `index`, if there are so many.
    pub fn get(&self, index: u64) -> Result<Option<u64>> {
        self.anchor.read(|words| {
            if index >= count_in(&words, self.handle())? {
                return Ok(None);
            }
            let element = find(&words, self.handle(), index)?;
            words.load(field(element, VALUE)).map(Some)
        })
    }

    /// Sets the element at `index` and returns the one before.
    pub fn set(&self, transaction: &mut Transaction, index: u64, value: u64) -> Result<u64> {
        self.anchor.change(transaction, |editor| {
            check(editor, index, 1)?;
            let element = find(&editor.words, editor.header, index)?;
            let old = editor.load(field(element, VALUE))?;
            editor.store(field(element, VALUE), value)?;
            Ok(old)
        })
    }

    /// Inserts an element before the one at `index`, or at the end.
    pub fn insert(&self, transaction: &mut Transaction, index: u64, value: u64) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            let count = check(editor, index, 0)?;
            let header = editor.header;
            let (before, after) = if index == count {
                (editor.load(header + LAST)?, 0)
            } else {
                let after = find(&editor.words, header, index)?;
                (editor.load(field(after, PREVIOUS))?, after)
            };
            let element = editor.allocate(ELEMENT_BYTES)?;
            editor.words.put(element + VALUE, value)?;
            editor.words.put(element + NEXT, after)?;
            editor.words.put(element + PREVIOUS, before)?;
            link(editor, before, after, (element, element))?;
            editor.store(header + COUNT, count + 1)
        })
    }

    /// Adds an element before all others.
    pub fn push_front(&self, transaction: &mut Transaction, value: u64) -> Result<()> {
        self.insert(transaction, 0, value)
    }

    /// Adds an element behind all others.
    pub fn push_back(&self, transaction: &mut Transaction, value: u64) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            let count = count_in(&editor.words, editor.header)?;
            let before = editor.load(editor.header + LAST)?;
            let element = editor.allocate(ELEMENT_BYTES)?;
            editor.words.put(element + VALUE, value)?;
            editor.words.put(element + PREVIOUS, before)?;
            link(editor, before, 0, (element, element))?;
            editor.store(editor.header + COUNT, count + 1)
        })
    }

    /// Removes the element at `index` and returns it.
    pub fn remove(&self, transaction: &mut Transaction, index: u64) -> Result<u64> {
        self.anchor.change(transaction, |editor| {
            check(editor, index, 1)?;
            take(editor, index)
        })
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&self, transaction: &mut Transaction) -> Result<Option<u64>> {
        self.anchor.change(transaction, |editor| match count_in(&editor.words, editor.header)? {
            0 => Ok(None),
            _ => take(editor, 0).map(Some),
        })
    }

    /// Removes the last element and returns it.
    pub fn pop_back(&self, transaction: &mut Transaction) -> Result<Option<u64>> {
        self.anchor.change(transaction, |editor| match count_in(&editor.words, editor.header)? {
            0 => Ok(None),
            count => take(editor, count - 1).map(Some),
        })
    }

    /// Removes all elements.
    pub fn clear(&self, transaction: &mut Transaction) -> Result<()> {
        self.anchor.change(transaction, free_all)
    }

    /// Frees the list with all its elements. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.anchor.change(transaction, |editor| {
            free_all(editor)?;
            editor.free(editor.header)
        })
    }

    /// Copies of all elements at a moment without changes, in order. Fails with
    /// [`Busy`](crate::ErrorKind::Busy) where a transaction of this thread changes the list.
    pub fn copy(&self) -> Result<Vec<u64>> {
        Ok(self.anchor.freeze(None, |words| all(&words, self.handle()))?.1)
    }

    /// Copies of all elements as `transaction` sees them.
    pub fn copy_in(&self, transaction: &Transaction) -> Result<Vec<u64>> {
        Ok(self.anchor.freeze(Some(transaction), |words| all(&words, self.handle()))?.1)
    }

    /// Looks at every element; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        let words = self.anchor.words();
        let count = count_in(&words, self.handle())?;
        let mut before = 0;
        let mut at = words.load(self.handle() + FIRST)?;
        for _ in 0..count {
            if !words.is_block(at, ELEMENT_BYTES) {
                return Err(damaged("an element that is free", at));
            }
            if words.load(field(at, PREVIOUS))? != before {
                return Err(damaged("an element that links back elsewhere", at));
            }
            (before, at) = (at, words.load(field(at, NEXT))?);
        }
        if at != 0 || words.load(self.handle() + LAST)? != before {
            return Err(damaged("more elements than counted, or another last one", at));
        }
        let bytes = KIND.header_bytes + count * ELEMENT_BYTES;
        Ok(Checked { entries: count, blocks: 1 + count, bytes })
    }
}

fn count_in(words: &Words<'_>, header: u64) -> Result<u64> {
    let count = words.load(header + COUNT)?;
    let is_possible = count <= words.heap_bytes() / ELEMENT_BYTES;
    if is_possible { Ok(count) } else { Err(damaged("more elements than fit the heap", count)) }
}

/// A field of an element whose handle lies in the heap, and may be anything.
fn field(element: u64, offset: u64) -> u64 {
    element.saturating_add(offset)
}

/// The element at `index`, which is one.
fn find(words: &Words<'_>, header: u64, index: u64) -> Result<u64> {
    let count = count_in(words, header)?;
    let (start, next, steps) = match index < count / 2 {
        true => (FIRST, NEXT, index),
        false => (LAST, PREVIOUS, count.saturating_sub(index + 1)),
    };
    let mut at = words.load(header + start)?;
    for _ in 0..steps {
        at = words.load(field(at, next))?;
    }
    if at == 0 { Err(damaged("fewer elements than counted", index)) } else { Ok(at) }
}

/// Makes `before` go on with the first of `new`, and `after` go back to the second; the header
/// stands where one is none.
fn link(editor: &mut Editor<'_>, before: u64, after: u64, new: (u64, u64)) -> Result<()> {
    let forward = if before == 0 { editor.header + FIRST } else { field(before, NEXT) };
    let backward = if after == 0 { editor.header + LAST } else { field(after, PREVIOUS) };
    editor.store(forward, new.0)?;
    editor.store(backward, new.1)
}

/// Removes the element at `index`, which is one.
fn take(editor: &mut Editor<'_>, index: u64) -> Result<u64> {
    let element = find(&editor.words, editor.header, index)?;
    let value = editor.load(field(element, VALUE))?;
    let (before, after) =
        (editor.load(field(element, PREVIOUS))?, editor.load(field(element, NEXT))?);
    link(editor, before, after, (after, before))?;
    editor.free(element)?;
    let count = count_in(&editor.words, editor.header)?;
    editor.store(editor.header + COUNT, count - 1)?;
    Ok(value)
}

fn free_all(editor: &mut Editor<'_>) -> Result<()> {
    let mut at = editor.load(editor.header + FIRST)?;
    while at != 0 {
        let next = editor.load(field(at, NEXT))?;
        editor.free(at)?;
        at = next;
    }
    for field in [FIRST, LAST, COUNT] {
        editor.store(editor.header + field, 0)?;
    }
    Ok(())
}

fn all(words: &Words<'_>, header: u64) -> Result<Vec<u64>> {
    let count = count_in(words, header)?;
    let mut at = words.load(header + FIRST)?;
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(words.load(field(at, VALUE))?);
        at = words.load(field(at, NEXT))?;
    }
    Ok(values)
}

/// The number of elements, of which `needed` must be there from `index` on.
fn check(editor: &Editor<'_>, index: u64, needed: u64) -> Result<u64> {
    let count = count_in(&editor.words, editor.header)?;
    if index.checked_add(needed).is_some_and(|end| end <= count) {
        return Ok(count);
    }
    let detail = format!("index {index} of a list of {count} elements");
    Err(Error::new(ErrorKind::InvalidInput, detail))
}

#[cold]
fn damaged(what: &str, found: u64) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a linked list is damaged: {what} ({found:#x})"))
}
