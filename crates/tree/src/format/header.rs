//! What each page begins with.

use super::{Damage, FORMAT_VERSION, array_at, u16_at, u32_at, u64_at};
use crate::sequence::Sequence;

/// Bytes of a page's header.
pub const HEADER_BYTES: usize = 32;

const HAS_HIGH_KEY: u8 = 1;
const HAS_SEQUENCES: u8 = 2;
const HAS_FILTERS: u8 = 4;

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Rows of a range of keys.
    Leaf,
    /// Changes of a leaf's rows that came after the leaf was written.
    Delta,
    /// Pages of the level below.
    Inner,
}

impl PageKind {
    fn byte(self) -> u8 {
        match self {
            PageKind::Leaf => 1,
            PageKind::Delta => 2,
            PageKind::Inner => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<PageKind> {
        [PageKind::Leaf, PageKind::Delta, PageKind::Inner]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// The fixed part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the page is.
    pub kind: PageKind,
    /// 0 for leaves and delta pages; inner nodes above leaves have 1.
    pub level: u8,
    /// Whether keys of the page are below a high key. The last page of a level has none.
    pub has_high_key: bool,
    /// Whether each row carries the sequence of its last change.
    pub has_sequences: bool,
    /// Entries.
    pub count: u16,
    /// Bytes that all keys begin with.
    pub prefix_bytes: u16,
    /// Bytes of the high key.
    pub high_key_bytes: u16,
    /// All changes of the page's range up to this one are in the page, or in its delta page.
    pub sequence: Sequence,
    /// Of a leaf or an inner node: the page to the right, 0 for none. Of a delta page: the sequence
    /// of the leaf that it changes.
    pub link: u64,
    /// Of an inner node: bytes of the leaves' filters, which are the last ones of the page.
    pub filter_bytes: u32,
}

impl Header {
    /// The bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = self.kind.byte();
        out[1] = u8::from(self.has_high_key) * HAS_HIGH_KEY
            + u8::from(self.has_sequences) * HAS_SEQUENCES
            + u8::from(self.filter_bytes > 0) * HAS_FILTERS;
        out[2..4].copy_from_slice(&self.count.to_le_bytes());
        out[4..6].copy_from_slice(&self.prefix_bytes.to_le_bytes());
        out[6..8].copy_from_slice(&self.high_key_bytes.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.link.to_le_bytes());
        out[24] = FORMAT_VERSION;
        out[25] = self.level;
        out[26..30].copy_from_slice(&self.filter_bytes.to_le_bytes());
        out
    }

    /// The header of the page `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Header, Damage> {
        let fixed: [u8; HEADER_BYTES] = array_at(bytes, 0)
            .ok_or_else(|| Damage::new("bytes of a page", bytes.len(), HEADER_BYTES))?;
        let damage = |field, at: usize, expected| Damage::new(field, fixed[at].into(), expected);
        let kind = PageKind::from_byte(fixed[0]).ok_or_else(|| damage("kind of a page", 0, 3))?;
        if fixed[24] != FORMAT_VERSION {
            return Err(damage("version of a page", 24, FORMAT_VERSION.into()));
        }
        let flags_max = match kind {
            PageKind::Inner => HAS_HIGH_KEY + HAS_SEQUENCES + HAS_FILTERS,
            PageKind::Leaf | PageKind::Delta => HAS_HIGH_KEY + HAS_SEQUENCES,
        };
        if fixed[1] > flags_max {
            return Err(damage("flags of a page", 1, flags_max.into()));
        }
        let has_filters = fixed[1] & HAS_FILTERS != 0;
        let header = Header {
            kind,
            level: fixed[25],
            has_high_key: fixed[1] & HAS_HIGH_KEY != 0,
            has_sequences: fixed[1] & HAS_SEQUENCES != 0,
            count: u16_at(&fixed, 2).unwrap_or_default(),
            prefix_bytes: u16_at(&fixed, 4).unwrap_or_default(),
            high_key_bytes: u16_at(&fixed, 6).unwrap_or_default(),
            sequence: Sequence(u64_at(&fixed, 8).unwrap_or_default()),
            link: u64_at(&fixed, 16).unwrap_or_default(),
            filter_bytes: u32_at(&fixed, 26).filter(|_| has_filters).unwrap_or_default(),
        };
        if (kind == PageKind::Inner) != (header.level > 0) {
            return Err(damage("level of a page", 25, 255 * usize::from(kind == PageKind::Inner)));
        }
        Ok(header)
    }
}

/// Where the parts of a page are that follow its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub header: Header,
    pub high_key: &'a [u8],
    pub prefix: &'a [u8],
    offsets: &'a [u8],
    entries: &'a [u8],
    /// The leaves' filters, still unchecked.
    pub filters: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The parts of the page `bytes`, whose entries are still unchecked.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, Damage> {
        if bytes.len() > super::PAGE_BYTES_MAX {
            return Err(Damage::new("bytes of a page", bytes.len(), super::PAGE_BYTES_MAX));
        }
        let header = Header::decode(bytes)?;
        let rest = &bytes[HEADER_BYTES..];
        let cut = |rest: &'a [u8], length: usize, field| {
            rest.split_at_checked(length).ok_or_else(|| Damage::new(field, length, rest.len()))
        };
        let (high_key, rest) = cut(rest, header.high_key_bytes.into(), "high key of a page")?;
        let (prefix, rest) = cut(rest, header.prefix_bytes.into(), "prefix of a page")?;
        let (offsets, entries) = cut(rest, 2 * usize::from(header.count), "offsets of a page")?;
        let filter_bytes = header.filter_bytes as usize;
        let Some(entry_bytes) = entries.len().checked_sub(filter_bytes) else {
            return Err(Damage::new("filters of a page", filter_bytes, entries.len()));
        };
        let (entries, filters) = entries.split_at(entry_bytes);
        if !header.has_high_key && !high_key.is_empty() {
            return Err(Damage::new("high key of a last page", high_key.len(), 0));
        }
        Ok(Frame { header, high_key, prefix, offsets, entries, filters })
    }

    pub(crate) fn count(&self) -> usize {
        self.header.count.into()
    }

    /// The bytes from entry `index` on.
    pub(crate) fn entry(&self, index: usize) -> Result<&'a [u8], Damage> {
        let start = usize::from(u16_at(self.offsets, 2 * index).unwrap_or(u16::MAX));
        let entry = self.entries.get(start..);
        entry.ok_or_else(|| Damage::new("offset of an entry", start, self.entries.len()))
    }

    /// The key below which the page's keys are; `None`: it is the last page of its level.
    pub(crate) fn high(&self) -> Option<&'a [u8]> {
        self.header.has_high_key.then_some(self.high_key)
    }
}
