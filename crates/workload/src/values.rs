//! Values that do not compress, cost little more than a copy, and can be verified when read.
//!
//! A value begins with the key's id and the put's number, eight bytes each, little-endian (cut off
//! where the value is shorter). The rest is a window of one random table; id and number say where
//! the window starts. A value of another key, of another put or with changed bytes does not verify.

use std::fmt;

use entresol_random::{Random, mix64};

const TABLE_BYTES: usize = 256 << 10;
const HEAD_BYTES: usize = 16;

/// Makes and verifies values. Share it between threads; it never changes.
#[derive(Debug, Clone)]
pub struct Values {
    table: Vec<u8>,
}

/// Why a value is not the one that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyError {
    /// It is shorter or longer than the value that was put.
    Length {
        /// What was put, bytes.
        expected: usize,
        /// What came, bytes.
        found: usize,
    },
    /// It belongs to another key.
    ForeignKey {
        /// The key that was asked for.
        expected: u64,
        /// The key it was put under.
        found: u64,
    },
    /// Its bytes were changed.
    Changed {
        /// The key that was asked for.
        id: u64,
        /// The number of the put it claims to be.
        put: u64,
    },
}

impl Values {
    /// The values of `seed`.
    pub fn new(seed: u64) -> Values {
        let mut table = vec![0; TABLE_BYTES];
        Random::new(seed).fill(&mut table);
        Values { table }
    }

    /// Fills `value` as put number `put` of key `id`.
    #[inline]
    pub fn fill(&self, id: u64, put: u64, value: &mut [u8]) {
        let (head, body) = value.split_at_mut(value.len().min(HEAD_BYTES));
        head.copy_from_slice(&head_of(id, put)[..head.len()]);
        let mut start = self.window(id, put);
        let mut rest = body;
        while !rest.is_empty() {
            let length = rest.len().min(TABLE_BYTES - start);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&self.table[start..start + length]);
            rest = later;
            start = 0;
        }
    }

    /// Checks that `value` was put under key `id` with `length` bytes, and returns the number of
    /// the put (0 where the value is too short to hold it). Compares every byte.
    #[inline]
    pub fn verify(&self, id: u64, length: usize, value: &[u8]) -> Result<u64, VerifyError> {
        if value.len() != length {
            return Err(VerifyError::Length { expected: length, found: value.len() });
        }
        let (head, body) = value.split_at(length.min(HEAD_BYTES));
        if head.len() < HEAD_BYTES {
            // The number of the put is cut off, of which nothing is known; the id is not.
            let known = head.len().min(8);
            let same = head[..known] == head_of(id, 0)[..known];
            return if same { Ok(0) } else { Err(VerifyError::Changed { id, put: 0 }) };
        }
        let found = word(&head[..8]);
        let put = word(&head[8..]);
        if found != id {
            return Err(VerifyError::ForeignKey { expected: id, found });
        }
        let mut start = self.window(id, put);
        let mut rest = body;
        while !rest.is_empty() {
            let length = rest.len().min(TABLE_BYTES - start);
            let (now, later) = rest.split_at(length);
            if now != &self.table[start..start + length] {
                return Err(VerifyError::Changed { id, put });
            }
            rest = later;
            start = 0;
        }
        Ok(put)
    }

    fn window(&self, id: u64, put: u64) -> usize {
        (mix64(id ^ put.rotate_left(32)) as usize) % TABLE_BYTES
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::Length { expected, found } => {
                write!(f, "expected a value of {expected} bytes, found {found}")
            }
            VerifyError::ForeignKey { expected, found } => {
                write!(f, "expected the value of key {expected}, found that of key {found}")
            }
            VerifyError::Changed { id, put } => {
                write!(f, "the value of key {id}, put {put}, came back with other bytes")
            }
        }
    }
}

impl std::error::Error for VerifyError {}

fn head_of(id: u64, put: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&id.to_le_bytes());
    head[8..].copy_from_slice(&put.to_le_bytes());
    head
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}
