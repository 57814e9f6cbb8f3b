//! The bytes of a heap file: superblocks, the log's records and operations, the double-write area
//! and the page table. All numbers are little-endian.
//!
//! Drawn byte by byte in `docs/internals/heap-format.md`, which carries a digest of this file.
//!
//! Invariants:
//! 1. Everything read from a medium is checked here before it is used: checksums, versions, bounds.
//! 2. Every operation of a record is absolute: applying a sequence of them twice, from its
//!    beginning, gives what applying it once gives.

use entresol_planted::planted;

use crate::encryption::format::{CipherMark, Places};
use crate::error::{Error, ErrorKind, Result};

/// The unit of space, of the log's writes and of the double-write area.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// What persistent memory writes back as a whole.
pub(crate) const LINE_BYTES: u64 = 64;
/// The version of this format.
pub(crate) const VERSION: u32 = 1;
/// The version of heaps that are encrypted.
pub(crate) const VERSION_ENCRYPTED: u32 = 2;
pub(crate) const MAGIC: [u8; 8] = *b"ENTRHEAP";
/// Where the two superblocks are.
pub(crate) const SUPERBLOCKS: [u64; 2] = [0, PAGE_BYTES];
/// The head page: the root and the registered sizes.
pub(crate) const HEAD_OFFSET: u64 = 2 * PAGE_BYTES;
pub(crate) const ROOT_OFFSET: u64 = HEAD_OFFSET;
/// Registered sizes, a word each, the rest zero.
pub(crate) const SIZES_OFFSET: u64 = HEAD_OFFSET + 64;
pub(crate) const SIZES_MAX: u64 = 64;
/// Where the log begins.
pub(crate) const LOG_OFFSET: u64 = 3 * PAGE_BYTES;
/// Offsets in operations have 45 bits.
pub(crate) const LIMIT_BYTES_MAX: u64 = 1 << 45;

/// Where everything is, and what the log still has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) heap_id: [u8; 16],
    pub(crate) label: [u8; 16],
    /// Grows with every superblock written; the valid one with the larger number counts.
    pub(crate) sequence: u64,
    /// Grows with every opening for writing; records of another generation are not of this log.
    pub(crate) generation: u32,
    pub(crate) log_bytes: u64,
    pub(crate) double_offset: u64,
    /// Pages of the double-write area behind its header.
    pub(crate) double_pages: u64,
    pub(crate) table_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) size_bytes: u64,
    pub(crate) limit_bytes: u64,
    /// The log's position from which recovery applies records.
    pub(crate) head: u64,
    /// Of a heap that is encrypted.
    pub(crate) cipher: Option<CipherMark>,
}

