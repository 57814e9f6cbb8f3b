//! Requests as rows of words of the caller's. `include/entresol.h` draws them.

use std::num::NonZeroU32;

use entresol_tier::{
    Condition, Durability, Expiry, Key, Operation, Pinning, PutOptions, SpaceId, Timestamp, Version,
};

use super::record::Record;
use crate::text::Failure;

/// Words of a request.
pub(super) const WORDS: usize = 16;
/// The words of a request.
pub(super) type Row = [u64; WORDS];

/// Set in the tokens of requests whose answer has no value.
pub(super) const WITHOUT_VALUE: u64 = 1 << 63;

const GET: u64 = 1;
const PUT: u64 = 2;
const REMOVE: u64 = 3;
const TOUCH: u64 = 4;
/// Get without the value.
const CONTAINS: u64 = 5;
/// Set where the caller's thread waits for the device.
const WAITS: u64 = 16;

/// One operation of a caller's, its bytes still in the caller's memory.
#[derive(Debug)]
pub(super) struct CallerRequest<'a> {
    pub(super) token: u64,
    /// The caller's clock; 0: the system's.
    pub(super) now: i64,
    pub(super) operation: Operation<'a>,
    /// Whether the caller's thread may wait for the device.
    pub(super) waits: bool,
    out: *mut u64,
    out_bytes: usize,
}

impl<'a> CallerRequest<'a> {
    /// Reads a row.
    ///
    /// # Safety
    /// Key and value are readable, and the place for outcomes is writable, for as long as the row
    /// says, until the request is dropped.
    pub(super) unsafe fn of(row: &Row) -> Result<CallerRequest<'a>, Failure> {
        let bytes = |address: u64, length: u64| match length {
            0 => &[][..],
            // SAFETY: the caller's promise.
            _ => unsafe { crate::text::bytes(address as i64, length as i64) },
        };
        let (space, partition) = place(row[3]);
        let key = Key { space, partition, bytes: bytes(row[4], row[5]) };
        let expiry = Expiry {
            at: (row[8] > 0).then_some(Timestamp(row[8])),
            idle_seconds: NonZeroU32::new((row[9] >> 32) as u32),
        };
        let condition = match row[10] {
            1 => Condition::Absent,
            2 => Condition::Present,
            3 => Condition::Version(Version(row[11])),
            _ => Condition::Always,
        };
        let wanted = row[0] & !WAITS;
        let operation = match wanted {
            GET | CONTAINS => Operation::Get { key },
            PUT => Operation::Put {
                key,
                value: bytes(row[6], row[7]),
                options: PutOptions {
                    expiry,
                    condition,
                    pinning: Pinning::Evictable,
                    label: row[9] as u8,
                    durability: durability(row[12], row[13]),
                },
            },
            REMOVE => Operation::Remove { key, condition },
            TOUCH => Operation::Touch { key, expiry, condition },
            other => {
                let sentence =
                    format!("a store has no operation {other}; expected 1 to 5, or 16 more");
                return Err(Failure { kind: 2, sentence });
            }
        };
        Ok(CallerRequest {
            waits: row[0] & WAITS != 0,
            token: if wanted == CONTAINS { row[1] | WITHOUT_VALUE } else { row[1] },
            now: row[2] as i64,
            operation,
            out: row[14] as *mut u64,
            out_bytes: row[15] as usize,
        })
    }

    /// Writes `record` to the request's place for outcomes, if it fits.
    pub(super) fn answer(&mut self, record: &Record<'_>) -> bool {
        let fits = record.bytes() <= self.out_bytes;
        if fits {
            // SAFETY: the promise that `of` was given.
            unsafe { record.write(self.out) };
        }
        fits
    }
}

/// An operation with bytes of its own.
#[derive(Debug)]
pub(super) struct OwnedOperation {
    space: SpaceId,
    partition: u16,
    key: Vec<u8>,
    value: Vec<u8>,
    action: Action,
}

/// What an owned operation does.
#[derive(Debug, Clone, Copy)]
enum Action {
    Get,
    Put(PutOptions),
    Remove(Condition),
    Touch(Expiry, Condition),
}

impl OwnedOperation {
    pub(super) fn of(operation: &Operation<'_>) -> OwnedOperation {
        let (key, value, action) = match *operation {
            Operation::Get { key } => (key, &[][..], Action::Get),
            Operation::Put { key, value, options } => (key, value, Action::Put(options)),
            Operation::Remove { key, condition } => (key, &[][..], Action::Remove(condition)),
            Operation::Touch { key, expiry, condition } => {
                (key, &[][..], Action::Touch(expiry, condition))
            }
        };
        OwnedOperation {
            space: key.space,
            partition: key.partition,
            key: key.bytes.to_vec(),
            value: value.to_vec(),
            action,
        }
    }

    pub(super) fn operation(&self) -> Operation<'_> {
        let key = Key { space: self.space, partition: self.partition, bytes: &self.key };
        match self.action {
            Action::Get => Operation::Get { key },
            Action::Put(options) => Operation::Put { key, value: &self.value, options },
            Action::Remove(condition) => Operation::Remove { key, condition },
            Action::Touch(expiry, condition) => Operation::Touch { key, expiry, condition },
        }
    }

    /// Bytes of key and value.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// A space in the low 16 bits, a partition in the next.
pub(super) fn place(word: u64) -> (SpaceId, u16) {
    (SpaceId(word as u16), (word >> 16) as u16)
}

/// A level by its number; 0 is the store's own.
fn durability(level: u64, argument: u64) -> Option<Durability> {
    match level {
        1 => Some(Durability::Memory),
        2 => Some(Durability::Process),
        3 => Some(Durability::Flushed),
        4 => {
            Some(Durability::Periodic(NonZeroU32::new(argument as u32).unwrap_or(NonZeroU32::MIN)))
        }
        5 => Some(Durability::Synced),
        _ => None,
    }
}
