//! An ordered map from byte strings to words.

use std::ops::Bound;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::collections::radix::{
    Checked, Form, Frozen, Reader, Replaced, Span, TreeBlocks, Trunk, Value, Writer,
};
use crate::error::Result;
use crate::{Heap, Transaction};

/// An ordered map from byte strings to words, in a heap: an adaptive radix tree.
///
/// Keys are any bytes, the empty string too, ordered as unsigned bytes with a key before those it
/// is a prefix of. Values are any words, 0 too.
///
/// Changes are part of the transaction they are given, whole or not at all; an error leaves the
/// transaction as it was before the call. The first change locks the tree until its transaction
/// ends: another transaction waits, or fails with [`Busy`](crate::ErrorKind::Busy) where waiting
/// could be for ever. Reads take no lock and see changes at once, committed or not.
///
/// A search costs a node for each byte in which keys differ, an insert one new leaf and a few
/// stored words.
#[derive(Clone)]
pub struct RadixTree {
    trunk: Trunk,
}

impl RadixTree {
    /// A new, empty tree. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction) -> Result<RadixTree> {
        Ok(RadixTree { trunk: Trunk::create(transaction, Form::Words, 0, 0)? })
    }

    /// The tree at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<RadixTree> {
        Ok(RadixTree { trunk: Trunk::open(heap, handle, Form::Words)? })
    }

    /// Where the tree lies in its heap.
    pub fn handle(&self) -> u64 {
        self.trunk.handle()
    }

    /// The heap it lies in.
    pub fn heap(&self) -> &Heap {
        self.trunk.heap()
    }

    /// Number of entries.
    pub fn entries(&self) -> Result<u64> {
        self.trunk.entries()
    }

    /// A count that is odd while words of the tree change, and has grown afterwards: for readers
    /// that follow the tree's words on their own, without a guard, and begin anew if it changed.
    pub fn version(&self) -> &AtomicU64 {
        self.trunk.version()
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<u64>> {
        self.trunk.reader().word(key)
    }

    /// A door for many gets that holds one guard for all of them.
    pub fn reader(&self) -> TreeReader<'_> {
        TreeReader { reader: self.trunk.reader() }
    }

    /// Gives `key` a value and returns the one it had.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        value: u64,
    ) -> Result<Option<u64>> {
        self.trunk.change(transaction, |writer| put(writer, key, value))
    }

    /// Gives `key` the value that `merge` makes of the one it has; returns the one it had.
    pub fn merge(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        merge: impl FnOnce(Option<u64>) -> u64,
    ) -> Result<Option<u64>> {
        self.trunk.change(transaction, |writer| {
            let memory = writer.memory();
            let found = writer.tree()?.find(key)?;
            let old = found.map(|(offset, _)| memory.load(offset)).transpose()?;
            put(writer, key, merge(old))
        })
    }

    /// Removes `key` and returns the value it had. An absent key removes nothing.
    pub fn remove(&self, transaction: &mut Transaction, key: &[u8]) -> Result<Option<u64>> {
        self.trunk.change(transaction, |writer| {
            let removed = writer.remove(key)?;
            removed.map(|removed| word(writer, removed)).transpose()
        })
    }

    /// Removes all entries, after calling `removed` with each key and value in order. `removed`
    /// must not use the tree.
    pub fn clear(
        &self,
        transaction: &mut Transaction,
        mut removed: impl FnMut(&[u8], u64),
    ) -> Result<()> {
        self.trunk.change(transaction, |writer| {
            let memory = writer.memory();
            writer.clear(&mut |key, offset, _| {
                removed(key, memory.load(offset)?);
                Ok(())
            })
        })
    }

    /// Frees the tree with all its entries. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.trunk.change(transaction, |writer| {
            writer.clear(&mut |_, _, _| Ok(()))?;
            writer.free_header()
        })
    }

    /// Moves the entries from `key` on to a new tree, which is returned.
    pub fn split_off(&self, transaction: &mut Transaction, key: &[u8]) -> Result<RadixTree> {
        self.hold(transaction)?;
        let moved = {
            let view = self.view_in(transaction)?;
            let mut range = view.range(Bound::Included(key), Bound::Unbounded);
            range.try_fold(0, |count, entry| entry.map(|_| count + 1))?
        };
        self.divide(transaction, key, moved)
    }

    /// Moves the upper half of the entries, the smaller one, to a new tree, which is returned. A
    /// tree with fewer than two entries stays as it is.
    pub fn split(&self, transaction: &mut Transaction) -> Result<Option<RadixTree>> {
        self.hold(transaction)?;
        let (key, moved) = {
            let view = self.view_in(transaction)?;
            let moved = view.entries() / 2;
            let middle = view.entries() - moved;
            let mut range = view.range(Bound::Unbounded, Bound::Unbounded);
            match range.nth(middle as usize) {
                Some(entry) => (entry?.0.to_vec(), moved),
                None => return Ok(None),
            }
        };
        self.divide(transaction, &key, moved).map(Some)
    }

    /// The tree as it is now, once no transaction changes it: it never changes again. While it
    /// lives, nothing that it sees is reused, and changes copy the nodes they touch.
    ///
    /// Fails with [`Busy`](crate::ErrorKind::Busy) where a transaction of this thread changes the
    /// tree.
    pub fn view(&self) -> Result<TreeView> {
        Ok(TreeView { frozen: self.trunk.freeze(None)? })
    }

    /// As [`RadixTree::view`], but never waits: [`Held`](crate::ErrorKind::Held) where another
    /// transaction changes the tree.
    pub fn try_view(&self) -> Result<TreeView> {
        Ok(TreeView { frozen: self.trunk.freeze_within(Duration::ZERO, None)? })
    }

    /// The tree as `transaction` sees it now, its own changes included. If that transaction is
    /// undone, the view may show parts of either state.
    pub fn view_in(&self, transaction: &Transaction) -> Result<TreeView> {
        Ok(TreeView { frozen: self.trunk.freeze(Some(transaction))? })
    }

    /// Every block that the tree consists of. Not beside changes.
    pub fn blocks(&self) -> Result<TreeBlocks> {
        self.trunk.blocks()
    }

    /// Looks at every block; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        self.trunk.verify()
    }

    /// Keeps others from changes until the transaction ends: what is read now stays true. Changes
    /// nothing.
    pub fn hold(&self, transaction: &mut Transaction) -> Result<()> {
        self.trunk.change(transaction, |_| Ok(()))
    }

    fn divide(&self, transaction: &mut Transaction, key: &[u8], moved: u64) -> Result<RadixTree> {
        let savepoint = transaction.savepoint();
        let (other, is_frozen) = self.trunk.change(transaction, |writer| {
            let generation = writer.generation();
            let other = Trunk::create(writer.transaction(), Form::Words, 0, generation)?;
            let is_frozen = writer.is_frozen();
            if !is_frozen {
                writer.split_off(key, other.handle(), moved)?;
            }
            Ok((RadixTree { trunk: other }, is_frozen))
        })?;
        // What a view of this tree sees must not become part of another, which knows no such view.
        if is_frozen && let Err(error) = self.move_entries(transaction, key, &other) {
            transaction.rollback(savepoint)?;
            return Err(error);
        }
        Ok(other)
    }

    fn move_entries(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        other: &RadixTree,
    ) -> Result<()> {
        let view = self.view_in(transaction)?;
        for entry in view.range(Bound::Included(key), Bound::Unbounded) {
            let (key, value) = entry?;
            other.put(transaction, key, value)?;
            self.remove(transaction, key)?;
        }
        Ok(())
    }
}

