//! Batches: each is one record of the journal, or continues one, so that it is there whole or not
//! at all.
//!
//! A batch that continues a record leaves out what the batch before it in the record says: the
//! table, the sequence, and what its first key has in common with the last key there. So batches
//! are read one after the other. Version 1 had fields of fixed width; it is only read.

use entresol_planted::planted;

use super::number::{push_number, take_number};
use super::rows::Effect;
use super::{Damage, ROW_KEY_BYTES_MAX, array_at, common_prefix_bytes, u16_at, u32_at, u64_at};
use crate::sequence::Sequence;

/// The versions, a batch's first byte.
const FIXED: u8 = 1;
const WHOLE: u8 = 2;
const CONTINUES: u8 = 3;

/// Most bytes before the operations: version, operations, sequence.
const HEAD_BYTES_MAX: usize = 1 + 5 + 10;
/// Fewest bytes of an operation.
const OPERATION_BYTES_MIN: usize = 4;
const EFFECT_BITS: u8 = 7;
/// The operation says its table; else it is that of the one before.
const SAYS_TABLE: u8 = 1 << 3;

/// Version 1: bytes before the operations, and of an operation before its key.
const FIXED_BYTES: usize = 24;
const FIXED_OPERATION_BYTES: usize = 14;
const LENGTH_BITS: u32 = 29;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;

/// Longest value that a batch can say.
pub const BATCH_VALUE_BYTES_MAX: usize = LENGTH_MASK as usize;
/// Most bytes of a batch before its operations.
pub(crate) const BATCH_FRAME_BYTES_MAX: usize = HEAD_BYTES_MAX;
/// Most bytes of an operation beside key and value, where a page holds the value: what a key has in
/// common with another one saves more than it takes to say.
pub(crate) const OPERATION_FRAME_BYTES_MAX: usize = 1 + 8 + 1 + 2 + 2;
/// A batch with more bytes is not encoded a second time to continue a record.
const CONTINUING_BYTES_MAX: usize = 2 << 10;

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

/// What is known at the end of a batch, and left out of the next one in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchContext {
    /// The sequence that comes next; `None`: nothing is known.
    next: Option<Sequence>,
    table: u64,
    key: Vec<u8>,
}

/// Reads batches one after the other.
#[derive(Debug, Default)]
pub struct BatchReader {
    context: BatchContext,
}

impl BatchReader {
    /// The batch `bytes`, whose operations are still unchecked. One that continues a record can be
    /// read only if all operations of the one before were.
    pub fn read<'r, 'b>(&'r mut self, bytes: &'b [u8]) -> Result<Batch<'r, 'b>, Damage> {
        let context = &mut self.context;
        let known = context.next.take();
        let (version, mut rest) =
            bytes.split_first().ok_or_else(|| Damage::new("bytes of a batch", 0, 1))?;
        let (mut low, field) = (Sequence(0), "operations of a batch");
        let (count, sequence, least) = match *version {
            FIXED => {
                let fixed: [u8; FIXED_BYTES] = array_at(bytes, 0)
                    .ok_or_else(|| Damage::new("bytes of a batch", bytes.len(), FIXED_BYTES))?;
                low = Sequence(u64_at(&fixed, 16).unwrap_or_default());
                rest = &bytes[FIXED_BYTES..];
                let count = u32_at(&fixed, 4).unwrap_or_default();
                (count.into(), u64_at(&fixed, 8).unwrap_or_default(), FIXED_OPERATION_BYTES)
            }
            WHOLE => {
                let count = take_number(&mut rest, field)?;
                context.key.clear();
                (count, take_number(&mut rest, "sequence of a batch")?, OPERATION_BYTES_MIN)
            }
            CONTINUES => {
                let count = take_number(&mut rest, field)?;
                let next = known.ok_or_else(|| Damage::new("batch that is continued", 0, 1))?;
                (count, next.0, OPERATION_BYTES_MIN)
            }
            other => {
                return Err(Damage::new("version of a batch", other.into(), CONTINUES.into()));
            }
        };
        let most = rest.len() / least;
        let left = u32::try_from(count).ok().filter(|count| *count as usize <= most);
        let left = left.ok_or_else(|| Damage::new(field, count as usize, most))?;
        if sequence.checked_add(count).is_none() {
            return Err(Damage::new("sequence of a batch", usize::MAX, usize::MAX - 1));
        }
        let (sequence, has_table) = (Sequence(sequence), *version == CONTINUES);
        let is_fixed = *version == FIXED;
        Ok(Batch { sequence, low, count: left, left, rest, is_fixed, has_table, context })
    }
}

