//! How changes and keys lie in cells of the arena.
//!
//! ```text
//! single: word 4, sequence 8, key, value          a key and its only change
//! group:  word 4, newest 4, key                   a key with several changes
//! member: word 4, sequence 8, older 4, value      one of them
//! bound:  word 4, key                             a key between two nodes
//! word:   key length 12 bits, value length 13, effect 2, none 1, kind 2
//! ```
//! Little-endian, in memory only.

use crate::format::{Effect, INLINE_VALUE_BYTES_MAX, ROW_KEY_BYTES_MAX};
use crate::merge::Change;
use crate::pending::arena::{Arena, Cell, Full};
use crate::sequence::Sequence;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Single = 0,
    Group = 1,
    Member = 2,
    Bound = 3,
}

/// Where the key begins, or the value of a member, by kind.
const BODY: [usize; 4] = [12, 8, 16, 4];
const SEQUENCE: usize = 4;
const LINK_OF_GROUP: usize = 4;
const LINK_OF_MEMBER: usize = 12;

const _: () = assert!(ROW_KEY_BYTES_MAX < 1 << 12 && INLINE_VALUE_BYTES_MAX < 1 << 13);

/// The first four bytes of a cell.
#[derive(Clone, Copy)]
struct Word(u32);

impl Word {
    fn new(kind: Kind, key_bytes: usize) -> Word {
        Word(key_bytes as u32 | (kind as u32) << 28)
    }

    fn with_change(self, change: Change<'_>) -> Word {
        let effect = u32::from(change.effect.bits());
        Word(self.0 | (change.value.len() as u32) << 12 | effect << 25)
    }

    fn of(bytes: &[u8]) -> Word {
        Word(u32::from_le_bytes(four(bytes, 0)))
    }

    fn kind(self) -> Kind {
        [Kind::Single, Kind::Group, Kind::Member, Kind::Bound][(self.0 >> 28) as usize & 3]
    }

    fn body(self) -> usize {
        BODY[(self.0 >> 28) as usize & 3]
    }

    fn key_bytes(self) -> usize {
        self.0 as usize & 0xfff
    }

    fn value_bytes(self) -> usize {
        (self.0 >> 12) as usize & 0x1fff
    }

    fn effect(self) -> Effect {
        Effect::from_bits((self.0 >> 25) as u16 & 3).expect("two bits are an effect")
    }
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    *bytes[at..].first_chunk().expect("cells have sixteen bytes or more")
}

/// What a cell is.
pub(super) fn kind(arena: &Arena, cell: Cell) -> Kind {
    Word::of(arena.bytes(cell)).kind()
}

/// The key in a single, a group or a bound.
pub(super) fn key(arena: &Arena, cell: Cell) -> &[u8] {
    let bytes = arena.bytes(cell);
    let word = Word::of(bytes);
    &bytes[word.body()..word.body() + word.key_bytes()]
}

/// The change in a single or a member; `key` is that of the entry.
pub(super) fn change<'a>(arena: &'a Arena, key: &'a [u8], cell: Cell) -> Change<'a> {
    let bytes = arena.bytes(cell);
    let word = Word::of(bytes);
    let value = word.body() + word.key_bytes();
    Change {
        key,
        effect: word.effect(),
        sequence: sequence(arena, cell),
        value: &bytes[value..value + word.value_bytes()],
    }
}

/// The sequence of a single or a member.
pub(super) fn sequence(arena: &Arena, cell: Cell) -> Sequence {
    let bytes = arena.bytes(cell)[SEQUENCE..].first_chunk();
    Sequence(u64::from_le_bytes(*bytes.expect("cells have sixteen bytes or more")))
}

/// Whether nothing older than a single or a member matters.
pub(super) fn replaces(arena: &Arena, cell: Cell) -> bool {
    Word::of(arena.bytes(cell)).effect() != Effect::Part
}

