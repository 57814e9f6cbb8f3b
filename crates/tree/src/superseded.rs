//! Removal of values that another one, or none, has taken the place of.

use entresol_flash::{Operation, Result, Timestamp};
use entresol_planted::planted;
use entresol_tier::SessionOptions;

use crate::format::{Effect, Reference, Side, ValueName};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{RowOf, Table};
use crate::values::{Owner, Replaced, confirmed_key, encode_confirmed};

impl Shared {
    /// Sees to it that an opening after a crash looks for values that no batch names. Waits for a
    /// sync, once in the life of a store.
    pub(crate) fn watch_values(&self, now: Timestamp) -> Result<()> {
        if self.values.is_watched() {
            return Ok(());
        }
        let position = self.store.store().log_position();
        let mut session = self.store.session(SessionOptions::default())?;
        let value = encode_confirmed(Sequence(0), &position);
        self.write(&mut session, now, &confirmed_key(), &value)?;
        self.store.sync()?;
        self.values.watch_from(position);
        Ok(())
    }

    /// Removes the values that durable changes up to `through` have replaced.
    pub(crate) fn remove_replaced(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        through: Sequence,
    ) -> Result<()> {
        while let Some(Replaced { table, key, of, .. }) = self.values.pop_replaced(through) {
            let table = match of {
                Owner::Table(table) => table,
                Owner::Dropped { created } => {
                    for side in Side::BOTH {
                        let name = ValueName { table, created, key: &key, side };
                        self.discard(session, now, &name)?;
                    }
                    continue;
                }
            };
            let taken = self.take_superseded(&table, &key, through);
            if let Some(taken) = taken {
                self.discard_taken(session, now, &table, &taken)?;
            }
        }
        Ok(())
    }

    /// The sides of a row that its newest change, if it is durable, does not name. They are held
    /// until `discard_taken`.
    pub(crate) fn take_superseded(
        &self,
        table: &Table,
        key: &[u8],
        through: Sequence,
    ) -> Option<Superseded> {
        let mut state = table.lock();
        let sides = {
            let arena = self.arena.read();
            let mut changes = state.pending.get(&arena, key);
            let whole = changes.find(|change| change.effect != Effect::Part)?;
            if whole.sequence > through {
                return None;
            }
            let named = match whole.effect {
                Effect::Separate => Some(Reference::decode(whole.value).ok()?.side),
                _ => None,
            };
            Side::BOTH.map(|side| (Some(side) != named).then_some(side))
        };
        let row = RowOf { table: table.id(), key };
        let take = |side: &Side| state.sides.take(row, *side, &self.values.takes);
        let sides: Vec<Side> = sides.into_iter().flatten().filter(take).collect();
        Some(Superseded { key: Box::from(key), created: state.directory.created(), sides })
    }

    /// Takes a side of a row, if nobody holds it and nothing is there.
    pub(crate) fn take_side(
        &self,
        session: &entresol_tier::Session,
        table: &Table,
        name: &ValueName<'_>,
    ) -> bool {
        let ValueName { key, side, .. } = *name;
        if !table.lock().sides.look(key, side) {
            return false;
        }
        let is_there = session.may_hold(self.key(&name.record_key()));
        let is_free = !is_there || planted!("value-over-the-old-one");
        let takes = is_free.then_some(&self.values.takes);
        table.lock().sides.look_ends(RowOf { table: table.id(), key }, side, takes)
    }

    /// Removes the values of sides that `take_superseded` took. Where that fails they stay held:
    /// the next opening removes them.
    pub(crate) fn discard_taken(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        table: &Table,
        taken: &Superseded,
    ) -> Result<()> {
        let Superseded { key, created, sides } = taken;
        let mut ended = Ok(());
        for &side in sides {
            let name = ValueName { table: table.id(), created: *created, key, side };
            ended = ended.and_then(|()| self.discard(session, now, &name));
            if ended.is_ok() {
                table.lock().sides.give_back(key, side);
            }
        }
        ended
    }

    /// Removes a value, if it may be there.
    pub(crate) fn discard(
        &self,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        name: &ValueName<'_>,
    ) -> Result<()> {
        let key = name.record_key();
        if !session.may_hold(self.key(&key)) {
            return Ok(());
        }
        Counters::add(&self.counters.values_removed, 1);
        session.run(now, Operation::Discard { key: self.key(&key) }, &mut |_| {})
    }
}

/// Sides of a row that are held, to be removed.
#[derive(Debug)]
pub(crate) struct Superseded {
    key: Box<[u8]>,
    created: Sequence,
    sides: Vec<Side>,
}
