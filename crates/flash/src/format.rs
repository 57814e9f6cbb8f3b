//! The bytes on the medium: one home for every on-device structure. `docs/internals/data-file.md`
//! draws them; both change in the same commit.
//!
//! Invariants:
//! 1. Little-endian, fixed width, checksummed with CRC-32C; decoding never panics on any bytes.
//! 2. What is decoded is *plausible* only; the caller checks generation, key and payload.
//! 3. A structure that does not verify is `None`, never a default.

mod checkpoint;
mod continuation;
mod extras;
mod footer_line;
mod journal;
mod manifest;
mod marks;
mod owner;
mod piece;
mod size_code;
mod superblock;

use crate::types::{Lifespan, Owner, SpaceId};
pub(crate) use checkpoint::{
    CountRow, Fields, JournalRow, LargeRow, NoteRow, PART_HEADER_BYTES, PartHeader, PieceRow,
    RowState, SegmentRow, ShardRow, SpillRow, put_u64s,
};
pub(crate) use continuation::{CONTINUATION_BYTES, Continuation};
use extras::Extras;
pub(crate) use footer_line::{FooterLine, LINE_WORDS, copy_words};
pub(crate) use journal::{OWNER_BYTES, owner_key, owner_of_key};
pub(crate) use manifest::{MANIFEST_BYTES, Manifest};
pub(crate) use marks::{LAST_WRITE_BYTES, LastWrite, MARK_BYTES, mark_of, set_mark};
pub use owner::{BUFFER_FILE_HEADER, BufferOwner};
pub(crate) use piece::{PIECE_SPACE, PieceName};
pub use size_code::SizeCode;
pub(crate) use superblock::{Floor, Superblock};

/// First bytes of a store.
pub const MAGIC: [u8; 8] = *b"ENTRESOL";
/// The format of a store that needs nothing of later ones; those that do are raised to it.
pub(crate) const FORMAT_VERSION_FIRST: u32 = 1;
/// The first format that knows marks of lifespans, and the journal.
pub(crate) const FORMAT_VERSION_MARKS: u32 = 2;
/// The latest format this version writes and reads: records of the journal that are continued.
pub(crate) const FORMAT_VERSION: u32 = 3;
/// Bytes of one copy of the superblock; two copies stand at 0 and at this offset.
pub(crate) const SUPERBLOCK_BYTES: usize = 64 << 10;
/// Bytes of a segment's header, before the first record.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes of a segment's trailer, its last bytes.
pub(crate) const TRAILER_BYTES: usize = 64;
/// Bytes of one footer entry.
pub(crate) const FOOTER_ENTRY_BYTES: usize = 40;
/// Bytes of a record's header without what few records need.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;
/// Bytes of the longest header.
pub(crate) const RECORD_HEADER_BYTES_MAX: usize = 64;
/// Records start at multiples of this.
pub(crate) const RECORD_ALIGNMENT: usize = 32;

/// Sequences of records and segments, and generations, stay below this: no store lives long enough
/// to get there, so what claims more is damaged, and adding to a sequence never overflows.
pub(crate) const SEQUENCE_END: u64 = 1 << 62;

const SEGMENT_MAGIC: u32 = 0x5345_474d;
const TRAILER_MAGIC: u32 = 0x5452_4c52;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A key and its value.
    Value,
    /// The key is gone.
    Tombstone,
    /// A key whose value is in pieces.
    Manifest,
    /// One piece of a large value.
    Piece,
    /// Unused bytes up to the next sync unit.
    Padding,
    /// A record of the journal: in no index, and in no footer.
    Journal,
}

impl RecordKind {
    pub(crate) fn from_bits(bits: u8) -> Option<RecordKind> {
        Some(match bits {
            1 => RecordKind::Value,
            2 => RecordKind::Tombstone,
            3 => RecordKind::Manifest,
            4 => RecordKind::Piece,
            5 => RecordKind::Padding,
            6 => RecordKind::Journal,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            RecordKind::Value => 1,
            RecordKind::Tombstone => 2,
            RecordKind::Manifest => 3,
            RecordKind::Piece => 4,
            RecordKind::Padding => 5,
            RecordKind::Journal => 6,
        }
    }
}

/// How a stored value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Codec {
    #[default]
    Plain,
    Lz4,
    Zstd,
}

