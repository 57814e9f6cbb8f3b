//! Leaves and delta pages: rows in the order of their keys, and the search among them.

use std::cmp::Ordering;

use super::header::{Frame, HEADER_BYTES, Header, PageKind};
use super::rows::{Effect, Row, RowKey};
use super::{
    Damage, INLINE_VALUE_BYTES_MAX, PAGE_BYTES_MAX, ROW_KEY_BYTES_MAX, common_prefix_bytes,
};
use crate::sequence::Sequence;

/// A leaf or a delta page, as its bytes have it.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    frame: Frame<'a>,
}

impl<'a> Rows<'a> {
    /// The page `bytes`. Entries are checked as they are looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Rows<'a>, Damage> {
        let frame = Frame::parse(bytes)?;
        if frame.header.kind == PageKind::Inner {
            return Err(Damage::new("kind of a page of rows", 3, 2));
        }
        Ok(Rows { frame })
    }

    /// The fixed part.
    pub fn header(&self) -> &Header {
        &self.frame.header
    }

    /// The key below which all keys of the page are; `None`: no page is to the right.
    pub fn high_key(&self) -> Option<&'a [u8]> {
        self.frame.high()
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.frame.count()
    }

    /// Entry `index`, in the order of keys. Parts of one key follow one another, oldest first.
    pub fn row(&self, index: usize) -> Result<Row<'a>, Damage> {
        let entry = self.frame.entry(index)?;
        Row::decode(entry, self.frame.prefix, self.frame.header.has_sequences)
    }

    /// The first entry whose key is `key` or above it; the number of entries where there is none.
    pub fn lower_bound(&self, key: &[u8]) -> Result<usize, Damage> {
        let prefix = self.frame.prefix;
        let shared = key.len().min(prefix.len());
        let rest = match key[..shared].cmp(&prefix[..shared]) {
            Ordering::Less => return Ok(0),
            Ordering::Greater => return Ok(self.count()),
            Ordering::Equal if key.len() < prefix.len() => return Ok(0),
            Ordering::Equal => &key[prefix.len()..],
        };
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            let entry = self.frame.entry(middle)?;
            if Row::suffix_of(entry, self.frame.header.has_sequences)? < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The entries of `key`: none, one, or several parts.
    pub fn entries_of(&self, key: &[u8]) -> Result<std::ops::Range<usize>, Damage> {
        let start = self.lower_bound(key)?;
        let mut end = start;
        while end < self.count() && self.key_is(end, key)? {
            end += 1;
        }
        Ok(start..end)
    }

    fn key_is(&self, index: usize, key: &[u8]) -> Result<bool, Damage> {
        let entry = self.frame.entry(index)?;
        let suffix = Row::suffix_of(entry, self.frame.header.has_sequences)?;
        Ok(key.strip_prefix(self.frame.prefix) == Some(suffix))
    }

    /// How many keys a leaf has: parts stand behind the value of their key.
    pub fn keys(&self) -> Result<u32, Damage> {
        let mut keys = 0;
        for index in 0..self.count() {
            keys += u32::from(self.row(index)?.effect != Effect::Part);
        }
        Ok(keys)
    }

    /// Looks at every byte: entries in order, keys below the high key, lengths within limits.
    pub fn check(&self) -> Result<(), Damage> {
        let mut before: Option<Row<'_>> = None;
        for index in 0..self.count() {
            let row = self.row(index)?;
            let key_bytes = row.key.prefix.len() + row.key.suffix.len();
            if key_bytes == 0 || key_bytes > ROW_KEY_BYTES_MAX {
                return Err(Damage::new("key of a row", key_bytes, ROW_KEY_BYTES_MAX));
            }
            let in_order = before.is_none_or(|before| may_follow(&before, &row));
            let is_below = self.high_key().is_none_or(|high| is_below(row.key, high));
            if !in_order || !is_below {
                return Err(Damage::new("order of rows", index, index));
            }
            if row.effect == Effect::Remove && self.frame.header.kind == PageKind::Leaf {
                return Err(Damage::new("removes in a leaf", index, 0));
            }
            before = Some(row);
        }
        Ok(())
    }
}

/// Whether `after` may stand behind `before`: its key is above, or it is one more part.
fn may_follow(before: &Row<'_>, after: &Row<'_>) -> bool {
    match before.key.suffix.cmp(after.key.suffix) {
        Ordering::Less => true,
        Ordering::Equal => after.effect == Effect::Part,
        Ordering::Greater => false,
    }
}

fn is_below(key: RowKey<'_>, high: &[u8]) -> bool {
    key.prefix.iter().chain(key.suffix).lt(high.iter())
}

/// Collects rows in order and makes a page of them.
#[derive(Debug, Default, Clone)]
pub struct PageBuilder {
    bytes: Vec<u8>,
    rows: Vec<Span>,
}