const CHECKSUM_AT: usize = PAGE_BYTES as usize - 4;

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES as usize];
        page[0..8].copy_from_slice(&MAGIC);
        let version = if self.cipher.is_some() { VERSION_ENCRYPTED } else { VERSION };
        put_u32(&mut page, 8, version);
        put_u32(&mut page, 12, PAGE_BYTES as u32);
        page[16..32].copy_from_slice(&self.heap_id);
        page[32..48].copy_from_slice(&self.label);
        put_u64(&mut page, 48, self.sequence);
        put_u32(&mut page, 56, self.generation);
        let words = [
            LOG_OFFSET,
            self.log_bytes,
            self.double_offset,
            self.double_pages,
            self.table_offset,
            self.data_offset,
            self.size_bytes,
            self.limit_bytes,
            self.head,
        ];
        for (index, word) in words.into_iter().enumerate() {
            put_u64(&mut page, 64 + index * 8, word);
        }
        if let Some(mark) = &self.cipher {
            mark.encode(&mut page);
        }
        let checksum = crc32c::crc32c(&page[..CHECKSUM_AT]);
        put_u32(&mut page, CHECKSUM_AT, checksum);
        page
    }

    /// What a cipher's tag is made of: the page without tag and checksum.
    pub(crate) fn authenticated(&self) -> Vec<u8> {
        let mut unsigned = self.clone();
        if let Some(mark) = &mut unsigned.cipher {
            mark.tag.fill(0);
        }
        let mut page = unsigned.encode();
        page.truncate(CHECKSUM_AT);
        page
    }

    /// The superblock in `page`; `None` if it is not whole. Errors: `Incompatible` for a whole one
    /// of another version, or one whose places make no sense.
    pub(crate) fn decode(page: &[u8]) -> Result<Option<Superblock>> {
        let whole = page[0..8] == MAGIC
            && get_u32(page, CHECKSUM_AT) == crc32c::crc32c(&page[..CHECKSUM_AT]);
        if !whole {
            return Ok(None);
        }
        let version = get_u32(page, 8);
        if version != VERSION && version != VERSION_ENCRYPTED {
            let detail = format!(
                "a heap of format version {version}; expected {VERSION} or {VERSION_ENCRYPTED}"
            );
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
        let word = |index: usize| get_u64(page, 64 + index * 8);
        let mut found = Superblock {
            heap_id: [0; 16],
            label: [0; 16],
            sequence: get_u64(page, 48),
            generation: get_u32(page, 56),
            log_bytes: word(1),
            double_offset: word(2),
            double_pages: word(3),
            table_offset: word(4),
            data_offset: word(5),
            size_bytes: word(6),
            limit_bytes: word(7),
            head: word(8),
            cipher: (version == VERSION_ENCRYPTED).then(|| CipherMark::decode(page)),
        };
        found.heap_id.copy_from_slice(&page[16..32]);
        found.label.copy_from_slice(&page[32..48]);
        let places = word(0) == LOG_OFFSET && get_u32(page, 12) == PAGE_BYTES as u32;
        if !places || !found.is_sensible() {
            let detail = "a heap whose superblock names places that make no sense";
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
        Ok(Some(found))
    }

    fn is_sensible(&self) -> bool {
        let places = [
            LOG_OFFSET,
            self.double_offset,
            self.table_offset,
            self.data_offset,
            self.size_bytes,
            self.limit_bytes,
        ];
        let ordered = places.is_sorted() && self.data_offset < self.size_bytes;
        let aligned = places.iter().all(|place| place.is_multiple_of(PAGE_BYTES));
        ordered
            && aligned
            && self.limit_bytes <= LIMIT_BYTES_MAX
            && self.log_bytes >= 4 * PAGE_BYTES
            && self.log_bytes.is_multiple_of(PAGE_BYTES)
            && LOG_OFFSET.checked_add(self.log_bytes) == Some(self.double_offset)
            && (1..=DOUBLE_PAGES_MAX).contains(&self.double_pages)
            && self.table_offset - self.double_offset
                >= (self.double_pages + 1) * PAGE_BYTES + self.cipher_table_bytes()
            // A page and the page that holds its stamp are written together.
            && (self.cipher.is_none() || self.double_pages >= 2)
            && self.data_offset - self.table_offset >= self.table_bytes_at_limit()
    }

    fn table_bytes_at_limit(&self) -> u64 {
        (self.limit_bytes - self.data_offset) / PAGE_BYTES * 8
    }

    fn cipher_table_bytes(&self) -> u64 {
        match self.cipher {
            Some(_) => Places::table_bytes_at_limit(self.limit_bytes),
            None => 0,
        }
    }

    /// Whether a checkpoint may write a page at `offset`: one of the heap's, whole, or, where the
    /// heap is encrypted, one of the cipher table.
    pub(crate) fn holds_image(&self, offset: u64) -> bool {
        let in_table = self.cipher.is_some() && Places::of(self).holds_table(offset);
        let in_heap = self.holds(offset, PAGE_BYTES) && offset + PAGE_BYTES <= self.size_bytes;
        offset.is_multiple_of(PAGE_BYTES) && (in_table || in_heap)
    }

    /// Whether an operation may name this range: the head page, the page table or data.
    pub(crate) fn holds(&self, offset: u64, length: u64) -> bool {
        let Some(end) = offset.checked_add(length) else { return false };
        (offset >= HEAD_OFFSET && end <= LOG_OFFSET)
            || (offset >= self.table_offset && end <= self.limit_bytes)
    }

    /// The next opening's, whose log begins behind `end`, where the one before ended: damaged or
    /// torn records there must never be taken for records of what comes.
    pub(crate) fn begin_generation(&mut self, end: u64) {
        self.head = end.next_multiple_of(PAGE_BYTES);
        self.generation += 1;
    }

    /// What the checksums of this generation's records begin with.
    pub(crate) fn seed(&self) -> u32 {
        let seed = crc32c::crc32c(&self.heap_id);
        if planted!("heap-generation-ignored") {
            return seed;
        }
        crc32c::crc32c_append(seed, &self.generation.to_le_bytes())
    }
}

/// The header of a record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Of header and body, a multiple of 8.
    pub(crate) length: u32,
    /// Where in the log, counted without end; the place in the ring follows from it.
    pub(crate) position: u64,
    /// Everything before this position was durable when the record was made.
    pub(crate) durable: u64,
    pub(crate) generation: u32,
    pub(crate) kind: RecordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// The body holds operations.
    Operations,
    /// Nothing until the end of a block or of the ring; the checksum covers the header alone.
    Padding,
    /// The body is an [`Extent`] that holds operations.
    Outside,
}

