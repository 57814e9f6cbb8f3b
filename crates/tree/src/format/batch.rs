//! Batches: each is one record of the journal, so that it is there whole or not at all.

use super::rows::Effect;
use super::{Damage, FORMAT_VERSION, ROW_KEY_BYTES_MAX, array_at, u16_at, u32_at, u64_at};
use crate::sequence::Sequence;

/// Bytes before the operations.
const FIXED_BYTES: usize = 24;
/// Bytes of an operation before its key.
const OPERATION_BYTES: usize = 14;
const LENGTH_BITS: u32 = 29;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;

/// Longest value that a batch can say.
pub const BATCH_VALUE_BYTES_MAX: usize = LENGTH_MASK as usize;

/// One change of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOperation<'a> {
    /// The table's number.
    pub table: u64,
    /// The row's key.
    pub key: &'a [u8],
    /// What is done to it.
    pub effect: Effect,
    /// The value, or the part.
    pub value: &'a [u8],
}

/// A batch, as its bytes have it. Operation number `n` has the sequence `sequence + n`.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Sequence of the first operation.
    pub sequence: Sequence,
    /// Changes below this one are all in durable pages.
    pub low: Sequence,
    /// How many operations there are.
    pub count: u32,
    operations: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch `bytes`, whose operations are still unchecked.
    pub fn parse(bytes: &'a [u8]) -> Result<Batch<'a>, Damage> {
        let fixed: [u8; FIXED_BYTES] = array_at(bytes, 0)
            .ok_or_else(|| Damage::new("bytes of a batch", bytes.len(), FIXED_BYTES))?;
        if fixed[0] != FORMAT_VERSION {
            let expected = FORMAT_VERSION.into();
            return Err(Damage::new("version of a batch", fixed[0].into(), expected));
        }
        let count = u32_at(&fixed, 4).unwrap_or_default();
        let most = (bytes.len() - FIXED_BYTES) / OPERATION_BYTES;
        if count as usize > most {
            return Err(Damage::new("operations of a batch", count as usize, most));
        }
        Ok(Batch {
            sequence: Sequence(u64_at(&fixed, 8).unwrap_or_default()),
            low: Sequence(u64_at(&fixed, 16).unwrap_or_default()),
            count,
            operations: &bytes[FIXED_BYTES..],
        })
    }

    /// The operations, in the order in which they were given.
    pub fn operations(&self) -> BatchOperations<'a> {
        BatchOperations { rest: self.operations, left: self.count }
    }
}

/// The operations of a batch, one after the other. It ends at the first damage.
#[derive(Debug, Clone)]
pub struct BatchOperations<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Iterator for BatchOperations<'a> {
    type Item = Result<BatchOperation<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = self.read();
        if read.is_err() {
            self.left = 0;
        }
        Some(read)
    }
}

impl<'a> BatchOperations<'a> {
    fn read(&mut self) -> Result<BatchOperation<'a>, Damage> {
        let rest = self.rest;
        let (fixed, after) = rest
            .split_at_checked(OPERATION_BYTES)
            .ok_or_else(|| Damage::new("bytes of an operation", rest.len(), OPERATION_BYTES))?;
        let key_bytes = usize::from(u16_at(fixed, 8).unwrap_or_default());
        let tag = u32_at(fixed, 10).unwrap_or_default();
        let value_bytes = (tag & LENGTH_MASK) as usize;
        let effect = u16::try_from(tag >> LENGTH_BITS).ok().and_then(Effect::from_bits);
        let effect = effect.ok_or_else(|| {
            Damage::new("effect of an operation", (tag >> LENGTH_BITS) as usize, 3)
        })?;
        if key_bytes == 0 || key_bytes > ROW_KEY_BYTES_MAX {
            return Err(Damage::new("key of an operation", key_bytes, ROW_KEY_BYTES_MAX));
        }
        let (key, after) = after
            .split_at_checked(key_bytes)
            .ok_or_else(|| Damage::new("key of an operation", key_bytes, after.len()))?;
        let (value, after) = after
            .split_at_checked(value_bytes)
            .ok_or_else(|| Damage::new("value of an operation", value_bytes, after.len()))?;
        self.rest = after;
        Ok(BatchOperation { table: u64_at(fixed, 0).unwrap_or_default(), key, effect, value })
    }
}

/// Collects operations and makes a batch of them.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder { bytes: vec![0; FIXED_BYTES], count: 0 }
    }
}

impl BatchBuilder {
    /// Adds an operation.
    ///
    /// # Panics
    /// Where the key or the value is longer than a batch can say.
    pub fn push(&mut self, operation: BatchOperation<'_>) {
        let BatchOperation { table, key, effect, value } = operation;
        assert!(!key.is_empty() && key.len() <= ROW_KEY_BYTES_MAX, "a key that a page holds");
        assert!(value.len() <= BATCH_VALUE_BYTES_MAX, "a value that a batch can say");
        let tag = u32::from(effect.bits()) << LENGTH_BITS | value.len() as u32;
        self.bytes.extend_from_slice(&table.to_le_bytes());
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&tag.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// How many operations there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The batch, whose first operation is change `sequence`, while all below `low` are in durable
    /// pages.
    pub fn bytes(&mut self, sequence: Sequence, low: Sequence) -> &[u8] {
        self.bytes[0] = FORMAT_VERSION;
        self.bytes[4..8].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&sequence.0.to_le_bytes());
        self.bytes[16..24].copy_from_slice(&low.0.to_le_bytes());
        &self.bytes
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.bytes.truncate(FIXED_BYTES);
        self.count = 0;
    }
}
