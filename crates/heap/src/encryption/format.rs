//! The bytes that only encrypted heaps have: the mark in the superblock, nonces, stamps of pages
//! and the table that holds them, and the headers of encrypted records. All numbers are
//! little-endian.
//!
//! Drawn byte by byte in `docs/internals/heap-format.md`, which carries a digest of this file.

use crate::cipher::{NONCE_BYTES, TAG_BYTES};
use crate::format::{
    PAGE_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordKind, Superblock, get_u32, get_u64,
    put_u32, put_u64,
};

/// Bytes of the salt of an opening.
pub(crate) const SALT_BYTES: usize = 16;
/// Bytes of a stamp.
pub(crate) const STAMP_BYTES: usize = SALT_BYTES + 8 + TAG_BYTES;
/// Stamps of a page of the cipher table, behind its own.
pub(crate) const STAMPS: u64 = 100;

/// What an encrypted heap's superblock says besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CipherMark {
    /// The cipher's name, zeros behind.
    pub(crate) name: [u8; 16],
    /// Tells keys apart.
    pub(crate) check: [u8; TAG_BYTES],
    /// Of the opening that wrote this superblock and the log's records of its generation.
    pub(crate) salt: [u8; SALT_BYTES],
    /// Authenticates the superblock.
    pub(crate) tag: [u8; TAG_BYTES],
}

/// Where the mark stands in the superblock.
const MARK_AT: usize = 136;

impl CipherMark {
    pub(crate) fn encode(&self, page: &mut [u8]) {
        let mut at = MARK_AT;
        for part in [&self.name, &self.check, &self.salt, &self.tag] {
            page[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    pub(crate) fn decode(page: &[u8]) -> CipherMark {
        let part = |index: usize| {
            let mut part = [0; 16];
            part.copy_from_slice(&page[MARK_AT + index * 16..][..16]);
            part
        };
        CipherMark { name: part(0), check: part(1), salt: part(2), tag: part(3) }
    }
}

/// What is encrypted: the first part of a nonce, so that numbers of one kind never meet another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing: the check that tells keys apart.
    Check = 0,
    /// A superblock; its sequence is the number.
    Superblock = 1,
    /// A record of the log; its position is the number.
    Record = 2,
    /// The operations of a record too large for the log; numbered by the opening.
    Extent = 3,
    /// A page of the cipher table; numbered by the opening.
    Table = 4,
    /// A page of the heap; numbered by the opening.
    Page = 5,
}

impl Subject {
    pub(crate) fn nonce(self, number: u64) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        put_u32(&mut nonce, 0, self as u32);
        put_u64(&mut nonce, 4, number);
        nonce
    }
}

/// How a piece was encrypted: by which opening's key, with which number, and what authenticates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) number: u64,
    pub(crate) tag: [u8; TAG_BYTES],
}

impl Stamp {
    /// Of a page that is zeros, whatever stands in the file.
    pub(crate) const BLANK: Stamp = Stamp { salt: [0; SALT_BYTES], number: 0, tag: [0; TAG_BYTES] };

    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[..16].copy_from_slice(&self.salt);
        put_u64(out, 16, self.number);
        out[24..STAMP_BYTES].copy_from_slice(&self.tag);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Stamp {
        let mut stamp = Stamp::BLANK;
        stamp.salt.copy_from_slice(&bytes[..16]);
        stamp.number = get_u64(bytes, 16);
        stamp.tag.copy_from_slice(&bytes[24..STAMP_BYTES]);
        stamp
    }
}

/// Where the stamp with this number stands in a page of the cipher table.
pub(crate) fn stamp_at(slot: u64) -> std::ops::Range<usize> {
    let at = STAMP_BYTES * (slot as usize + 1);
    at..at + STAMP_BYTES
}

/// Where everything is that is encrypted in pages. Pages are numbered so that those in use come
/// first, whatever the heap may grow to: the head page, then, again and again, a page of the page
/// table and the 512 pages of data that it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Where the cipher table begins: behind the double-write area.
    pub(crate) cipher_table: u64,
    head: u64,
    page_table: u64,
    data: u64,
}

/// Pages of data that one page of the page table tells of.
const PAGES_TOLD: u64 = PAGE_BYTES / 8;
const GROUP: u64 = PAGES_TOLD + 1;

impl Places {
    pub(crate) fn of(superblock: &Superblock) -> Places {
        Places {
            cipher_table: superblock.double_offset + (superblock.double_pages + 1) * PAGE_BYTES,
            head: crate::format::HEAD_OFFSET,
            page_table: superblock.table_offset,
            data: superblock.data_offset,
        }
    }

