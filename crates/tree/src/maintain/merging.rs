//! One leaf's part of a round: read what is needed, merge, write.

mod counted;
mod rewriting;

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use entresol_flash::{FoundAt, Result, Timestamp};
use entresol_planted::planted;

use super::ahead::{Ahead, PageKey};
use super::held_back::{Held, LargeFolds};
use super::marking::write_marker;
use super::write_root;
use crate::error::{damaged, refused};
use crate::filter::{Filter, KeyHash};
use crate::format::{Child, PageBuilder, PageFrame, PageKind, PageRole, Root, Rows, page_key};
use crate::merge::{DeltaTarget, MergeError, NewDelta, NewLeaf, merge_delta};
use crate::node::is_known;
use crate::sequence::Sequence;
use crate::shared::{NewPage, OldPage, PageRead, Shared};
use crate::statistics::Counters;
use crate::table::{
    Copied, Group, Keys, LeafAt, LeafKeys, Member, NewChild, Place, Quota, ROOT_PAGE, Replacement,
    Table, is_empty,
};
use counted::removes;

/// A delta page is at most this share of its leaf: above it the leaf is written anew.
const DELTA_SHARE: usize = 3;
/// A small table's rows stand in its first record up to so many bytes.
const SMALL_BYTES_MAX: usize = 2 << 10;
/// Bytes of a change in a delta page beside key and value.
const ENTRY_BYTES: usize = 6;

/// A leaf of a round, or a group of leaves of which the first absorbs the others.
pub(super) struct Work {
    pub table: Arc<Table>,
    /// Its range.
    pub(super) low: Vec<u8>,
    high: Option<Vec<u8>>,
    /// The range that was chosen ends here: a reader may enter a leaf in it before the merge.
    pub(super) end: Option<Vec<u8>>,
    /// Of which table of the name it is: it may be dropped meanwhile.
    pub created: Sequence,
    /// Where its leaves are, once it was prepared.
    located: Option<Located>,
    pub made: Made,
}

/// Leaves that are merged together, and their changes.
struct Located {
    group: Group,
    copied: Copied,
    /// Where the keys end whose changes were copied, if that is before the leaves end.
    end: Option<Vec<u8>>,
}

/// What a merge made of a leaf.
pub(super) enum Made {
    /// Nothing: there was nothing to merge.
    Nothing,
    /// A delta page in place of the one before.
    Delta { at: LeafAt, delta: DeltaPage, keys: Vec<KeyHash> },
    /// Leaves in place of the leaf.
    Leaves(NewLeaves),
    /// The first record of a small table, by its page.
    Small(Vec<u8>),
}

/// A new delta page, and where the one before was found.
pub(super) struct DeltaPage {
    made: NewDelta,
    found: Option<FoundAt>,
}

/// Where pages of a leaf were found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoundPages {
    base: Option<FoundAt>,
    delta: Option<FoundAt>,
}

/// Leaves in place of one, those to the right written already.
pub(super) struct NewLeaves {
    /// The number of the leaf.
    pub number: u32,
    had_delta: bool,
    /// Where its pages were, if they were read.
    found: FoundPages,
    /// Its page, unless that was written with the others.
    page: Option<Vec<u8>>,
    child: Child,
    /// Of its keys.
    filter: Vec<u8>,
    /// Leaves that it absorbs, by their numbers.
    absorbed: Vec<u32>,
    others: Vec<NewChild>,
    /// The table was small.
    grows: bool,
}

impl NewLeaves {
    /// The delta page of the leaf before, whose changes these have.
    pub(super) fn old_delta(&self, table: &Table) -> Option<OldPage> {
        let key = page_key(table.id(), self.number, PageRole::Delta);
        self.had_delta.then_some(OldPage { key, found: self.found.delta })
    }
}

/// A leaf whose rows another leaf has.
pub(super) struct Absorbed {
    pub table: u64,
    pub page: u32,
}

/// How far a leaf was merged.
pub(super) enum Merged {
    /// All of it.
    All,
    /// Up to where it ends; the directory thought that it had this as well.
    UpTo(Box<Work>),
    /// Nothing: its changes stay where they are.
    HeldBack(Held),
}

/// What a merge reads.
pub(super) struct Input {
    group: Group,
    pub copied: Copied,
    /// The leaves, in order. Those without rows are not read, but for the last one.
    pub leaves: Vec<Pages>,
    /// As that of what was located.
    pub end: Option<Vec<u8>>,
    /// Whether the first one has a delta page.
    has_delta: bool,
}

