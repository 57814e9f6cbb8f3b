//! Rows in the order of their keys or against it: leaf after leaf, each merged with what waits for
//! it.
//!
//! A scan upwards enters a right neighbour that the directory does not know once it is through with
//! a leaf. A scan downwards must do so before it takes a row: above the leaf that it read may be
//! rows of that neighbour, which come first.

use std::sync::Arc;

use entresol_flash::{Error, ErrorKind, Outcome as Stored, Result};
use entresol_planted::planted;

use super::approach::{Approach, Arrived, LeafPage, ReadPages, Resumed};
use super::gathering::Gathering;
use super::lookup::{Lookup, Wanted};
use super::moment::Moment;
use super::{Ask, Next, Outcome, Reading, Visit};
use crate::error::{damaged, refused};
use crate::merge::{Cursor, Gathered, Leaf, MergeError, Pushed, Resolved};
use crate::rows::RowForm;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, EndBound, Keys, LeafAt, Place, Quota, Side, State, Table, is_empty};

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

/// A scan on its way.
pub(super) struct Scanning {
    token: u64,
    approach: Approach,
    order: Order,
    /// Rows still to come are at this key or above it.
    low: Vec<u8>,
    /// Rows still to come are below this key.
    high: Option<Vec<u8>>,
    limit: usize,
    /// It ends once rows have so many bytes.
    bytes_max: usize,
    gathered: Gathering,
    copied: Copied,
    /// It looked where the table's rows begin, seen from where it begins itself.
    has_begun: bool,
    /// The number of its look for that end of the rows.
    look: Option<u64>,
    /// As of the directory when that was copied.
    created: Sequence,
    /// What was copied ends here: below this key in ascending order, with it in descending order.
    copied_end: Option<Vec<u8>>,
    /// It shows the table as of one moment.
    moment: Option<Moment>,
    /// It ends before the range that was asked for.
    is_cut: bool,
    /// The record of the leaf that it reads, once the store has answered.
    record: Option<Record>,
    /// Its bytes, where it is there.
    page: Vec<u8>,
}

/// What the store answered for the record of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Found,
    Missing,
}

impl Scanning {
    pub(super) fn new(token: u64, range: RowRange<'_>, reading: Reading) -> Scanning {
        Scanning {
            token,
            approach: Approach::new(range.table),
            order: range.order,
            low: range.low.to_vec(),
            high: range.high.map(<[u8]>::to_vec),
            limit: range.limit,
            bytes_max: reading.scan_bytes_max,
            gathered: Gathering::new(reading.form),
            copied: Copied::default(),
            has_begun: false,
            look: None,
            created: Sequence(0),
            copied_end: None,
            moment: None,
            is_cut: false,
            record: None,
            page: Vec::new(),
        }
    }

    /// The same, as of one moment. It does not begin where rows begin now: they may have been
    /// elsewhere at that moment.
    pub(super) fn at_one_moment(self) -> Scanning {
        let moment = Some(Moment::new(&self.low, self.high.as_deref()));
        Scanning { moment, has_begun: true, ..self }
    }

    /// The table changed: what was gathered is of no one moment.
    pub(super) fn begin_anew(&mut self) {
        self.moment.as_mut().into_iter().for_each(Moment::forget_view);
    }

    /// Whether it begins anew, although all rows were gathered.
    pub(super) fn is_outdated(&self) -> bool {
        self.moment.as_ref().is_some_and(|moment| !moment.has_view())
    }

    /// Passes over the rows that were gathered, if none of them is there any more and others may
    /// follow: whoever goes on behind the last row would have none to go on from. Whether it did.
    pub(super) fn passes_over_rows(&mut self) -> bool {
        let rows = &self.gathered.rows;
        if rows.is_empty() || !rows.goes_on() || !self.gathered.is_gone() {
            return false;
        }
        let last = rows.row(rows.len() - 1).0.to_vec();
        match self.order {
            Order::Ascending => self.low = [&last[..], &[0]].concat(),
            Order::Descending => self.high = Some(last),
        }
        self.gathered = Gathering::new(rows.form());
        true
    }

