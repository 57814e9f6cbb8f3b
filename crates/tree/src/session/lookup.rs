//! One get: the changes that wait, then the delta page where it may hold the key, then the leaf.

use std::sync::Arc;

use entresol_flash::{Outcome as Stored, Result};

use super::approach::{Approach, Arrived, LeafPage, ReadPages, Resumed};
use super::{Ask, Next, Outcome, Visit};
use crate::error::{damaged, refused};
use crate::format::{Damage, Effect, Reference, Rows, Side, ValueName};
use crate::merge::{Cursor, Gathered, Leaf, Pushed, Resolved};
use crate::node::is_known;
use crate::rows::{RowBuffer, RowForm};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, Place, RowOf, State, Table, is_empty};

/// A get on its way.
pub(super) struct Lookup {
    token: u64,
    approach: Approach,
    key: Vec<u8>,
    /// What waits of the key, copied before any page is read.
    copied: Copied,
    /// As of the directory when the row was looked for: a table that was dropped has other values.
    created: Sequence,
    /// The row's value, which is a record of its own, and the parts on top of it.
    wanted: Option<Wanted>,
    /// How often that was not there.
    misses: u32,
    form: RowForm,
    leaf: LeafUse,
}

/// Whether the row's leaf is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeafUse {
    Always,
    /// Not where the sides of the row tell all.
    MayPass,
    /// It is passed over: the value of this side is read. The row's side was taken so often when it
    /// was looked for.
    Passed {
        side: Side,
        takes: u32,
    },
}

/// A value that is a record of its own, and what was added to it.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub reference: Reference,
    pub parts: Vec<Vec<u8>>,
}

impl Wanted {
    /// What `gathered` says of the row's value, if that is a record of its own.
    pub(super) fn of(gathered: &Gathered<'_>) -> std::result::Result<Option<Wanted>, Damage> {
        let Some(reference) = gathered.separate().map(Reference::decode).transpose()? else {
            return Ok(None);
        };
        Ok(Some(Wanted { reference, parts: gathered.parts().map(<[u8]>::to_vec).collect() }))
    }
}

/// What the sides of a row tell.
enum Sided {
    /// One of them has the row's value.
    Value,
    /// There is no row.
    Absent,
    /// Nothing: the leaf says what the row is.
    Unclear,
}

/// So often a row's value may be another one than the row said. Each time the row was written anew.
const VALUE_MISSES_MAX: u32 = 100;

impl Lookup {
    pub(super) fn new(token: u64, table: &Arc<Table>, key: &[u8]) -> Lookup {
        let (approach, key, form) = (Approach::new(table), key.to_vec(), RowForm::Folded);
        Lookup {
            token,
            approach,
            key,
            copied: Copied::default(),
            created: Sequence(0),
            wanted: None,
            misses: 0,
            form,
            leaf: LeafUse::Always,
        }
    }

    /// The same, which reads no leaf where the row's values tell all of it.
    pub(super) fn past_leaf(self) -> Lookup {
        Lookup { leaf: LeafUse::MayPass, ..self }
    }

    /// The same, of a row whose value is thought to be `wanted`. It begins with that.
    pub(super) fn at(self, created: Sequence, wanted: Wanted) -> Lookup {
        Lookup { created, wanted: Some(wanted), ..self }
    }

    /// The same, of a row in that form.
    pub(super) fn in_form(self, form: RowForm) -> Lookup {
        Lookup { form, ..self }
    }

    /// Where the row's value is, once it asks for that.
    pub(super) fn reference(&self) -> Option<Reference> {
        self.wanted.as_ref().map(|wanted| wanted.reference)
    }

