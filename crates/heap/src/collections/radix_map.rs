//! An ordered map from byte strings to byte strings.

use std::ops::Bound;

use crate::collections::radix::{
    Checked, Form, Frozen, Reader, Replaced, Span, Trunk, Value, Writer,
};
use crate::error::Result;
use crate::{Heap, Transaction};

/// An ordered map from byte strings to byte strings, in a heap: an adaptive radix tree.
///
/// Order, transactions, locks and views are those of [`RadixTree`](crate::collections::RadixTree).
/// A key and its value lie in one block, which a put replaces as a whole, so that readers hold
/// slices of it.
#[derive(Clone)]
pub struct RadixMap {
    trunk: Trunk,
}

impl RadixMap {
    /// A new, empty map. Its handle must be stored where it will be found again.
    pub fn create(transaction: &mut Transaction) -> Result<RadixMap> {
        Ok(RadixMap { trunk: Trunk::create(transaction, Form::Bytes, 0, 0)? })
    }

    /// The map at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<RadixMap> {
        Ok(RadixMap { trunk: Trunk::open(heap, handle, Form::Bytes)? })
    }

    /// Where the map lies in its heap.
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

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.trunk.reader().bytes(key)?.map(<[u8]>::to_vec))
    }

    /// A door for gets that copy nothing.
    pub fn reader(&self) -> MapReader<'_> {
        MapReader { reader: self.trunk.reader() }
    }

    /// Gives `key` a value and returns the one it had.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.trunk.change(transaction, |writer| {
            let replaced = writer.put(key, Value::Bytes(value))?;
            copied(writer, replaced)
        })
    }

    /// Removes `key` and returns the value it had. An absent key removes nothing.
    pub fn remove(&self, transaction: &mut Transaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.trunk.change(transaction, |writer| {
            let removed = writer.remove(key)?;
            copied(writer, removed)
        })
    }

    /// Removes all entries, after calling `removed` with each key and value in order. `removed`
    /// must not use the map.
    pub fn clear(
        &self,
        transaction: &mut Transaction,
        mut removed: impl FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        self.trunk.change(transaction, |writer| {
            let memory = writer.memory();
            writer.clear(&mut |key, offset, length| {
                removed(key, memory.bytes(offset, length)?);
                Ok(())
            })
        })
    }

    /// Frees the map with all its entries. Nobody may use it afterwards.
    pub fn destroy(self, transaction: &mut Transaction) -> Result<()> {
        self.trunk.change(transaction, |writer| {
            writer.clear(&mut |_, _, _| Ok(()))?;
            writer.free_header()
        })
    }

    /// The map as it is now, once no transaction changes it: it never changes again. Fails with
    /// [`Busy`](crate::ErrorKind::Busy) where a transaction of this thread changes the map.
    pub fn view(&self) -> Result<MapView> {
        Ok(MapView { frozen: self.trunk.freeze(None)? })
    }

    /// The map as `transaction` sees it now, its own changes included. If that transaction is
    /// undone, the view may show parts of either state.
    pub fn view_in(&self, transaction: &Transaction) -> Result<MapView> {
        Ok(MapView { frozen: self.trunk.freeze(Some(transaction))? })
    }

    /// Looks at every block; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        self.trunk.verify()
    }
}

/// Gets of the newest map under one guard: what was removed after this was made is not reused
/// while it lives, so hold it for a batch and not for ever.
pub struct MapReader<'t> {
    reader: Reader<'t>,
}

impl MapReader<'_> {
    /// The value of `key`, where it lies.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.reader.bytes(key)
    }
}

/// A map at one moment.
pub struct MapView {
    frozen: Frozen,
}

impl MapView {
    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.frozen.entries
    }

    /// The value of `key`, where it lies.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let memory = self.frozen.memory();
        self.frozen.find(key)?.map(|(offset, length)| memory.bytes(offset, length)).transpose()
    }

    /// The entries between two bounds, in order; from the back as well.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> MapRange<'_> {
        MapRange { view: self, span: self.frozen.span(lower, upper) }
    }

    /// The first entry.
    pub fn first(&self) -> Result<Option<(&[u8], &[u8])>> {
        self.range(Bound::Unbounded, Bound::Unbounded).next().transpose()
    }

    /// The last entry.
    pub fn last(&self) -> Result<Option<(&[u8], &[u8])>> {
        self.range(Bound::Unbounded, Bound::Unbounded).next_back().transpose()
    }
}

/// Entries of a view in order. An error, which means damage, ends it.
pub struct MapRange<'v> {
    view: &'v MapView,
    span: Span<'v>,
}

impl<'v> MapRange<'v> {
    fn give(
        &self,
        found: Option<Result<(&'v [u8], u64, u64)>>,
    ) -> Option<Result<(&'v [u8], &'v [u8])>> {
        let memory = self.view.frozen.memory();
        found.map(|found| {
            found.and_then(|(key, offset, length)| Ok((key, memory.bytes(offset, length)?)))
        })
    }
}

impl<'v> Iterator for MapRange<'v> {
    type Item = Result<(&'v [u8], &'v [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.span.next();
        self.give(found)
    }
}

impl DoubleEndedIterator for MapRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = self.span.next_back();
        self.give(found)
    }
}

fn copied(writer: &Writer<'_>, replaced: Option<Replaced>) -> Result<Option<Vec<u8>>> {
    match replaced {
        None => Ok(None),
        Some(Replaced::Word(word)) => Ok(Some(word.to_le_bytes().to_vec())),
        Some(Replaced::Leaf { offset, length }) => {
            Ok(Some(writer.memory().bytes(offset, length)?.to_vec()))
        }
    }
}
