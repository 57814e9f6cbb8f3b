//! Values of a batch that are records of their own: each is put before the batch is written, on a
//! side of its row that nobody needs.
//!
//! Where there is no such side, since the row was written twice within one sync, the value goes the
//! way of small ones, if it is not too long for that. It then frees both sides.

use std::sync::Arc;

use entresol_flash::{
    Durability, Error, ErrorKind, Operation, Outcome as Stored, PutOptions, Result, Timestamp,
};

use super::owned::OwnedWrite;
use super::{Action, Ask, Pending, Session, Write};
use crate::format::{INLINE_VALUE_BYTES_MAX, Reference, Side, ValueName};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::Table;
use crate::values::{Owner, Replaced, Values};

/// The values of a batch.
pub(super) struct Placement {
    values: Arc<Values>,
    epoch: Option<u64>,
    places: Vec<Place>,
    /// The one that is being put.
    putting: Option<usize>,
    /// Bytes of those that go the way of small ones.
    inline_bytes: usize,
}

/// Where a value is to be.
struct Place {
    /// The number of its write.
    write: usize,
    table: Arc<Table>,
    key: Vec<u8>,
    created: Sequence,
    bytes: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unplaced,
    /// The side is held, and may have the value.
    Held(Side),
    Put(Reference),
    /// It stands in the journal and in a leaf.
    Inline,
    /// The batch names it, or its side was given back.
    Over,
}

/// A value on its way to the store.
pub(super) struct Putting {
    write: usize,
    record_key: Vec<u8>,
    value: Vec<u8>,
}

impl Putting {
    pub(super) fn operation(&self, shared: &Shared) -> Operation<'_> {
        let options = PutOptions { durability: Some(Durability::Memory), ..PutOptions::default() };
        let key = shared.key(&self.record_key);
        Operation::Put { key, value: &self.value, options }
    }

    /// The write whose value it has, and the value.
    pub(super) fn into_value(self) -> (usize, Vec<u8>) {
        (self.write, self.value)
    }
}

/// A value that no batch names, and is to go.
pub(super) struct Discarding {
    table: Arc<Table>,
    key: Vec<u8>,
    side: Side,
    epoch: u64,
    /// The store did not remove it.
    is_left: bool,
}

impl Discarding {
    /// What the store answered.
    pub(super) fn take(&mut self, outcome: &Result<Stored<'_>>) {
        self.is_left |= outcome.is_err();
    }
}

impl Placement {
    pub(super) fn new(shared: &Shared) -> Placement {
        let values = Arc::clone(&shared.values);
        Placement { values, epoch: None, places: Vec::new(), putting: None, inline_bytes: 0 }
    }

    /// The value of write number `write` is a record of its own.
    pub(super) fn add(&mut self, write: usize, table: &Arc<Table>, key: &[u8]) {
        let (table, key, created) = (Arc::clone(table), key.to_vec(), Sequence(0));
        let state = State::Unplaced;
        self.places.push(Place { write, table, key, created, bytes: 0, state });
    }

    pub(super) fn is_complete(&self) -> bool {
        self.places.iter().all(|place| place.state != State::Unplaced)
    }

    /// Whether the tables are as they were when the values were put. Called under the journal's
    /// lock, which keeps drops away.
    pub(super) fn is_current(&self) -> bool {
        let is_current = |place: &Place| place.table.read().directory.created() == place.created;
        self.places.iter().all(is_current)
    }

    /// Finds a place for the next value of `writes`, and asks that it is put there.
    pub(super) fn next(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        writes: &mut [OwnedWrite],
    ) -> Result<Option<Ask>> {
        while let Some(at) = self.places.iter().position(|place| place.state == State::Unplaced) {
            let place = &mut self.places[at];
            self.epoch.get_or_insert_with(|| self.values.begin());
            place.created = place.table.read().directory.created();
            let value = &mut writes[place.write].value;
            place.bytes = value.len() as u32;
            let side = Side::BOTH.into_iter().find(|&side| place.take(side, shared, store));
            if let Some(side) = side {
                place.state = State::Held(side);
                self.putting = Some(at);
                let record_key = place.name(side).record_key();
                let (write, value) = (place.write, std::mem::take(value));
                return Ok(Some(Ask::Put(Putting { write, record_key, value })));
            }
            if self.values.want() {
                // A value that was replaced before a crash is in no list. A merge of its row
                // would remove it, and none may come.
                let (table, key) = (Arc::clone(&place.table), Box::from(&place.key[..]));
                let (id, sequence, of) = (table.id(), Sequence(0), Owner::Table(table));
                self.values.push_replaced(Replaced { table: id, key, sequence, of, bytes: 0 });
            }
            self.inline_bytes += value.len();
            if self.inline_bytes > INLINE_VALUE_BYTES_MAX {
                let detail = "both values of a row are still needed; maintain, then try again";
                return Err(Error::new(ErrorKind::Busy, detail));
            }
            place.state = State::Inline;
        }
        Ok(None)
    }

