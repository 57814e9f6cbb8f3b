//! What waits for one key: a single, or a group of members.
//!
//! Members go from the newest to the oldest. Only the oldest one may replace what is older: all
//! but parts do. A group is never empty, and no two members have one sequence.

use crate::format::Effect;
use crate::merge::Change;
use crate::pending::arena::{Arena, Cell, Full};
use crate::pending::cells::{self, Kind};
use crate::pending::weight::Weight;
use crate::sequence::Sequence;

/// What adding a change did to the entry of its key.
pub(super) struct Amended {
    pub(super) cell: Cell,
    pub(super) added: Weight,
    pub(super) dropped: Weight,
}

/// Adds a change to the entry of its key. After an error the entry is as it was.
pub(super) fn add(arena: &mut Arena, entry: Cell, new: Change<'_>) -> Result<Amended, Full> {
    let Place { newer, after } = place(arena, entry, new.sequence);
    let none = Weight::default();
    let is_known = after.is_some_and(|after| cells::sequence(arena, after) == new.sequence);
    if is_known || newer.is_some_and(|newer| cells::replaces(arena, newer)) {
        return Ok(Amended { cell: entry, added: none, dropped: none });
    }
    if newer.is_none() && new.effect != Effect::Part {
        return replace(arena, entry, new);
    }
    let added = Weight { changes: 1, bytes: new.value.len() as u64 };
    if cells::kind(arena, entry) == Kind::Single {
        return Ok(Amended { cell: pair(arena, entry, new)?, added, dropped: none });
    }
    let (older, dead) = if new.effect == Effect::Part { (after, None) } else { (None, after) };
    let member = cells::new_member(arena, new, older.unwrap_or(Cell::NONE))?;
    cells::set_link(arena, newer.unwrap_or(entry), member);
    let dropped = dead.map_or(none, |dead| free_members(arena, dead));
    Ok(Amended { cell: entry, added, dropped })
}

/// Brings what waits of a key in no tree, `newcomer`, into the entry of the key: where the entry is
/// then, and what of both is gone.
pub(super) fn absorb(
    arena: &mut Arena,
    entry: Cell,
    newcomer: Cell,
) -> Result<(Cell, Weight), Full> {
    let replaces = cells::kind(arena, newcomer) == Kind::Single
        && cells::replaces(arena, newcomer)
        && cells::sequence(arena, newcomer) > newest(arena, entry);
    if replaces {
        let gone = weight(arena, entry);
        free(arena, entry);
        return Ok((newcomer, gone));
    }
    let mut gone = weight(arena, newcomer);
    let key = cells::key(arena, newcomer).to_vec();
    let owned = |change: Change<'_>| (change.effect, change.sequence, change.value.to_vec());
    let changes: Vec<_> = Changes::of(arena, newcomer).map(owned).collect();
    free(arena, newcomer);
    let mut cell = entry;
    for (effect, sequence, value) in changes.into_iter().rev() {
        let amended = add(arena, cell, Change { key: &key, effect, sequence, value: &value })?;
        cell = amended.cell;
        gone.add(amended.dropped);
        gone.subtract(amended.added);
    }
    Ok((cell, gone))
}

/// The sequence of an entry's newest change.
fn newest(arena: &Arena, entry: Cell) -> Sequence {
    let cell = match cells::kind(arena, entry) {
        Kind::Group => cells::link(arena, entry),
        _ => entry,
    };
    cells::sequence(arena, cell)
}

/// Puts a change in the place of all others.
fn replace(arena: &mut Arena, entry: Cell, new: Change<'_>) -> Result<Amended, Full> {
    let added = Weight { changes: 1, bytes: (new.key.len() + new.value.len()) as u64 };
    let dropped = weight(arena, entry);
    if cells::kind(arena, entry) == Kind::Single && cells::overwrite(arena, entry, new) {
        return Ok(Amended { cell: entry, added, dropped });
    }
    let cell = cells::new_single(arena, new)?;
    free(arena, entry);
    Ok(Amended { cell, added, dropped })
}

