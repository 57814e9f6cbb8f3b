//! A checkpoint: the parts it is cut into, and the rows of its tables. What follows which row is
//! the business of who writes and reads it; here is what each is as bytes.

use super::{SEQUENCE_END, u8_at, u16_at, u32_at, u64_at};
use crate::types::SpaceId;

const MAGIC: u32 = 0x434b_5054;
/// Bytes before a part's payload: magic, CRC-32C of the payload, store, shard, number, payload
/// length, zeros.
pub(crate) const PART_HEADER_BYTES: usize = 64;
/// More entries than any device holds.
const COUNT_END: u64 = 1 << 48;
/// In the byte of a segment's stream: much of the segment is padding.
const PADDED: u8 = 1 << 7;

/// Which part of which checkpoint stands in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartHeader {
    pub store: u64,
    pub shard: u16,
    /// Number of the part.
    pub number: u32,
}

impl PartHeader {
    /// Writes the header before the payload, which ends at `end` of `part`.
    pub(crate) fn seal(self, part: &mut [u8], end: usize) {
        let crc = crc32c::crc32c(&part[PART_HEADER_BYTES..end]);
        part[..4].copy_from_slice(&MAGIC.to_le_bytes());
        part[4..8].copy_from_slice(&crc.to_le_bytes());
        part[8..16].copy_from_slice(&self.store.to_le_bytes());
        part[16..20].copy_from_slice(&u32::from(self.shard).to_le_bytes());
        part[20..24].copy_from_slice(&self.number.to_le_bytes());
        part[24..28].copy_from_slice(&((end - PART_HEADER_BYTES) as u32).to_le_bytes());
    }

    /// Where the payload of `part` ends, if it is the one wanted and verifies; never empty.
    pub(crate) fn payload_end(self, part: &[u8]) -> Option<usize> {
        let end = PART_HEADER_BYTES + u32_at(part, 24)? as usize;
        let payload = part.get(PART_HEADER_BYTES..end)?;
        let whole = u32_at(part, 0)? == MAGIC
            && u64_at(part, 8)? == self.store
            && u32_at(part, 16)? == u32::from(self.shard)
            && u32_at(part, 20)? == self.number
            && u32_at(part, 4)? == crc32c::crc32c(payload)
            && !payload.is_empty();
        whole.then_some(end)
    }
}

/// The tables of a checkpoint, from front to back.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.at += 8;
        u64_at(self.bytes, self.at - 8)
    }

    fn sequence(&mut self) -> Option<u64> {
        self.u64().filter(|sequence| *sequence < SEQUENCE_END)
    }

    fn u32(&mut self) -> Option<u32> {
        self.at += 4;
        u32_at(self.bytes, self.at - 4)
    }

    fn u16(&mut self) -> Option<u16> {
        self.at += 2;
        u16_at(self.bytes, self.at - 2)
    }

    fn u8(&mut self) -> Option<u8> {
        self.at += 1;
        u8_at(self.bytes, self.at - 1)
    }
}

/// Appends numbers of eight bytes.
pub(crate) fn put_u64s(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

/// The first row: the shard and the layout of its index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShardRow {
    pub sequence: u64,
    pub lifespan: f64,
    pub buckets: u64,
    pub entries: u64,
    pub address_bits: u32,
    /// Rows of segments that follow.
    pub segments: u64,
}

impl ShardRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.sequence, self.lifespan.to_bits(), self.buckets, self.entries]);
        put_u64s(out, &[u64::from(self.address_bits), self.segments]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<ShardRow> {
        Some(ShardRow {
            sequence: fields.sequence()?,
            lifespan: f64::from_bits(fields.u64()?),
            buckets: fields.u64()?,
            entries: fields.u64()?,
            address_bits: fields.u64()? as u32,
            segments: fields.u64()?,
        })
    }
}

/// How a segment stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    Free,
    Sealed,
    Damaged,
    /// Of the journal.
    Journal,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentRow {
    pub sequence: u64,
    pub age: u64,
    pub live_bytes: u32,
    pub used_bytes: u32,
    pub tombstone_bytes: u32,
    /// Seconds; `u32::MAX`: nothing ends.
    pub next_end: u32,
    pub stream: u8,
    pub padded: bool,
    pub state: RowState,
    pub notes: u32,
}