/// A leaf and its delta page.
pub(super) struct Pages {
    pub base: Vec<u8>,
    pub delta: Option<Vec<u8>>,
    found: FoundPages,
}

/// Where a round does its work.
pub(super) struct Site<'s> {
    pub shared: &'s Shared,
    pub session: &'s mut entresol_tier::Session,
    pub now: Timestamp,
    pub through: Sequence,
    pub ahead: &'s mut Ahead,
}

impl Site<'_> {
    fn read(&mut self, key: &PageKey) -> Result<Option<PageRead>> {
        if let Some(page) = self.ahead.take(self.now, key)? {
            return Ok(page);
        }
        Counters::add(&self.shared.counters.merge_reads, 1);
        self.shared.read_page(self.session, self.now, key)
    }

    fn write(&mut self, table: &Table, key: &[u8], page: NewPage<'_>) -> Result<()> {
        table.written.count_page(page.bytes.len());
        self.shared.write_over(self.session, self.now, key, page)
    }
}

impl Work {
    /// The leaves from `low` to below `end`.
    pub(super) fn new(table: &Arc<Table>, low: Vec<u8>, end: Option<Vec<u8>>) -> Work {
        let (table, created) = (Arc::clone(table), Sequence(0));
        Work { table, low, high: None, end, created, located: None, made: Made::Nothing }
    }

    /// Whether it merges the leaf that begins at `low`.
    pub(super) fn is_of(&self, table: &Arc<Table>, low: &[u8]) -> bool {
        self.low == low && self.table.id() == table.id()
    }

    /// Locates the leaves, copies their changes, and asks for the pages that the merge reads.
    fn prepare(&mut self, site: &mut Site<'_>) -> Result<()> {
        let located = self.locate(site)?;
        let Located { group, copied, .. } = &located;
        let first = &group.at.child;
        let is_single = group.members.len() == 1;
        let takes_delta = is_single && takes_delta(first, copied);
        let last = group.members.len() - 1;
        for (index, Member { child, .. }) in group.members.iter().enumerate() {
            let is_read = !(is_single && copied.is_empty() || index < last && is_empty(child));
            if is_read && child.delta_bytes > 0 {
                self.ask(site, child.page, PageRole::Delta);
            }
            if is_read && (!takes_delta || self.table.keeps_counts()) {
                self.ask(site, child.page, PageRole::Page);
            }
        }
        site.ahead.hold_copied(copied.bytes());
        self.located = Some(located);
        Ok(())
    }

    fn ask(&self, site: &mut Site<'_>, page: u32, role: PageRole) {
        site.ahead.ask(site.shared, site.now, page_key(self.table.id(), page, role));
    }

    /// Reads and merges, and writes the leaves right of the first.
    pub(super) fn merge(&mut self, site: &mut Site<'_>) -> Result<Merged> {
        let Located { group, copied, end } = match self.located.take() {
            Some(located) => {
                site.ahead.release_copied(located.copied.bytes());
                located
            }
            None => self.locate(site)?,
        };
        let is_single = group.members.len() == 1;
        if is_single && copied.is_empty() {
            return Ok(self.rest());
        }
        write_marker(site.shared, site.session, site.now, &self.table, &copied)?;
        if is_single && let Some(delta) = self.merge_into_delta(site, &group.at, &copied)? {
            let mut at = group.at.clone();
            if let Some(rows) = self.count(site, &at, &delta.made)? {
                at.child.rows = rows;
                let has_filter = at.is_filtered || site.shared.options.absent_filter_bits > 0;
                let keys = if has_filter { self.keys_of(&delta.made.page)? } else { Vec::new() };
                self.made = Made::Delta { at, delta, keys };
                return Ok(self.rest());
            }
        }
        let mut input = self.read(site, Located { group, copied, end })?;
        if is_single {
            self.learn(site, &mut input)?;
        }
        let mut made = self.rewrite(site, &input)?;
        let mut folds = LargeFolds::Nothing;
        if let Err(MergeError::ManyParts { .. } | MergeError::LargeValue(_)) = made {
            folds = self.fold_large(site, &input)?;
            if folds == LargeFolds::Written {
                made = self.rewrite_later(site, &mut input)?;
            }
        }
        match made {
            Ok(made) => self.made = made,
            Err(error) => {
                let why = refused(&self.table, &error);
                let (waits, oldest) = (folds == LargeFolds::Waiting, self.oldest(site.shared));
                return Ok(Merged::HeldBack(Held { why, waits, oldest }));
            }
        }
        Ok(self.rest())
    }