/// Makes a group of a single and another change.
fn pair(arena: &mut Arena, single: Cell, new: Change<'_>) -> Result<Cell, Full> {
    let old = cells::change(arena, new.key, single);
    let (effect, sequence, value) = (old.effect, old.sequence, old.value.to_vec());
    let old = Change { key: new.key, effect, sequence, value: &value };
    let (newer, older) = if new.sequence > old.sequence { (new, old) } else { (old, new) };
    let last = cells::new_member(arena, older, Cell::NONE)?;
    let first = cells::new_member(arena, newer, last).inspect_err(|_| arena.free(last))?;
    let group = cells::new_group(arena, new.key, first).inspect_err(|_| {
        arena.free(first);
        arena.free(last);
    })?;
    arena.free(single);
    Ok(group)
}

/// Where a sequence belongs among the changes of an entry.
struct Place {
    /// The last change that is newer.
    newer: Option<Cell>,
    /// The first change that is not.
    after: Option<Cell>,
}

fn place(arena: &Arena, entry: Cell, sequence: Sequence) -> Place {
    let is_newer = |cell: &Cell| cells::sequence(arena, *cell) > sequence;
    if cells::kind(arena, entry) == Kind::Single {
        let [newer, after] = [is_newer(&entry), !is_newer(&entry)].map(|is| is.then_some(entry));
        return Place { newer, after };
    }
    let mut newer = None;
    loop {
        let member = cells::link(arena, newer.unwrap_or(entry));
        if member == Cell::NONE {
            return Place { newer, after: None };
        }
        if !is_newer(&member) {
            return Place { newer, after: Some(member) };
        }
        newer = Some(member);
    }
}

/// Drops the changes up to a sequence. The entry is gone if the answer is `None`.
pub(super) fn trim(arena: &mut Arena, entry: Cell, through: Sequence) -> (Option<Cell>, Weight) {
    match place(arena, entry, through) {
        Place { after: None, .. } => (Some(entry), Weight::default()),
        Place { newer: None, .. } => {
            let weight = weight(arena, entry);
            free(arena, entry);
            (None, weight)
        }
        Place { newer: Some(newer), after: Some(after) } => {
            cells::set_link(arena, newer, Cell::NONE);
            (Some(entry), free_members(arena, after))
        }
    }
}

/// Frees all cells of an entry.
pub(super) fn free(arena: &mut Arena, entry: Cell) {
    if cells::kind(arena, entry) == Kind::Group {
        let newest = cells::link(arena, entry);
        free_members(arena, newest);
    }
    arena.free(entry);
}

fn free_members(arena: &mut Arena, mut member: Cell) -> Weight {
    let mut weight = Weight::default();
    while member != Cell::NONE {
        let older = cells::link(arena, member);
        weight.add(Weight { changes: 1, bytes: cells::weight(arena, member) });
        arena.free(member);
        member = older;
    }
    weight
}

/// What an entry has.
pub(super) fn weight(arena: &Arena, entry: Cell) -> Weight {
    let bytes = cells::weight(arena, entry);
    if cells::kind(arena, entry) == Kind::Single {
        return Weight { changes: 1, bytes };
    }
    Changes::of(arena, entry).fold(Weight { changes: 0, bytes }, |sum, change| Weight {
        changes: sum.changes + 1,
        bytes: sum.bytes + change.value.len() as u64,
    })
}

/// The changes of a key, newest first.
#[derive(Clone)]
pub struct Changes<'a> {
    arena: &'a Arena,
    key: &'a [u8],
    /// A single or a member, or none.
    next: Cell,
}

impl<'a> Changes<'a> {
    pub(super) fn none(arena: &'a Arena) -> Changes<'a> {
        Changes { arena, key: &[], next: Cell::NONE }
    }

    pub(super) fn of(arena: &'a Arena, entry: Cell) -> Changes<'a> {
        let next = match cells::kind(arena, entry) {
            Kind::Group => cells::link(arena, entry),
            _ => entry,
        };
        Changes { arena, key: cells::key(arena, entry), next }
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        let cell = self.next;
        if cell == Cell::NONE {
            return None;
        }
        self.next = match cells::kind(self.arena, cell) {
            Kind::Member => cells::link(self.arena, cell),
            _ => Cell::NONE,
        };
        Some(cells::change(self.arena, self.key, cell))
    }
}
