//! Counts and ranks: sums of what inner nodes say, and leaves that must be looked at.
//!
//! A leaf is read where changes wait for it that nobody has counted, where nothing is known of it,
//! as after a crash, and where a bound of the range cuts it. What was found is kept with its node
//! until the leaf changes. All that is summed up is looked at in one moment, but for leaves that
//! change all the time: those count as of when they were read.

use std::ops::Bound;
use std::sync::Arc;

use entresol_flash::{Error, ErrorKind, Outcome as Stored, Result, Timestamp};

use super::approach::{Approach, Arrived, LeafPage, ReadPages, Resumed};
use super::{
    Ask, Next, Order, Outcome, Pending, Reading, RowAt, RowRange, Scanning, Session, Visit,
    check_key,
};
use crate::error::{damaged, refused};
use crate::merge::{Change, Leaf, LeafRows, visit_rows};
use crate::rows::RowBuffer;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{
    Copied, Counted, CountedLeaf, Keys, LeafToCount, Place, Quota, Span, State, Table, Uncounted,
    is_empty,
};

/// Which rows are counted.
#[derive(Debug, Clone, Copy)]
pub struct CountRange<'a> {
    /// Of which table. It keeps counts.
    pub table: &'a Arc<Table>,
    /// From this key on.
    pub low: &'a [u8],
    /// Up to this key, which does not belong to it.
    pub high: Option<&'a [u8]>,
}

/// Which rows are read by their places in the order of keys.
#[derive(Debug, Clone, Copy)]
pub struct RankRange<'a> {
    /// Of which table. It keeps counts.
    pub table: &'a Arc<Table>,
    /// The first row is the one with so many rows below it.
    pub rank: u64,
    /// Most rows.
    pub limit: usize,
    /// Whether the rows above that one follow, or those below it.
    pub order: Order,
}

impl Session {
    /// Begins to count the rows of a range, in a table that keeps counts.
    ///
    /// It reads the leaves that the range cuts, and those with changes that came since somebody
    /// counted them; after a crash also those that nobody has read. Where rows are written
    /// meanwhile, some of these writes are counted and others are not.
    ///
    /// Errors: `InvalidInput`, if the table keeps no counts, or has parts and its merge function is
    /// not known.
    pub fn count(&mut self, token: u64, now: Timestamp, range: CountRange<'_>, visit: Visit<'_>) {
        self.in_flight += 1;
        if let Err(error) = check_counted(range.table) {
            return self.finish(token, Err(error), visit);
        }
        self.begin_count(Counting::of_range(token, range), now, visit);
    }

    /// Begins to count the rows below a key, whether it has a row or not. The rest is as with
    /// [`Session::count`].
    pub fn rank(&mut self, token: u64, now: Timestamp, row: RowAt<'_>, visit: Visit<'_>) {
        let RowAt { table, key } = row;
        if let Err(error) = check_key(key) {
            self.in_flight += 1;
            return self.finish(token, Err(error), visit);
        }
        self.count(token, now, CountRange { table, low: &[], high: Some(key) }, visit);
    }

    /// Begins to read rows from the one with a certain rank on, as a scan would. There are none
    /// where so many rows are not there. The rest is as with [`Session::count`].
    pub fn select(&mut self, token: u64, now: Timestamp, range: RankRange<'_>, visit: Visit<'_>) {
        self.in_flight += 1;
        if let Err(error) = check_counted(range.table) {
            return self.finish(token, Err(error), visit);
        }
        self.begin_count(Counting::of_rank(token, range, self.reading), now, visit);
    }

    fn begin_count(&mut self, counting: Counting, now: Timestamp, visit: Visit<'_>) {
        let slot = self.take(Pending::Count(Box::new(counting)));
        self.advance(slot, now, Next::Locate, visit);
    }
}

/// So often a leaf may have fewer rows than were counted. Each time rows were removed meanwhile.
const MISSES_MAX: u32 = 100;

/// A count on its way.
pub(super) struct Counting {
    token: u64,
    approach: Approach,
    asked: Asked,
    /// The leaf that is being read, and how many of its rows are before the one that is looked for.
    leaf: Option<LeafToCount>,
    before: Option<u64>,
    /// What waits for that leaf.
    copied: Copied,
    /// Its record, once that was read.
    record: Option<Option<Vec<u8>>>,
    found: Option<Found>,
    /// Leaves that the range cuts, or that changed while they were counted.
    counted: Vec<CountedLeaf>,
    misses: u32,
    /// How rows that are read by their ranks are given.
    reading: Reading,
}

/// What is asked for.
enum Asked {
    Rows { low: Vec<u8>, high: Option<Vec<u8>> },
    Ranked { rank: u64, limit: usize, order: Order },
}

/// What was found in a leaf.
struct Found {
    rows: u64,
    /// Of them those in the range.
    within: u64,
    /// The key that was looked for.
    key: Option<Vec<u8>>,
}