    /// What is left of the range that was chosen.
    fn rest(&self) -> Merged {
        match &self.high {
            Some(high) if self.end.as_ref().is_none_or(|end| high < end) => {
                Merged::UpTo(Box::new(Work::new(&self.table, high.clone(), self.end.clone())))
            }
            _ => Merged::All,
        }
    }

    /// The leaves, their range, and their changes up to `through`.
    fn locate(&mut self, site: &Site<'_>) -> Result<Located> {
        let mut state = self.table.lock();
        let Place::Leaf(at) = state.directory.locate(&self.low) else {
            let lost = "a node that was in memory is not there any more";
            return Err(damaged(&self.table, &lost));
        };
        let group = state.directory.group(at, site.shared.options.leaf_bytes_max);
        self.low = state.directory.low_of(&group.at).to_vec();
        self.created = group.at.created;
        self.high.clone_from(&group.at.high);
        let quota = match group.members.len() {
            1 => Quota::of_bytes(site.shared.options.merge_bytes_max()),
            _ => Quota::ALL,
        };
        let mut copied = Copied::default();
        let arena = site.shared.arena.read();
        let end = copied.copy_range(&state.pending, &arena, self.keys(), quota);
        copied.retain_through(site.through);
        Ok(Located { group, copied, end })
    }

