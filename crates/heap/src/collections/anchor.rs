//! A collection as its users hold it: the handle of its header, and their shared state in memory.
//!
//! Every header begins with a word for the kind of collection and one for the newest generation of
//! its blocks.

use std::sync::Arc;

use crate::collections::shared::{Change, Hold, Shared};
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::{Heap, ReadGuard, Transaction};

/// What a collection is: the first word of its header, and how large that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// A name and the format's version.
    pub(super) word: [u8; 8],
    pub(super) header_bytes: u64,
}

/// A collection in a heap.
#[derive(Clone)]
pub(super) struct Anchor {
    heap: Heap,
    handle: u64,
    shared: Arc<Shared>,
}

/// Where every header keeps the newest generation of the collection's blocks.
const GENERATION: u64 = 8;

impl Anchor {
    /// A new collection whose header has `words` behind its first two, in a block of `bytes`.
    pub(super) fn create(
        transaction: &mut Transaction,
        kind: Kind,
        bytes: u64,
        words: &[u64],
    ) -> Result<Anchor> {
        let handle = transaction.allocate(bytes)?;
        let heap = transaction.heap().clone();
        let memory = Words::of(&heap);
        memory.put(handle, u64::from_le_bytes(kind.word))?;
        for (index, word) in words.iter().enumerate() {
            memory.put(handle + 16 + 8 * index as u64, *word)?;
        }
        let shared = Shared::of(&heap, handle, 0);
        Ok(Anchor { heap, handle, shared })
    }

    /// The collection at `handle`, if it is of this kind.
    pub(super) fn open(heap: &Heap, handle: u64, kind: Kind) -> Result<Anchor> {
        let memory = Words::of(heap);
        let usable = heap.usable_bytes(handle);
        let is_live = usable.is_some_and(|bytes| bytes >= kind.header_bytes);
        if !is_live || memory.load(handle)? != u64::from_le_bytes(kind.word) {
            let name = String::from_utf8_lossy(&kind.word).into_owned();
            let name = name.trim_end_matches(|c: char| c < ' ');
            let detail = format!("there is no collection `{name}` at handle {handle}");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let shared = Shared::of(heap, handle, memory.load(handle + GENERATION)?);
        Ok(Anchor { heap: heap.clone(), handle, shared })
    }

    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    pub(super) fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(super) fn words(&self) -> Words<'_> {
        Words::of(&self.heap)
    }

    pub(super) fn guard(&self) -> ReadGuard {
        self.heap.guard()
    }

    /// Performs `operation` as a whole or not at all, in a transaction that goes on either way.
    pub(super) fn change<T>(
        &self,
        transaction: &mut Transaction,
        operation: impl FnOnce(&mut Editor<'_>) -> Result<T>,
    ) -> Result<T> {
        let savepoint = transaction.savepoint();
        let change = self.shared.enter(transaction)?;
        let words = Words::of(&self.heap);
        let result = operation(&mut Editor { words, transaction, header: self.handle, change });
        if result.is_err() {
            transaction.rollback(savepoint)?;
        }
        result
    }

    /// Reads words as they were together, under a guard.
    pub(super) fn read<T>(&self, read: impl FnMut(Words<'_>) -> Result<T>) -> Result<T> {
        let _guard = self.heap.guard();
        let mut read = read;
        self.shared.read(|| read(Words::of(&self.heap)))
    }

    /// Reads words at a moment without changes, and keeps what they refer to.
    pub(super) fn freeze<T>(
        &self,
        transaction: Option<&Transaction>,
        see: impl FnOnce(Words<'_>) -> Result<T>,
    ) -> Result<(Hold, T)> {
        self.shared.freeze(transaction, || see(Words::of(&self.heap)))
    }
}

/// A change of the collection whose header is at `header`.
pub(super) struct Editor<'w> {
    pub(super) words: Words<'w>,
    pub(super) transaction: &'w mut Transaction,
    pub(super) header: u64,
    change: Change<'w>,
}

impl Editor<'_> {
    pub(super) fn load(&self, offset: u64) -> Result<u64> {
        self.words.load(offset)
    }

    pub(super) fn store(&mut self, offset: u64, value: u64) -> Result<()> {
        self.words.store(self.transaction, offset, value)
    }

    /// A new block of zeros, all of which becomes part of the transaction.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let handle = self.transaction.allocate(bytes)?;
        self.words = self.words.again();
        Ok(handle)
    }

    pub(super) fn free(&mut self, handle: u64) -> Result<()> {
        self.transaction.free(handle)
    }

    /// The generation of what this change makes; the header knows the newest.
    pub(super) fn born(&mut self) -> Result<u64> {
        let generation = self.change.generation;
        let offset = self.header + GENERATION;
        if self.load(offset)? < generation {
            self.store(offset, generation)?;
        }
        Ok(generation)
    }

    /// Whether a view sees blocks of `generation`.
    pub(super) fn is_seen(&self, generation: u64) -> bool {
        generation < self.change.frozen_below
    }
}
