//! Rows in the order of their keys or against it: leaf after leaf, each merged with what waits for
//! it.
//!
//! A scan upwards enters a right neighbour that the directory does not know once it is through with
//! a leaf. A scan downwards must do so before it takes a row: above the leaf that it read may be
//! rows of that neighbour, which come first.

use std::sync::Arc;

use entresol_flash::{Outcome as Stored, Result};
use entresol_planted::planted;

use super::lookup::{is_of_later, missed, page_of, refused};
use super::{Next, Outcome, Visit, damaged, record_key};
use crate::format::{Header, PageKind, PageRole};
use crate::merge::{Cursor, Gathered, Leaf, MergeError, Resolved};
use crate::node::is_known;
use crate::shared::Shared;
use crate::table::{Copied, Keys, LeafAt, Missing, Place, ROOT_PAGE, State, Table};

/// Which rows a scan reads.
#[derive(Debug, Clone, Copy)]
pub struct RowRange<'a> {
    /// Of which table.
    pub table: &'a Arc<Table>,
    /// From this key on.
    pub low: &'a [u8],
    /// Up to this key, which does not belong to it.
    pub high: Option<&'a [u8]>,
    /// Most rows.
    pub limit: usize,
    /// Which rows come first.
    pub order: Order,
}

/// In which order a scan gives rows, and so which ones where there are more than its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// From the lowest key up.
    #[default]
    Ascending,
    /// From the highest key down.
    Descending,
}

/// Rows that a scan found, in order.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<(u32, u32)>,
}

impl RowBuffer {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Key and value of row `index`.
    pub fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1 as usize);
        let (key, value) = self.ends[index];
        (&self.bytes[start..key as usize], &self.bytes[key as usize..value as usize])
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.row(index))
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }
}

/// A scan on its way.
pub(super) struct Scanning {
    token: u64,
    table: Arc<Table>,
    order: Order,
    /// Rows still to come are at this key or above it.
    low: Vec<u8>,
    /// Rows still to come are below this key.
    high: Option<Vec<u8>>,
    limit: usize,
    rows: RowBuffer,
    stage: Stage,
    leaf: Option<LeafAt>,
    delta: Option<Vec<u8>>,
    copied: Copied,
    /// What was copied ends here: below this key in ascending order, with it in descending order.
    copied_end: Option<Vec<u8>>,
    /// How often a page was not there.
    misses: u32,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Idle,
    Node(Missing),
    Delta,
    Leaf,
}

