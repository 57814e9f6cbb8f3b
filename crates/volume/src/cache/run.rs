//! Consecutive blocks from the cache: requested together, and copied once, each to its place.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use entresol_flash::{Key, Operation, Outcome};

use crate::cache::core::{ABSENT_LABEL, Core, Waiter};
use crate::cache::volume::Volume;
use crate::meta::BLOCK_BYTES;
use crate::tasks::{Answer, Reply, reply};

/// What the cache has of consecutive blocks.
pub(crate) struct CachedRun {
    /// The bytes of all of them; where one is not cached, anything.
    pub bytes: Bytes,
    /// Which of them are cached.
    pub cached: Vec<bool>,
    /// What kept blocks from being read.
    pub errors: Vec<entresol_flash::Error>,
}

/// A run that is being read.
pub(crate) struct ReadRun {
    bytes: RefCell<BytesMut>,
    cached: RefCell<Vec<bool>>,
    errors: RefCell<Vec<entresol_flash::Error>>,
    left: Cell<usize>,
    answer: Cell<Option<Answer<CachedRun>>>,
}

impl ReadRun {
    /// One of its blocks was read, or not.
    pub(crate) fn told(&self, at: usize, outcome: entresol_flash::Result<Outcome<'_>>) {
        match outcome {
            Ok(Outcome::Found(entry)) if entry.label != ABSENT_LABEL => {
                let mut bytes = self.bytes.borrow_mut();
                let start = at * BLOCK_BYTES as usize;
                let end = bytes.len().min(start + BLOCK_BYTES as usize);
                // One of another length is none: the volume has grown since.
                if entry.value.len() == end - start {
                    bytes[start..end].copy_from_slice(entry.value);
                    self.cached.borrow_mut()[at] = true;
                }
            }
            Ok(_) => {}
            Err(error) => self.errors.borrow_mut().push(error),
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0
            && let Some(answer) = self.answer.take()
        {
            answer.give(CachedRun {
                bytes: self.bytes.take().freeze(),
                cached: self.cached.take(),
                errors: self.errors.take(),
            });
        }
    }
}

impl Core {
    /// Begins to read what the cache has of `blocks`, at least one.
    pub(crate) fn get_run(&self, volume: &Volume, blocks: &Range<u64>) -> Reply<CachedRun> {
        let (answer, told) = reply(&self.tasks);
        let range = volume.bytes_of(blocks);
        let count = (blocks.end - blocks.start) as usize;
        let run = Rc::new(ReadRun {
            bytes: RefCell::new(BytesMut::zeroed((range.end - range.start) as usize)),
            cached: RefCell::new(vec![false; count]),
            errors: RefCell::default(),
            left: Cell::new(count),
            answer: Cell::new(Some(answer)),
        });
        for (at, block) in blocks.clone().enumerate() {
            let key = block.to_be_bytes();
            let key = Key::new(volume.clean_space(), &key);
            self.begin(Waiter::Block(Rc::clone(&run), at), Operation::Get { key });
        }
        told
    }

    /// The answer of a cache that holds nothing of `blocks`.
    pub(crate) fn no_run(&self, blocks: &Range<u64>) -> Reply<CachedRun> {
        let (answer, told) = reply(&self.tasks);
        let cached = vec![false; (blocks.end - blocks.start) as usize];
        answer.give(CachedRun { bytes: Bytes::new(), cached, errors: Vec::new() });
        told
    }
}
