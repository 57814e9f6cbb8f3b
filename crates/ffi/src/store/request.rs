//! Requests as rows of words of the caller's. `include/entresol.h` draws them.

use std::num::NonZeroU32;

use entresol_host::{Answer, Given, Request, Waiter};
use entresol_tier::{
    Condition, Durability, Expiry, Key, Lifespan, Operation, Pinning, PutOptions, SpaceId,
    Timestamp, Version,
};

use super::record::{WITHOUT_VALUE, with_record};
use crate::text::Failure;

/// Words of a request.
pub(super) const WORDS: usize = 16;
/// The words of a request.
pub(super) type Row = [u64; WORDS];

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
    pub(super) request: Request<'a>,
    pub(super) place: AnswerPlace,
}

/// Where a caller wants the answer, if there is one at once.
#[derive(Debug)]
pub(super) struct AnswerPlace {
    token: u64,
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
                    lifespan: Lifespan::Learned,
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
        let token = if wanted == CONTAINS { row[1] | WITHOUT_VALUE } else { row[1] };
        let waiter = if row[0] & WAITS != 0 { Waiter::Caller } else { Waiter::Reaper };
        Ok(CallerRequest {
            request: Request { token, now_ms: row[2] as i64, operation, waiter },
            place: AnswerPlace { token, out: row[14] as *mut u64, out_bytes: row[15] as usize },
        })
    }
}

impl AnswerPlace {
    /// Writes the record of `answer`, if it fits.
    pub(super) fn take(&mut self, answer: &Answer<'_>) -> Given {
        with_record(self.token, answer, |record| {
            if record.bytes() > self.out_bytes {
                return Given::Reaped;
            }
            // SAFETY: the promise that `CallerRequest::of` was given.
            unsafe { record.write(self.out) };
            Given::AtOnce
        })
    }
}

/// A space in the low 16 bits, a partition in the next.
pub(super) fn place(word: u64) -> (SpaceId, u16) {
    (SpaceId(word as u16), (word >> 16) as u16)
}

/// A level by its number; 0 is the store's own.
pub(crate) fn durability(level: u64, argument: u64) -> Option<Durability> {
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