impl Codec {
    fn from_bits(bits: u8) -> Option<Codec> {
        Some(match bits {
            0 => Codec::Plain,
            1 => Codec::Lz4,
            2 => Codec::Zstd,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Codec::Plain => 0,
            Codec::Lz4 => 1,
            Codec::Zstd => 2,
        }
    }
}

/// Kind and properties of a record: one byte on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    pub kind: RecordKind,
    pub pinned: bool,
    pub codec: Codec,
    pub encrypted: bool,
    /// An older record of the same key may be on the medium.
    pub follows: bool,
}

impl Flags {
    pub(crate) fn of(kind: RecordKind) -> Flags {
        Flags { kind, pinned: false, codec: Codec::Plain, encrypted: false, follows: false }
    }

    pub(crate) fn to_byte(self) -> u8 {
        self.kind.bits()
            | u8::from(self.pinned) << 3
            | self.codec.bits() << 4
            | u8::from(self.encrypted) << 6
            | u8::from(self.follows) << 7
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Flags> {
        Some(Flags {
            kind: RecordKind::from_bits(byte & 7)?,
            pinned: byte & 8 != 0,
            codec: Codec::from_bits(byte >> 4 & 3)?,
            encrypted: byte & 64 != 0,
            follows: byte & 128 != 0,
        })
    }
}

/// The header of a record. `version` of a tombstone is the segment sequence at its birth; of a
/// piece, the sequence of the manifest it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub payload_crc: u32,
    pub sequence: u64,
    pub version: u64,
    /// Low half of the sequence of the segment the record stands in: its generation.
    pub generation: u32,
    pub value_bytes: u32,
    pub raw_bytes: u32,
    /// Absolute end, ms; 0: none.
    pub expiry_ms: u64,
    pub idle_seconds: u32,
    pub touched_seconds: u32,
    pub space: SpaceId,
    pub partition: u16,
    pub key_bytes: u32,
    pub flags: Flags,
    pub label: u8,
    pub lifespan: Lifespan,
}

impl RecordHeader {
    /// Bytes of the record: header, key and stored value, without alignment.
    pub(crate) fn record_bytes(&self) -> usize {
        self.header_bytes() + self.key_bytes as usize + self.value_bytes as usize
    }