    /// Begins, where it is to be of one moment and has none.
    fn look(&mut self, shared: &Shared) -> Result<()> {
        let side = self.side();
        let Some(moment) = self.moment.as_mut().filter(|moment| !moment.has_view()) else {
            return Ok(());
        };
        let viewed = moment.look(shared, &self.approach.table, side, self.limit)?;
        (self.low, self.high, self.is_cut) = (viewed.low, viewed.high, viewed.is_cut);
        self.gathered = Gathering::new(self.gathered.rows.form());
        Ok(())
    }

    /// Whether a leaf that was located may have changes that came after the moment.
    fn is_late(&self, at: &LeafAt) -> bool {
        self.moment.as_ref().is_some_and(|moment| {
            let is_same = moment.is_of(at.created);
            !is_same || is_empty(&at.child) && !moment.admits(at.child.sequence)
        })
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
    ) -> Result<Option<Ask>> {
        let next = match self.record.take() {
            Some(record) => {
                let page = std::mem::take(&mut self.page);
                let found = (record == Record::Found).then_some(&page[..]);
                let next = self.take_leaf(shared, found, visit);
                self.page = page;
                next?
            }
            None => next,
        };
        if matches!(next, Next::ReadValue) {
            return Ok(Some(Ask::Values));
        }
        match self.approach.resume(shared, next)? {
            Resumed::Visited => return Ok(self.tell_end()),
            Resumed::Read(key) => return Ok(Some(Ask::Page(key))),
            Resumed::Locate => {}
            Resumed::Value => unreachable!("each value has a read of its own"),
        }
        let has_rows = self.has_begun || self.begin();
        loop {
            self.look(shared)?;
            let is_over = self.high.as_ref().is_some_and(|high| *high <= self.low);
            if self.limit <= self.gathered.rows.len() || is_over || !has_rows {
                return match self.end(visit) {
                    Next::ReadValue => Ok(Some(Ask::Values)),
                    Next::Fail(error) => Err(error),
                    _ => Ok(self.tell_end()),
                };
            }
            self.copied = Copied::default();
            let place = {
                let state = self.approach.table.read();
                self.created = state.directory.created();
                let place = match self.order {
                    Order::Ascending => state.directory.locate(&self.low),
                    Order::Descending => state.directory.locate_before(self.high.as_deref()),
                };
                if let Place::Leaf(at) = &place {
                    (self.copied, self.copied_end) = self.copy(shared, &state, at);
                }
                place
            };
            match place {
                Place::Leaf(at) if self.is_late(&at) => self.begin_anew(),
                Place::Leaf(at) if is_empty(&at.child) => {
                    match self.take_nothing(shared, at.high, visit)? {
                        Next::Done => return Ok(self.tell_end()),
                        Next::ReadValue => return Ok(Some(Ask::Values)),
                        Next::Fail(error) => return Err(error),
                        _ => {}
                    }
                }
                place => {
                    let page = self.approach.head_for(shared, store, place, None);
                    return Ok(Some(Ask::Page(page)));
                }
            }
        }
    }

    /// Begins where the table's rows do, where that is known. Whether there are any.
    fn begin(&mut self) -> bool {
        self.has_begun = true;
        // Of rows that readers fold themselves some are none to others.
        if self.gathered.rows.form() != RowForm::Folded || self.limit == 0 || self.bytes_max == 0 {
            return true;
        }
        let (side, state) = (self.side(), &mut self.approach.table.lock());
        match (state.ends.bound(side), side) {
            (EndBound::NoRows, _) => return false,
            (EndBound::At(bound), Side::Low) if self.low[..] <= bound[..] => {
                self.low = bound.into();
            }
            (EndBound::At(bound), Side::High)
                if self.high.as_ref().is_none_or(|high| high[..] > bound[..]) =>
            {
                self.high = Some([&bound[..], &[0]].concat());
            }
            (EndBound::Unknown, Side::Low) if self.low.is_empty() => {}
            (EndBound::Unknown, Side::High) if self.high.is_none() => {}
            _ => return true,
        }
        self.look = Some(state.ends.look(side));
        true
    }

    fn side(&self) -> Side {
        match self.order {
            Order::Ascending => Side::Low,
            Order::Descending => Side::High,
        }
    }