/// Where a row stands in a builder's bytes: its key, then its value.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    key_bytes: u16,
    value_bytes: u16,
    effect: Effect,
    sequence: Sequence,
}

/// What a builder cannot know of the page that it makes.
#[derive(Debug, Clone, Copy)]
pub struct PageFrame<'a> {
    /// Leaf or delta.
    pub kind: PageKind,
    /// The high key, if a page is to the right.
    pub high_key: Option<&'a [u8]>,
    /// All changes up to this one are in.
    pub sequence: Sequence,
    /// As [`Header::link`].
    pub link: u64,
    /// Whether rows carry sequences.
    pub has_sequences: bool,
}

impl PageBuilder {
    /// Adds a row. Keys come in order; several parts of one key come oldest first.
    ///
    /// # Panics
    /// Where the key or the value is longer than a page holds: the caller keeps such values apart.
    pub fn push(&mut self, key: &[u8], effect: Effect, sequence: Sequence, value: &[u8]) {
        assert!(!key.is_empty() && key.len() <= ROW_KEY_BYTES_MAX, "a key that a page holds");
        assert!(value.len() <= INLINE_VALUE_BYTES_MAX, "a value that a page holds");
        let start = self.bytes.len() as u32;
        let (key_bytes, value_bytes) = (key.len() as u16, value.len() as u16);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.rows.push(Span { start, key_bytes, value_bytes, effect, sequence });
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The key of row `index`.
    pub fn key(&self, index: usize) -> &[u8] {
        let span = &self.rows[index];
        let start = span.start as usize;
        &self.bytes[start..start + usize::from(span.key_bytes)]
    }

    /// How many rows have keys below `key`.
    pub(crate) fn rows_below(&self, key: &[u8]) -> usize {
        let key_of = |span: &Span| &self.bytes[span.start as usize..][..span.key_bytes.into()];
        self.rows.partition_point(|span| key_of(span) < key)
    }

    /// How many keys the rows `range` have.
    pub(crate) fn keys(&self, range: std::ops::Range<usize>) -> u32 {
        let first = range.start;
        range.filter(|&index| index == first || self.key(index) != self.key(index - 1)).count()
            as u32
    }

    /// Bytes that row `index` takes in a page, before a prefix is cut off.
    pub(crate) fn row_bytes(&self, index: usize, has_sequences: bool) -> usize {
        let span = &self.rows[index];
        let bytes = usize::from(span.key_bytes) + usize::from(span.value_bytes);
        bytes + Row::overhead_bytes(has_sequences)
    }

    fn value(&self, span: &Span) -> &[u8] {
        let start = span.start as usize + usize::from(span.key_bytes);
        &self.bytes[start..start + usize::from(span.value_bytes)]
    }

    /// The page of the rows `range`.
    ///
    /// # Panics
    /// Where it is larger than [`PAGE_BYTES_MAX`].
    pub fn page(&self, range: std::ops::Range<usize>, frame: PageFrame<'_>) -> Vec<u8> {
        let prefix_bytes = match range.len() {
            0 => 0,
            _ => common_prefix_bytes(self.key(range.start), self.key(range.end - 1)),
        };
        let high_key = frame.high_key.unwrap_or_default();
        let header = Header {
            kind: frame.kind,
            level: 0,
            has_high_key: frame.high_key.is_some(),
            has_sequences: frame.has_sequences,
            count: range.len() as u16,
            prefix_bytes: prefix_bytes as u16,
            high_key_bytes: high_key.len() as u16,
            sequence: frame.sequence,
            link: frame.link,
            filter_bytes: 0,
        };
        let rows = range.clone().map(|index| self.row_bytes(index, frame.has_sequences));
        let mut out = Vec::with_capacity(HEADER_BYTES + high_key.len() + rows.sum::<usize>());
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(high_key);
        if !range.is_empty() {
            out.extend_from_slice(&self.key(range.start)[..prefix_bytes]);
        }
        let offsets = out.len();
        out.resize(offsets + 2 * range.len(), 0);
        let entries = out.len();
        for (place, index) in range.enumerate() {
            let offset = (out.len() - entries) as u16;
            out[offsets + 2 * place..][..2].copy_from_slice(&offset.to_le_bytes());
            let span = &self.rows[index];
            let (prefix, suffix) = self.key(index).split_at(prefix_bytes);
            let row = Row {
                key: RowKey { prefix, suffix },
                effect: span.effect,
                sequence: Some(span.sequence),
                value: self.value(span),
            };
            row.encode(frame.has_sequences, &mut out);
        }
        assert!(out.len() <= PAGE_BYTES_MAX, "a page within its largest size");
        out
    }
}