impl SegmentRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.sequence, self.age]);
        let bytes = [self.live_bytes, self.used_bytes, self.tombstone_bytes];
        for value in bytes.into_iter().chain([self.next_end]) {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.push(self.stream | if self.padded { PADDED } else { 0 });
        out.push(match self.state {
            RowState::Free => 0,
            RowState::Sealed => 1,
            RowState::Damaged => 2,
            RowState::Journal => 3,
        });
        out.extend_from_slice(&self.notes.to_le_bytes());
    }

    /// The row, if no more of it is tombstones than is live, and nothing of a free one.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<SegmentRow> {
        let (sequence, age) = (fields.sequence()?, fields.u64()?);
        let (live_bytes, used_bytes) = (fields.u32()?, fields.u32()?);
        let tombstone_bytes = fields.u32().filter(|bytes| *bytes <= live_bytes)?;
        let (next_end, stream) = (fields.u32()?, fields.u8()?);
        let state = match fields.u8()? {
            1 => RowState::Sealed,
            2 => RowState::Damaged,
            3 => RowState::Journal,
            _ => RowState::Free,
        };
        let row = SegmentRow {
            sequence,
            age,
            live_bytes,
            used_bytes,
            tombstone_bytes,
            next_end,
            stream: stream & !PADDED,
            padded: stream & PADDED != 0,
            state,
            notes: fields.u32()?,
        };
        (state != RowState::Free || live_bytes == 0).then_some(row)
    }
}

/// Entries of one space and partition. Below zero where a key was removed that hides one which
/// another partition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountRow {
    pub space: SpaceId,
    pub partition: u16,
    pub entries: i64,
}

impl CountRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.space.0.to_le_bytes());
        out.extend_from_slice(&self.partition.to_le_bytes());
        put_u64s(out, &[self.entries as u64]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<CountRow> {
        let (space, partition) = (SpaceId(fields.u16()?), fields.u16()?);
        let entries = fields.u64()? as i64;
        let plausible = entries.unsigned_abs() < COUNT_END;
        plausible.then_some(CountRow { space, partition, entries })
    }
}

/// One overwrite that nobody has checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoteRow {
    pub address: u64,
    pub by: u128,
    pub space: SpaceId,
    pub partition: u16,
    pub shared_bits: u8,
    pub record_bytes: u64,
}

impl NoteRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.address, self.by as u64, (self.by >> 64) as u64]);
        out.extend_from_slice(&self.space.0.to_le_bytes());
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.push(self.shared_bits);
        put_u64s(out, &[self.record_bytes]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<NoteRow> {
        Some(NoteRow {
            address: fields.u64()?,
            by: u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64,
            space: SpaceId(fields.u16()?),
            partition: fields.u16()?,
            shared_bits: fields.u8()?,
            record_bytes: fields.u64()?,
        })
    }
}

/// One large value; so many rows of pieces follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargeRow {
    /// Address of the manifest, and its sequence.
    pub manifest: u64,
    pub sequence: u64,
    pub stored_bytes: u64,
    pub pieces: u64,
}

impl LargeRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.manifest, self.sequence, self.stored_bytes, self.pieces]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<LargeRow> {
        Some(LargeRow {
            manifest: fields.u64()?,
            sequence: fields.sequence()?,
            stored_bytes: fields.u64()?,
            pieces: fields.u64()?,
        })
    }
}

/// One piece of a large value. Lengths are kept rounded up, and may reach behind the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PieceRow {
    pub address: u64,
    pub record_bytes: u64,
}

impl PieceRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.address, self.record_bytes]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<PieceRow> {
        Some(PieceRow { address: fields.u64()?, record_bytes: fields.u64()? })
    }
}

/// One segment of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalRow {
    pub segment: u64,
    pub ordinal: u64,
    /// Not all of what it held verified.
    pub cut_short: bool,
}

impl JournalRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.segment, self.ordinal, u64::from(self.cut_short)]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<JournalRow> {
        Some(JournalRow {
            segment: fields.u64()?,
            ordinal: fields.sequence()?,
            cut_short: fields.u64()? != 0,
        })
    }
}

/// One entry that the table of the index has no place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpillRow {
    pub hash: u64,
    /// Leading bits of the hash that are known.
    pub known: u64,
    pub address: u64,
    pub record_bytes: u64,
}

impl SpillRow {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_u64s(out, &[self.hash, self.known, self.address, self.record_bytes]);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<SpillRow> {
        Some(SpillRow {
            hash: fields.u64()?,
            known: fields.u64()?,
            address: fields.u64()?,
            record_bytes: fields.u64()?,
        })
    }
}