    /// Tells the table where its rows begin, if this scan found it. It reads nothing more.
    fn tell_end(&mut self) -> Option<Ask> {
        let number = self.look.take()?;
        let last = match self.order {
            Order::Ascending => self.high.as_deref(),
            Order::Descending => Some(&self.low[..]).filter(|low| !low.is_empty()),
        };
        let first = (!self.gathered.rows.is_empty()).then(|| self.gathered.rows.row(0).0);
        let found = first.or(last).map_or(EndBound::NoRows, |key| EndBound::At(key.into()));
        self.approach.table.lock().ends.found(self.side(), number, found);
        None
    }

    /// Takes what waits for a leaf without rows that ends at `end`.
    fn take_nothing(
        &mut self,
        shared: &Shared,
        end: Option<Vec<u8>>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        match self.order {
            Order::Ascending => self.take_rows(shared, None, end, visit),
            Order::Descending => self.take_rows_back(shared, None, visit),
        }
    }

    /// Visits the rows, unless values of theirs are to be read first.
    fn end(&mut self, visit: Visit<'_>) -> Next {
        if self.is_full() || self.is_cut {
            self.gathered.rows.set_goes_on();
        }
        if self.is_cut && self.gathered.rows.is_empty() && self.limit > 0 {
            // Whoever goes on behind the last row would have none to go on from.
            let detail = "changes without a row fill what a scan of one moment copies; maintain";
            return Next::Fail(Error::new(ErrorKind::Busy, detail.to_string()));
        }
        if self.gathered.has_values() {
            return Next::ReadValue;
        }
        visit(self.token, Ok(Outcome::Rows(&self.gathered.rows)));
        Next::Done
    }

    /// The rows, whose values are still to be read.
    pub(super) fn gathered(&mut self) -> &mut Gathering {
        &mut self.gathered
    }

    /// The value that is to be read next, while fewer than `most` are being read.
    pub(super) fn next_value(&mut self, most: usize) -> Option<(usize, Lookup)> {
        let (index, key, created, wanted) = self.gathered.next_value(most)?;
        let lookup = Lookup::new(self.token, &self.approach.table, &key);
        Some((index, lookup.in_form(self.gathered.rows.form()).at(created, wanted)))
    }

    /// Whether it has as many rows as it may.
    fn is_full(&self) -> bool {
        self.gathered.rows.len() >= self.limit || self.gathered.bytes() >= self.bytes_max
    }