/// Bytes of key and value in a cell.
pub(super) fn weight(arena: &Arena, cell: Cell) -> u64 {
    let word = Word::of(arena.bytes(cell));
    (word.key_bytes() + word.value_bytes()) as u64
}

/// The newest member of a group, or the next older one of a member.
pub(super) fn link(arena: &Arena, cell: Cell) -> Cell {
    let bytes = arena.bytes(cell);
    Cell::from_bytes(four(bytes, link_at(bytes)))
}

pub(super) fn set_link(arena: &mut Arena, cell: Cell, to: Cell) {
    let bytes = arena.bytes_mut(cell);
    let at = link_at(bytes);
    bytes[at..at + 4].copy_from_slice(&to.to_bytes());
}

fn link_at(bytes: &[u8]) -> usize {
    match Word::of(bytes).kind() {
        Kind::Group => LINK_OF_GROUP,
        Kind::Member => LINK_OF_MEMBER,
        Kind::Single | Kind::Bound => unreachable!("only groups and members have links"),
    }
}

pub(super) fn new_single(arena: &mut Arena, new: Change<'_>) -> Result<Cell, Full> {
    let cell = arena.allocate(single_bytes(new))?;
    let body = BODY[Kind::Single as usize];
    arena.bytes_mut(cell)[body..body + new.key.len()].copy_from_slice(new.key);
    write_single(arena, cell, new);
    Ok(cell)
}

/// Writes another change of the key over that of a single, if its cell is of the right size.
pub(super) fn overwrite(arena: &mut Arena, cell: Cell, new: Change<'_>) -> bool {
    let suits = arena.suits(cell, single_bytes(new));
    if suits {
        write_single(arena, cell, new);
    }
    suits
}

fn single_bytes(new: Change<'_>) -> usize {
    BODY[Kind::Single as usize] + new.key.len() + new.value.len()
}

/// All but the key.
fn write_single(arena: &mut Arena, cell: Cell, new: Change<'_>) {
    let bytes = arena.bytes_mut(cell);
    let word = Word::new(Kind::Single, new.key.len()).with_change(new);
    bytes[..4].copy_from_slice(&word.0.to_le_bytes());
    bytes[SEQUENCE..SEQUENCE + 8].copy_from_slice(&new.sequence.0.to_le_bytes());
    let value = BODY[Kind::Single as usize] + new.key.len();
    bytes[value..value + new.value.len()].copy_from_slice(new.value);
}

pub(super) fn new_member(arena: &mut Arena, new: Change<'_>, older: Cell) -> Result<Cell, Full> {
    let body = BODY[Kind::Member as usize];
    let cell = arena.allocate(body + new.value.len())?;
    let bytes = arena.bytes_mut(cell);
    bytes[..4].copy_from_slice(&Word::new(Kind::Member, 0).with_change(new).0.to_le_bytes());
    bytes[SEQUENCE..SEQUENCE + 8].copy_from_slice(&new.sequence.0.to_le_bytes());
    bytes[LINK_OF_MEMBER..body].copy_from_slice(&older.to_bytes());
    bytes[body..body + new.value.len()].copy_from_slice(new.value);
    Ok(cell)
}

pub(super) fn new_group(arena: &mut Arena, key: &[u8], newest: Cell) -> Result<Cell, Full> {
    let cell = new_named(arena, Kind::Group, key)?;
    set_link(arena, cell, newest);
    Ok(cell)
}

pub(super) fn new_bound(arena: &mut Arena, key: &[u8]) -> Result<Cell, Full> {
    new_named(arena, Kind::Bound, key)
}

fn new_named(arena: &mut Arena, kind: Kind, key: &[u8]) -> Result<Cell, Full> {
    let body = BODY[kind as usize];
    let cell = arena.allocate(body + key.len())?;
    let bytes = arena.bytes_mut(cell);
    bytes[..4].copy_from_slice(&Word::new(kind, key.len()).0.to_le_bytes());
    bytes[body..body + key.len()].copy_from_slice(key);
    Ok(cell)
}