    /// Whose the record is.
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        Owner { space: self.space, partition: self.partition }
    }

    /// Of a record of the journal: the sequence of the last one before it that was durable when it
    /// was appended; 0: it does not say. It stands where other records have space and partition.
    pub(crate) fn durable(&self) -> u64 {
        let distance = u32::from(self.space.0) | u32::from(self.partition) << 16;
        if distance == 0 { 0 } else { self.sequence.saturating_sub(u64::from(distance)) }
    }

    /// Says so.
    pub(crate) fn set_durable(&mut self, durable: u64) {
        let distance = self.sequence.saturating_sub(durable);
        let distance = if durable == 0 { 0 } else { u32::try_from(distance).unwrap_or(0) };
        (self.space, self.partition) = (SpaceId(distance as u16), (distance >> 16) as u16);
    }

    /// Bytes before the key.
    pub(crate) fn header_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.extras().bytes()
    }

    fn extras(&self) -> Extras {
        let set = |present: bool, bit: u8| if present { bit } else { 0 };
        Extras(
            set(self.version != self.sequence, Extras::VERSION)
                | set(self.raw_bytes != self.value_bytes, Extras::RAW_BYTES)
                | set(self.expiry_ms != 0, Extras::END)
                | set(self.idle_seconds != 0, Extras::IDLE)
                | set(self.label != 0, Extras::LABEL)
                | set(self.lifespan == Lifespan::Short, Extras::SHORT)
                | set(self.lifespan == Lifespan::Long, Extras::LONG),
        )
    }

    /// When the record ends, ms, idle time included; 0: never.
    pub(crate) fn ends_ms(&self) -> u64 {
        let idle = if self.idle_seconds == 0 {
            u64::MAX
        } else {
            (u64::from(self.touched_seconds) + u64::from(self.idle_seconds)) * 1000
        };
        let end = idle.min(if self.expiry_ms == 0 { u64::MAX } else { self.expiry_ms });
        if end == u64::MAX { 0 } else { end }
    }

    /// [`Self::ends_ms`] as footers have it: in seconds, rounded up.
    pub(crate) fn ends_seconds(&self) -> u32 {
        self.ends_ms().div_ceil(1000).min(u64::from(u32::MAX - 1)) as u32
    }

    /// Writes the header into the first bytes of `out`, checksum included. The time of last use is
    /// kept with an idle time only.
    pub(crate) fn encode(&self, out: &mut [u8]) {
        let extras = self.extras();
        let out = &mut out[..RECORD_HEADER_BYTES + extras.bytes()];
        out[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.generation.to_le_bytes());
        out[20..24].copy_from_slice(&self.value_bytes.to_le_bytes());
        out[24..26].copy_from_slice(&self.space.0.to_le_bytes());
        out[26..28].copy_from_slice(&self.partition.to_le_bytes());
        out[28..30].copy_from_slice(&(self.key_bytes.wrapping_sub(1) as u16).to_le_bytes());
        out[30] = self.flags.to_byte();
        out[31] = extras.0;
        let mut at = RECORD_HEADER_BYTES;
        let mut put = |bit: u8, bytes: &[u8]| {
            if extras.has(bit) {
                out[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            }
        };
        put(Extras::VERSION, &self.version.to_le_bytes());
        put(Extras::RAW_BYTES, &self.raw_bytes.to_le_bytes());
        put(Extras::END, &self.expiry_ms.to_le_bytes());
        put(Extras::IDLE, &self.idle_seconds.to_le_bytes());
        put(Extras::IDLE, &self.touched_seconds.to_le_bytes());
        put(Extras::LABEL, &u32::from(self.label).to_le_bytes());
        let crc = crc32c::crc32c(&out[4..]);
        out[0..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads a header whose checksum holds.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RecordHeader> {
        let extras = Extras(*bytes.get(31)?);
        let bytes = bytes.get(..RECORD_HEADER_BYTES + extras.bytes())?;
        if extras.0 & !Extras::KNOWN != 0 || u32_at(bytes, 0)? != crc32c::crc32c(bytes.get(4..)?) {
            return None;
        }
        let mut at = RECORD_HEADER_BYTES;
        let mut place = |bit: u8, length: usize| {
            let here = at;
            at += if extras.has(bit) { length } else { 0 };
            extras.has(bit).then_some(here)
        };
        let version = place(Extras::VERSION, 8);
        let raw_bytes = place(Extras::RAW_BYTES, 4);
        let end = place(Extras::END, 8);
        let idle = place(Extras::IDLE, 8);
        let label = place(Extras::LABEL, 4);
        let lifespan = match (extras.has(Extras::SHORT), extras.has(Extras::LONG)) {
            (false, false) => Lifespan::Learned,
            (true, false) => Lifespan::Short,
            (_, true) => Lifespan::Long,
        };
        let u32_or =
            |place: Option<usize>, default| place.map_or(Some(default), |at| u32_at(bytes, at));
        let u64_or =
            |place: Option<usize>, default| place.map_or(Some(default), |at| u64_at(bytes, at));
        let (sequence, value_bytes) = (sequence_at(bytes, 8)?, u32_at(bytes, 20)?);
        let header = RecordHeader {
            payload_crc: u32_at(bytes, 4)?,
            sequence,
            version: u64_or(version, sequence)?,
            generation: u32_at(bytes, 16)?,
            value_bytes,
            raw_bytes: u32_or(raw_bytes, value_bytes)?,
            expiry_ms: u64_or(end, 0)?,
            idle_seconds: u32_or(idle, 0)?,
            touched_seconds: u32_or(idle.map(|at| at + 4), 0)?,
            space: SpaceId(u16_at(bytes, 24)?),
            partition: u16_at(bytes, 26)?,
            key_bytes: u32::from(u16_at(bytes, 28)?) + 1,
            flags: Flags::from_byte(*bytes.get(30)?)?,
            label: u8::try_from(u32_or(label, 0)?).ok()?,
            lifespan,
        };
        // What is left out is part of what a header says: its length follows from its contents.
        (header.extras() == extras).then_some(header)
    }
}

/// The first bytes of a segment in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub store: u64,
    pub shard: u16,
    pub stream: u8,
    pub segment: u32,
    pub sequence: u64,
    /// Every segment of the shard with a lower sequence was durable when this one was opened.
    pub proven_below: u64,
    /// Logical age of what stands in the segment, a record sequence. Of a segment of the journal:
    /// what was below it had been trimmed when this one was opened.
    pub age: u64,
    /// Of a segment of the journal: its number in its lane, from 1 on, without a gap. Else 0.
    pub ordinal: u64,
    /// Of a segment of the journal: the sequence of the last record before it; 0: there is none.
    pub follows: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[..SEGMENT_HEADER_BYTES].fill(0);
        out[4..8].copy_from_slice(&SEGMENT_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.store.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.proven_below.to_le_bytes());
        out[32..40].copy_from_slice(&self.age.to_le_bytes());
        out[40..44].copy_from_slice(&self.segment.to_le_bytes());
        out[44..46].copy_from_slice(&self.shard.to_le_bytes());
        out[46] = self.stream;
        out[48..56].copy_from_slice(&self.ordinal.to_le_bytes());
        out[56..64].copy_from_slice(&self.follows.to_le_bytes());
        let crc = crc32c::crc32c(&out[4..SEGMENT_HEADER_BYTES]);
        out[0..4].copy_from_slice(&crc.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<SegmentHeader> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES)?;
        if u32_at(bytes, 0)? != crc32c::crc32c(bytes.get(4..)?)
            || u32_at(bytes, 4)? != SEGMENT_MAGIC
        {
            return None;
        }
        Some(SegmentHeader {
            store: u64_at(bytes, 8)?,
            sequence: sequence_at(bytes, 16)?,
            proven_below: u64_at(bytes, 24)?,
            age: u64_at(bytes, 32)?,
            segment: u32_at(bytes, 40)?,
            shard: u16_at(bytes, 44)?,
            stream: *bytes.get(46)?,
            ordinal: sequence_at(bytes, 48)?,
            follows: sequence_at(bytes, 56)?,
        })
    }
}