impl Scanning {
    pub(super) fn new(token: u64, range: RowRange<'_>) -> Scanning {
        Scanning {
            token,
            table: Arc::clone(range.table),
            order: range.order,
            low: range.low.to_vec(),
            high: range.high.map(<[u8]>::to_vec),
            limit: range.limit,
            rows: RowBuffer::default(),
            stage: Stage::Idle,
            leaf: None,
            delta: None,
            copied: Copied::default(),
            copied_end: None,
            misses: 0,
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// As of a lookup.
    pub(super) fn prepare(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        next: Next,
        visit: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match next {
            Next::Done => return Ok(None),
            Next::Fail(error) => return Err(error),
            Next::ReadLeaf => {
                self.stage = Stage::Leaf;
                let page = self.leaf.as_ref().map_or(ROOT_PAGE, |leaf| leaf.child.page);
                return Ok(Some(record_key(&self.table, page, PageRole::Page)));
            }
            Next::Load(missing, bytes) => {
                let is_exact = shared.recovered.lock().is_exact;
                let mut state = self.table.lock();
                let loaded = state.directory.load(missing, &bytes, is_exact);
                loaded.map_err(|damage| damaged(&self.table, &damage))?;
            }
            Next::Learn { high, right } => {
                let leaf = self.leaf.take().expect("a leaf that was read");
                self.table.lock().directory.learn(&leaf, &high, right);
            }
            Next::Reload => missed(&self.table, &mut self.misses)?,
            Next::Locate => {}
        }
        if self.limit <= self.rows.len() || self.high.as_ref().is_some_and(|high| *high <= self.low)
        {
            visit(self.token, Ok(Outcome::Rows(&self.rows)));
            return Ok(None);
        }
        self.locate(shared, store)
    }

    fn locate(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
    ) -> Result<Option<Vec<u8>>> {
        self.delta = None;
        self.copied = Copied::default();
        let place = {
            let state = self.table.lock();
            let place = match self.order {
                Order::Ascending => state.directory.locate(&self.low),
                Order::Descending => state.directory.locate_before(self.high.as_deref()),
            };
            if let Place::Leaf(at) = &place {
                (self.copied, self.copied_end) = self.copy(shared, &state, at);
            }
            place
        };
        let at = match place {
            Place::Missing(missing) => {
                self.stage = Stage::Node(missing);
                return Ok(Some(record_key(&self.table, missing.page(), PageRole::Page)));
            }
            Place::Leaf(at) => at,
        };
        let delta_key = record_key(&self.table, at.child.page, PageRole::Delta);
        let has_delta = at.child.delta_bytes > 0
            && (is_known(&at.child) || store.may_hold(shared.key(&delta_key)));
        let leaf_key = record_key(&self.table, at.child.page, PageRole::Page);
        self.leaf = Some(at);
        self.stage = if has_delta { Stage::Delta } else { Stage::Leaf };
        Ok(Some(if has_delta { delta_key } else { leaf_key }))
    }

    /// What waits for the rows of a leaf that are still to come, and where the copy ends.
    fn copy(&self, shared: &Shared, state: &State, at: &LeafAt) -> (Copied, Option<Vec<u8>>) {
        let (pending, arena) = (&state.pending, shared.arena.read());
        let most = self.limit - self.rows.len();
        let mut copied = Copied::default();
        let end = match self.order {
            Order::Ascending => {
                let high = least(at.high.as_deref(), self.high.as_deref());
                let keys = Keys { low: &self.low, high };
                copied.copy_range(pending, &arena, keys, most)
            }
            Order::Descending => {
                let low = state.directory.low_of(at).max(&self.low);
                let keys = Keys { low, high: self.high.as_deref() };
                let end = copied.copy_range_back(pending, &arena, keys, most);
                end.or_else(|| Some(low.to_vec()))
            }
        };
        (copied, end)
    }

    /// As of a lookup.
    pub(super) fn take(
        &mut self,
        shared: &Shared,
        outcome: Result<Stored<'_>>,
        visit: Visit<'_>,
    ) -> Next {
        let page = match outcome {
            Ok(Stored::Found(entry)) => Some(entry.value),
            Ok(_) => None,
            Err(error) => return Next::Fail(error),
        };
        match self.stage {
            Stage::Idle => unreachable!("a scan that reads"),
            Stage::Node(missing) => match page {
                Some(page) => Next::Load(missing, page.to_vec()),
                None => Next::Reload,
            },
            Stage::Delta => {
                self.delta = page.map(<[u8]>::to_vec);
                Next::ReadLeaf
            }
            Stage::Leaf => self.take_leaf(shared, page, visit).unwrap_or_else(Next::Fail),
        }
    }

    fn take_leaf(
        &mut self,
        shared: &Shared,
        record: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let table = Arc::clone(&self.table);
        let damage = |damage| damaged(&table, &damage);
        let at = self.leaf.clone().expect("a leaf that was located");
        if is_of_later(record, &at).map_err(damage)? {
            return Ok(Next::Locate);
        }
        let page = page_of(record, &at).map_err(damage)?;
        let Some(page) = page else {
            if at.child.page != ROOT_PAGE {
                return Ok(Next::Reload);
            }
            return match self.order {
                Order::Ascending => self.take_rows(shared, None, at.high.clone(), visit),
                Order::Descending => self.take_rows_back(shared, None, visit),
            };
        };
        if Header::decode(page).map_err(damage)?.kind == PageKind::Inner {
            return Ok(Next::Locate);
        }
        let delta = self.delta.take();
        let leaf = Leaf::parse(page, delta.as_deref()).map_err(damage)?;
        let high = match planted!("parent-trusted") {
            true => at.high.as_deref(),
            false => leaf.base().high_key(),
        };
        let right = leaf.base().header().link as u32;
        let is_short = high.is_some_and(|high| match self.order {
            Order::Ascending => high <= &self.low[..],
            Order::Descending => self.high.as_deref().is_none_or(|until| high < until),
        });
        if is_short {
            return Ok(Next::Learn { high: high.unwrap_or_default().to_vec(), right });
        }
        if self.order == Order::Descending {
            return self.take_rows_back(shared, Some(leaf), visit);
        }
        let end = high.map(<[u8]>::to_vec);
        let is_stale = high != at.high.as_deref();
        let next = self.take_rows(shared, Some(leaf), end.clone(), visit)?;
        Ok(match (next, end) {
            // The directory does not know the right neighbour: it is entered on the way.
            (Next::Locate, Some(high)) if is_stale && self.low == high => {
                Next::Learn { high, right }
            }
            (next, _) => next,
        })
    }

    /// Takes rows of a leaf that ends at `end`, and of what was copied.
    fn take_rows(
        &mut self,
        shared: &Shared,
        leaf: Option<Leaf<'_>>,
        end: Option<Vec<u8>>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let end = match (end, self.copied_end.take()) {
            (Some(end), Some(copied)) => Some(end.min(copied)),
            (end, copied) => end.or(copied),
        };
        let until = least(end.as_deref(), self.high.as_deref()).map(<[u8]>::to_vec);
        let copied = std::mem::take(&mut self.copied);
        let keys = Keys { low: &self.low, high: until.as_deref() };
        let step = Step { leaf, copied: &copied, keys, limit: self.limit };
        let merged = step.merge(shared, &self.table, &mut self.rows);
        merged.map_err(|error| refused(&self.table, &error))?;
        let is_over = until.is_none() || until == self.high;
        if self.rows.len() >= self.limit || is_over {
            visit(self.token, Ok(Outcome::Rows(&self.rows)));
            return Ok(Next::Done);
        }
        self.low = until.unwrap_or_default();
        Ok(Next::Locate)
    }

    /// Takes the highest rows of a leaf that has all keys from where the copy ends up to `high`.
    fn take_rows_back(
        &mut self,
        shared: &Shared,
        leaf: Option<Leaf<'_>>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let low = self.copied_end.take().unwrap_or_default();
        let copied = std::mem::take(&mut self.copied);
        let keys = Keys { low: &low, high: self.high.as_deref() };
        let step = Step { leaf, copied: &copied, keys, limit: usize::MAX };
        let mut ascending = RowBuffer::default();
        let merged = step.merge(shared, &self.table, &mut ascending);
        merged.map_err(|error| refused(&self.table, &error))?;
        for index in (0..ascending.len()).rev().take(self.limit - self.rows.len()) {
            let (key, value) = ascending.row(index);
            self.rows.push(key, value);
        }
        if self.rows.len() >= self.limit || low <= self.low {
            visit(self.token, Ok(Outcome::Rows(&self.rows)));
            return Ok(Next::Done);
        }
        self.high = Some(low);
        Ok(Next::Locate)
    }
}

/// What a scan takes of one leaf.
struct Step<'s> {
    leaf: Option<Leaf<'s>>,
    copied: &'s Copied,
    keys: Keys<'s>,
    /// Most rows in the buffer.
    limit: usize,
}

impl Step<'_> {
    /// Adds the rows to `rows`, in ascending order.
    fn merge(
        &self,
        shared: &Shared,
        table: &Table,
        rows: &mut RowBuffer,
    ) -> std::result::Result<(), MergeError> {
        let Step { leaf, copied, keys, limit } = *self;
        let start = |rows: Option<crate::format::Rows<'_>>| {
            rows.map_or(Ok(0), |rows| rows.lower_bound(keys.low))
        };
        let (base, delta) = (leaf.map(|leaf| leaf.base()), leaf.and_then(|leaf| leaf.delta()));
        let (base_start, delta_start) = (start(base)?, start(delta)?);
        let (mut base, mut delta) =
            (Cursor::at(base, base_start)?, Cursor::at(delta, delta_start)?);
        let known = leaf.map_or(crate::sequence::Sequence(0), |leaf| leaf.sequence());
        let changes = copied.changes();
        let mut waiting = changes.iter().filter(|change| change.sequence > known).peekable();
        let function = shared.merge_of(table);
        let function = function.as_ref().map(|function| &**function as _);
        let (mut gathered, mut folded) = (Gathered::default(), Vec::new());
        while rows.len() < limit {
            let next = [base.key(), delta.key(), waiting.peek().map(|change| change.key)];
            let Some(key) = next.into_iter().flatten().min() else { return Ok(()) };
            if keys.high.is_some_and(|high| key >= high) {
                return Ok(());
            }
            gathered.start(key);
            gathered.take_rows(&mut base)?;
            gathered.take_rows(&mut delta)?;
            while let Some(change) = waiting.next_if(|change| change.key == gathered.key()) {
                gathered.apply(change.effect, change.sequence, change.value);
            }
            if let Resolved::Row(value) = gathered.resolve(function, &mut folded)? {
                rows.push(gathered.key(), value);
            }
        }
        Ok(())
    }
}

/// The lower of two ends, where none means no end.
fn least<'a>(left: Option<&'a [u8]>, right: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}