/// A batch, as its bytes have it. Operation number `n` has the sequence `sequence + n`.
#[derive(Debug)]
pub struct Batch<'r, 'b> {
    /// Sequence of the first operation.
    pub sequence: Sequence,
    /// Changes below this one are all in durable pages; 0, if it does not say.
    pub low: Sequence,
    /// How many operations there are.
    pub count: u32,
    left: u32,
    rest: &'b [u8],
    is_fixed: bool,
    has_table: bool,
    context: &'r mut BatchContext,
}

impl Batch<'_, '_> {
    /// The next operation, in the order in which they were given. None follows a damaged one.
    pub fn operation(&mut self) -> Option<Result<BatchOperation<'_>, Damage>> {
        self.left = self.left.checked_sub(1)?;
        let read = if self.is_fixed { self.read_fixed() } else { self.read() };
        let (effect, value) = match read {
            Ok(read) => read,
            Err(damage) => {
                self.left = 0;
                return Some(Err(damage));
            }
        };
        if self.left == 0 {
            self.context.next = Some(Sequence(self.sequence.0 + u64::from(self.count)));
        }
        let BatchContext { table, key, .. } = &*self.context;
        Some(Ok(BatchOperation { table: *table, key, effect, value }))
    }

    /// Passes the operations over that are left.
    pub fn skip(mut self) -> Result<(), Damage> {
        while let Some(operation) = self.operation() {
            operation?;
        }
        Ok(())
    }
}

/// An effect and a value, of the table and the key that the context has.
type Said<'b> = (Effect, &'b [u8]);

impl<'b> Batch<'_, 'b> {
    fn read(&mut self) -> Result<Said<'b>, Damage> {
        let rest = &mut self.rest;
        let tag = take(rest, 1, "bytes of an operation")?[0];
        if tag & !(EFFECT_BITS | SAYS_TABLE) != 0 {
            return Err(Damage::new("mark of an operation", tag.into(), 15));
        }
        let effect = effect_of((tag & EFFECT_BITS).into())?;
        if tag & SAYS_TABLE != 0 {
            let table = take(rest, 8, "table of an operation")?;
            self.context.table = u64_at(table, 0).unwrap_or_default();
            self.has_table = true;
        }
        if !self.has_table {
            return Err(Damage::new("table of an operation", 0, 8));
        }
        let field = "key of an operation";
        let shared = length(take_number(rest, field)?);
        let suffix_bytes = length(take_number(rest, field)?);
        let value_bytes = length(take_number(rest, "value of an operation")?);
        let known = self.context.key.len();
        if shared > known {
            return Err(Damage::new(field, shared, known));
        }
        check_key(shared.saturating_add(suffix_bytes))?;
        let suffix = take(rest, suffix_bytes, field)?;
        self.context.key.truncate(shared);
        self.context.key.extend_from_slice(suffix);
        Ok((effect, take(rest, value_bytes, "value of an operation")?))
    }

    fn read_fixed(&mut self) -> Result<Said<'b>, Damage> {
        let rest = &mut self.rest;
        let fixed = take(rest, FIXED_OPERATION_BYTES, "bytes of an operation")?;
        let key_bytes = usize::from(u16_at(fixed, 8).unwrap_or_default());
        let tag = u32_at(fixed, 10).unwrap_or_default();
        let effect = effect_of(tag >> LENGTH_BITS)?;
        check_key(key_bytes)?;
        let key = take(rest, key_bytes, "key of an operation")?;
        self.context.table = u64_at(fixed, 0).unwrap_or_default();
        self.context.key.clear();
        self.context.key.extend_from_slice(key);
        Ok((effect, take(rest, (tag & LENGTH_MASK) as usize, "value of an operation")?))
    }
}

fn effect_of(bits: u32) -> Result<Effect, Damage> {
    let effect = u16::try_from(bits).ok().and_then(Effect::from_bits);
    effect.ok_or_else(|| Damage::new("effect of an operation", bits as usize, 3))
}