/// The last bytes of a sealed segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub sequence: u64,
    /// Footer entries, which end where the trailer starts.
    pub entries: u32,
    /// Bytes from the segment's start to the end of its last record.
    pub used_bytes: u32,
    pub footer_crc: u32,
    /// Logical age, as in the header but averaged over what was appended.
    pub age: u64,
}

impl Trailer {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[..TRAILER_BYTES].fill(0);
        out[4..8].copy_from_slice(&TRAILER_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.entries.to_le_bytes());
        out[20..24].copy_from_slice(&self.used_bytes.to_le_bytes());
        out[24..28].copy_from_slice(&self.footer_crc.to_le_bytes());
        out[32..40].copy_from_slice(&self.age.to_le_bytes());
        let crc = crc32c::crc32c(&out[4..TRAILER_BYTES]);
        out[0..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes the trailer at the end of `bytes`.
    pub(crate) fn decode_end(bytes: &[u8]) -> Option<Trailer> {
        let bytes = bytes.get(bytes.len().checked_sub(TRAILER_BYTES)?..)?;
        if u32_at(bytes, 0)? != crc32c::crc32c(bytes.get(4..)?)
            || u32_at(bytes, 4)? != TRAILER_MAGIC
        {
            return None;
        }
        Some(Trailer {
            sequence: sequence_at(bytes, 8)?,
            entries: u32_at(bytes, 16)?,
            used_bytes: u32_at(bytes, 20)?,
            footer_crc: u32_at(bytes, 24)?,
            age: u64_at(bytes, 32)?,
        })
    }

    /// Bytes of trailer and footer together.
    pub(crate) fn region_bytes(&self) -> usize {
        TRAILER_BYTES + self.entries as usize * FOOTER_ENTRY_BYTES
    }
}

/// What the footer says of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FooterEntry {
    /// Hash of space and key; of a piece: (sequence of its manifest) << 32 | number.
    pub hash: u128,
    pub sequence: u64,
    /// Offset in the segment, bytes.
    pub offset: u32,
    pub flags: Flags,
    /// Header, key and stored value.
    pub record_bytes: u32,
    /// When the record ends, whole seconds rounded up; 0: never.
    pub ends_seconds: u32,
    pub space: SpaceId,
    pub partition: u16,
}

