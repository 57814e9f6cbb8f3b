//! Values that are records of their own: what all sessions and maintenance know of them.
//!
//! A writer puts the value first, then the batch that names it into the journal. Neither need be
//! durable; nothing orders the two. So
//!
//! 1. a value is removed only once the batch that took its place is durable, with its own values;
//! 2. no side of a row is written that may hold a value which somebody still needs;
//! 3. a batch is acknowledged as durable only once all values of batches up to it are;
//! 4. an opening leaves out a batch whose value is lost, with all batches behind it, and removes
//!    values that nobody names.

mod found;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use entresol_flash::{LogPosition, Store};
use parking_lot::Mutex;

use crate::format::{NAMES, PAGE_KEY_BYTES, PageRole, page_key};
use crate::journal::Journal;
use crate::sequence::Sequence;
use crate::table::{Table, Takes};

pub(crate) use found::{FoundValues, Journaled, NamedValue, Place};

/// Key of the record that says up to which change all values are durable.
pub(crate) fn confirmed_key() -> [u8; PAGE_KEY_BYTES] {
    page_key(NAMES, 1, PageRole::Page)
}

/// Key of the record that says which changes never were.
pub(crate) fn cuts_key() -> [u8; PAGE_KEY_BYTES] {
    page_key(NAMES, 2, PageRole::Page)
}

/// Key of the record that says that rows of a table may have values of their own.
pub(crate) fn marker_key(table: u64) -> [u8; PAGE_KEY_BYTES] {
    page_key(table, u32::MAX, PageRole::Page)
}

/// What is known of the values of all tables.
#[derive(Debug, Default)]
pub(crate) struct Values {
    state: Mutex<State>,
    /// A writer waits until old values are removed.
    is_wanted: AtomicBool,
    /// How often sides of rows were taken.
    pub takes: Takes,
}

#[derive(Debug, Default)]
struct State {
    /// Rows whose old values are to be removed, in the order of their changes.
    replaced: VecDeque<Replaced>,
    replaced_bytes: u64,
    /// The last change that names a value.
    last: Sequence,
    /// The values that changes up to this one name are durable, and so are the changes.
    confirmed: Sequence,
    /// Counts positions of the log.
    epoch: u64,
    /// Values that are put and still in no batch, by the epoch in which they were begun.
    arriving: BTreeMap<u64, u32>,
    /// Where the log stood when epochs ended.
    positions: VecDeque<(u64, LogPosition)>,
    /// What the opening found, or the first writer of a value wrote.
    first_position: Option<LogPosition>,
}

/// A row whose old values are to be removed once its change is durable.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub table: u64,
    pub key: Box<[u8]>,
    pub sequence: Sequence,
    pub of: Owner,
    pub bytes: u64,
}

/// Whose row it is.
#[derive(Debug)]
pub(crate) enum Owner {
    /// Of this table: the values go that the row does not name.
    Table(Arc<Table>),
    /// Of one that was dropped: both go.
    Dropped {
        /// As of its first record.
        created: Sequence,
    },
}

/// What a sync is to confirm.
#[derive(Debug)]
pub(crate) struct Confirmation {
    pub through: Sequence,
    /// All values from here on may be in no batch.
    pub position: Option<LogPosition>,
}

impl Values {
    /// As an opening found it.
    pub(crate) fn found(confirmed: Sequence, first_position: Option<LogPosition>) -> Values {
        let state = State { last: confirmed, confirmed, first_position, ..State::default() };
        Values { state: Mutex::new(state), ..Values::default() }
    }

