//! The label of a member: which stripe it belongs to, and where in it. 4096 bytes at offset 0.
//!
//! | offset | bytes | field, little-endian |
//! | --- | --- | --- |
//! | 0 | 8 | magic `ENTRESTR` |
//! | 8 | 4 | version of this format: 1 |
//! | 12 | 4 | members of the stripe |
//! | 16 | 4 | number of this member, from 0 |
//! | 20 | 4 | zero |
//! | 24 | 8 | bytes of a unit |
//! | 32 | 8 | bytes of each member that are used, its first unit not counted |
//! | 40 | 16 | number of the stripe, random |
//! | 56 | 4 | CRC-32C of the 56 bytes before |
//!
//! A label that is damaged is no label: its stripe is then not complete, and refused.
//!
//! A label is never written again. A member of a stripe that grew has two more labels behind the
//! first, in sync units of their own and written one after the other, which say how many bytes are
//! used since then. For a member the label with the most bytes counts; for the stripe, whose growth
//! may have been cut short, the member with the fewest.

use crate::buffer::IoBuffer;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};

pub(super) const MAGIC: &[u8; 8] = b"ENTRESTR";
pub(super) const MEMBERS_MAX: usize = 64;
pub(super) const UNIT_BYTES_MAX: u64 = 1 << 30;

const VERSION: u32 = 1;
pub(super) const LABEL_BYTES: usize = 4096;
const CHECKED_BYTES: usize = 56;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) set: [u8; 16],
    pub(super) members: u32,
    pub(super) index: u32,
    pub(super) unit_bytes: u64,
    pub(super) member_bytes: u64,
}

impl Label {
    /// The label of `member`, if it has one.
    pub(super) fn read(member: &dyn Device) -> Result<Option<Label>> {
        let Some(mut label) = Label::read_at(member, 0)? else { return Ok(None) };
        if label.may_grow(member) {
            let said = grown_offsets(member).map(|offset| label.bytes_at(member, offset));
            label.member_bytes = label.member_bytes.max(said[0]).max(said[1]);
        }
        Ok(Some(label))
    }

    fn read_at(member: &dyn Device, offset: u64) -> Result<Option<Label>> {
        let mut bytes = IoBuffer::aligned(LABEL_BYTES);
        member.read_at(offset, &mut bytes)?;
        if !bytes.starts_with(MAGIC) {
            return Ok(None);
        }
        let version = number(&bytes, 8) as u32;
        let checked = crc32c::crc32c(&bytes[..CHECKED_BYTES]) == number(&bytes, 56) as u32;
        if checked && version != VERSION {
            let detail = format!(
                "{}: label of version {version}; this program knows version {VERSION}",
                member.name()
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mut set = [0; 16];
        set.copy_from_slice(&bytes[40..56]);
        let label = Label {
            set,
            members: number(&bytes, 12) as u32,
            index: number(&bytes, 16) as u32,
            unit_bytes: number(&bytes, 24),
            member_bytes: number(&bytes, 32),
        };
        Ok(Some(label).filter(|label| checked && label.is_sound()))
    }

    /// Whether both are of members of one stripe.
    pub(super) fn is_of_stripe(&self, other: &Label) -> bool {
        let common = |label: &Label| (label.set, label.members, label.unit_bytes);
        common(self) == common(other)
    }

    /// Whether a unit of `member` has room for the labels of a stripe that grew.
    pub(super) fn may_grow(&self, member: &dyn Device) -> bool {
        grown_offsets(member).iter().all(|offset| offset + LABEL_BYTES as u64 <= self.unit_bytes)
    }

    /// Writes the label to `member`, durably.
    pub(super) fn write(&self, member: &dyn Device) -> Result<()> {
        self.write_at(member, 0)
    }

    /// Writes the labels of a stripe that grew to `member`, durably: that which says the most last,
    /// so that it stands until another says more.
    pub(super) fn write_grown(&self, member: &dyn Device) -> Result<()> {
        let mut offsets = grown_offsets(member);
        offsets.sort_by_key(|offset| self.bytes_at(member, *offset));
        offsets.into_iter().try_for_each(|offset| self.write_at(member, offset))
    }

    /// What a label of this member at `offset` says; 0 if there is none that verifies. One that
    /// cannot be read is like one that is damaged.
    fn bytes_at(&self, member: &dyn Device, offset: u64) -> u64 {
        let found = Label::read_at(member, offset).ok().flatten();
        let own = found.filter(|label| label.is_of_stripe(self) && label.index == self.index);
        own.map_or(0, |label| label.member_bytes)
    }

    fn write_at(&self, member: &dyn Device, offset: u64) -> Result<()> {
        let mut bytes = IoBuffer::aligned(LABEL_BYTES);
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.members.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.unit_bytes.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.member_bytes.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.set);
        let checksum = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[56..60].copy_from_slice(&checksum.to_le_bytes());
        member.write_at(offset, &bytes)?;
        member.sync()
    }

    fn is_sound(&self) -> bool {
        (1..=MEMBERS_MAX as u32).contains(&self.members)
            && self.index < self.members
            && (4096..=UNIT_BYTES_MAX).contains(&self.unit_bytes)
            && self.unit_bytes.is_multiple_of(4096)
            && self.member_bytes > 0
            && self.member_bytes.is_multiple_of(self.unit_bytes)
            && self.member_bytes < 1 << 56
    }
}

/// Where the labels of a stripe that grew are: a write that is torn takes no more than a sync unit.
fn grown_offsets(member: &dyn Device) -> [u64; 2] {
    let unit = u64::from(member.geometry().sync_unit_bytes).max(LABEL_BYTES as u64);
    [unit, 2 * unit]
}

/// Eight bytes at `at`, little-endian; a shorter field is in the low bits.
fn number(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