/// Bytes of a record's header. No record begins nearer than this to the end of a page.
pub(crate) const RECORD_HEADER_BYTES: u64 = 32;

impl RecordHeader {
    /// Writes the header into the first bytes of `record`; `checksum` is that of the body, begun
    /// with the seed.
    pub(crate) fn encode(&self, checksum: u32, record: &mut [u8]) {
        put_u32(record, 4, self.length);
        put_u64(record, 8, self.position);
        put_u64(record, 16, self.durable);
        put_u32(record, 24, self.generation);
        put_u32(record, 28, self.kind as u32 + 1);
        let header = &record[4..RECORD_HEADER_BYTES as usize];
        let checksum = crc32c::crc32c_append(checksum, header);
        put_u32(record, 0, checksum);
    }

    /// The record at the beginning of `bytes` if it is whole and stands at `position`.
    pub(crate) fn decode(
        bytes: &[u8],
        position: u64,
        generation: u32,
        seed: u32,
    ) -> Option<RecordHeader> {
        let header = bytes.get(..RECORD_HEADER_BYTES as usize)?;
        let kind = match get_u32(header, 28) {
            1 => RecordKind::Operations,
            2 => RecordKind::Padding,
            3 => RecordKind::Outside,
            _ => return None,
        };
        let found = RecordHeader {
            length: get_u32(header, 4),
            position: get_u64(header, 8),
            durable: get_u64(header, 16),
            generation: get_u32(header, 24),
            kind,
        };
        let sane = u64::from(found.length) >= RECORD_HEADER_BYTES && found.length.is_multiple_of(8);
        let here = planted!("heap-record-position-not-compared") || found.position == position;
        let ours = planted!("heap-generation-ignored") || found.generation == generation;
        if !sane || !here || !ours {
            return None;
        }
        let body = match kind {
            RecordKind::Padding => &[],
            _ => bytes.get(RECORD_HEADER_BYTES as usize..found.length as usize)?,
        };
        let checksum = crc32c::crc32c_append(crc32c::crc32c_append(seed, body), &header[4..]);
        let sound = planted!("heap-checksum-ignored") || checksum == get_u32(header, 0);
        sound.then_some(found)
    }
}

/// Where the operations of a record too large for the log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) checksum: u32,
}

impl Extent {
    pub(crate) fn encode(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.offset.to_le_bytes());
        body.extend_from_slice(&self.length.to_le_bytes());
        body.extend_from_slice(&u64::from(self.checksum).to_le_bytes());
    }

    pub(crate) fn decode(body: &[u8]) -> Option<Extent> {
        (body.len() == 24).then(|| Extent {
            offset: get_u64(body, 0),
            length: get_u64(body, 8),
            checksum: get_u32(body, 16),
        })
    }
}

