//! A tree as its users hold it: the header's handle, and their shared state in memory.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::collections::radix::blocks::TreeBlocks;
use crate::collections::radix::cursor::Span;
use crate::collections::radix::node::{Header, Link};
use crate::collections::radix::search::Tree;
use crate::collections::radix::verify::{self, Checked};
use crate::collections::radix::write::Writer;
use crate::collections::shared::{Hold, Shared};
use crate::collections::words::Words;
use crate::error::{Error, ErrorKind, Result};
use crate::transaction::PATIENCE;
use crate::{Heap, ReadGuard, Transaction};

/// What the values of a tree are, so that no collection is opened as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collections) enum Form {
    /// A map in order from bytes to words.
    Words = 1,
    /// A map in order from bytes to bytes.
    Bytes = 2,
    /// A map from bytes to bytes, in order of the keys' hashes.
    Hashed = 3,
}

/// A tree in a heap.
#[derive(Clone)]
pub(in crate::collections) struct Trunk {
    heap: Heap,
    handle: u64,
    shared: Arc<Shared>,
}

impl Trunk {
    /// A new, empty tree that will hold nodes of `generation` at most.
    pub(in crate::collections) fn create(
        transaction: &mut Transaction,
        form: Form,
        seed: u64,
        generation: u64,
    ) -> Result<Trunk> {
        let handle = transaction.allocate(Header::BYTES)?;
        let heap = transaction.heap().clone();
        let memory = Words::of(&heap);
        memory.put(handle, Header::KIND)?;
        memory.put(handle + Header::FORM, form as u64)?;
        memory.put(handle + Header::SEED, seed)?;
        memory.put(handle + Header::GENERATION, generation)?;
        let shared = Shared::of(&heap, handle, generation);
        Ok(Trunk { heap, handle, shared })
    }

    pub(in crate::collections) fn open(heap: &Heap, handle: u64, form: Form) -> Result<Trunk> {
        let memory = Words::of(heap);
        let is_live = heap.usable_bytes(handle).is_some_and(|bytes| bytes >= Header::BYTES);
        if !is_live || memory.load(handle)? != Header::KIND {
            let detail = format!("there is no radix tree at handle {handle}");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let found = memory.load(handle + Header::FORM)?;
        if found != form as u64 {
            let detail = format!("the tree at handle {handle} has form {found}, not {form:?}");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let generation = memory.load(handle + Header::GENERATION)?;
        let shared = Shared::of(heap, handle, generation);
        Ok(Trunk { heap: heap.clone(), handle, shared })
    }

    pub(in crate::collections) fn handle(&self) -> u64 {
        self.handle
    }

    pub(in crate::collections) fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(in crate::collections) fn entries(&self) -> Result<u64> {
        Words::of(&self.heap).load(self.handle + Header::ENTRIES)
    }

    pub(in crate::collections) fn seed(&self) -> Result<u64> {
        Words::of(&self.heap).load(self.handle + Header::SEED)
    }

    pub(in crate::collections) fn version(&self) -> &AtomicU64 {
        self.shared.version()
    }

    pub(in crate::collections) fn reader(&self) -> Reader<'_> {
        Reader { trunk: self, _guard: self.heap.guard() }
    }

    /// Performs `operation` as a whole or not at all, in a transaction that goes on either way.
    pub(in crate::collections) fn change<T>(
        &self,
        transaction: &mut Transaction,
        operation: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        let savepoint = transaction.savepoint();
        let change = self.shared.enter(transaction)?;
        let memory = Words::of(&self.heap);
        let result = operation(&mut Writer::new(memory, transaction, self.handle, change));
        if result.is_err() {
            transaction.rollback(savepoint)?;
        }
        result
    }

    pub(in crate::collections) fn freeze(
        &self,
        transaction: Option<&Transaction>,
    ) -> Result<Frozen> {
        let patience = transaction.map_or(PATIENCE, Transaction::patience);
        self.freeze_within(patience, transaction)
    }

    pub(in crate::collections) fn freeze_within(
        &self,
        patience: Duration,
        transaction: Option<&Transaction>,
    ) -> Result<Frozen> {
        let (hold, (root, entries)) = self.shared.freeze_within(patience, transaction, || {
            let memory = Words::of(&self.heap);
            let root = Link(memory.load(self.handle + Header::ROOT)?);
            Ok((root, memory.load(self.handle + Header::ENTRIES)?))
        })?;
        Ok(Frozen { heap: self.heap.clone(), root, entries, _hold: hold })
    }

    pub(in crate::collections) fn blocks(&self) -> Result<TreeBlocks> {
        TreeBlocks::of(&self.heap, self.handle)
    }

    pub(in crate::collections) fn verify(&self) -> Result<Checked> {
        verify::verify(&self.heap, self.handle)
    }
}

/// Searches of the newest tree; what they find keeps its bytes as long as this lives.
pub(in crate::collections) struct Reader<'t> {
    trunk: &'t Trunk,
    _guard: ReadGuard,
}

impl Reader<'_> {
    #[inline]
    pub(in crate::collections) fn word(&self, key: &[u8]) -> Result<Option<u64>> {
        let memory = Words::of(&self.trunk.heap);
        let tree = Tree::at(memory, self.trunk.handle + Header::ROOT)?;
        tree.find(key)?.map(|(offset, _)| memory.load(offset)).transpose()
    }

    #[inline]
    pub(in crate::collections) fn bytes(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let memory = Words::of(&self.trunk.heap);
        let tree = Tree::at(memory, self.trunk.handle + Header::ROOT)?;
        tree.find(key)?.map(|(offset, length)| memory.bytes(offset, length)).transpose()
    }
}

/// A tree at one moment; keeps what it sees from being changed or reused.
pub(in crate::collections) struct Frozen {
    heap: Heap,
    root: Link,
    pub(in crate::collections) entries: u64,
    _hold: Hold,
}

impl Frozen {
    pub(in crate::collections) fn memory(&self) -> Words<'_> {
        Words::of(&self.heap)
    }

    pub(in crate::collections) fn find(&self, key: &[u8]) -> Result<Option<(u64, u64)>> {
        self.tree().find(key)
    }

    pub(in crate::collections) fn span(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Span<'_> {
        Span::new(self.tree(), lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec))
    }

    fn tree(&self) -> Tree<'_> {
        Tree { memory: self.memory(), root: self.root }
    }
}