/// Gets of the newest tree under one guard: what was removed after this was made is not reused
/// while it lives, so hold it for a batch and not for ever.
pub struct TreeReader<'t> {
    reader: Reader<'t>,
}

impl TreeReader<'_> {
    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<u64>> {
        self.reader.word(key)
    }
}

/// A tree at one moment.
pub struct TreeView {
    frozen: Frozen,
}

impl TreeView {
    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.frozen.entries
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<u64>> {
        let memory = self.frozen.memory();
        self.frozen.find(key)?.map(|(offset, _)| memory.load(offset)).transpose()
    }

    /// The entries between two bounds, in order; from the back as well.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> TreeRange<'_> {
        TreeRange { view: self, span: self.frozen.span(lower, upper) }
    }

    /// The first entry.
    pub fn first(&self) -> Result<Option<(&[u8], u64)>> {
        self.range(Bound::Unbounded, Bound::Unbounded).next().transpose()
    }

    /// The last entry.
    pub fn last(&self) -> Result<Option<(&[u8], u64)>> {
        self.range(Bound::Unbounded, Bound::Unbounded).next_back().transpose()
    }
}

/// Entries of a view in order. An error, which means damage, ends it.
pub struct TreeRange<'v> {
    view: &'v TreeView,
    span: Span<'v>,
}

impl<'v> TreeRange<'v> {
    fn give(&self, found: Option<Result<(&'v [u8], u64, u64)>>) -> Option<Result<(&'v [u8], u64)>> {
        let memory = self.view.frozen.memory();
        found.map(|found| found.and_then(|(key, offset, _)| Ok((key, memory.load(offset)?))))
    }
}

impl<'v> Iterator for TreeRange<'v> {
    type Item = Result<(&'v [u8], u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.span.next();
        self.give(found)
    }
}

impl DoubleEndedIterator for TreeRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = self.span.next_back();
        self.give(found)
    }
}

fn put(writer: &mut Writer<'_>, key: &[u8], value: u64) -> Result<Option<u64>> {
    let replaced = writer.put(key, Value::Word(value))?;
    replaced.map(|replaced| word(writer, replaced)).transpose()
}

fn word(writer: &Writer<'_>, replaced: Replaced) -> Result<u64> {
    match replaced {
        Replaced::Word(word) => Ok(word),
        Replaced::Leaf { offset, .. } => writer.memory().load(offset),
    }
}