    /// Whether the row's value was not there, so that the row was read anew.
    pub(super) fn has_missed(&self) -> bool {
        self.misses > 0
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
    ) -> Result<Option<Ask>> {
        match self.approach.resume(shared, next)? {
            Resumed::Visited => return Ok(None),
            Resumed::Read(key) => return Ok(Some(Ask::Page(key))),
            Resumed::Value => return Ok(Some(self.ask_for_value())),
            Resumed::Locate => {}
        }
        self.wanted = None;
        self.copied = Copied::default();
        let (place, has_page, takes) = {
            let state = self.approach.table.read();
            if !state.pending.is_empty() {
                self.copied.copy_key(&state.pending, &shared.arena.read(), &self.key);
            }
            self.created = state.directory.created();
            let place = state.directory.locate(&self.key);
            // Under the same lock as the copy: a change leaves memory after the directory knows of
            // it.
            let has_page = match &place {
                Place::Leaf(at) => !is_empty(&at.child) && state.directory.may_hold(at, &self.key),
                Place::Missing(_) => true,
            };
            (place, has_page, self.takes(shared, &state))
        };
        if !self.copied.is_empty() || !has_page {
            let copied = std::mem::take(&mut self.copied);
            let changes = copied.changes();
            let mut gathered = Gathered::default();
            gathered.start(&self.key);
            gathered.apply_after(Sequence(0), &changes);
            if gathered.is_whole() || !has_page {
                return Ok(match self.answer(shared, &gathered, visit)? {
                    Next::ReadValue => Some(self.ask_for_value()),
                    _ => None,
                });
            }
            drop(gathered);
            drop(changes);
            self.copied = copied;
        }
        match takes.map(|takes| self.look_at_sides(shared, store, takes)) {
            Some(Sided::Value) => return Ok(Some(self.ask_for_value())),
            Some(Sided::Absent) => {
                visit(self.token, Ok(Outcome::Missing));
                return Ok(None);
            }
            Some(Sided::Unclear) | None => {}
        }
        Ok(Some(Ask::Page(self.approach.head_for(shared, store, place, Some(&self.key)))))
    }

    /// How often the row's sides were taken, if they tell what the row is: all rows of the table's
    /// pages have values of their own, nothing waits of the row, and nobody holds a side.
    fn takes(&self, shared: &Shared, state: &State) -> Option<u32> {
        let table = &self.approach.table;
        let tells = self.leaf == LeafUse::MayPass
            && self.copied.is_empty()
            && table.has_values()
            && !table.has_small_rows()
            && state.sides.is_free(&self.key)
            && !shared.is_read_only();
        tells.then(|| shared.values.takes.count(self.row()))
    }

    /// What the store has on the sides of the row. Nobody took one of them meanwhile, or it says
    /// nothing.
    fn look_at_sides(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        takes: u32,
    ) -> Sided {
        let is_there = |side: Side| store.may_hold(shared.key(&self.value_name(side).record_key()));
        let there = Side::BOTH.map(is_there);
        match there {
            [false, false] if shared.values.takes.count(self.row()) == takes => Sided::Absent,
            [true, false] | [false, true] => {
                let side = if there[0] { Side::First } else { Side::Second };
                self.leaf = LeafUse::Passed { side, takes };
                Sided::Value
            }
            _ => Sided::Unclear,
        }
    }