/// What a look at the directory came to.
enum Look {
    Rows(u64),
    /// No row has the rank.
    Nowhere,
    /// A page is to be read.
    Page(Place),
    /// A leaf without rows has nothing but what waits.
    Waiting,
}

impl Counting {
    pub(super) fn of_range(token: u64, range: CountRange<'_>) -> Counting {
        let (low, high) = (range.low.to_vec(), range.high.map(<[u8]>::to_vec));
        Counting::new(token, range.table, Asked::Rows { low, high })
    }

    pub(super) fn of_rank(token: u64, range: RankRange<'_>, reading: Reading) -> Counting {
        let RankRange { table, rank, limit, order } = range;
        Counting { reading, ..Counting::new(token, table, Asked::Ranked { rank, limit, order }) }
    }

    fn new(token: u64, table: &Arc<Table>, asked: Asked) -> Counting {
        Counting {
            token,
            approach: Approach::new(table),
            asked,
            leaf: None,
            before: None,
            copied: Copied::default(),
            record: None,
            found: None,
            counted: Vec::new(),
            misses: 0,
            reading: Reading::default(),
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
    ) -> Result<Option<Ask>> {
        let next = match self.record.take() {
            Some(record) => self.take_leaf(shared, record.as_deref())?,
            None => next,
        };
        match self.approach.resume(shared, next)? {
            Resumed::Visited => return Ok(None),
            Resumed::Read(key) => return Ok(Some(Ask::Page(key))),
            Resumed::Locate => {}
            Resumed::Value => unreachable!("a count reads no value"),
        }
        loop {
            if let Some(found) = self.found.take()
                && let Some(key) = self.note(found)?
            {
                return Ok(Some(Ask::Scan(Box::new(self.scan_from(key)))));
            }
            match self.look(shared) {
                Look::Rows(rows) => {
                    visit(self.token, Ok(Outcome::Count(rows)));
                    return Ok(None);
                }
                Look::Nowhere => {
                    let rows = RowBuffer::new(self.reading.form);
                    visit(self.token, Ok(Outcome::Rows(&rows)));
                    return Ok(None);
                }
                Look::Page(place) => {
                    let page = self.approach.head_for(shared, store, place, None);
                    return Ok(Some(Ask::Page(page)));
                }
                Look::Waiting => self.found = Some(self.find(shared, None)?),
            }
        }
    }

    /// Sums up what is known; or what must be known first.
    fn look(&mut self, shared: &Shared) -> Look {
        let mut state = self.approach.table.lock();
        let State { directory, pending, .. } = &mut *state;
        let arena = shared.arena.read();
        let waits = |keys: Keys<'_>, known: Sequence| {
            let high = keys.high.map_or(Bound::Unbounded, Bound::Excluded);
            let mut entries = pending.range(&arena, Bound::Included(keys.low), high);
            let is_new = |change: Change<'_>| change.sequence > known;
            entries.any(|entry| entry.newest_first().next().is_some_and(is_new))
        };
        let counted = Counted { waits: &waits, leaves: &self.counted };
        self.before = None;
        let uncounted = match &self.asked {
            Asked::Rows { low, high } => {
                if high.as_ref().is_some_and(|high| high <= low) {
                    return Look::Rows(0);
                }
                let low = Some(&low[..]).filter(|low| !low.is_empty());
                match directory.count(Span { low, high: high.as_deref() }, counted) {
                    Ok(rows) => return Look::Rows(rows),
                    Err(uncounted) => uncounted,
                }
            }
            Asked::Ranked { limit: 0, .. } => return Look::Nowhere,
            Asked::Ranked { rank, .. } => match directory.ranked(*rank, counted) {
                Ok(None) => return Look::Nowhere,
                Ok(Some(ranked)) => {
                    self.before = Some(ranked.before);
                    Uncounted::Leaf(Box::new(ranked.leaf))
                }
                Err(uncounted) => uncounted,
            },
        };
        let leaf = match uncounted {
            Uncounted::Node(missing) => return Look::Page(Place::Missing(missing)),
            Uncounted::Leaf(leaf) => *leaf,
        };
        let keys = Keys { low: &leaf.low, high: leaf.at.high.as_deref() };
        self.copied = Copied::default();
        self.copied.copy_range(pending, &arena, keys, Quota::ALL);
        let at = leaf.at.clone();
        self.leaf = Some(leaf);
        if is_empty(&at.child) { Look::Waiting } else { Look::Page(Place::Leaf(at)) }
    }

