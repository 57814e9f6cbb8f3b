//! One get: the changes that wait, then the delta page where it may hold the key, then the leaf.

use std::sync::Arc;

use entresol_flash::{Outcome as Stored, Result};

use super::approach::{Approach, Arrived, LeafPage, PageKey, Resumed};
use super::{Next, Outcome, Visit};
use crate::error::{damaged, refused};
use crate::format::{Child, Rows};
use crate::merge::{Cursor, Gathered, Leaf, Pushed, Resolved};
use crate::node::is_known;
use crate::rows::{RowBuffer, RowForm};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, Place, Table, is_empty};

/// A get on its way.
pub(super) struct Lookup {
    token: u64,
    approach: Approach,
    key: Vec<u8>,
    /// What waits of the key, copied before any page is read.
    copied: Copied,
    /// What was learnt of the leaf.
    learnt: Option<Child>,
    form: RowForm,
}

impl Lookup {
    pub(super) fn new(token: u64, table: &Arc<Table>, key: &[u8]) -> Lookup {
        let (approach, key, form) = (Approach::new(table), key.to_vec(), RowForm::Folded);
        Lookup { token, approach, key, copied: Copied::default(), learnt: None, form }
    }

    /// The same, of a row in that form.
    pub(super) fn in_form(self, form: RowForm) -> Lookup {
        Lookup { form, ..self }
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
    ) -> Result<Option<PageKey>> {
        match self.approach.resume(shared, next)? {
            Resumed::Visited => {
                self.teach(shared);
                return Ok(None);
            }
            Resumed::Read(key) => return Ok(Some(key)),
            Resumed::Locate => {}
        }
        self.learnt = None;
        self.copied = Copied::default();
        let place = {
            let state = self.approach.table.lock();
            self.copied.copy_key(&state.pending, &shared.arena.read(), &self.key);
            state.directory.locate(&self.key)
        };
        let has_page = !matches!(&place, Place::Leaf(at) if is_empty(&at.child));
        if !self.copied.is_empty() || !has_page {
            let changes = self.copied.changes();
            let mut gathered = Gathered::default();
            gathered.start(&self.key);
            gathered.apply_after(Sequence(0), &changes);
            if gathered.is_whole() || !has_page {
                self.answer(shared, &gathered, visit)?;
                return Ok(None);
            }
        }
        Ok(Some(self.approach.head_for(shared, store, place, Some(&self.key))))
    }

    /// What the store answered. Called under its locks: it calls nobody but `visit`.
    pub(super) fn take(
        &mut self,
        shared: &Shared,
        outcome: Result<Stored<'_>>,
        visit: Visit<'_>,
    ) -> Next {
        let taken = match self.approach.arrive(outcome) {
            Arrived::Next(next) => Ok(next),
            Arrived::Delta(page) => self.take_delta(shared, page, visit),
            Arrived::Leaf(record) => self.take_leaf(shared, record, visit),
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
        let damage = |damage| damaged(&self.approach.table, &damage);
        // Of an earlier opening: whether it belongs to the leaf, the leaf says.
        if is_known(&self.approach.located().child) {
            let rows = Rows::parse(page).map_err(damage)?;
            let found = rows.entries_of(&self.key).map_err(damage)?;
            if found.is_empty() {
                return Ok(Next::ReadLeaf);
            }
            let changes = self.copied.changes();
            let mut gathered = Gathered::default();
            gathered.start(&self.key);
            let mut cursor = Cursor::at(Some(rows), found.start).map_err(damage)?;
            gathered.take_rows(&mut cursor).map_err(damage)?;
            gathered.apply_after(rows.header().sequence, &changes);
            if gathered.is_whole() {
                self.answer(shared, &gathered, visit)?;
                return Ok(Next::Done);
            }
        }
        self.approach.delta = Some(page.to_vec());
        Ok(Next::ReadLeaf)
    }

    fn take_leaf(
        &mut self,
        shared: &Shared,
        record: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let damage = |damage| damaged(&self.approach.table, &damage);
        let page = match self.approach.leaf_page(record)? {
            LeafPage::Moved(next) => return Ok(next),
            LeafPage::Empty => None,
            LeafPage::Page(page) => Some(page),
        };
        let delta = self.approach.delta.as_deref();
        let leaf =
            page.as_deref().map(|page| Leaf::parse(page, delta)).transpose().map_err(damage)?;
        let changes = self.copied.changes();
        let mut gathered = Gathered::default();
        gathered.start(&self.key);
        let (mut known, mut learnt) = (Sequence(0), None);
        if let (Some(leaf), Some(page)) = (leaf, &page) {
            let (high, right) = (leaf.base().high_key(), leaf.base().header().link as u32);
            if let Some(high) = high.filter(|high| *high <= &self.key[..]) {
                return Ok(Next::Learn { high: high.to_vec(), right });
            }
            for rows in [Some(leaf.base()), leaf.delta()].into_iter().flatten() {
                let start = rows.lower_bound(&self.key).map_err(damage)?;
                let mut cursor = Cursor::at(Some(rows), start).map_err(damage)?;
                gathered.take_rows(&mut cursor).map_err(damage)?;
            }
            known = leaf.sequence();
            learnt = self.approach.learnt(&leaf, page.len())?;
        }
        gathered.apply_after(known, &changes);
        self.answer(shared, &gathered, visit)?;
        self.learnt = learnt;
        Ok(Next::Done)
    }

    /// Enters what was learnt of a leaf.
    fn teach(&mut self, shared: &Shared) {
        if let (Some(leaf), Some(child)) = (&self.approach.leaf, self.learnt) {
            let table = &self.approach.table;
            let most = shared.options.leaf_bytes_max;
            let joins = table.lock().directory.set_child(leaf, child, most);
            if joins {
                shared.joining.lock().insert(table.id());
            }
        }
    }

    fn answer(&self, shared: &Shared, gathered: &Gathered<'_>, visit: Visit<'_>) -> Result<()> {
        let table = &self.approach.table;
        if self.form == RowForm::Unfolded {
            let mut rows = RowBuffer::new(self.form);
            let pushed = gathered.push_unfolded(&mut rows);
            let outcome = match pushed {
                Pushed::Row => Outcome::Found(rows.row(0).1),
                Pushed::Nothing | Pushed::Separate => Outcome::Missing,
            };
            visit(self.token, Ok(outcome));
            return Ok(());
        }
        let merge = shared.merge_of(table);
        let mut folded = Vec::new();
        let resolved = gathered.resolve(merge.as_ref().map(|merge| &**merge as _), &mut folded);
        match resolved.map_err(|error| refused(table, &error))? {
            Resolved::Row(value) => visit(self.token, Ok(Outcome::Found(value))),
            Resolved::Gone | Resolved::Separate => visit(self.token, Ok(Outcome::Missing)),
        }
        Ok(())
    }
}