/// One thing that a record does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    /// These bytes stand at `offset`.
    Bytes { offset: u64, bytes: &'a [u8] },
    /// Zeros stand there.
    Zeros { offset: u64, length: u64 },
    /// The bits of `mask` are set in the word at `offset`.
    Set { offset: u64, mask: u64 },
    /// The bits of `mask` are clear in the word at `offset`.
    Clear { offset: u64, mask: u64 },
}

const OFFSET_BITS: u32 = 45;
const LENGTH_BITS: u32 = 16;
/// Most bytes of one [`Operation::Bytes`].
pub(crate) const OPERATION_BYTES_MAX: u64 = (1 << LENGTH_BITS) - 8;

impl<'a> Operation<'a> {
    /// Appends the operation; `Bytes` of at most [`OPERATION_BYTES_MAX`].
    pub(crate) fn encode(&self, body: &mut Vec<u8>) {
        let (offset, length, kind) = match *self {
            Operation::Bytes { offset, bytes } => (offset, bytes.len() as u64, 0),
            Operation::Zeros { offset, .. } => (offset, 8, 1),
            Operation::Set { offset, .. } => (offset, 8, 2),
            Operation::Clear { offset, .. } => (offset, 8, 3),
        };
        assert!(offset < LIMIT_BYTES_MAX && length <= OPERATION_BYTES_MAX, "within an operation");
        let word = offset | length << OFFSET_BITS | kind << (OFFSET_BITS + LENGTH_BITS);
        body.extend_from_slice(&word.to_le_bytes());
        match *self {
            Operation::Bytes { bytes, .. } => {
                body.extend_from_slice(bytes);
                body.resize(body.len().next_multiple_of(8), 0);
            }
            Operation::Zeros { length, .. } => body.extend_from_slice(&length.to_le_bytes()),
            Operation::Set { mask, .. } | Operation::Clear { mask, .. } => {
                body.extend_from_slice(&mask.to_le_bytes());
            }
        }
    }

    /// What stands in front of `length` bytes for `offset`, at most [`OPERATION_BYTES_MAX`].
    pub(crate) fn bytes_word(offset: u64, length: u64) -> u64 {
        assert!(offset < LIMIT_BYTES_MAX && length <= OPERATION_BYTES_MAX, "within an operation");
        offset | length << OFFSET_BITS
    }

    /// The first operation of `body`, which is not empty, and the rest; `None` if it makes no
    /// sense.
    pub(crate) fn decode(body: &'a [u8]) -> Option<(Operation<'a>, &'a [u8])> {
        let word = body.get(..8).map(|word| get_u64(word, 0))?;
        let offset = word & ((1 << OFFSET_BITS) - 1);
        let length = (word >> OFFSET_BITS & ((1 << LENGTH_BITS) - 1)) as usize;
        let bytes = body.get(8..8 + length)?;
        let rest = body.get((8 + length).next_multiple_of(8)..)?;
        let kind = word >> (OFFSET_BITS + LENGTH_BITS);
        if kind == 0 {
            return Some((Operation::Bytes { offset, bytes }, rest));
        }
        let value = (length == 8).then(|| get_u64(bytes, 0))?;
        let aligned = offset.is_multiple_of(8);
        let operation = match kind {
            1 => Operation::Zeros { offset, length: value },
            2 if aligned => Operation::Set { offset, mask: value },
            3 if aligned => Operation::Clear { offset, mask: value },
            _ => return None,
        };
        Some((operation, rest))
    }

    /// The range it changes.
    pub(crate) fn range(&self) -> (u64, u64) {
        match *self {
            Operation::Bytes { offset, bytes } => (offset, bytes.len() as u64),
            Operation::Zeros { offset, length } => (offset, length),
            Operation::Set { offset, .. } | Operation::Clear { offset, .. } => (offset, 8),
        }
    }
}

/// The header of the double-write area: which pages its images belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoubleWrite {
    /// The head and generation of the log when the images were made; of no other is it valid.
    pub(crate) head: u64,
    pub(crate) generation: u32,
    /// Offset and checksum of each image, in the order in which they stand.
    pub(crate) pages: Vec<(u64, u32)>,
}

