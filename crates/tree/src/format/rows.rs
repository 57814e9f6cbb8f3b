//! One row of a leaf, or one change of a delta page.

use super::{Damage, u16_at, u64_at};
use crate::sequence::Sequence;

/// Bytes of an entry before its sequence, suffix and value.
const FIXED_BYTES: usize = 4;
const SEQUENCE_BYTES: usize = 8;
const LENGTH_BITS: u32 = 13;
const LENGTH_MASK: u16 = (1 << LENGTH_BITS) - 1;

/// What an entry does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The key has this value.
    Put,
    /// The key has no row.
    Remove,
    /// This is added to what the key has; the table's merge function folds both later.
    Part,
    /// The key has a value that is a record of its own.
    Separate,
}

impl Effect {
    pub(crate) fn bits(self) -> u16 {
        match self {
            Effect::Put => 0,
            Effect::Remove => 1,
            Effect::Part => 2,
            Effect::Separate => 3,
        }
    }

    pub(crate) fn from_bits(bits: u16) -> Option<Effect> {
        [Effect::Put, Effect::Remove, Effect::Part, Effect::Separate]
            .into_iter()
            .find(|effect| effect.bits() == bits)
    }
}

/// A key in two pieces: what all keys of the page begin with, and the rest.
#[derive(Debug, Clone, Copy)]
pub struct RowKey<'a> {
    /// What all keys of the page begin with.
    pub prefix: &'a [u8],
    /// The rest.
    pub suffix: &'a [u8],
}

impl RowKey<'_> {
    /// Puts the whole key in `out`, in place of what is there.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.prefix);
        out.extend_from_slice(self.suffix);
    }

    /// The whole key.
    pub fn to_vec(&self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }
}

/// An entry of a leaf or of a delta page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its key.
    pub key: RowKey<'a>,
    /// What it does.
    pub effect: Effect,
    /// Its last change, where the page keeps sequences.
    pub sequence: Option<Sequence>,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Row<'a> {
    /// Bytes that an entry takes beside suffix and value, its offset included.
    pub(crate) fn overhead_bytes(has_sequences: bool) -> usize {
        2 + FIXED_BYTES + usize::from(has_sequences) * SEQUENCE_BYTES
    }

    /// Appends the entry to `out`.
    pub(crate) fn encode(&self, has_sequences: bool, out: &mut Vec<u8>) {
        let tag = self.effect.bits() << LENGTH_BITS | self.value.len() as u16;
        out.extend_from_slice(&(self.key.suffix.len() as u16).to_le_bytes());
        out.extend_from_slice(&tag.to_le_bytes());
        if has_sequences {
            out.extend_from_slice(&self.sequence.unwrap_or_default().0.to_le_bytes());
        }
        out.extend_from_slice(self.key.suffix);
        out.extend_from_slice(self.value);
    }

    /// The suffix alone of the entry at the start of `bytes`: what a search compares.
    pub(crate) fn suffix_of(bytes: &'a [u8], has_sequences: bool) -> Result<&'a [u8], Damage> {
        let start = FIXED_BYTES + usize::from(has_sequences) * SEQUENCE_BYTES;
        let length = usize::from(u16_at(bytes, 0).unwrap_or(u16::MAX));
        let suffix = bytes.get(start..start + length);
        suffix.ok_or_else(|| Damage::new("suffix of a key", length, bytes.len()))
    }

    /// The entry at the start of `bytes`.
    pub(crate) fn decode(
        bytes: &'a [u8],
        prefix: &'a [u8],
        has_sequences: bool,
    ) -> Result<Row<'a>, Damage> {
        let suffix = Row::suffix_of(bytes, has_sequences)?;
        let tag = u16_at(bytes, 2).unwrap_or_default();
        let effect = Effect::from_bits(tag >> LENGTH_BITS)
            .ok_or_else(|| Damage::new("effect of an entry", (tag >> LENGTH_BITS).into(), 3))?;
        let start = FIXED_BYTES + usize::from(has_sequences) * SEQUENCE_BYTES + suffix.len();
        let length = usize::from(tag & LENGTH_MASK);
        let value = bytes.get(start..start + length);
        let value = value.ok_or_else(|| Damage::new("value of an entry", length, bytes.len()))?;
        let sequence = if has_sequences { u64_at(bytes, FIXED_BYTES).map(Sequence) } else { None };
        Ok(Row { key: RowKey { prefix, suffix }, effect, sequence, value })
    }
}