    pub(super) fn keys(&self) -> Keys<'_> {
        Keys { low: &self.low, high: self.high.as_deref() }
    }

    /// The oldest change that waits in its range, and in what was chosen beside it.
    pub(super) fn oldest(&self, shared: &Shared) -> Option<Sequence> {
        let high = self.high.as_ref().zip(self.end.as_ref()).map(|(high, end)| &high.max(end)[..]);
        let keys = Keys { low: &self.low, high };
        let (state, arena) = (self.table.lock(), shared.arena.read());
        let entries = state.pending.range(&arena, Bound::Included(keys.low), keys.high_bound());
        let sequences =
            entries.flat_map(|entry| entry.newest_first().map(|change| change.sequence));
        sequences.min()
    }

    /// A new delta page, if one is enough and the leaf itself need not be read.
    fn merge_into_delta(
        &self,
        site: &mut Site<'_>,
        at: &LeafAt,
        copied: &Copied,
    ) -> Result<Option<DeltaPage>> {
        let child = &at.child;
        if !takes_delta(child, copied) {
            return Ok(None);
        }
        let key = page_key(self.table.id(), child.page, PageRole::Delta);
        let old = if child.delta_bytes > 0 { site.read(&key)? } else { None };
        let found = old.as_ref().and_then(|old| old.found);
        let rows = old.as_ref().map(|old| Rows::parse(&old.bytes)).transpose();
        let rows = rows.map_err(|damage| damaged(&self.table, &damage))?;
        let target = DeltaTarget { through: site.through, has_sequences: false };
        let made = merge_delta(rows, child.sequence, &copied.changes(), target);
        let made = made.map_err(|damage| damaged(&self.table, &damage))?;
        let removes = removes(&made.page).map_err(|damage| damaged(&self.table, &damage))?;
        // A leaf whose rows are mostly gone is written anew: it may join a neighbour then.
        let is_enough = removes * 2 < child.rows as usize || removes == 0;
        Ok(is_enough.then_some(DeltaPage { made, found }))
    }

    fn read(&self, site: &mut Site<'_>, located: Located) -> Result<Input> {
        let Located { group, copied, end } = located;
        let last = group.members.len() - 1;
        let (mut leaves, mut has_delta) = (Vec::with_capacity(1), false);
        for (index, member) in group.members.iter().enumerate() {
            // Its changes came after its own sequence, which another leaf's may be far above.
            if index < last && is_empty(&member.child) {
                if planted!("empty-leaf-of-its-neighbour") {
                    continue;
                }
                let base = empty_leaf(member.child.sequence, member.high.as_deref());
                leaves.push(Pages { base, delta: None, found: FoundPages::default() });
                continue;
            }
            let pages = self.read_leaf(site, &group.at, member)?;
            has_delta |= index == 0 && pages.delta.is_some();
            leaves.push(pages);
        }
        Ok(Input { group, copied, leaves, end, has_delta })
    }

    fn read_leaf(&self, site: &mut Site<'_>, at: &LeafAt, member: &Member) -> Result<Pages> {
        let (id, child) = (self.table.id(), &member.child);
        let delta_key = page_key(id, child.page, PageRole::Delta);
        let delta = if child.delta_bytes > 0 { site.read(&delta_key)? } else { None };
        let record = site.read(&page_key(id, child.page, PageRole::Page))?;
        let found = FoundPages {
            base: record.as_ref().and_then(|record| record.found),
            delta: delta.as_ref().and_then(|delta| delta.found),
        };
        let base = match record.map(|record| record.bytes) {
            Some(record) if child.page == ROOT_PAGE => {
                let root = Root::decode(&record).map_err(|damage| damaged(&self.table, &damage))?;
                (root.created == at.created.0).then(|| root.page.into_owned())
            }
            None if child.page != ROOT_PAGE => {
                let missing = format!("page {} is missing", child.page);
                return Err(damaged(&self.table, &missing));
            }
            record => record,
        };
        let base = base.unwrap_or_else(|| empty_leaf(Sequence(0), None));
        let rows = Rows::parse(&base).map_err(|damage| damaged(&self.table, &damage))?;
        let (high, known) = (rows.high_key(), member.high.as_deref());
        let is_beyond = known.is_some_and(|known| high.is_none_or(|high| high > known));
        if is_beyond || is_known(child) && child.page != ROOT_PAGE && high != known {
            let elsewhere = format!("page {} does not end where the next one begins", child.page);
            return Err(damaged(&self.table, &elsewhere));
        }
        Ok(Pages { base, delta: delta.map(|delta| delta.bytes), found })
    }

    /// Enters a right neighbour that the directory does not know, and keeps to the leaf's own
    /// range.
    fn learn(&mut self, site: &Site<'_>, input: &mut Input) -> Result<()> {
        let rows = Rows::parse(&input.leaves[0].base);
        let rows = rows.map_err(|damage| damaged(&self.table, &damage))?;
        let (high, right) = (rows.high_key(), rows.header().link as u32);
        if high == self.high.as_deref() {
            return Ok(());
        }
        let high = high.unwrap_or_default().to_vec();
        let mut state = self.table.lock();
        if state.directory.created() != self.created {
            (input.copied, input.end) = (Copied::default(), None);
            return Ok(());
        }
        // It was located before pages were read ahead: leaves have been entered beside it since.
        if let Place::Leaf(at) = state.directory.locate(&self.low) {
            state.directory.learn(&at, &high, right);
        }
        self.high = Some(high);
        input.copied = Copied::default();
        let arena = site.shared.arena.read();
        let quota = Quota::of_bytes(site.shared.options.merge_bytes_max());
        input.end = input.copied.copy_range(&state.pending, &arena, self.keys(), quota);
        Ok(())
    }

    /// The keys of a page of rows.
    fn keys_of(&self, page: &[u8]) -> Result<Vec<KeyHash>> {
        let damage = |damage| damaged(&self.table, &damage);
        let rows = Rows::parse(page).map_err(damage)?;
        let mut key = Vec::new();
        let hash = |index| {
            rows.row(index).map_err(damage)?.key.copy_to(&mut key);
            Ok(KeyHash::of(&key))
        };
        (0..rows.count()).map(hash).collect()
    }

    /// Writes what others wait for, enters it, and lets the changes leave memory. Leaves that were
    /// absorbed by it are added to `absorbed`.
    pub(super) fn write_left(
        &mut self,
        site: &mut Site<'_>,
        absorbed: &mut Vec<Absorbed>,
    ) -> Result<()> {
        let id = self.table.id();
        match &mut self.made {
            Made::Nothing => return Ok(()),
            Made::Delta { at, delta, keys } => {
                let DeltaPage { made: delta, found } = delta;
                let key = page_key(id, at.child.page, PageRole::Delta);
                let page = NewPage { bytes: &delta.page, found: *found };
                site.write(&self.table, &key, page)?;
                Counters::add(&site.shared.counters.delta_writes, 1);
                let delta_bytes = delta.page.len() as u16;
                let leaf = Child { delta_bytes, filter: delta.filter.0, ..at.child };
                let keys = LeafKeys::More(std::mem::take(keys));
                let (absorbed, others) = (Vec::new(), Vec::new());
                if !self.enter(site, Replacement { leaf, keys, absorbed, others }, None) {
                    return Ok(());
                }
            }
            Made::Leaves(made) => {
                if let Some(page) = made.page.take() {
                    let key = page_key(id, made.number, PageRole::Page);
                    let page = NewPage { bytes: &page, found: made.found.base };
                    site.write(&self.table, &key, page)?;
                }
                let pages = made.absorbed.iter();
                absorbed.extend(pages.map(|page| Absorbed { table: id, page: *page }));
                Counters::add(&site.shared.counters.leaves_absorbed, made.absorbed.len());
                let (leaf, others) = (made.child, std::mem::take(&mut made.others));
                let grown = made.grows.then_some(made.number);
                let absorbed = std::mem::take(&mut made.absorbed);
                let keys = LeafKeys::Filter(std::mem::take(&mut made.filter));
                if !self.enter(site, Replacement { leaf, keys, absorbed, others }, grown) {
                    return Ok(());
                }
            }
            Made::Small(page) => {
                let first = {
                    let directory = &mut self.table.lock().directory;
                    if directory.created() != self.created {
                        return Ok(());
                    }
                    directory.forget_total(&self.low);
                    directory.first()
                };
                let (created, name) = (self.created.0, self.table.name());
                let keeps_counts = self.table.keeps_counts();
                let page = Cow::Borrowed(&page[..]);
                let root = Root { created, first, keeps_counts, name, page };
                write_root(site.shared, site.session, site.now, &self.table, &root)?;
            }
        }
        self.remove_superseded(site)?;
        self.forget(site);
        Ok(())
    }

    /// Enters new leaves in the directory, unless the table was dropped meanwhile. `grown`: page 1
    /// was the leaf, which has this number now.
    fn enter(&self, site: &Site<'_>, made: Replacement, grown: Option<u32>) -> bool {
        let directory = &mut self.table.lock().directory;
        if directory.created() != self.created {
            return false;
        }
        if let Some(number) = grown {
            directory.grow(number);
        }
        if directory.replace(&self.low, made, site.shared.options.leaf_bytes_max) {
            site.shared.joining.lock().insert(self.table.id());
        }
        true
    }

    /// Removes values that the leaf's changes have replaced: once those have left memory nobody
    /// knows of them. Those changes are durable, and so are the values that they name.
    fn remove_superseded(&self, site: &mut Site<'_>) -> Result<()> {
        if !self.table.has_values() || planted!("old-values-forgotten-by-merges") {
            return Ok(());
        }
        let quota = Quota::of_bytes(site.shared.options.merge_bytes_max());
        let mut low = Some(self.low.clone());
        while let Some(from) = low.take() {
            let mut copied = Copied::default();
            {
                let (state, keys) = (self.table.lock(), Keys { low: &from, ..self.keys() });
                let arena = site.shared.arena.read();
                low = copied.copy_range(&state.pending, &arena, keys, quota);
            }
            let mut last: &[u8] = &[];
            for change in &copied.changes() {
                if change.key == last {
                    continue;
                }
                last = change.key;
                let taken = site.shared.take_superseded(&self.table, change.key, site.through);
                if let Some(taken) = taken {
                    site.shared.discard_taken(site.session, site.now, &self.table, &taken)?;
                }
            }
        }
        Ok(())
    }

    /// Lets the leaf's changes leave memory.
    fn forget(&self, site: &Site<'_>) {
        let mut state = self.table.lock();
        let mut arena = site.shared.arena.write();
        let high = self.high.as_deref();
        state.pending.remove_through(&mut arena, &self.low, high, site.through);
    }
}