    fn row(&self) -> RowOf<'_> {
        RowOf { table: self.approach.table.id(), key: &self.key }
    }

    fn value_name(&self, side: Side) -> ValueName<'_> {
        let (table, created) = (self.approach.table.id(), self.created);
        ValueName { table, created, key: &self.key, side }
    }

    fn ask_for_value(&self) -> Ask {
        let side = match (&self.wanted, self.leaf) {
            (Some(wanted), _) => wanted.reference.side,
            (None, LeafUse::Passed { side, .. }) => side,
            (None, _) => Side::First,
        };
        Ask::Value(self.value_name(side).record_key())
    }

    /// What the store answered. Called under its locks: it calls nobody but `visit`.
    pub(super) fn take(
        &mut self,
        shared: &Shared,
        outcome: Result<Stored<'_>>,
        visit: Visit<'_>,
    ) -> Next {
        if let LeafUse::Passed { takes, .. } = self.leaf {
            return self.take_sided(shared, outcome, takes, visit).unwrap_or_else(Next::Fail);
        }
        if let Some(wanted) = self.wanted.take() {
            return self.take_value(shared, outcome, &wanted, visit).unwrap_or_else(Next::Fail);
        }
        let taken = match self.approach.arrive(outcome) {
            Arrived::Next(next) => Ok(next),
            Arrived::Delta(page) => self.take_delta(shared, page, visit),
            Arrived::Leaf(record) => self.take_leaf(shared, record, visit),
        };
        taken.unwrap_or_else(Next::Fail)
    }

    /// The value of the row whose leaf was passed over. If there is none, since another key looks
    /// the same to the index, or if somebody took a side of the row, the leaf is read after all.
    fn take_sided(
        &mut self,
        shared: &Shared,
        outcome: Result<Stored<'_>>,
        takes: u32,
        visit: Visit<'_>,
    ) -> Result<Next> {
        self.leaf = LeafUse::Always;
        match outcome? {
            Stored::Found(entry) if shared.values.takes.count(self.row()) == takes => {
                let mut gathered = Gathered::default();
                gathered.start(&self.key);
                gathered.apply(Effect::Put, Sequence(0), entry.value);
                self.answer(shared, &gathered, visit)
            }
            _ => Ok(Next::Locate),
        }
    }

    /// The record of the row's value, if it is the one that the row named. Else the row was written
    /// since, and says now where its value is.
    fn take_value(
        &mut self,
        shared: &Shared,
        outcome: Result<Stored<'_>>,
        wanted: &Wanted,
        visit: Visit<'_>,
    ) -> Result<Next> {
        match outcome? {
            Stored::Found(entry) if entry.version.0 == wanted.reference.version => {
                let mut gathered = Gathered::default();
                gathered.start(&self.key);
                gathered.apply(Effect::Put, Sequence(0), entry.value);
                for part in &wanted.parts {
                    gathered.apply(Effect::Part, Sequence(0), part);
                }
                self.answer(shared, &gathered, visit)
            }
            _ => {
                self.misses += 1;
                if self.misses > VALUE_MISSES_MAX {
                    return Err(damaged(&self.approach.table, &"the value of a row is missing"));
                }
                Ok(Next::Locate)
            }
        }
    }

    fn take_delta(
        &mut self,
        shared: &Shared,
        page: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let Some(page) = page else { return Ok(Next::ReadLeaf) };
        let table = Arc::clone(&self.approach.table);
        let damage = |damage| damaged(&table, &damage);
        // Of an earlier opening: whether it belongs to the leaf, the leaf says.
        if is_known(&self.approach.located().child) {
            let rows = Rows::parse(page).map_err(damage)?;
            let found = rows.entries_of(&self.key).map_err(damage)?;
            if found.is_empty() {
                return Ok(Next::ReadLeaf);
            }
            if self.approach.is_overtaken(&self.copied, rows.header().sequence) {
                return Ok(Next::Locate);
            }
            let copied = std::mem::take(&mut self.copied);
            let changes = copied.changes();
            let mut gathered = Gathered::default();
            gathered.start(&self.key);
            let mut cursor = Cursor::at(Some(rows), found.start).map_err(damage)?;
            gathered.take_rows(&mut cursor).map_err(damage)?;
            gathered.apply_after(rows.header().sequence, &changes);
            if gathered.is_whole() {
                return self.answer(shared, &gathered, visit);
            }
            drop(gathered);
            drop(changes);
            self.copied = copied;
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
        let table = Arc::clone(&self.approach.table);
        let damage = |damage| damaged(&table, &damage);
        let page = match self.approach.leaf_page(record)? {
            LeafPage::Moved(next) => return Ok(next),
            LeafPage::Empty => None,
            LeafPage::Page(page) => Some(page),
        };
        let delta = self.approach.delta.take();
        let copied = std::mem::take(&mut self.copied);
        let leaf = page
            .as_deref()
            .map(|page| Leaf::parse(page, delta.as_deref()))
            .transpose()
            .map_err(damage)?;
        let changes = copied.changes();
        let mut gathered = Gathered::default();
        gathered.start(&self.key);
        let mut known = Sequence(0);
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
            if self.approach.is_overtaken(&copied, known) {
                return Ok(Next::Locate);
            }
            let read = ReadPages { delta: delta.as_deref(), base_bytes: page.len() };
            self.approach.learn(shared, &leaf, read)?;
        }
        gathered.apply_after(known, &changes);
        self.answer(shared, &gathered, visit)
    }

    /// Visits the row, or says that its value is to be read.
    fn answer(
        &mut self,
        shared: &Shared,
        gathered: &Gathered<'_>,
        visit: Visit<'_>,
    ) -> Result<Next> {
        let table = &self.approach.table;
        let wanted = Wanted::of(gathered).map_err(|damage| damaged(table, &damage))?;
        if wanted.is_some() {
            self.wanted = wanted;
            return Ok(Next::ReadValue);
        }
        if self.form == RowForm::Unfolded {
            let mut rows = RowBuffer::new(self.form);
            let pushed = gathered.push_unfolded(&mut rows);
            let outcome = match pushed {
                Pushed::Row => Outcome::Found(rows.row(0).1),
                Pushed::Nothing | Pushed::Separate => Outcome::Missing,
            };
            visit(self.token, Ok(outcome));
            return Ok(Next::Done);
        }
        let merge = shared.merge_of(table);
        let mut folded = Vec::new();
        let resolved = gathered.resolve(merge.as_ref().map(|merge| &**merge as _), &mut folded);
        match resolved.map_err(|error| refused(table, &error))? {
            Resolved::Row(value) => visit(self.token, Ok(Outcome::Found(value))),
            Resolved::Gone | Resolved::Separate => visit(self.token, Ok(Outcome::Missing)),
        }
        Ok(Next::Done)
    }
}