    /// Whether a value is on its way.
    pub(super) fn is_putting(&self) -> bool {
        self.putting.is_some()
    }

    /// What the store answered.
    pub(super) fn take(&mut self, shared: &Shared, outcome: Result<Stored<'_>>) -> Result<()> {
        let place = self.putting.take().map(|at| &mut self.places[at]);
        let place = place.expect("a value that is being put");
        match (place.state, outcome?) {
            (State::Held(side), Stored::Stored { version }) if version.0 > 0 => {
                Counters::add(&shared.counters.values_put, 1);
                let (version, bytes) = (version.0, place.bytes);
                let reference = Reference { version, bytes, side };
                place.state = State::Put(reference);
                Ok(())
            }
            _ => {
                let detail = "the store did not take the value of a row; expected that it does";
                Err(Error::new(ErrorKind::InvalidInput, detail))
            }
        }
    }

    /// How each of so many writes names its value.
    pub(super) fn named(&self, writes: usize) -> Vec<Option<Reference>> {
        let mut named = vec![None; writes];
        for place in &self.places {
            if let State::Put(reference) = place.state {
                named[place.write] = Some(reference);
            }
        }
        named
    }

    /// The batch names them all, and has given back their sides.
    pub(super) fn commit(&mut self) {
        self.places.iter_mut().for_each(|place| place.state = State::Over);
    }

    /// What is to be removed, since no batch names it. Those values are unplaced then.
    fn abandon(&mut self) -> Vec<(Discarding, Vec<u8>)> {
        let mut all = Vec::new();
        (self.putting, self.inline_bytes) = (None, 0);
        for place in &mut self.places {
            let side = match place.state {
                State::Held(side) => Some(side),
                State::Put(reference) => Some(reference.side),
                _ => None,
            };
            if let Some(side) = side {
                let (table, key) = (Arc::clone(&place.table), place.key.clone());
                let record_key = place.name(side).record_key();
                let epoch = self.epoch.unwrap_or_default();
                // The value may be found by an opening until its removal is under way.
                self.values.begin_in(epoch);
                let is_left = false;
                all.push((Discarding { table, key, side, epoch, is_left }, record_key));
            }
            place.state = State::Unplaced;
        }
        all
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        // A session that ends may leave values in no batch. Their sides stay held: nobody takes
        // such a value for that of the row. The next opening looks for it, and removes it.
        let is_left = |place: &Place| matches!(place.state, State::Held(_) | State::Put(_));
        if let Some(epoch) = self.epoch.filter(|_| !self.places.iter().any(is_left)) {
            self.values.end(epoch);
        }
    }
}

impl Place {
    fn name(&self, side: Side) -> ValueName<'_> {
        ValueName { table: self.table.id(), created: self.created, key: &self.key, side }
    }

    /// Takes a side, if nobody holds it and nothing is there.
    fn take(&self, side: Side, shared: &Shared, store: &entresol_tier::Session) -> bool {
        shared.take_side(store, &self.table, &self.name(side))
    }
}

impl Session {
    /// Whether the value of a write is a record of its own.
    pub(super) fn is_separate(&self, write: &Write<'_>) -> bool {
        let least = self.shared.options.separate_bytes_min.min(INLINE_VALUE_BYTES_MAX + 1);
        matches!(write.action, Action::Put(value) if value.len() >= least)
    }

    /// Removes what the batch in `slot`, if it is one, has put and does not name.
    pub(super) fn abandon(&mut self, slot: u32, now: Timestamp) {
        if let Some(Pending::Conditional(conditional)) = self.operations[slot as usize].as_mut() {
            let abandoned = conditional.placement().abandon();
            self.discard_all(now, abandoned);
        }
    }

    /// Removes what `placement` has put.
    pub(super) fn abandon_of(&mut self, placement: &mut Placement, now: Timestamp) {
        let abandoned = placement.abandon();
        self.discard_all(now, abandoned);
    }

    fn discard_all(&mut self, now: Timestamp, abandoned: Vec<(Discarding, Vec<u8>)>) {
        for (discarding, key) in abandoned {
            let slot = self.take(Pending::Discard(Box::new(discarding)));
            let Session { shared, store, .. } = self;
            let mut answer = None;
            let discard = Operation::Discard { key: shared.key(&key) };
            store.submit(slot.into(), now, discard, &mut |_, outcome| {
                answer = Some(outcome.is_err())
            });
            if let Some(is_left) = answer {
                if let Some(Pending::Discard(discarding)) = self.operations[slot as usize].as_mut()
                {
                    discarding.is_left = is_left;
                }
                self.end_discard(slot);
            }
        }
    }

    pub(super) fn end_discard(&mut self, slot: u32) {
        if let Some(Pending::Discard(discarding)) = self.operations[slot as usize].take() {
            let Discarding { table, key, side, epoch, is_left } = *discarding;
            if is_left {
                // The side stays held, and the opening looks for the value.
                return self.give_back(slot);
            }
            table.lock().sides.give_back(&key, side);
            self.shared.values.end(epoch);
        }
        self.give_back(slot);
    }
}