impl FooterEntry {
    pub(crate) fn encode(&self) -> [u8; FOOTER_ENTRY_BYTES] {
        let mut out = [0; FOOTER_ENTRY_BYTES];
        out[0..16].copy_from_slice(&self.hash.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..28].copy_from_slice(&self.record_bytes.to_le_bytes());
        out[28..32].copy_from_slice(&self.ends_seconds.to_le_bytes());
        out[32..34].copy_from_slice(&self.space.0.to_le_bytes());
        out[34..36].copy_from_slice(&self.partition.to_le_bytes());
        let place = self.offset / RECORD_ALIGNMENT as u32;
        out[36..39].copy_from_slice(&place.to_le_bytes()[..3]);
        out[39] = self.flags.to_byte();
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<FooterEntry> {
        let place = u32_at(bytes, 36)? & 0x00ff_ffff;
        Some(FooterEntry {
            hash: u128::from(u64_at(bytes, 0)?) | u128::from(u64_at(bytes, 8)?) << 64,
            sequence: sequence_at(bytes, 16)?,
            record_bytes: u32_at(bytes, 24)?,
            ends_seconds: u32_at(bytes, 28)?,
            space: SpaceId(u16_at(bytes, 32)?),
            partition: u16_at(bytes, 34)?,
            offset: place * RECORD_ALIGNMENT as u32,
            flags: Flags::from_byte(*bytes.get(39)?)
                .filter(|flags| flags.kind != RecordKind::Journal)?,
        })
    }

    /// Whose the record is.
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        Owner { space: self.space, partition: self.partition }
    }

    /// Bytes the record takes in its segment.
    pub(crate) fn aligned_bytes(&self) -> u32 {
        self.record_bytes.next_multiple_of(RECORD_ALIGNMENT as u32)
    }

    /// Whether a record may stand there in a segment whose records end at `records_end`.
    fn is_within(&self, records_end: u64) -> bool {
        let aligned = u64::from(self.record_bytes).next_multiple_of(RECORD_ALIGNMENT as u64);
        self.offset as usize >= SEGMENT_HEADER_BYTES
            && self.record_bytes as usize > RECORD_HEADER_BYTES
            && u64::from(self.offset) + aligned <= records_end
    }
}

/// Decodes the footer that stands before the trailer at the end of `bytes`, the last bytes of a
/// segment of `segment_bytes`; `None` if it does not verify, names a record outside of its segment,
/// or `bytes` is shorter than it.
pub(crate) fn decode_footer(
    trailer: &Trailer,
    bytes: &[u8],
    segment_bytes: u32,
) -> Option<Vec<FooterEntry>> {
    let records_end = u64::from(segment_bytes).checked_sub(trailer.region_bytes() as u64)?;
    let end = bytes.len().checked_sub(TRAILER_BYTES)?;
    let start = bytes.len().checked_sub(trailer.region_bytes())?;
    let footer = bytes.get(start..end)?;
    if crc32c::crc32c(footer) != trailer.footer_crc {
        return None;
    }
    let entries = footer.chunks_exact(FOOTER_ENTRY_BYTES).map(FooterEntry::decode);
    entries.map(|entry| entry.filter(|e| e.is_within(records_end))).collect()
}

fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// The bytes of a nonce: which record it is for, of which shard, and what for.
pub(crate) fn nonce_bytes(sequence: u64, shard: u16, purpose: u8) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..10].copy_from_slice(&shard.to_le_bytes());
    bytes[10] = purpose;
    bytes
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A sequence, unless it is one that no store reaches.
fn sequence_at(bytes: &[u8], at: usize) -> Option<u64> {
    u64_at(bytes, at).filter(|sequence| *sequence < SEQUENCE_END)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
