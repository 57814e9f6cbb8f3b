//! One get: the changes that wait, then the delta page where it may hold the key, then the leaf.

use std::sync::Arc;

use entresol_flash::{Error, Outcome as Stored, Result};

use super::{Next, Outcome, Visit, damaged, record_key};
use crate::filter::Filter;
use crate::format::{Child, PageKind, PageRole, Root, Rows};
use crate::merge::{Cursor, Gathered, Leaf, Resolved};
use crate::node::is_known;
use crate::shared::Shared;
use crate::table::{Copied, LeafAt, Missing, Place, ROOT_PAGE, Table};

/// So often a page may be missing where it was thought to be.
const MISSES_MAX: u32 = 4;

/// A get on its way.
pub(super) struct Lookup {
    token: u64,
    table: Arc<Table>,
    key: Vec<u8>,
    stage: Stage,
    /// What waits of the key, copied before any page is read.
    copied: Copied,
    leaf: Option<LeafAt>,
    /// The delta page, where it alone does not answer.
    delta: Option<Vec<u8>>,
    /// What was learnt of the leaf.
    learnt: Option<Child>,
    /// How often a page was not there.
    misses: u32,
}

/// What a lookup waits for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Idle,
    Node(Missing),
    Delta,
    Leaf,
}

impl Lookup {
    pub(super) fn new(token: u64, table: &Arc<Table>, key: &[u8]) -> Lookup {
        Lookup {
            token,
            table: Arc::clone(table),
            key: key.to_vec(),
            stage: Stage::Idle,
            copied: Copied::default(),
            leaf: None,
            delta: None,
            learnt: None,
            misses: 0,
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Does what needs no page; the key of the record that it reads then. `None`: it was visited.
    pub(super) fn prepare(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        next: Next,
        visit: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match next {
            Next::Done => {
                self.teach();
                return Ok(None);
            }
            Next::Fail(error) => return Err(error),
            Next::ReadLeaf => {
                self.stage = Stage::Leaf;
                return Ok(Some(self.leaf_key()));
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
        self.locate(shared, store, visit)
    }

    fn locate(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        visit: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        (self.delta, self.learnt) = (None, None);
        self.copied = Copied::default();
        let place = {
            let state = self.table.lock();
            self.copied.copy_key(&state.pending, &shared.arena.read(), &self.key);
            state.directory.locate(&self.key)
        };
        if !self.copied.is_empty() {
            let mut gathered = Gathered::default();
            gathered.start(&self.key);
            let changes = self.copied.changes();
            for change in &changes {
                gathered.apply(change.effect, change.sequence, change.value);
            }
            if gathered.is_whole() {
                self.answer(shared, &gathered, visit)?;
                return Ok(None);
            }
        }
        let at = match place {
            Place::Missing(missing) => {
                self.stage = Stage::Node(missing);
                return Ok(Some(record_key(&self.table, missing.page(), PageRole::Page)));
            }
            Place::Leaf(at) => at,
        };
        let child = at.child;
        let delta_key = record_key(&self.table, child.page, PageRole::Delta);
        let has_delta = child.delta_bytes > 0
            && Filter(child.filter).may_hold(&self.key)
            && (is_known(&child) || store.may_hold(shared.key(&delta_key)));
        self.leaf = Some(at);
        if has_delta {
            self.stage = Stage::Delta;
            return Ok(Some(delta_key));
        }
        self.stage = Stage::Leaf;
        Ok(Some(self.leaf_key()))
    }

    fn leaf_key(&self) -> Vec<u8> {
        let page = self.leaf.as_ref().map_or(ROOT_PAGE, |leaf| leaf.child.page);
        record_key(&self.table, page, PageRole::Page)
    }

    /// What the store answered. Called under its locks: it calls nobody but `visit`.
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
        let taken = match self.stage {
            Stage::Idle => unreachable!("a lookup that reads"),
            Stage::Node(missing) => Ok(match page {
                Some(page) => Next::Load(missing, page.to_vec()),
                None => Next::Reload,
            }),
            Stage::Delta => self.take_delta(shared, page, visit),
            Stage::Leaf => self.take_leaf(shared, page, visit),
        };
        taken.unwrap_or_else(Next::Fail)
    }

    fn take_delta(
        &mut self,
        shared: &Shared,
        page: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let Some(page) = page else { return Ok(Next::ReadLeaf) };
        let leaf = self.leaf.as_ref().expect("a leaf that was located");
        let rows = Rows::parse(page).map_err(|damage| damaged(&self.table, &damage))?;
        // Of an earlier opening: whether it belongs to the leaf, the leaf says.
        if !is_known(&leaf.child) {
            self.delta = Some(page.to_vec());
            return Ok(Next::ReadLeaf);
        }
        let found = rows.entries_of(&self.key).map_err(|damage| damaged(&self.table, &damage))?;
        if found.is_empty() {
            return Ok(Next::ReadLeaf);
        }
        let changes = self.copied.changes();
        let mut gathered = Gathered::default();
        gathered.start(&self.key);
        let mut cursor =
            Cursor::at(Some(rows), found.start).map_err(|damage| damaged(&self.table, &damage))?;
        gathered.take_rows(&mut cursor).map_err(|damage| damaged(&self.table, &damage))?;
        for change in changes.iter().filter(|change| change.sequence > rows.header().sequence) {
            gathered.apply(change.effect, change.sequence, change.value);
        }
        if gathered.is_whole() {
            self.answer(shared, &gathered, visit)?;
            return Ok(Next::Done);
        }
        self.delta = Some(page.to_vec());
        Ok(Next::ReadLeaf)
    }

    fn take_leaf(
        &mut self,
        shared: &Shared,
        page: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let damage = |damage| damaged(&self.table, &damage);
        let leaf = self.leaf.as_ref().expect("a leaf that was located");
        let mut gathered = Gathered::default();
        gathered.start(&self.key);
        let changes = self.copied.changes();
        let mut known = crate::sequence::Sequence(0);
        let mut learnt = None;
        let rows;
        if is_of_later(page, leaf).map_err(damage)? {
            return Ok(Next::Locate);
        }
        if let Some(page) = page_of(page, leaf).map_err(damage)? {
            if crate::format::Header::decode(page).map_err(damage)?.kind == PageKind::Inner {
                // The table grew since it was located.
                return Ok(Next::Locate);
            }
            rows = Leaf::parse(page, self.delta.as_deref()).map_err(damage)?;
            let (high, right) = (rows.base().high_key(), rows.base().header().link as u32);
            if let Some(high) = high.filter(|high| *high <= &self.key[..]) {
                return Ok(Next::Learn { high: high.to_vec(), right });
            }
            for rows in [Some(rows.base()), rows.delta()].into_iter().flatten() {
                let start = rows.lower_bound(&self.key).map_err(damage)?;
                let mut cursor = Cursor::at(Some(rows), start).map_err(damage)?;
                gathered.take_rows(&mut cursor).map_err(damage)?;
            }
            known = rows.sequence();
            if !is_known(&leaf.child)
                && high == leaf.high.as_deref()
                && leaf.child.page != ROOT_PAGE
            {
                learnt = learn(&rows, page.len(), self.delta.as_deref(), leaf).map_err(damage)?;
            }
        } else if leaf.child.page != ROOT_PAGE {
            return Ok(Next::Reload);
        }
        for change in changes.iter().filter(|change| change.sequence > known) {
            gathered.apply(change.effect, change.sequence, change.value);
        }
        self.answer(shared, &gathered, visit)?;
        self.learnt = learnt;
        Ok(Next::Done)
    }

    /// Enters what was learnt of a leaf.
    fn teach(&mut self) {
        if let (Some(leaf), Some(child)) = (&self.leaf, self.learnt) {
            self.table.lock().directory.set_child(leaf, child);
        }
    }

    fn answer(&self, shared: &Shared, gathered: &Gathered<'_>, visit: Visit<'_>) -> Result<()> {
        let merge = shared.merge_of(&self.table);
        let mut folded = Vec::new();
        let resolved = gathered.resolve(merge.as_ref().map(|merge| &**merge as _), &mut folded);
        match resolved.map_err(|error| refused(&self.table, &error))? {
            Resolved::Row(value) => visit(self.token, Ok(Outcome::Found(value))),
            Resolved::Gone | Resolved::Separate => visit(self.token, Ok(Outcome::Missing)),
        }
        Ok(())
    }
}

/// A page was not there. It may have been located before it moved, but not again and again.
pub(super) fn missed(table: &Table, misses: &mut u32) -> Result<()> {
    *misses += 1;
    if *misses > MISSES_MAX {
        return Err(damaged(table, &"a page that another one names is missing"));
    }
    Ok(())
}

/// Rows could not be put together.
pub(crate) fn refused(table: &Table, error: &crate::merge::MergeError) -> Error {
    let name = String::from_utf8_lossy(table.name()).into_owned();
    let kind = match error {
        crate::merge::MergeError::Damage(_) => entresol_flash::ErrorKind::Corrupt,
        _ => entresol_flash::ErrorKind::InvalidInput,
    };
    Error::new(kind, format!("ordered table `{name}`: {error}"))
}

/// The page that the record of the leaf at `at` holds: page 1 stands behind the table's name, and
/// is not there where it is of a table that was dropped.
pub(super) fn page_of<'r>(
    record: Option<&'r [u8]>,
    at: &LeafAt,
) -> std::result::Result<Option<&'r [u8]>, crate::format::Damage> {
    match record {
        Some(record) if at.child.page == ROOT_PAGE => {
            let root = Root::decode(record)?;
            Ok((root.created == at.created.0).then_some(root.page))
        }
        record => Ok(record),
    }
}

/// Whether the record is of a table that was made after the one of the leaf at `at` was dropped.
pub(super) fn is_of_later(
    record: Option<&[u8]>,
    at: &LeafAt,
) -> std::result::Result<bool, crate::format::Damage> {
    match record {
        Some(record) if at.child.page == ROOT_PAGE => {
            Ok(Root::decode(record)?.created > at.created.0)
        }
        _ => Ok(false),
    }
}

/// What is known of a leaf, now that it and its delta page were read.
pub(super) fn learn(
    leaf: &Leaf<'_>,
    base_bytes: usize,
    delta: Option<&[u8]>,
    at: &LeafAt,
) -> std::result::Result<Option<Child>, crate::format::Damage> {
    let mut filter = Filter::default();
    let mut delta_bytes = 0;
    if let (Some(rows), Some(page)) = (leaf.delta(), delta) {
        delta_bytes = page.len();
        for index in 0..rows.count() {
            filter.insert(&rows.row(index)?.key.to_vec());
        }
    } else if at.child.delta_bytes > 0 && Filter(at.child.filter) != Filter::UNKNOWN {
        return Ok(None);
    }
    let Ok(base_bytes) = u16::try_from(base_bytes) else { return Ok(None) };
    let Ok(delta_bytes) = u16::try_from(delta_bytes) else { return Ok(None) };
    let sequence = leaf.base().header().sequence;
    Ok(Some(Child { sequence, base_bytes, delta_bytes, filter: filter.0, ..at.child }))
}
