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
    /// What was copied so far, as long as that reaches: memory is not cleared to be written over.
    bytes: RefCell<BytesMut>,
    length: usize,
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
                let start = at * BLOCK_BYTES as usize;
                let end = self.length.min(start + BLOCK_BYTES as usize);
                // One of another length is none: the volume has grown since.
                if entry.value.len() == end - start {
                    copy_to(&mut self.bytes.borrow_mut(), start, entry.value);
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
            let mut bytes = self.bytes.take();
            bytes.resize(self.length, 0);
            answer.give(CachedRun {
                bytes: bytes.freeze(),
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
        let length = (range.end - range.start) as usize;
        let run = Rc::new(ReadRun {
            bytes: RefCell::new(BytesMut::with_capacity(length)),
            length,
            cached: RefCell::new(vec![false; count]),
            errors: RefCell::default(),
            left: Cell::new(count),
            answer: Cell::new(Some(answer)),
        });
        self.load_ahead(volume.clean_space(), blocks);
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

/// Copies `from` to `start`, beyond what there is or over it.
fn copy_to(bytes: &mut BytesMut, start: usize, from: &[u8]) {
    if bytes.len() < start {
        bytes.resize(start, 0);
    }
    let (over, beyond) = from.split_at(from.len().min(bytes.len() - start));
    bytes[start..start + over.len()].copy_from_slice(over);
    bytes.extend_from_slice(beyond);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_in_their_places_whatever_their_order() {
        let mut bytes = BytesMut::with_capacity(16);
        copy_to(&mut bytes, 4, b"efgh");
        copy_to(&mut bytes, 12, b"mn");
        copy_to(&mut bytes, 0, b"abcd");
        copy_to(&mut bytes, 8, b"ijkl");
        copy_to(&mut bytes, 12, b"mnop");
        assert_eq!(&bytes[..], b"abcdefghijklmnop");
    }
}