const DOUBLE_MAGIC: [u8; 8] = *b"ENTRDBLW";
/// Most images in the double-write area.
pub(crate) const DOUBLE_PAGES_MAX: u64 = 255;
const DOUBLE_LIST_AT: usize = 48;

impl DoubleWrite {
    pub(crate) fn encode(&self, heap_id: &[u8; 16]) -> Vec<u8> {
        assert!(self.pages.len() as u64 <= DOUBLE_PAGES_MAX, "a batch fits the header");
        let mut page = vec![0; PAGE_BYTES as usize];
        page[0..8].copy_from_slice(&DOUBLE_MAGIC);
        page[8..24].copy_from_slice(heap_id);
        put_u64(&mut page, 24, self.head);
        put_u32(&mut page, 32, self.generation);
        put_u32(&mut page, 36, self.pages.len() as u32);
        for (index, (offset, checksum)) in self.pages.iter().enumerate() {
            put_u64(&mut page, DOUBLE_LIST_AT + index * 12, *offset);
            put_u32(&mut page, DOUBLE_LIST_AT + index * 12 + 8, *checksum);
        }
        let checksum = crc32c::crc32c(&page[..CHECKSUM_AT]);
        put_u32(&mut page, CHECKSUM_AT, checksum);
        page
    }

    /// The header in `page` if it is whole and of this heap.
    pub(crate) fn decode(page: &[u8], heap_id: &[u8; 16]) -> Option<DoubleWrite> {
        let whole = page[0..8] == DOUBLE_MAGIC
            && page[8..24] == *heap_id
            && get_u32(page, CHECKSUM_AT) == crc32c::crc32c(&page[..CHECKSUM_AT]);
        let count = get_u32(page, 36) as usize;
        if !whole || count as u64 > DOUBLE_PAGES_MAX {
            return None;
        }
        let pages = (0..count)
            .map(|index| DOUBLE_LIST_AT + index * 12)
            .map(|at| (get_u64(page, at), get_u32(page, at + 8)))
            .collect();
        Some(DoubleWrite { head: get_u64(page, 24), generation: get_u32(page, 32), pages })
    }
}

/// What a page of data begins, as its word of the page table says. Pages inside a span or a run
/// have a word of zero, as free ones have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageEntry {
    Free,
    /// `pages` pages of slots of `slot_bytes` each, a bitmap in front.
    Span {
        slot_bytes: u64,
        pages: u64,
    },
    /// One allocation of `bytes`, in whole pages.
    Run {
        bytes: u64,
    },
}

const ENTRY_SPAN: u64 = 1;
const ENTRY_RUN: u64 = 2;
const ENTRY_KIND_SHIFT: u32 = 56;
const SPAN_PAGES_SHIFT: u32 = 32;

impl PageEntry {
    pub(crate) fn encode(self) -> u64 {
        match self {
            PageEntry::Free => 0,
            PageEntry::Span { slot_bytes, pages } => {
                ENTRY_SPAN << ENTRY_KIND_SHIFT | pages << SPAN_PAGES_SHIFT | slot_bytes
            }
            PageEntry::Run { bytes } => ENTRY_RUN << ENTRY_KIND_SHIFT | bytes,
        }
    }

    /// `None` if the word makes no sense.
    pub(crate) fn decode(word: u64) -> Option<PageEntry> {
        let value = word & ((1 << ENTRY_KIND_SHIFT) - 1);
        match word >> ENTRY_KIND_SHIFT {
            0 => (word == 0).then_some(PageEntry::Free),
            ENTRY_SPAN => {
                let slot_bytes = value & ((1 << SPAN_PAGES_SHIFT) - 1);
                let pages = value >> SPAN_PAGES_SHIFT;
                (slot_bytes > 0 && pages > 0).then_some(PageEntry::Span { slot_bytes, pages })
            }
            ENTRY_RUN => (value > 0).then_some(PageEntry::Run { bytes: value }),
            _ => None,
        }
    }
}

pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