fn check_key(bytes: usize) -> Result<(), Damage> {
    if (1..=ROW_KEY_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    Err(Damage::new("key of an operation", bytes, ROW_KEY_BYTES_MAX))
}

fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn take<'b>(rest: &mut &'b [u8], bytes: usize, field: &'static str) -> Result<&'b [u8], Damage> {
    let split = rest.split_at_checked(bytes);
    let (taken, after) = split.ok_or_else(|| Damage::new(field, bytes, rest.len()))?;
    *rest = after;
    Ok(taken)
}

/// Collects operations and makes a batch of them.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    /// Room for what stands before the operations, then these.
    bytes: Vec<u8>,
    /// The batch as it continues a record.
    continuing: Vec<u8>,
    count: u32,
    first: First,
    table: u64,
    key: Vec<u8>,
}

/// Where the first operation is in a builder's bytes.
#[derive(Debug, Clone, Copy, Default)]
struct First {
    table: u64,
    effect: u16,
    key: usize,
    value: usize,
    end: usize,
}

/// A batch as it can be appended.
#[derive(Debug, Clone, Copy)]
pub struct BuiltBatch<'b> {
    /// As a record of its own.
    pub whole: &'b [u8],
    /// As it continues a record, if it can.
    pub continuing: Option<&'b [u8]>,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        let (bytes, first) = (vec![0; HEAD_BYTES_MAX], First::default());
        let (continuing, key) = (Vec::new(), Vec::new());
        BatchBuilder { bytes, continuing, count: 0, first, table: 0, key }
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
        let said = (self.count > 0).then_some(self.table);
        push_head(&mut self.bytes, &operation, said, &self.key);
        if self.count == 0 {
            let effect = effect.bits();
            let body = self.bytes.len();
            let (start, end) = (body - key.len(), body + value.len());
            self.first = First { table, effect, key: start, value: body, end };
        }
        self.bytes.extend_from_slice(value);
        self.table = table;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.count += 1;
    }

    /// How many operations there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The batch, whose first operation is change `sequence`, where the batch before it in the
    /// journal ended with `before`.
    pub fn build(&mut self, sequence: Sequence, before: Option<&BatchContext>) -> BuiltBatch<'_> {
        let head = &mut self.continuing;
        head.clear();
        head.push(WHOLE);
        push_number(head, self.count.into());
        push_number(head, sequence.0);
        let start = HEAD_BYTES_MAX - head.len();
        self.bytes[start..HEAD_BYTES_MAX].copy_from_slice(head);
        let is_small = self.bytes.len() <= CONTINUING_BYTES_MAX;
        let may = self.count > 0 && is_small;
        let before = before.filter(|before| may && before.next == Some(sequence));
        if let Some(before) = before {
            self.build_continuing(before);
        }
        let continuing = before.map(|_| &self.continuing[..]);
        BuiltBatch { whole: &self.bytes[start..], continuing }
    }

    fn build_continuing(&mut self, before: &BatchContext) {
        let BatchBuilder { bytes, continuing: out, first, .. } = self;
        out.clear();
        out.push(CONTINUES);
        push_number(out, self.count.into());
        let (key, value) = (&bytes[first.key..first.value], &bytes[first.value..first.end]);
        let effect = Effect::from_bits(first.effect).expect("it was an effect's");
        let operation = BatchOperation { table: first.table, key, effect, value };
        push_head(out, &operation, Some(before.table), &before.key);
        out.extend_from_slice(&bytes[first.value..]);
    }

    /// What is known behind the batch, whose first operation is change `sequence`.
    pub fn end(&self, sequence: Sequence, context: &mut BatchContext) {
        // One without changes says nothing that the next one could leave out.
        let end = Sequence(sequence.0 + u64::from(self.count));
        context.next = (self.count > 0).then_some(end);
        context.table = self.table;
        if context.key.is_empty() || !planted!("batch-continues-another-key") {
            context.key.clone_from(&self.key);
        }
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD_BYTES_MAX);
        self.key.clear();
        self.count = 0;
    }
}

/// Adds all of an operation but its value. `said` is the table of the one before, and `key` its
/// key.
fn push_head(out: &mut Vec<u8>, operation: &BatchOperation<'_>, said: Option<u64>, key: &[u8]) {
    let says_table = said != Some(operation.table);
    let shared = common_prefix_bytes(key, operation.key);
    out.push(operation.effect.bits() as u8 | if says_table { SAYS_TABLE } else { 0 });
    if says_table {
        out.extend_from_slice(&operation.table.to_le_bytes());
    }
    push_number(out, shared as u64);
    push_number(out, (operation.key.len() - shared) as u64);
    push_number(out, operation.value.len() as u64);
    out.extend_from_slice(&operation.key[shared..]);
}