/// Whether a delta page is enough for a leaf with these changes.
fn takes_delta(child: &Child, copied: &Copied) -> bool {
    let bytes = copied.bytes() + ENTRY_BYTES * copied.count() + usize::from(child.delta_bytes);
    let is_enough = bytes * DELTA_SHARE <= usize::from(child.base_bytes);
    child.page != ROOT_PAGE && is_known(child) && is_enough
}

/// Locates leaves from the first of `works` on, and asks for the pages of their merges, as far as
/// there is room. Of how many it did so.
pub(super) fn read_ahead(site: &mut Site<'_>, works: &mut [Work]) -> Result<usize> {
    let mut count = 0;
    for work in works {
        if !site.ahead.has_room() {
            break;
        }
        work.prepare(site)?;
        count += 1;
    }
    site.ahead.hand_over()?;
    Ok(count)
}

/// What the directory knows of a new leaf.
fn child_of(leaf: &NewLeaf, through: Sequence) -> Child {
    Child {
        page: leaf.number,
        sequence: through,
        base_bytes: u16::try_from(leaf.page.len()).unwrap_or(0),
        delta_bytes: 0,
        rows: leaf.rows,
        filter: Filter::default().0,
    }
}

/// A leaf without rows, as one that was never written would be.
pub(super) fn empty_leaf(sequence: Sequence, high_key: Option<&[u8]>) -> Vec<u8> {
    let (kind, has_sequences) = (PageKind::Leaf, false);
    let frame = PageFrame { kind, high_key, sequence, link: 0, has_sequences };
    PageBuilder::default().page(0..0, frame)
}
