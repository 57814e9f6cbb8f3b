//! A map from byte strings to byte strings without an order.

use std::ops::Bound;

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::collections::radix::{
    Checked, Form, Frozen, Reader, Replaced, Span, Trunk, Value, Writer,
};
use crate::error::Result;
use crate::{Heap, Transaction};

/// A map from byte strings to byte strings, in a heap: a radix tree of hashes.
///
/// Each key lies in the tree behind its hash (XXH3, 64 bits). Such a table never has to be made
/// anew as it grows: the most that a put does is to enlarge one node. Keys that agree in their
/// hashes are told apart by their bytes. Transactions, locks and views are those of
/// [`RadixTree`](crate::collections::RadixTree).
#[derive(Clone)]
pub struct HashMap {
    trunk: Trunk,
}

impl HashMap {
    /// A new, empty map. Its handle must be stored where it will be found again. Where strangers
    /// choose the keys, `seed` should be one they cannot know.
    pub fn create(transaction: &mut Transaction, seed: u64) -> Result<HashMap> {
        Ok(HashMap { trunk: Trunk::create(transaction, Form::Hashed, seed, 0)? })
    }

    /// The map at `handle`.
    pub fn open(heap: &Heap, handle: u64) -> Result<HashMap> {
        Ok(HashMap { trunk: Trunk::open(heap, handle, Form::Hashed)? })
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
        Ok(self.reader().get(key)?.map(<[u8]>::to_vec))
    }

    /// A door for gets that copy nothing.
    pub fn reader(&self) -> HashReader<'_> {
        HashReader { map: self, reader: self.trunk.reader() }
    }

    /// Gives `key` a value and returns the one it had.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let hashed = hashed(self.trunk.seed()?, key);
        self.trunk.change(transaction, |writer| {
            let replaced = writer.put(&hashed, Value::Bytes(value))?;
            copied(writer, replaced)
        })
    }

    /// Removes `key` and returns the value it had. An absent key removes nothing.
    pub fn remove(&self, transaction: &mut Transaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let hashed = hashed(self.trunk.seed()?, key);
        self.trunk.change(transaction, |writer| {
            let removed = writer.remove(&hashed)?;
            copied(writer, removed)
        })
    }

    /// Removes all entries, after calling `removed` with each key and value. `removed` must not
    /// use the map.
    pub fn clear(
        &self,
        transaction: &mut Transaction,
        mut removed: impl FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        self.trunk.change(transaction, |writer| {
            let memory = writer.memory();
            writer.clear(&mut |hashed, offset, length| {
                removed(key_in(hashed), memory.bytes(offset, length)?);
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
    pub fn view(&self) -> Result<HashView> {
        Ok(HashView { frozen: self.trunk.freeze(None)?, seed: self.trunk.seed()? })
    }

    /// The map as `transaction` sees it now, its own changes included. If that transaction is
    /// undone, the view may show parts of either state.
    pub fn view_in(&self, transaction: &Transaction) -> Result<HashView> {
        Ok(HashView { frozen: self.trunk.freeze(Some(transaction))?, seed: self.trunk.seed()? })
    }

    /// Looks at every block; an error says what is damaged. Not beside changes.
    pub fn verify(&self) -> Result<Checked> {
        self.trunk.verify()
    }
}

/// Gets of the newest map under one guard: what was removed after this was made is not reused
/// while it lives, so hold it for a batch and not for ever.
pub struct HashReader<'t> {
    map: &'t HashMap,
    reader: Reader<'t>,
}

impl HashReader<'_> {
    /// The value of `key`, where it lies.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.reader.bytes(&hashed(self.map.trunk.seed()?, key))
    }
}

/// A map at one moment.
pub struct HashView {
    frozen: Frozen,
    seed: u64,
}

impl HashView {
    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.frozen.entries
    }

    /// The value of `key`, where it lies.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let memory = self.frozen.memory();
        let found = self.frozen.find(&hashed(self.seed, key))?;
        found.map(|(offset, length)| memory.bytes(offset, length)).transpose()
    }

    /// All entries, in no order that means anything, but the same for the same entries.
    pub fn iter(&self) -> HashEntries<'_> {
        HashEntries { view: self, span: self.frozen.span(Bound::Unbounded, Bound::Unbounded) }
    }
}

impl<'v> IntoIterator for &'v HashView {
    type Item = Result<(&'v [u8], &'v [u8])>;
    type IntoIter = HashEntries<'v>;

    fn into_iter(self) -> HashEntries<'v> {
        self.iter()
    }
}

/// Entries of a view. An error, which means damage, ends it.
pub struct HashEntries<'v> {
    view: &'v HashView,
    span: Span<'v>,
}

impl<'v> Iterator for HashEntries<'v> {
    type Item = Result<(&'v [u8], &'v [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let memory = self.view.frozen.memory();
        let found = self.span.next()?;
        Some(found.and_then(|(hashed, offset, length)| {
            Ok((key_in(hashed), memory.bytes(offset, length)?))
        }))
    }
}

const HASH_BYTES: usize = 8;

/// The hash of `key`, and `key`.
fn hashed(seed: u64, key: &[u8]) -> SmallVec<[u8; 64]> {
    let mut hashed = SmallVec::from_slice(&xxh3_64_with_seed(key, seed).to_be_bytes());
    hashed.extend_from_slice(key);
    hashed
}

fn key_in(hashed: &[u8]) -> &[u8] {
    hashed.get(HASH_BYTES..).unwrap_or_default()
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
