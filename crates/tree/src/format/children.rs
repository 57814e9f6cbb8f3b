//! Inner nodes: the pages of the level below, each from its separator on.

use std::cmp::Ordering;

use super::header::{Frame, Header, PageKind};
use super::{Damage, ROW_KEY_BYTES_MAX, common_prefix_bytes, u16_at, u32_at, u64_at};
use crate::sequence::Sequence;

/// Bytes of an entry before its suffix.
const FIXED_BYTES: usize = 30;
/// Most bytes of the filters of a node's leaves. Those that do not fit are left out.
const FILTER_BYTES_MAX: usize = 40 << 10;

/// A page of the level below, and what is known of it without a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Child {
    /// Its number in the table.
    pub page: u32,
    /// Sequence of the leaf: its delta page names it.
    pub sequence: Sequence,
    /// Bytes of the leaf. Of an inner node: 1 where its rows are known, else 0.
    pub base_bytes: u16,
    /// Bytes of its delta page; 0: it has none.
    pub delta_bytes: u16,
    /// Rows at or below the page. Of a leaf in a table that keeps no counts: without its delta
    /// page; of an inner node in such a table: 0.
    pub rows: u32,
    /// Which keys the delta page may hold.
    pub filter: u64,
}

/// An inner node, as its bytes have it.
#[derive(Debug, Clone, Copy)]
pub struct Children<'a> {
    frame: Frame<'a>,
}

impl<'a> Children<'a> {
    /// The page `bytes`. Entries are checked as they are looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Children<'a>, Damage> {
        let frame = Frame::parse(bytes)?;
        if frame.header.kind != PageKind::Inner {
            return Err(Damage::new("kind of an inner node", frame.header.kind as usize + 1, 3));
        }
        if frame.header.count == 0 {
            return Err(Damage::new("children of an inner node", 0, 1));
        }
        Ok(Children { frame })
    }

    /// The fixed part.
    pub fn header(&self) -> &Header {
        &self.frame.header
    }

    /// The key below which all keys of the node are; `None`: no node is to the right.
    pub fn high_key(&self) -> Option<&'a [u8]> {
        self.frame.high()
    }

    /// How many children there are.
    pub fn count(&self) -> usize {
        self.frame.count()
    }

    /// Puts the separator of child `index` in `out`: the child's keys are not below it. That of the
    /// first child of a table's first node is empty.
    pub fn separator(&self, index: usize, out: &mut Vec<u8>) -> Result<(), Damage> {
        out.clear();
        out.extend_from_slice(self.frame.prefix);
        out.extend_from_slice(self.suffix(index)?);
        Ok(())
    }

    fn suffix(&self, index: usize) -> Result<&'a [u8], Damage> {
        let entry = self.frame.entry(index)?;
        let length = usize::from(u16_at(entry, 0).unwrap_or(u16::MAX));
        let suffix = entry.get(FIXED_BYTES..FIXED_BYTES + length);
        suffix.ok_or_else(|| Damage::new("suffix of a separator", length, entry.len()))
    }

    /// Child `index`.
    pub fn child(&self, index: usize) -> Result<Child, Damage> {
        let entry = self.frame.entry(index)?;
        if entry.len() < FIXED_BYTES {
            return Err(Damage::new("bytes of a child", entry.len(), FIXED_BYTES));
        }
        Ok(Child {
            page: u32_at(entry, 2).unwrap_or_default(),
            base_bytes: u16_at(entry, 6).unwrap_or_default(),
            delta_bytes: u16_at(entry, 8).unwrap_or_default(),
            rows: u32_at(entry, 10).unwrap_or_default(),
            filter: u64_at(entry, 14).unwrap_or_default(),
            sequence: Sequence(u64_at(entry, 22).unwrap_or_default()),
        })
    }

    /// The filters of the leaves, in their order: empty ones tell nothing. None, where the page has
    /// no filters at all.
    pub fn filters(&self) -> Result<Vec<&'a [u8]>, Damage> {
        let (mut rest, mut filters) = (self.frame.filters, Vec::new());
        while !rest.is_empty() {
            let length = usize::from(u16_at(rest, 0).unwrap_or(u16::MAX));
            let filter = rest.get(2..2 + length);
            filters.push(filter.ok_or_else(|| Damage::new("a filter", length, rest.len()))?);
            rest = &rest[2 + length..];
        }
        if !filters.is_empty() && filters.len() != self.count() {
            return Err(Damage::new("filters of a node", filters.len(), self.count()));
        }
        Ok(filters)
    }

    /// The child whose range has `key`: the last one whose separator is not above it. The first
    /// one, where all separators are above.
    pub fn position(&self, key: &[u8]) -> Result<usize, Damage> {
        let prefix = self.frame.prefix;
        let shared = key.len().min(prefix.len());
        let rest = match key[..shared].cmp(&prefix[..shared]) {
            Ordering::Less => return Ok(0),
            Ordering::Greater => return Ok(self.count() - 1),
            Ordering::Equal if key.len() < prefix.len() => return Ok(0),
            Ordering::Equal => &key[prefix.len()..],
        };
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if self.suffix(middle)? <= rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// Looks at every byte: separators ascend and are below the high key, pages have numbers.
    pub fn check(&self) -> Result<(), Damage> {
        let (mut before, mut separator) = (Vec::new(), Vec::new());
        for index in 0..self.count() {
            self.separator(index, &mut separator)?;
            if separator.len() > ROW_KEY_BYTES_MAX {
                let found = separator.len();
                return Err(Damage::new("separator of a child", found, ROW_KEY_BYTES_MAX));
            }
            let in_order = index == 0 || before < separator;
            let is_below = self.high_key().is_none_or(|high| separator.as_slice() < high);
            if !in_order || !is_below {
                return Err(Damage::new("order of separators", index, index));
            }
            if self.child(index)?.page == 0 {
                return Err(Damage::new("page of a child", 0, 1));
            }
            std::mem::swap(&mut before, &mut separator);
        }
        self.filters().map(drop)
    }
}