    /// Most bytes of the cipher table of a heap that may grow to `limit`.
    pub(crate) fn table_bytes_at_limit(limit: u64) -> u64 {
        let groups = (limit / PAGE_BYTES).div_ceil(PAGES_TOLD);
        (1 + groups * GROUP).div_ceil(STAMPS) * PAGE_BYTES
    }

    /// The number of the page at `offset`.
    pub(crate) fn number_of(&self, offset: u64) -> u64 {
        if offset < self.page_table {
            0
        } else if offset < self.data {
            1 + (offset - self.page_table) / PAGE_BYTES * GROUP
        } else {
            let page = (offset - self.data) / PAGE_BYTES;
            2 + page / PAGES_TOLD * GROUP + page % PAGES_TOLD
        }
    }

    /// Where the page with this number is.
    pub(crate) fn offset_of(&self, number: u64) -> u64 {
        let Some(before) = number.checked_sub(1) else { return self.head };
        let (group, at) = (before / GROUP, before % GROUP);
        match at.checked_sub(1) {
            None => self.page_table + group * PAGE_BYTES,
            Some(page) => self.data + (group * PAGES_TOLD + page) * PAGE_BYTES,
        }
    }

    /// How many pages a heap of `size` bytes has: their numbers are below.
    pub(crate) fn pages(&self, size: u64) -> u64 {
        self.number_of(size - PAGE_BYTES) + 1
    }

    /// How many pages of the cipher table tell of them.
    pub(crate) fn tables(&self, size: u64) -> u64 {
        self.pages(size).div_ceil(STAMPS)
    }

    /// Where the page of the cipher table with this number is.
    pub(crate) fn table_offset(&self, table: u64) -> u64 {
        self.cipher_table + table * PAGE_BYTES
    }

    /// Whether a page of the cipher table is at `offset`.
    pub(crate) fn holds_table(&self, offset: u64) -> bool {
        (self.cipher_table..self.page_table).contains(&offset)
    }
}

/// What of an encrypted record's header is not its tag: authenticated, and readable.
pub(crate) const RECORD_OPEN: std::ops::Range<usize> = TAG_BYTES..RECORD_HEADER_BYTES as usize;

/// Writes the readable part of an encrypted record's header.
pub(crate) fn encode_record(header: &RecordHeader, record: &mut [u8]) {
    put_u32(record, 16, header.length);
    put_u32(record, 20, header.kind as u32 + 1);
    put_u64(record, 24, header.durable);
}

/// The header of the record that may be at `position`, where `bytes` begin; `None` if it makes no
/// sense. Nothing is known before the record was decrypted.
pub(crate) fn decode_record(bytes: &[u8], position: u64, generation: u32) -> Option<RecordHeader> {
    let header = bytes.get(..RECORD_HEADER_BYTES as usize)?;
    let kind = match get_u32(header, 20) {
        1 => RecordKind::Operations,
        2 => RecordKind::Padding,
        3 => RecordKind::Outside,
        _ => return None,
    };
    let (length, durable) = (get_u32(header, 16), get_u64(header, 24));
    let sane = u64::from(length) >= RECORD_HEADER_BYTES && length.is_multiple_of(8);
    let found = RecordHeader { length, position, durable, generation, kind };
    (sane && durable <= position).then_some(found)
}

/// Where the encrypted operations of a record too large for the log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncryptedExtent {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) stamp: Stamp,
}

const EXTENT_BYTES: usize = 16 + STAMP_BYTES;

impl EncryptedExtent {
    pub(crate) fn encode(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.offset.to_le_bytes());
        body.extend_from_slice(&self.length.to_le_bytes());
        let at = body.len();
        body.resize(at + STAMP_BYTES, 0);
        self.stamp.encode(&mut body[at..]);
    }

    pub(crate) fn decode(body: &[u8]) -> Option<EncryptedExtent> {
        (body.len() == EXTENT_BYTES).then(|| EncryptedExtent {
            offset: get_u64(body, 0),
            length: get_u64(body, 8),
            stamp: Stamp::decode(&body[16..]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places {
        cipher_table: 40 * PAGE_BYTES,
        head: 2 * PAGE_BYTES,
        page_table: 60 * PAGE_BYTES,
        data: 64 * PAGE_BYTES,
    };

    #[test]
    fn every_page_has_a_number_of_its_own_and_those_in_use_come_first() {
        for pages in 1..1600 {
            let size = PLACES.data + pages * PAGE_BYTES;
            let groups = pages.div_ceil(PAGES_TOLD);
            assert_eq!(PLACES.pages(size), 1 + groups + pages);
        }
        for number in 0..1600 {
            assert_eq!(PLACES.number_of(PLACES.offset_of(number)), number);
        }
    }

    #[test]
    fn a_page_of_the_cipher_table_holds_its_stamps() {
        assert!(stamp_at(STAMPS - 1).end <= PAGE_BYTES as usize);
    }
}