    /// A batch begins to put values. Its epoch.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        let epoch = state.epoch;
        *state.arriving.entry(epoch).or_default() += 1;
        epoch
    }

    /// As `begin`, in an epoch that is not over.
    pub(crate) fn begin_in(&self, epoch: u64) {
        *self.state.lock().arriving.entry(epoch).or_default() += 1;
    }

    /// The batch has named them, or they are removed.
    pub(crate) fn end(&self, epoch: u64) {
        let mut state = self.state.lock();
        if let Some(count) = state.arriving.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                state.arriving.remove(&epoch);
            }
        }
    }

    /// The change `sequence` names a value.
    pub(crate) fn note(&self, sequence: Sequence) {
        let mut state = self.state.lock();
        state.last = state.last.max(sequence);
    }

    /// Whether there are values that may not be durable.
    pub(crate) fn are_unconfirmed(&self) -> bool {
        let state = self.state.lock();
        state.last > state.confirmed
    }

    /// Changes up to this one, and the values that they name, are known to be durable.
    pub(crate) fn confirmed(&self) -> Sequence {
        self.state.lock().confirmed
    }

    /// Whether the change `sequence`, and the values up to it, are known to be durable.
    pub(crate) fn is_confirmed(&self, sequence: Sequence) -> bool {
        sequence <= self.confirmed()
    }

    pub(crate) fn push_replaced(&self, replaced: Replaced) {
        let mut state = self.state.lock();
        state.replaced_bytes += replaced.bytes;
        state.replaced.push_back(replaced);
    }

    /// A writer waits until old values are removed. Whether it is the first one since a
    /// confirmation began.
    pub(crate) fn want(&self) -> bool {
        !self.is_wanted.swap(true, Ordering::AcqRel)
    }

    /// Whether a confirmation is asked for, where `bytes` of old values may wait.
    pub(crate) fn are_asked_for(&self, bytes: u64) -> bool {
        self.is_wanted.load(Ordering::Acquire) || self.state.lock().replaced_bytes >= bytes
    }

    /// Begins a confirmation: what is taken afterwards as a sync point is what it waits for.
    pub(crate) fn begin_confirmation(
        &self,
        store: &Store,
        journal: &Mutex<Journal>,
    ) -> Confirmation {
        self.is_wanted.store(false, Ordering::Release);
        let position = {
            let mut state = self.state.lock();
            let position = store.log_position();
            let epoch = state.epoch;
            state.positions.push_back((epoch, position));
            state.epoch += 1;
            let oldest = state.arriving.keys().next().copied().unwrap_or(u64::MAX);
            let mut eligible = None;
            while let Some((_, found)) = state.positions.pop_front_if(|(at, _)| *at < oldest) {
                eligible = Some(found);
            }
            eligible
        };
        Confirmation { through: journal.lock().last(), position }
    }

    /// Values from here on may be in no batch, as the opening found it.
    pub(crate) fn first_position(&self) -> LogPosition {
        self.state.lock().first_position.clone().unwrap_or_default()
    }

    /// Whether an opening after a crash would look for values that are in no batch.
    pub(crate) fn is_watched(&self) -> bool {
        self.state.lock().first_position.is_some()
    }

    /// It would look from `position` on.
    pub(crate) fn watch_from(&self, position: LogPosition) {
        self.state.lock().first_position.get_or_insert(position);
    }

    /// All up to `through` is durable.
    pub(crate) fn confirm(&self, through: Sequence) {
        let mut state = self.state.lock();
        state.confirmed = state.confirmed.max(through);
    }

    /// A row whose old values may go: its change is `through` or an earlier one.
    pub(crate) fn pop_replaced(&self, through: Sequence) -> Option<Replaced> {
        let mut state = self.state.lock();
        let next = state.replaced.pop_front_if(|next| next.sequence <= through)?;
        state.replaced_bytes -= next.bytes;
        Some(next)
    }
}

/// What the record of a confirmation says.
pub(crate) fn encode_confirmed(through: Sequence, position: &LogPosition) -> Vec<u8> {
    let words = [through.0, position.segment].into_iter().chain(position.versions.iter().copied());
    words.flat_map(u64::to_le_bytes).collect()
}

/// The words of a record that consists of them.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