/// Collects children in order and makes an inner node of them.
#[derive(Debug, Default, Clone)]
pub struct ChildrenBuilder {
    separators: Vec<u8>,
    entries: Vec<Entry>,
    /// Of each child the length and the bytes of its filter.
    filters: Vec<u8>,
    has_filters: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    separator_bytes: u16,
    child: Child,
}

/// What a builder cannot know of the node that it makes.
#[derive(Debug, Clone, Copy)]
pub struct NodeFrame<'a> {
    /// 1 above leaves.
    pub level: u8,
    /// The high key, if a node is to the right.
    pub high_key: Option<&'a [u8]>,
    /// The node to the right, 0 for none.
    pub right: u32,
    /// What the node says of its children was so when this change was the last.
    pub sequence: Sequence,
}

impl ChildrenBuilder {
    /// Adds a child. Separators come in order.
    ///
    /// # Panics
    /// Where the separator is longer than a key may be.
    pub fn push(&mut self, separator: &[u8], child: Child) {
        self.push_filtered(separator, child, &[]);
    }

    /// As `push`, of a leaf with a filter of its keys; an empty one tells nothing.
    ///
    /// # Panics
    /// As `push` does.
    pub fn push_filtered(&mut self, separator: &[u8], child: Child, filter: &[u8]) {
        assert!(separator.len() <= ROW_KEY_BYTES_MAX, "a separator that a node holds");
        let start = self.separators.len() as u32;
        self.separators.extend_from_slice(separator);
        self.entries.push(Entry { start, separator_bytes: separator.len() as u16, child });
        let fits = self.filters.len() + filter.len() <= FILTER_BYTES_MAX;
        let filter = if fits { filter } else { &[] };
        self.filters.extend_from_slice(&(filter.len() as u16).to_le_bytes());
        self.filters.extend_from_slice(filter);
        self.has_filters |= !filter.is_empty();
    }

    /// The inner node of all children that were added.
    ///
    /// # Panics
    /// Where there are none, where it is a leaf's level, or where it is larger than a page may be.
    pub fn node(&self, frame: NodeFrame<'_>) -> Vec<u8> {
        assert!(frame.level > 0 && !self.entries.is_empty(), "an inner node with children");
        let last = self.entries.len() - 1;
        let prefix_bytes = common_prefix_bytes(self.separator(0), self.separator(last));
        let high_key = frame.high_key.unwrap_or_default();
        let filters = if self.has_filters { &self.filters[..] } else { &[] };
        let header = Header {
            kind: PageKind::Inner,
            level: frame.level,
            has_high_key: frame.high_key.is_some(),
            has_sequences: false,
            count: self.entries.len() as u16,
            prefix_bytes: prefix_bytes as u16,
            high_key_bytes: high_key.len() as u16,
            sequence: frame.sequence,
            link: frame.right.into(),
            filter_bytes: filters.len() as u32,
        };
        let mut out = header.encode().to_vec();
        out.extend_from_slice(high_key);
        out.extend_from_slice(&self.separator(0)[..prefix_bytes]);
        let offsets = out.len();
        out.resize(offsets + 2 * self.entries.len(), 0);
        let entries = out.len();
        for (index, entry) in self.entries.iter().enumerate() {
            let offset = (out.len() - entries) as u16;
            out[offsets + 2 * index..][..2].copy_from_slice(&offset.to_le_bytes());
            let suffix = &self.separator(index)[prefix_bytes..];
            encode(&entry.child, suffix, &mut out);
        }
        out.extend_from_slice(filters);
        assert!(out.len() <= super::PAGE_BYTES_MAX, "a node within its largest size");
        out
    }

    fn separator(&self, index: usize) -> &[u8] {
        let entry = &self.entries[index];
        let start = entry.start as usize;
        &self.separators[start..start + usize::from(entry.separator_bytes)]
    }
}

fn encode(child: &Child, suffix: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(suffix.len() as u16).to_le_bytes());
    out.extend_from_slice(&child.page.to_le_bytes());
    out.extend_from_slice(&child.base_bytes.to_le_bytes());
    out.extend_from_slice(&child.delta_bytes.to_le_bytes());
    out.extend_from_slice(&child.rows.to_le_bytes());
    out.extend_from_slice(&child.filter.to_le_bytes());
    out.extend_from_slice(&child.sequence.0.to_le_bytes());
    out.extend_from_slice(suffix);
}
