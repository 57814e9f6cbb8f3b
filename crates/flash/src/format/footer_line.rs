//! A line of a footer as the five words it is on the medium: what recovery walks through by the
//! million, without taking each apart into a [`FooterEntry`].
//!
//! What a footer may say is checked when it is read ([`FooterLine::is_sound`]); the rest is
//! plausible at best, as everything decoded.

use super::{
    FOOTER_ENTRY_BYTES, FooterEntry, PieceName, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordKind,
    SEGMENT_HEADER_BYTES, SEQUENCE_END,
};
use crate::types::{Owner, SpaceId};

/// Words of a line.
pub(crate) const LINE_WORDS: usize = FOOTER_ENTRY_BYTES / 8;

/// One line; see [`FooterEntry`] for what its parts mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FooterLine(pub(crate) [u64; LINE_WORDS]);

impl FooterLine {
    pub(crate) fn of(entry: &FooterEntry) -> FooterLine {
        let mut words = [0; LINE_WORDS];
        copy_words(&entry.encode(), &mut words);
        FooterLine(words)
    }

    /// Whether it is a line that [`super::decode_footer`] takes, in a segment whose records end at
    /// `records_end`.
    #[inline]
    pub(crate) fn is_sound(self, records_end: u64) -> bool {
        let flags = self.0[4] >> 56;
        let offset = u64::from(self.place()) * RECORD_ALIGNMENT as u64;
        let bytes = u64::from(self.record_bytes());
        (1..=5).contains(&(flags & 7))
            && flags & 0x30 != 0x30
            && self.sequence() < SEQUENCE_END
            && offset >= SEGMENT_HEADER_BYTES as u64
            && bytes > RECORD_HEADER_BYTES as u64
            && offset + bytes.next_multiple_of(RECORD_ALIGNMENT as u64) <= records_end
    }

    #[inline]
    pub(crate) fn hash_low(self) -> u64 {
        self.0[0]
    }

    /// The half of the hash that the index uses.
    #[inline]
    pub(crate) fn hash_high(self) -> u64 {
        self.0[1]
    }

    /// What a piece is called.
    #[inline]
    pub(crate) fn piece_name(self) -> PieceName {
        PieceName::of_hash(u128::from(self.hash_low()) | u128::from(self.hash_high()) << 64)
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0[2]
    }

    #[inline]
    pub(crate) fn record_bytes(self) -> u32 {
        self.0[3] as u32
    }

    #[inline]
    pub(crate) fn ends_seconds(self) -> u32 {
        (self.0[3] >> 32) as u32
    }

    #[inline]
    pub(crate) fn owner(self) -> Owner {
        let word = self.0[4];
        Owner { space: SpaceId(word as u16), partition: (word >> 16) as u16 }
    }

    /// Where the record starts in its segment, in units of [`RECORD_ALIGNMENT`].
    #[inline]
    pub(crate) fn place(self) -> u32 {
        (self.0[4] >> 32) as u32 & 0x00ff_ffff
    }

    #[inline]
    pub(crate) fn is_kind(self, kind: RecordKind) -> bool {
        self.0[4] >> 56 & 7 == u64::from(kind.bits())
    }

    /// The kind as bits, for [`RecordKind::from_bits`].
    #[inline]
    pub(crate) fn kind_bits(self) -> u8 {
        (self.0[4] >> 56) as u8 & 7
    }
}

const _: () = assert!(FOOTER_ENTRY_BYTES == 40 && RECORD_ALIGNMENT == 32, "the format's sizes");

/// Words from bytes, as many as both have.
pub(crate) fn copy_words(bytes: &[u8], words: &mut [u64]) {
    for (word, raw) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Codec, Flags};

    #[test]
    fn a_line_says_what_its_entry_says() {
        let kinds = [
            RecordKind::Value,
            RecordKind::Tombstone,
            RecordKind::Manifest,
            RecordKind::Piece,
            RecordKind::Padding,
        ];
        for (number, kind) in (1u32..).zip(kinds) {
            let entry = FooterEntry {
                hash: 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210 ^ u128::from(number),
                sequence: u64::MAX / u64::from(number),
                offset: (0x00ff_ffff - number) * 32,
                flags: Flags { codec: Codec::Zstd, follows: true, ..Flags::of(kind) },
                record_bytes: 0x8765_4321 + number,
                ends_seconds: 0xfedc_ba98 - number,
                space: SpaceId(0xabcd),
                partition: 0x1234 + number as u16,
            };
            let line = FooterLine::of(&entry);
            assert_eq!(line.hash_low(), entry.hash as u64);
            assert_eq!(line.hash_high(), (entry.hash >> 64) as u64);
            assert_eq!(line.sequence(), entry.sequence);
            assert_eq!(line.record_bytes(), entry.record_bytes);
            assert_eq!(line.ends_seconds(), entry.ends_seconds);
            assert_eq!(line.owner(), entry.owner());
            assert_eq!(line.place() * 32, entry.offset);
            assert!(line.is_kind(kind));
            assert_eq!(RecordKind::from_bits(line.kind_bits()), Some(kind));
        }
    }

    #[test]
    fn a_line_is_sound_where_its_entry_is() {
        const RECORDS_END: u64 = 60_000;
        let sound = FooterEntry {
            hash: 1,
            sequence: 5,
            offset: 64,
            flags: Flags::of(RecordKind::Value),
            record_bytes: 100,
            ends_seconds: 0,
            space: SpaceId(0),
            partition: 0,
        };
        for flags in 0..=255u8 {
            let mut words = FooterLine::of(&sound).0;
            words[4] = words[4] << 8 >> 8 | u64::from(flags) << 56;
            // No footer tells of a record of the journal.
            let known = Flags::from_byte(flags).is_some_and(|f| f.kind != RecordKind::Journal);
            assert_eq!(FooterLine(words).is_sound(RECORDS_END), known, "{flags}");
        }
        for sequence in [SEQUENCE_END - 1, SEQUENCE_END] {
            let line = FooterLine::of(&FooterEntry { sequence, ..sound });
            assert_eq!(line.is_sound(RECORDS_END), sequence < SEQUENCE_END);
        }
        for offset in [0, 32, 64, 59_872, 59_904, 59_936] {
            for record_bytes in [0, 32, 33, 96, 100, 128, 129, u32::MAX - 64] {
                let entry = FooterEntry { offset, record_bytes, ..sound };
                let line = FooterLine::of(&entry);
                assert_eq!(line.is_sound(RECORDS_END), entry.is_within(RECORDS_END), "{entry:?}");
            }
        }
    }
}