    /// What the store answered. Called under its locks: it calls nobody.
    pub(super) fn take(&mut self, outcome: Result<Stored<'_>>) -> Next {
        match self.approach.arrive(outcome) {
            Arrived::Next(next) => next,
            Arrived::Delta(page) => {
                self.approach.delta = page.map(<[u8]>::to_vec);
                Next::ReadLeaf
            }
            Arrived::Leaf(record) => {
                // Who folds its parts may take long.
                self.record = Some(record.map(<[u8]>::to_vec));
                Next::Locate
            }
        }
    }

    fn take_leaf(&mut self, shared: &Shared, record: Option<&[u8]>) -> Result<Next> {
        let page = match self.approach.leaf_page(record)? {
            LeafPage::Moved(next) => return Ok(next),
            LeafPage::Empty => {
                self.found = Some(self.find(shared, None)?);
                return Ok(Next::Locate);
            }
            LeafPage::Page(page) => page,
        };
        let delta = self.approach.delta.take();
        let leaf = Leaf::parse(&page, delta.as_deref())
            .map_err(|damage| damaged(&self.approach.table, &damage))?;
        let (high, known) = (leaf.base().high_key(), self.approach.located().high.as_deref());
        if let Some(high) = high.filter(|high| known.is_none_or(|known| *high < known)) {
            let (high, right) = (high.to_vec(), leaf.base().header().link as u32);
            return Ok(Next::Learn { high, right });
        }
        if self.approach.is_overtaken(&self.copied, leaf.sequence()) {
            return Ok(Next::Locate);
        }
        self.found = Some(self.find(shared, Some(leaf))?);
        let read = ReadPages { delta: delta.as_deref(), base_bytes: page.len() };
        self.approach.learn(shared, &leaf, read)?;
        Ok(Next::Locate)
    }

    /// Counts the rows of the leaf, with what waits for it.
    fn find(&self, shared: &Shared, leaf: Option<Leaf<'_>>) -> Result<Found> {
        let table = &self.approach.table;
        let counted = self.leaf.as_ref().expect("a leaf that is counted");
        let merge = shared.merge_of(table);
        let merge = merge.as_ref().map(|merge| &**merge as _);
        let is_within = |key: &[u8]| match &self.asked {
            Asked::Rows { low, high } => {
                key >= &low[..] && high.as_deref().is_none_or(|high| key < high)
            }
            Asked::Ranked { .. } => true,
        };
        let (changes, high) = (self.copied.changes(), counted.at.high.as_deref());
        let rows = LeafRows { leaf, changes: &changes, high };
        let mut found = Found { rows: 0, within: 0, key: None };
        let visited = visit_rows(rows, merge, &mut |key| {
            if self.before == Some(found.rows) {
                found.key = Some(key.to_vec());
            }
            found.rows += 1;
            found.within += u64::from(is_within(key));
        });
        visited.map_err(|error| refused(table, &error))?;
        Ok(found)
    }

    /// Takes note of what was found in a leaf. The key that was looked for, if it was there.
    fn note(&mut self, found: Found) -> Result<Option<Vec<u8>>> {
        let leaf = self.leaf.take().expect("a leaf that was counted");
        let table = &self.approach.table;
        let is_known = table.lock().directory.set_total(&leaf, found.rows);
        if self.before.take().is_some() {
            self.misses += u32::from(found.key.is_none());
            if self.misses > MISSES_MAX {
                return Err(damaged(table, &"a leaf has fewer rows than were counted"));
            }
            return Ok(found.key);
        }
        if !is_known || self.cuts(&leaf) {
            let (low, high, rows) = (leaf.low, leaf.at.high, found.within);
            self.counted.retain(|counted| counted.low != low);
            self.counted.push(CountedLeaf { low, high, rows });
        }
        Ok(None)
    }

    fn scan_from(&self, key: Vec<u8>) -> Scanning {
        let Asked::Ranked { limit, order, .. } = self.asked else {
            unreachable!("a count has no first row")
        };
        let (low, high) = match order {
            Order::Ascending => (key, None),
            Order::Descending => (Vec::new(), Some([&key[..], &[0]].concat())),
        };
        let (table, high) = (&self.approach.table, high.as_deref());
        let range = RowRange { table, low: &low, high, limit, order };
        Scanning::new(self.token, range, self.reading)
    }

    /// Whether the range has a part of the leaf alone.
    fn cuts(&self, leaf: &LeafToCount) -> bool {
        let Asked::Rows { low, high } = &self.asked else { return false };
        let ends_within = |high: &Vec<u8>| leaf.at.high.as_ref().is_none_or(|end| high < end);
        leaf.low < *low || high.as_ref().is_some_and(ends_within)
    }
}

/// Refuses tables that keep no counts.
fn check_counted(table: &Table) -> Result<()> {
    if table.keeps_counts() {
        return Ok(());
    }
    let name = String::from_utf8_lossy(table.name());
    let detail = format!("ordered table `{name}` keeps no counts; expected one that keeps them");
    Err(Error::new(ErrorKind::InvalidInput, detail))
}