    /// What waits for the rows of a leaf that are still to come, and where the copy ends.
    fn copy(&self, shared: &Shared, state: &State, at: &LeafAt) -> (Copied, Option<Vec<u8>>) {
        if let Some(moment) = &self.moment {
            let low = state.directory.low_of(at).max(&self.low);
            let high = least(at.high.as_deref(), self.high.as_deref());
            let end = (self.order == Order::Descending).then(|| low.to_vec());
            return (moment.waiting(Keys { low, high }), end);
        }
        let pending = &state.pending;
        if pending.is_empty() {
            let low = state.directory.low_of(at).max(&self.low).to_vec();
            return (Copied::default(), (self.order == Order::Descending).then_some(low));
        }
        let arena = shared.arena.read();
        let most = Quota::of(self.limit - self.gathered.rows.len());
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

    /// What the store answered. Called under its locks: rows are merged later, which takes longer
    /// than others should wait.
    pub(super) fn take(&mut self, outcome: Result<Stored<'_>>) -> Next {
        match self.approach.arrive(outcome) {
            Arrived::Next(next) => next,
            Arrived::Delta(page) => {
                self.approach.delta = page.map(<[u8]>::to_vec);
                Next::ReadLeaf
            }
            Arrived::Leaf(record) => {
                self.page.clear();
                self.page.extend_from_slice(record.unwrap_or_default());
                self.record = Some(record.map_or(Record::Missing, |_| Record::Found));
                Next::Locate
            }
        }
    }

    fn take_leaf(
        &mut self,
        shared: &Shared,
        record: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let at = self.approach.located().clone();
        let page = match self.approach.leaf_page(record)? {
            LeafPage::Moved(next) => return Ok(next),
            LeafPage::Empty => return self.take_nothing(shared, at.high, visit),
            LeafPage::Page(page) => page,
        };
        let delta = self.approach.delta.take();
        let leaf = Leaf::parse(&page, delta.as_deref())
            .map_err(|damage| damaged(&self.approach.table, &damage))?;
        if self.moment.as_ref().is_some_and(|moment| !moment.admits(leaf.sequence())) {
            self.begin_anew();
            return Ok(Next::Locate);
        }
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
        if self.approach.is_overtaken(&self.copied, leaf.sequence()) {
            self.begin_anew();
            return Ok(Next::Locate);
        }
        if shared.options.absent_filter_bits > 0 {
            let read = ReadPages { delta: delta.as_deref(), base_bytes: page.len() };
            self.approach.learn(shared, &leaf, read)?;
        }
        if self.order == Order::Descending {
            return self.take_rows_back(shared, Some(leaf), visit);
        }
        // What waits was copied up to there: the leaf may have absorbed others since.
        let end = least(high, at.high.as_deref()).map(<[u8]>::to_vec);
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
        let (limit, bytes_max) = (self.limit, self.bytes_max);
        let created = self.created;
        let step = Step { leaf, copied: &copied, created, keys, limit, bytes_max };
        let merged = step.merge(shared, &self.approach.table, &mut self.gathered);
        merged.map_err(|error| refused(&self.approach.table, &error))?;
        let is_over = until.is_none() || until == self.high;
        if self.is_full() || is_over {
            return Ok(self.end(visit));
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
        let (limit, bytes_max) = (usize::MAX, usize::MAX);
        let created = self.created;
        let step = Step { leaf, copied: &copied, created, keys, limit, bytes_max };
        let mut ascending = Gathering::new(self.gathered.rows.form());
        let merged = step.merge(shared, &self.approach.table, &mut ascending);
        merged.map_err(|error| refused(&self.approach.table, &error))?;
        for index in (0..ascending.rows.len()).rev() {
            if self.is_full() {
                break;
            }
            self.gathered.push_last_of(&mut ascending, index);
        }
        if self.is_full() || low <= self.low {
            return Ok(self.end(visit));
        }
        self.high = Some(low);
        Ok(Next::Locate)
    }
}

/// What a scan takes of one leaf.
struct Step<'s> {
    leaf: Option<Leaf<'s>>,
    copied: &'s Copied,
    created: Sequence,
    keys: Keys<'s>,
    /// Most rows in the buffer.
    limit: usize,
    /// No row is added once there are so many bytes.
    bytes_max: usize,
}

impl Step<'_> {
    /// Adds the rows to `rows`, in ascending order.
    fn merge(
        &self,
        shared: &Shared,
        table: &Table,
        into: &mut Gathering,
    ) -> std::result::Result<(), MergeError> {
        let Step { leaf, copied, created, keys, limit, bytes_max } = *self;
        let start = |rows: Option<crate::format::Rows<'_>>| {
            rows.map_or(Ok(0), |rows| rows.lower_bound(keys.low))
        };
        let (base, delta) = (leaf.map(|leaf| leaf.base()), leaf.and_then(|leaf| leaf.delta()));
        let (base_start, delta_start) = (start(base)?, start(delta)?);
        let (mut base, mut delta) =
            (Cursor::at(base, base_start)?, Cursor::at(delta, delta_start)?);
        let known = leaf.map_or(Sequence(0), |leaf| leaf.sequence());
        let changes = copied.changes();
        let mut waiting = changes.iter().filter(|change| change.sequence > known).peekable();
        let function = shared.merge_of(table);
        let function = function.as_ref().map(|function| &**function as _);
        let (mut gathered, mut folded) = (Gathered::default(), Vec::new());
        while into.rows.len() < limit && into.bytes() < bytes_max {
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
            if let Some(wanted) = Wanted::of(&gathered)? {
                into.push_wanted(gathered.key(), created, wanted);
                continue;
            }
            let rows = &mut into.rows;
            match rows.form() {
                RowForm::Unfolded => {
                    let _pushed: Pushed = gathered.push_unfolded(rows);
                }
                RowForm::Folded => {
                    if let Resolved::Row(value) = gathered.resolve(function, &mut folded)? {
                        rows.push(gathered.key(), value);
                    }
                }
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
