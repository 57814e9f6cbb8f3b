//! The way through one table: from its first record down, and from each page to the right.
//!
//! Invariants that are checked:
//! 1. On each level, the right link of a page is the number of the next page in the order of keys,
//!    and its high key is where that one begins.
//! 2. What an inner node names is there, in that order. A page between two of its children that it
//!    does not name is allowed: a crash, or a reader that was faster, left the node behind.
//! 3. The last page of a level has no high key and no right link.
//! 4. After a clean close, in a table that keeps counts, an inner node says how many rows are at or
//!    below each child.

use entresol_flash::Result;

use super::pages::Numbers;
use super::reader::{Found, Reader};
use super::rows::{RowCount, count_rows, rows_said};
use super::values::{LeafValues, ValueDamage, Values};
use super::{CheckedTable, TableDamage, Told, key_text, text};
use crate::filter::Filter;
use crate::format::{
    Child, Children, Damage, Header, PageKind, PageRole, Root, Rows, page_key, u32_at,
};
use crate::node::is_known;
use crate::sequence::Sequence;
use crate::table::ROOT_PAGE;

/// Numbers of pages that are looked for together.
const TOGETHER: usize = 64;
/// More levels than a table of any size has.
const LEVELS_MAX: u8 = 12;

/// A walk through one table.
pub(super) struct Walk<'w, 'v> {
    reader: &'w mut Reader,
    tell: &'w mut dyn FnMut(Told<'_>),
    values: &'w mut Values<'v>,
    table: CheckedTable,
    /// As of its first record.
    created: Sequence,
    /// Whose changes in the journal these are.
    old: Old,
    /// What inner nodes say of leaves is so.
    is_exact: bool,
    keeps_counts: bool,
    /// All pages have lower numbers.
    numbers: u32,
    /// Pages of a dropped table have lower numbers.
    first: u32,
    met: Numbers,
    deltas: Numbers,
    /// Records that were met.
    held: u64,
    /// The last page of each level, from leaves up.
    ends: Vec<End>,
}

/// Whether the pages of the table are those of one that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Old {
    Is(Sequence),
    IsNot,
}

/// How far the walk is on a level.
#[derive(Debug, Clone, Default)]
struct End {
    /// The last page; 0 before the first one.
    page: u32,
    link: u32,
    high: Option<Vec<u8>>,
    /// Nothing is known of the last page: it is missing or damaged, and was told of.
    is_lost: bool,
}

/// A page to look at, and what led to it.
#[derive(Debug, Clone)]
struct Step {
    level: u8,
    page: u32,
    /// From which key on it has rows.
    low: Vec<u8>,
    /// What its parent says of it.
    child: Option<Child>,
}

/// What a leaf consists of.
struct LeafPages {
    page: Found,
    delta: Found,
}

/// What a walk found: the table, below which number its records are, and how many there were.
pub(super) struct Walked {
    pub table: CheckedTable,
    pub numbers: u32,
    pub held: u64,
}

