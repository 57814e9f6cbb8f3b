//! Copies of changes that are in the journal and in no page.

use std::ops::{Bound, Range};

use crate::format::Effect;
use crate::merge::Change;
use crate::pending::{Arena, Entry, Pending};
use crate::sequence::Sequence;

/// A range of keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
}

impl<'a> Keys<'a> {
    pub(crate) fn high_bound(&self) -> Bound<&'a [u8]> {
        self.high.map_or(Bound::Unbounded, Bound::Excluded)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.high.is_some_and(|high| high <= self.low)
    }
}

/// The first key with changes that is `key` or above it.
pub(crate) fn next_key(pending: &Pending, arena: &Arena, key: &[u8]) -> Option<Vec<u8>> {
    let mut entries = pending.range(arena, Bound::Included(key), Bound::Unbounded);
    entries.next().map(|entry| entry.key().to_vec())
}

/// Keys that a copy passes over beside those that may have rows.
const PASSED_MAX: usize = 1024;

/// How much a copy still takes: so many keys whose changes may make rows, so many in all, and the
/// key with which so many bytes are full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    rows: usize,
    keys: usize,
    bytes: u64,
}

impl Quota {
    /// All changes of a range.
    pub(crate) const ALL: Quota = Quota { rows: usize::MAX, keys: usize::MAX, bytes: u64::MAX };

    /// So many rows, and a bound of the keys that are passed over.
    pub(crate) fn of(rows: usize) -> Quota {
        Quota { rows, keys: rows.saturating_add(PASSED_MAX), ..Quota::ALL }
    }

    /// So many rows, however many keys are passed over.
    pub(crate) fn of_rows(rows: usize) -> Quota {
        Quota { rows, ..Quota::ALL }
    }

    /// About so many bytes of keys and values.
    pub(crate) fn of_bytes(bytes: u64) -> Quota {
        Quota { bytes, ..Quota::ALL }
    }

    fn takes(&mut self, entry: &Entry<'_>) -> bool {
        if self.rows == 0 || self.keys == 0 || self.bytes == 0 {
            return false;
        }
        let newest = entry.newest_first().next();
        let is_remove = newest.is_some_and(|change| change.effect == Effect::Remove);
        self.rows -= usize::from(!is_remove);
        self.keys -= 1;
        if self.bytes != u64::MAX {
            self.bytes = self.bytes.saturating_sub(entry.bytes());
        }
        true
    }
}

/// Changes in memory of their own, ascending by key and then by sequence.
#[derive(Debug, Default, Clone)]
pub(crate) struct Copied {
    bytes: Vec<u8>,
    changes: Vec<Span>,
}

#[derive(Debug, Clone)]
struct Span {
    key: Range<usize>,
    value: Range<usize>,
    effect: Effect,
    sequence: Sequence,
}

impl Copied {
    /// Copies the changes of `key`, oldest first.
    pub(crate) fn copy_key(&mut self, pending: &Pending, arena: &Arena, key: &[u8]) {
        let bound = || Bound::Included(key);
        let entry = pending.range(arena, bound(), bound()).next();
        if let Some(entry) = entry {
            self.extend(key, entry.oldest_first());
        }
    }

    /// Copies the changes of the lowest of `keys`, as far as the quota goes. The key at which it
    /// stopped, if it did.
    pub(crate) fn copy_range(
        &mut self,
        pending: &Pending,
        arena: &Arena,
        keys: Keys<'_>,
        mut quota: Quota,
    ) -> Option<Vec<u8>> {
        if keys.is_empty() {
            return None;
        }
        let mut entries = pending.range(arena, Bound::Included(keys.low), keys.high_bound());
        for entry in entries.by_ref() {
            if !quota.takes(&entry) {
                return Some(entry.key().to_vec());
            }
            self.extend(entry.key(), entry.oldest_first());
        }
        None
    }

    /// Copies the changes of the highest of `keys`, as far as the quota goes. The lowest key that
    /// it copied, if it left others.
    pub(crate) fn copy_range_back(
        &mut self,
        pending: &Pending,
        arena: &Arena,
        keys: Keys<'_>,
        mut quota: Quota,
    ) -> Option<Vec<u8>> {
        if keys.is_empty() {
            return None;
        }
        let mut entries = pending.range_back(arena, Bound::Included(keys.low), keys.high_bound());
        let mut has_more = false;
        let within = |entry: &Entry<'_>| {
            let takes = quota.takes(entry);
            has_more = !takes;
            takes
        };
        let highest: Vec<_> = entries.by_ref().take_while(within).collect();
        for entry in highest.iter().rev() {
            self.extend(entry.key(), entry.oldest_first());
        }
        let lowest = highest.last().filter(|_| has_more);
        lowest.map(|entry| entry.key().to_vec())
    }

    /// Adds the changes of `key`, oldest first.
    fn extend<'c>(&mut self, key: &[u8], changes: impl Iterator<Item = Change<'c>>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key = start..self.bytes.len();
        for Change { effect, sequence, value, .. } in changes {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value);
            let value = start..self.bytes.len();
            self.changes.push(Span { key: key.clone(), value, effect, sequence });
        }
    }

    /// The changes of `keys`.
    pub(crate) fn between(&self, keys: Keys<'_>) -> Copied {
        let key = |span: &Span| &self.bytes[span.key.clone()];
        let start = self.changes.partition_point(|span| key(span) < keys.low);
        let is_within = |span: &&Span| keys.high.is_none_or(|high| key(span) < high);
        let mut part = Copied::default();
        for span in self.changes[start..].iter().take_while(is_within) {
            let Span { effect, sequence, .. } = *span;
            let value = &self.bytes[span.value.clone()];
            let change = Change { key: key(span), effect, sequence, value };
            part.extend(change.key, std::iter::once(change));
        }
        part
    }

    /// The changes.
    pub(crate) fn changes(&self) -> Vec<Change<'_>> {
        let change = |span: &Span| Change {
            key: &self.bytes[span.key.clone()],
            effect: span.effect,
            sequence: span.sequence,
            value: &self.bytes[span.value.clone()],
        };
        self.changes.iter().map(change).collect()
    }

    /// Drops the changes behind `through`.
    pub(crate) fn retain_through(&mut self, through: Sequence) {
        self.changes.retain(|change| change.sequence <= through);
    }

    /// Whether there are changes up to `sequence`.
    pub(crate) fn has_through(&self, sequence: Sequence) -> bool {
        self.changes.iter().any(|change| change.sequence <= sequence)
    }

    /// Bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.changes.len()
    }
}
