//! The short form of the only leaf of a table: as it stands in the table's first record.
//!
//! It lacks what such a leaf does not have, a neighbour and a high key, and where entries begin.
//! A table of a few rows takes a third less with it. It is made a page before rows are looked at.

use super::header::{HEADER_BYTES, Header, PageKind};
use super::page::Rows;
use super::rows::{Effect, Row, RowKey};
use super::{Damage, INLINE_VALUE_BYTES_MAX, PAGE_BYTES_MAX, ROW_KEY_BYTES_MAX, array_at};
use crate::sequence::Sequence;

/// An effect other than a put follows.
const HAS_EFFECT: usize = 1;

/// The short form of `page`; `None`: it is not the only leaf of a table, or has sequences.
pub(super) fn shorten(page: &[u8]) -> Option<Vec<u8>> {
    let rows = Rows::parse(page).ok()?;
    let header = rows.header();
    let is_only = header.kind == PageKind::Leaf && !header.has_high_key && header.link == 0;
    if !is_only || header.has_sequences {
        return None;
    }
    let mut out = header.sequence.0.to_le_bytes().to_vec();
    push_length(&mut out, rows.count());
    push_length(&mut out, header.prefix_bytes.into());
    for index in 0..rows.count() {
        let Row { key, effect, value, .. } = rows.row(index).ok()?;
        if index == 0 {
            out.extend_from_slice(key.prefix);
        }
        let has_effect = effect != Effect::Put;
        push_length(&mut out, key.suffix.len() << 1 | usize::from(has_effect));
        if has_effect {
            out.push(effect.bits() as u8);
        }
        push_length(&mut out, value.len());
        out.extend_from_slice(key.suffix);
        out.extend_from_slice(value);
    }
    Some(out)
}

/// The page whose short form `bytes` are.
pub(super) fn lengthen(bytes: &[u8]) -> Result<Vec<u8>, Damage> {
    let mut rest = Rest { bytes };
    let sequence = Sequence(u64::from_le_bytes(rest.array("sequence of a short leaf")?));
    let count = rest.length("rows of a short leaf", u16::MAX.into())?;
    let prefix_bytes = rest.length("prefix of a short leaf", ROW_KEY_BYTES_MAX)?;
    let prefix = match count {
        0 => &[],
        _ => rest.take("prefix of a short leaf", prefix_bytes)?,
    };
    let header = Header {
        kind: PageKind::Leaf,
        level: 0,
        has_high_key: false,
        has_sequences: false,
        count: count as u16,
        prefix_bytes: prefix.len() as u16,
        high_key_bytes: 0,
        sequence,
        link: 0,
        filter_bytes: 0,
    };
    let mut out = Vec::with_capacity(HEADER_BYTES + bytes.len() + 4 * count);
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(prefix);
    let offsets = out.len();
    out.resize(offsets + 2 * count, 0);
    let entries = out.len();
    for place in 0..count {
        let offset = (out.len() - entries) as u16;
        out[offsets + 2 * place..][..2].copy_from_slice(&offset.to_le_bytes());
        rest.row(prefix)?.encode(false, &mut out);
        if out.len() > PAGE_BYTES_MAX {
            return Err(Damage::new("bytes of a short leaf", out.len(), PAGE_BYTES_MAX));
        }
    }
    match rest.bytes {
        [] => Ok(out),
        more => Err(Damage::new("bytes behind a short leaf", more.len(), 0)),
    }
}

/// What is still to be read.
struct Rest<'a> {
    bytes: &'a [u8],
}

impl<'a> Rest<'a> {
    fn row(&mut self, prefix: &'a [u8]) -> Result<Row<'a>, Damage> {
        let tag = self.length("suffix of a short leaf", ROW_KEY_BYTES_MAX << 1 | HAS_EFFECT)?;
        let mut effect = Effect::Put;
        if tag & HAS_EFFECT != 0 {
            let [bits] = self.array("effect of a row")?;
            effect = Effect::from_bits(bits.into())
                .ok_or_else(|| Damage::new("effect of a row", bits.into(), 3))?;
        }
        let value_bytes = self.length("value of a short leaf", INLINE_VALUE_BYTES_MAX)?;
        let suffix = self.take("suffix of a short leaf", tag >> 1)?;
        let value = self.take("value of a short leaf", value_bytes)?;
        Ok(Row { key: RowKey { prefix, suffix }, effect, sequence: None, value })
    }

    fn take(&mut self, field: &'static str, bytes: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(bytes)
            .ok_or_else(|| Damage::new(field, bytes, self.bytes.len()))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Damage> {
        let taken = self.take(field, N)?;
        array_at(taken, 0).ok_or_else(|| Damage::new(field, taken.len(), N))
    }

    /// A number in groups of seven bits, the lowest first; a byte below 128 is the last.
    fn length(&mut self, field: &'static str, most: usize) -> Result<usize, Damage> {
        let mut length = 0;
        for place in 0..3 {
            let [byte] = self.array(field)?;
            length |= usize::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return if length <= most {
                    Ok(length)
                } else {
                    Err(Damage::new(field, length, most))
                };
            }
        }
        Err(Damage::new(field, length, most))
    }
}

fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}