impl<'w, 'v> Walk<'w, 'v> {
    pub(super) fn new(
        id: u64,
        reader: &'w mut Reader,
        values: &'w mut Values<'v>,
        tell: &'w mut dyn FnMut(Told<'_>),
    ) -> Walk<'w, 'v> {
        let of = values.journaled.of(id);
        let name = of.name.clone().unwrap_or_default();
        let table =
            CheckedTable { id, name, journaled_changes: of.changes, ..CheckedTable::default() };
        Walk {
            reader,
            tell,
            values,
            table,
            created: Sequence(0),
            old: of.dropped.map_or(Old::IsNot, Old::Is),
            is_exact: false,
            keeps_counts: false,
            numbers: 0,
            first: 0,
            met: Numbers::default(),
            deltas: Numbers::default(),
            held: 0,
            ends: Vec::new(),
        }
    }

    /// The same of tables whose pages are as they were when they were closed, if they were.
    pub(super) fn closed(self, closed: Option<Sequence>) -> Walk<'w, 'v> {
        Walk { is_exact: closed.is_some(), ..self }
    }

    /// Walks through the table whose first record is `record`.
    pub(super) fn of_record(mut self, record: &[u8]) -> Result<Walked> {
        self.held += 1;
        self.find_numbers()?;
        match Root::decode(record) {
            Err(damage) => self.decoded("first record", &damage),
            Ok(root) => {
                self.table.name = root.name.to_vec();
                (self.first, self.created) = (root.first, Sequence(root.created));
                self.keeps_counts = root.keeps_counts;
                let is_old = matches!(self.old, Old::Is(by) if root.created < by.0);
                if is_old {
                    self.table.is_dropped = self.table.journaled_changes == 0;
                    self.first = self.numbers;
                } else {
                    self.of_root(&root)?;
                }
            }
        }
        self.find_leftovers()?;
        self.end()
    }

    /// Looks for pages of a table that has no first record.
    pub(super) fn without_record(mut self) -> Result<Walked> {
        self.find_numbers()?;
        self.table.is_dropped = self.table.journaled_changes == 0 && self.old != Old::IsNot;
        self.find_leftovers()?;
        self.end()
    }

    fn end(self) -> Result<Walked> {
        let read = std::mem::take(&mut self.reader.read);
        (self.tell)(Told::Pages(read));
        Ok(Walked { table: self.table, numbers: self.numbers, held: self.held })
    }

    /// Below which number the table's pages are.
    fn find_numbers(&mut self) -> Result<()> {
        self.numbers = ROOT_PAGE + 1;
        let key = page_key(self.table.id, 0, PageRole::Page);
        if let Some(bytes) = self.reader.read(&key)? {
            self.held += 1;
            match u32_at(&bytes, 0) {
                Some(number) => self.numbers = number.max(ROOT_PAGE + 1),
                None => self.damage(
                    "record of its numbers",
                    "bytes",
                    "4".to_owned(),
                    bytes.len().to_string(),
                ),
            }
        }
        Ok(())
    }

    fn of_root(&mut self, root: &Root<'_>) -> Result<()> {
        self.met.insert(ROOT_PAGE);
        let header = match Header::decode(&root.page) {
            Ok(header) => header,
            Err(damage) => {
                self.decoded("page 1", &damage);
                return Ok(());
            }
        };
        let step = Step { level: header.level, page: ROOT_PAGE, low: Vec::new(), child: None };
        if header.level > LEVELS_MAX {
            let (most, found) = (LEVELS_MAX.to_string(), header.level.to_string());
            self.damage("page 1", "level", most, found);
            return Ok(());
        }
        self.ends = vec![End::default(); usize::from(header.level) + 1];
        if header.level == 0 {
            let pages = LeafPages { page: Ok(Some(root.page.to_vec())), delta: Ok(None) };
            self.held -= 1;
            self.leaf(&step, pages)?;
        } else {
            self.node(&step, &root.page)?;
        }
        // What no node names, behind the last page that one does.
        for level in (0..=header.level).rev() {
            self.follow(level, None)?;
            let End { page, link, high, is_lost } = self.ends[usize::from(level)].clone();
            if !is_lost && (link != 0 || high.is_some()) {
                let found = format!("{} and link {link}", key_text(high.as_deref()));
                let place = format!("page {page}");
                self.damage(&place, "end of its level", "no high key and link 0".into(), found);
            }
        }
        Ok(())
    }

    /// Follows right links on a level up to the page `until`, or to its end, and looks at the pages
    /// on the way, which no node names.
    fn follow(&mut self, level: u8, until: Option<&Step>) -> Result<()> {
        loop {
            let End { page, link, high, is_lost } = self.ends[usize::from(level)].clone();
            if page == 0 || is_lost || link == 0 || until.is_some_and(|step| step.page == link) {
                return Ok(());
            }
            let Some(low) = high else { return Ok(()) };
            if until.is_some_and(|step| low >= step.low) {
                return Ok(());
            }
            if !self.enter(&Step { level, page: link, low: low.clone(), child: None }) {
                self.ends[usize::from(level)].is_lost = true;
                return Ok(());
            }
            self.table.pages_behind += 1;
            let step = Step { level, page: link, low, child: None };
            self.visit(&[step])?;
        }
    }

    /// Notes that a page is met. Whether it may be looked at.
    fn enter(&mut self, step: &Step) -> bool {
        let place = format!("page {}", step.page);
        if step.page == 0 || step.page >= self.numbers || step.page < self.first.min(self.numbers) {
            let expected = format!("{} to {}", self.first.max(2), self.numbers.saturating_sub(1));
            self.damage(&place, "number", expected, step.page.to_string());
            return false;
        }
        if !self.met.insert(step.page) {
            self.damage(&place, "ways to it", "one".to_owned(), "two".to_owned());
            return false;
        }
        true
    }

    /// Reads pages of one level that were entered, and looks at them one after the other.
    fn visit(&mut self, steps: &[Step]) -> Result<()> {
        for some in steps.chunks(TOGETHER) {
            let id = self.table.id;
            let of = |role| some.iter().map(move |step| page_key(id, step.page, role));
            let pages = self.reader.read_all(&of(PageRole::Page).collect::<Vec<_>>())?;
            if some[0].level > 0 {
                for (step, page) in some.iter().zip(pages) {
                    self.arrive(step)?;
                    if let Some(bytes) = self.there(step, page) {
                        self.node(step, &bytes)?;
                    }
                }
                continue;
            }
            let deltas = self.reader.read_all(&of(PageRole::Delta).collect::<Vec<_>>())?;
            for (step, (page, delta)) in some.iter().zip(pages.into_iter().zip(deltas)) {
                self.arrive(step)?;
                self.leaf(step, LeafPages { page, delta })?;
            }
        }
        let read = std::mem::take(&mut self.reader.read);
        (self.tell)(Told::Pages(read));
        Ok(())
    }

    /// Goes on to a page from the one left of it, and compares what both say.
    fn arrive(&mut self, step: &Step) -> Result<()> {
        if step.child.is_some() {
            self.follow(step.level, Some(step))?;
        }
        let End { page, link, high, is_lost } = self.ends[usize::from(step.level)].clone();
        let place = format!("page {}", step.page);
        if page == 0 && !is_lost {
            if !step.low.is_empty() {
                self.damage(&place, "separator of a first page", "none".into(), text(&step.low));
            }
        } else if !is_lost && link != step.page {
            let before = format!("page {page}");
            self.damage(&before, "right link", step.page.to_string(), link.to_string());
        } else if !is_lost && high.as_deref() != Some(&step.low) {
            self.damage(&place, "separator", key_text(high.as_deref()), text(&step.low));
        }
        Ok(())
    }

    /// The bytes of a page, if they are there; the level goes on behind it in any case.
    fn there(&mut self, step: &Step, found: Found) -> Option<Vec<u8>> {
        let place = format!("page {}", step.page);
        let bytes = match found {
            Ok(Some(bytes)) => Some(bytes),
            Ok(None) => {
                self.damage(&place, "its record", "a page".into(), "none".into());
                None
            }
            Err(error) => {
                let expected = "those that were written".to_owned();
                self.damage(&place, "its bytes", expected, error.to_string());
                None
            }
        };
        self.ends[usize::from(step.level)] = End { page: step.page, ..End::default() };
        match bytes {
            Some(_) => self.held += 1,
            None => self.lose(step.level),
        }
        bytes
    }

    /// Nothing is known of a page and of what is below it, and so not of what follows there.
    fn lose(&mut self, level: u8) {
        self.ends[..=usize::from(level)].iter_mut().for_each(|end| end.is_lost = true);
    }

    /// Looks at an inner node and at all below it.
    fn node(&mut self, step: &Step, bytes: &[u8]) -> Result<()> {
        let place = format!("page {}", step.page);
        let parsed = Children::parse(bytes).and_then(|node| node.check().map(|()| node));
        let node = match parsed {
            Ok(node) => node,
            Err(damage) => {
                self.decoded(&place, &damage);
                self.lose(step.level);
                return Ok(());
            }
        };
        if node.header().level != step.level {
            let (expected, found) = (step.level.to_string(), node.header().level.to_string());
            self.damage(&place, "level", expected, found);
            self.lose(step.level);
            return Ok(());
        }
        self.table.inner_nodes += 1;
        self.table.page_bytes += bytes.len() as u64;
        let link = u32::try_from(node.header().link).unwrap_or(u32::MAX);
        let high = node.high_key().map(<[u8]>::to_vec);
        self.ends[usize::from(step.level)] = End { page: step.page, link, high, is_lost: false };
        let said = step.child.filter(|said| self.keeps_counts && self.is_exact && is_known(said));
        if let (Some(said), Some(rows)) = (said, rows_said(&node)) {
            self.compare_rows(&place, said.rows, rows);
        }
        let mut below = Vec::with_capacity(node.count());
        for index in 0..node.count() {
            let mut low = Vec::new();
            let child = node.separator(index, &mut low).and_then(|()| node.child(index));
            let child = match child {
                Ok(child) => child,
                Err(damage) => {
                    self.decoded(&place, &damage);
                    continue;
                }
            };
            if index == 0 && low != step.low {
                self.damage(&place, "first separator", text(&step.low), text(&low));
            }
            let step = Step { level: step.level - 1, page: child.page, low, child: Some(child) };
            if self.enter(&step) {
                below.push(step);
            }
        }
        self.visit(&below)
    }

    /// Looks at a leaf and its delta page.
    fn leaf(&mut self, step: &Step, pages: LeafPages) -> Result<()> {
        let place = format!("page {}", step.page);
        let Some(bytes) = self.there(step, pages.page) else { return Ok(()) };
        let parsed = Rows::parse(&bytes).and_then(|rows| rows.check().map(|()| rows));
        let rows = match parsed {
            Ok(rows) => rows,
            Err(damage) => {
                self.decoded(&place, &damage);
                self.ends[0].is_lost = true;
                return Ok(());
            }
        };
        if rows.header().kind != PageKind::Leaf {
            self.damage(&place, "kind", "a leaf".into(), "a delta page".into());
            self.ends[0].is_lost = true;
            return Ok(());
        }
        self.table.leaves += 1;
        self.table.page_bytes += bytes.len() as u64;
        self.demand_from(&place, &rows, &step.low);
        let link = u32::try_from(rows.header().link).unwrap_or(u32::MAX);
        let high = rows.high_key().map(<[u8]>::to_vec);
        self.ends[0] = End { page: step.page, link, high, is_lost: false };
        let delta = self.delta(step, &rows, pages.delta);
        let delta_rows = delta.as_deref().and_then(|bytes| Rows::parse(bytes).ok());
        let known = step.child.filter(|child| self.is_exact && is_known(child));
        match count_rows(&rows, delta_rows.as_ref()) {
            Ok(count) => {
                self.table.rows += count.most;
                if let Some(child) = known.filter(|_| self.keeps_counts) {
                    self.compare_rows(&place, child.rows, count);
                }
            }
            Err(damage) => self.decoded(&place, &damage),
        }
        if let Some(child) = known {
            self.compare(&place, &child, (&bytes, &rows), delta.as_deref());
        }
        self.look_at_values(&place, rows, delta_rows)
    }

    /// Looks for the values that the rows of a leaf name.
    fn look_at_values(
        &mut self,
        place: &str,
        leaf: Rows<'_>,
        delta: Option<Rows<'_>>,
    ) -> Result<()> {
        let of = LeafValues { table: self.table.id, created: self.created, leaf, delta };
        match self.values.look(self.reader, &of)? {
            Ok(damaged) => {
                damaged.into_iter().for_each(|ValueDamage { place, expected, found }| {
                    self.damage(&place, "its record", expected, found);
                })
            }
            Err(damage) => self.decoded(place, &damage),
        }
        Ok(())
    }

    /// What a parent says of the rows at or below a page.
    fn compare_rows(&mut self, place: &str, said: u32, is: RowCount) {
        if !is.may_be(said.into()) {
            self.damage(place, "rows that its parent says", is.to_string(), said.to_string());
        }
    }

    /// The delta page of a leaf, if it counts.
    fn delta(&mut self, step: &Step, leaf: &Rows<'_>, found: Found) -> Option<Vec<u8>> {
        let place = format!("delta page of page {}", step.page);
        let bytes = match found {
            Ok(bytes) => bytes?,
            Err(error) => {
                self.deltas.insert(step.page);
                let expected = "those that were written".to_owned();
                self.damage(&place, "its bytes", expected, error.to_string());
                return None;
            }
        };
        self.deltas.insert(step.page);
        self.held += 1;
        let parsed = Rows::parse(&bytes).and_then(|rows| rows.check().map(|()| rows));
        let rows = match parsed {
            Ok(rows) => rows,
            Err(damage) => {
                self.decoded(&place, &damage);
                return None;
            }
        };
        let (of, base) = (rows.header(), leaf.header().sequence);
        if of.kind != PageKind::Delta {
            self.damage(&place, "kind", "a delta page".into(), "a leaf".into());
            return None;
        }
        if of.link < base.0 {
            // The leaf was written anew, and has all that the delta page says.
            self.table.pages_left += 1;
            return None;
        }
        if of.link > base.0 || of.sequence < base {
            let (expected, found) = (base.0.to_string(), of.link.to_string());
            self.damage(&place, "sequence of its leaf", expected, found);
            return None;
        }
        self.demand_from(&place, &rows, &step.low);
        let last = rows.count().checked_sub(1).and_then(|last| rows.row(last).ok());
        if let (Some(last), Some(high)) = (last, leaf.high_key())
            && last.key.to_vec().as_slice() >= high
        {
            let expected = format!("below {}", text(high));
            self.damage(&place, "last key", expected, text(&last.key.to_vec()));
        }
        self.table.delta_pages += 1;
        self.table.page_bytes += bytes.len() as u64;
        Some(bytes)
    }

    /// The first key of a page is not below where the page begins.
    fn demand_from(&mut self, place: &str, rows: &Rows<'_>, low: &[u8]) {
        if let Some(row) = (rows.count() > 0).then(|| rows.row(0)).and_then(|row| row.ok())
            && row.key.to_vec().as_slice() < low
        {
            let expected = format!("{} or above", text(low));
            self.damage(place, "first key", expected, text(&row.key.to_vec()));
        }
    }

    /// What its parent says of a leaf that did not change since.
    fn compare(
        &mut self,
        place: &str,
        child: &Child,
        (bytes, rows): (&[u8], &Rows<'_>),
        delta: Option<&[u8]>,
    ) {
        let differ = |what: &str, said: u64, is: u64| (what.to_owned(), said, is);
        let delta_bytes = delta.map_or(0, <[u8]>::len) as u64;
        let said = [
            differ("sequence that its parent says", child.sequence.0, rows.header().sequence.0),
            differ("bytes that its parent says", child.base_bytes.into(), bytes.len() as u64),
            differ("bytes of its delta page that its parent says", child.delta_bytes.into(), {
                if child.delta_bytes == u16::MAX { u16::MAX.into() } else { delta_bytes }
            }),
        ];
        for (what, said, is) in said {
            if said != is {
                self.damage(place, &what, is.to_string(), said.to_string());
            }
        }
        let changes = delta.and_then(|delta| Rows::parse(delta).ok());
        for row in changes.iter().flat_map(|rows| (0..rows.count()).flat_map(|at| rows.row(at))) {
            let key = row.key.to_vec();
            if !Filter(child.filter).may_hold(&key) {
                let (expected, found) = (format!("one with {}", text(&key)), "one without".into());
                self.damage(place, "filter of its delta page", expected, found);
                return;
            }
        }
    }

    /// Looks for pages that were not met.
    fn find_leftovers(&mut self) -> Result<()> {
        let mut some = Vec::new();
        for number in ROOT_PAGE..self.numbers {
            for role in [PageRole::Page, PageRole::Delta] {
                let met = if role == PageRole::Page { &self.met } else { &self.deltas };
                let key = page_key(self.table.id, number, role);
                let is_first = number == ROOT_PAGE && role == PageRole::Page;
                if !is_first && !met.has(number) && self.reader.may_hold(&key) {
                    some.push(key);
                }
            }
            if some.len() >= TOGETHER || number + 1 == self.numbers {
                for (key, found) in some.iter().zip(self.reader.read_all(&some)?) {
                    // One that does not verify is told of by the check of the store.
                    if matches!(found, Ok(None)) {
                        continue;
                    }
                    self.held += 1;
                    let number = u32_at(key, 8).unwrap_or(0);
                    if number < self.first {
                        self.table.pages_dropped += 1;
                    } else {
                        self.table.pages_left += 1;
                    }
                }
                some.clear();
            }
        }
        if self.table.pages_dropped > 0 && self.old == Old::IsNot {
            let found = self.table.pages_dropped.to_string();
            self.damage("pages of the table dropped before", "count", "0".into(), found);
        }
        Ok(())
    }

    fn decoded(&mut self, place: &str, damage: &Damage) {
        let Damage { field, found, expected } = damage;
        self.damage(place, field, format!("{expected} or less"), found.to_string());
    }

    fn damage(&mut self, place: &str, what: &str, expected: String, found: String) {
        let table = Some(self.table.name.clone()).filter(|name| !name.is_empty());
        let place = match &table {
            Some(_) => place.to_owned(),
            None => format!("{place} of table {:016x}", self.table.id),
        };
        let what = what.to_owned();
        (self.tell)(Told::Damage(&TableDamage { table, place, what, expected, found }));
    }
}
