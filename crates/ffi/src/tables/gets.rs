//! Several gets of one call: keys as a caller writes them, and rows as they go back.
//!
//! ```text
//! key    { table's address 8; key's length 4; 0 in 4; key }
//! answer { bytes of the row 4, 0 if there is none; row }
//! ```
//!
//! Little-endian, one after the other with nothing between; answers are in the order of the keys.
//! All gets are begun before the first one is waited for, so that the device answers them side by
//! side.

use std::ops::Range;
use std::sync::Arc;

use entresol_host::now;
use entresol_tier::Result as StoreResult;
use entresol_tree::{Outcome, RowAt, Session};

use super::TableHandle;
use super::batch::word;
use crate::store::Hosted;
use crate::text::Failure;

/// Most gets that are under way at a time.
const GETS_MAX: usize = 256;
const WORD_BYTES: usize = 4;

/// The keys, their bytes still in the caller's memory.
#[derive(Debug, Default)]
pub(super) struct Gets<'a> {
    rows: Vec<RowAt<'a>>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Answers {
    /// Rows in the order in which they came.
    bytes: Vec<u8>,
    /// Where the row of each key is.
    places: Vec<Range<usize>>,
}

impl<'a> Gets<'a> {
    /// Reads keys of tables of `host`.
    ///
    /// # Safety
    /// The addresses are those of tables that are not released while the gets are used.
    pub(super) unsafe fn parse(bytes: &'a [u8], host: &Arc<Hosted>) -> Result<Gets<'a>, Failure> {
        let (mut gets, mut rest) = (Gets::default(), bytes);
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let (address, key) = take(&mut rest).ok_or_else(|| {
                wrong(at, "16 bytes, the last four of them 0, and a key", "something else")
            })?;
            if address == 0 {
                return Err(wrong(at, "the address of a table", "0"));
            }
            // SAFETY: the caller's promise.
            let handle = unsafe { &*(address as *const TableHandle) };
            if !Arc::ptr_eq(&handle.host, host) {
                return Err(wrong(at, "a table of this store", "a table of another one"));
            }
            gets.rows.push(RowAt { table: &handle.table, key });
        }
        Ok(gets)
    }

    /// Gets all rows.
    pub(super) fn run(&self, session: &mut Session) -> StoreResult<Answers> {
        let mut answers = Answers { bytes: Vec::new(), places: vec![0..0; self.rows.len()] };
        let mut ended = Ok(());
        let mut visit = |token: u64, outcome: StoreResult<Outcome<'_>>| match outcome {
            Ok(Outcome::Found(row)) => answers.push(token as usize, row),
            Ok(_) => {}
            Err(error) => ended = Err(error),
        };
        for (index, row) in self.rows.iter().enumerate() {
            while session.in_flight() >= GETS_MAX {
                session.poll(1, now(), &mut visit)?;
            }
            session.get(index as u64, now(), *row, &mut visit);
        }
        while session.in_flight() > 0 {
            session.poll(1, now(), &mut visit)?;
        }
        ended.map(|()| answers)
    }
}

impl Answers {
    fn push(&mut self, index: usize, row: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.places[index] = start..self.bytes.len();
    }

    /// How many rows there are.
    pub(super) fn found(&self) -> usize {
        self.places.iter().filter(|place| !place.is_empty()).count()
    }

    /// Bytes of all answers.
    pub(super) fn bytes(&self) -> usize {
        self.places.len() * WORD_BYTES + self.bytes.len()
    }

    /// The answers one after the other.
    pub(super) fn concat(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes());
        for place in &self.places {
            all.extend_from_slice(&(place.len() as u32).to_le_bytes());
            all.extend_from_slice(&self.bytes[place.clone()]);
        }
        all
    }
}

/// The table's address and the key at the beginning of `rest`, which are cut off.
fn take<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let (table, after) = rest.split_first_chunk()?;
    let (length, after) = word(after)?;
    let (zero, after) = word(after)?;
    let (key, after) = after.split_at_checked(length as usize)?;
    *rest = after;
    (zero == 0).then_some((u64::from_le_bytes(*table), key))
}

fn wrong(at: usize, expected: &str, found: &str) -> Failure {
    let sentence = format!("byte {at} of gets: expected {expected}, found {found}");
    Failure { kind: 2, sentence }
}
