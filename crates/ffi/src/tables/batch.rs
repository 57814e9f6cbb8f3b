//! A batch as a caller writes it: records one after the other, with nothing between.
//!
//! ```text
//! { table's address 8; kind 4; key's length 4; value's length 4; 0 in 4; key; value }
//! ```
//!
//! Little-endian. Kinds: 1 put, 2 remove, 3 add a part; conditions, which speak of
//! the rows before the batch: 4 absent, 5 present, 6 of this value.

use std::sync::Arc;

use entresol_host::now;
use entresol_tier::Durability;
use entresol_tree::{
    Action, ConditionalBatch, Expected, RowCondition, Session, Visit, Write, WriteBatch,
};

use super::TableHandle;
use crate::store::Hosted;
use crate::text::Failure;

/// The changes and conditions of a batch, their bytes still in the caller's memory.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    writes: Vec<Write<'a>>,
    conditions: Vec<RowCondition<'a>>,
}

impl<'a> Batch<'a> {
    /// Reads a batch for tables of `host`.
    ///
    /// # Safety
    /// The addresses in it are those of tables that are not released while the batch is used.
    pub(super) unsafe fn parse(bytes: &'a [u8], host: &Arc<Hosted>) -> Result<Batch<'a>, Failure> {
        let mut batch = Batch::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let record = Record::take(&mut rest);
            let record = record.ok_or_else(|| {
                wrong(at, "24 bytes, the last four of them 0, a key and a value", "something else")
            })?;
            if record.table == 0 {
                return Err(wrong(at, "the address of a table", "0"));
            }
            // SAFETY: the caller's promise.
            let handle = unsafe { &*(record.table as *const TableHandle) };
            if !Arc::ptr_eq(&handle.host, host) {
                return Err(wrong(at, "a table of this store", "a table of another one"));
            }
            batch.push(handle, &record).map_err(|found| {
                wrong(at, "kind 1 to 6, without a value where it is 2, 4 or 5", &found)
            })?;
        }
        Ok(batch)
    }

    /// Adds a change or a condition; what it is, if it is neither.
    fn push(&mut self, handle: &'a TableHandle, record: &Record<'a>) -> Result<(), String> {
        let (table, key) = (&handle.table, record.key);
        let mut write = |action| self.writes.push(Write { table, key, action });
        let mut expect = |expected| self.conditions.push(RowCondition { table, key, expected });
        match (record.kind, record.value) {
            (1, value) => write(Action::Put(value)),
            (2, b"") => write(Action::Remove),
            (3, value) => write(Action::Add(value)),
            (4, b"") => expect(Expected::Absent),
            (5, b"") => expect(Expected::Present),
            (6, value) => expect(Expected::Value(value)),
            (kind, value) => return Err(format!("kind {kind} with {} bytes", value.len())),
        }
        Ok(())
    }

    /// Begins to write it.
    pub(super) fn begin(&self, session: &mut Session, level: Option<Durability>, visit: Visit<'_>) {
        let batch = WriteBatch { writes: &self.writes, durability: level };
        if self.conditions.is_empty() {
            return session.write(0, now(), batch, visit);
        }
        let conditional = ConditionalBatch { conditions: &self.conditions, batch };
        session.write_if(0, now(), conditional, visit);
    }
}

/// One record.
#[derive(Debug)]
struct Record<'a> {
    table: u64,
    kind: u32,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the beginning of `rest`, which is cut off; none if it is none.
    fn take(rest: &mut &'a [u8]) -> Option<Record<'a>> {
        let (table, after) = rest.split_first_chunk()?;
        let (kind, after) = word(after)?;
        let (key, after) = word(after)?;
        let (value, after) = word(after)?;
        let (zero, after) = word(after)?;
        let (key, after) = after.split_at_checked(key as usize)?;
        let (value, after) = after.split_at_checked(value as usize)?;
        *rest = after;
        let table = u64::from_le_bytes(*table);
        (zero == 0).then_some(Record { table, kind, key, value })
    }
}

/// A word of 32 bits, and what is behind it.
pub(super) fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*word), rest))
}

fn wrong(at: usize, expected: &str, found: &str) -> Failure {
    let sentence = format!("byte {at} of a batch: expected {expected}, found {found}");
    Failure { kind: 2, sentence }
}
