//! Reading the log back, and applying it to the file, for checkpoints and for recovery.
//!
//! Invariants:
//! 1. Only durable records are applied, in order, to the file's own pages: never a byte of the
//!    working memory, which may hold uncommitted changes.
//! 2. On pages, new images are durable in the double-write area before the first of them is written
//!    in place, so that a torn page is written again by the next recovery.
//! 3. The log's head moves only after everything applied is durable in place (the caller's step).

use std::ops::Range;
use std::sync::Arc;

use entresol_planted::planted;

use crate::backing::{Backing, Site, Unit};
use crate::cipher::CipherKey;
use crate::encryption::format::{EncryptedExtent, Subject};
use crate::encryption::{PIECE_BYTES_MAX, decrypt_record};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    DoubleWrite, Extent, LINE_BYTES, LOG_OFFSET, Operation, PAGE_BYTES, RECORD_HEADER_BYTES,
    RecordHeader, RecordKind, Superblock,
};
use crate::heap_file::{Batch, HeapFile, Image};
use crate::log::past_margin;
use crate::memory::Memory;

/// Records read back from the log.
pub(crate) struct Replay {
    bytes: Vec<u8>,
    bodies: Vec<Body>,
    /// Where the last whole record ends.
    pub(crate) end: u64,
    /// What stands whole behind a damaged record although it was durable.
    pub(crate) damage: Option<Damage>,
    /// Of an encrypted heap: what its records are decrypted with.
    key: Option<Arc<dyn CipherKey>>,
}

enum Body {
    Here(Range<usize>),
    Outside(Vec<u8>),
}

/// A record that was durable and is not whole any more, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Position of the damaged record.
    pub(crate) at: u64,
    /// Whole records behind it.
    pub(crate) records_behind: u64,
}

impl Replay {
    /// Reads the records from the head of `superblock` to `end`, or as far as they are whole.
    pub(crate) fn read(
        file: &HeapFile,
        superblock: &Superblock,
        end: Option<u64>,
    ) -> Result<Replay> {
        let from = superblock.head;
        let length = end.map_or(superblock.log_bytes, |end| end - from);
        let bytes = read_ring(&*file.backing, superblock, length)?;
        let key = file.encryption.as_ref().map(|keys| keys.record_key(superblock)).transpose()?;
        let mut replay = Replay { bytes, bodies: Vec::new(), end: from, damage: None, key };
        let is_damaged = replay.scan(file, superblock)?;
        if end.is_none() && !planted!("heap-damage-passed-over") {
            replay.damage = replay.find_damage(superblock, is_damaged);
        }
        Ok(replay)
    }

    /// One record that is in no log.
    pub(crate) fn of_body(body: Vec<u8>, superblock: &Superblock) -> Replay {
        let bodies = vec![Body::Here(0..body.len())];
        Replay { bytes: body, bodies, end: superblock.head, damage: None, key: None }
    }

    /// Records that hold operations.
    pub(crate) fn records(&self) -> usize {
        self.bodies.len()
    }

    /// Reads record after record; whether the last one is whole, but not the operations that it
    /// leads to.
    fn scan(&mut self, file: &HeapFile, superblock: &Superblock) -> Result<bool> {
        let from = superblock.head;
        loop {
            let position = past_margin(self.end);
            let Some((header, clear)) = self.record_at(superblock, position) else {
                return Ok(false);
            };
            let start = (position - from) as usize;
            let body = start + RECORD_HEADER_BYTES as usize..start + header.length as usize;
            if let Some(clear) = clear.filter(|clear| !clear.is_empty()) {
                self.bytes[body.clone()].copy_from_slice(&clear);
            }
            match header.kind {
                RecordKind::Padding => {}
                RecordKind::Operations => self.bodies.push(Body::Here(body)),
                RecordKind::Outside => {
                    match read_extent(file, superblock, &self.bytes[body]) {
                        Ok(body) => self.bodies.push(Body::Outside(body)),
                        // They were durable before the record was made.
                        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(true),
                        Err(error) => return Err(error),
                    }
                }
            }
            self.end = position + u64::from(header.length);
        }
    }

    /// The record that stands whole at `position`; with its body, if that is encrypted here.
    fn record_at(
        &self,
        superblock: &Superblock,
        position: u64,
    ) -> Option<(RecordHeader, Option<Vec<u8>>)> {
        let start = (position - superblock.head) as usize;
        let ring_left = superblock.log_bytes - position % superblock.log_bytes;
        let end = self.bytes.len().min(start + ring_left as usize);
        let bytes = self.bytes.get(start..end)?;
        let generation = superblock.generation;
        match &self.key {
            Some(key) => decrypt_record(&**key, bytes, position, generation)
                .map(|(header, body)| (header, Some(body))),
            None => RecordHeader::decode(bytes, position, generation, superblock.seed())
                .map(|header| (header, None)),
        }
    }

    /// A record behind the end says that more was durable when it was made: then what stands at the
    /// end was not in flight, but was lost. Of operations outside of the log that is known.
    fn find_damage(&self, superblock: &Superblock, is_known: bool) -> Option<Damage> {
        let at = past_margin(self.end);
        let last = superblock.head + self.bytes.len() as u64;
        let whole = (at + 8..last).step_by(8).filter_map(|from| self.record_at(superblock, from));
        let (mut records_behind, mut is_proved) = (0, is_known);
        for (header, _) in whole {
            records_behind += u64::from(header.kind != RecordKind::Padding);
            is_proved |= header.durable > at;
        }
        is_proved.then_some(Damage { at, records_behind })
    }

    /// Applies every record to the pages of `file`; durable on return.
    pub(crate) fn apply(&self, file: &HeapFile, superblock: &Superblock) -> Result<()> {
        let mut pages = Pages { file, superblock, pieces: Vec::new(), unsynced: false };
        for body in &self.bodies {
            for operation in self.operations(body) {
                let operation = checked(operation, &*file.backing, superblock)?;
                pages.take(operation)?;
            }
        }
        pages.finish()
    }

    /// Applies every record to `memory` and nothing to the file.
    pub(crate) fn apply_to(
        &self,
        memory: &Memory,
        backing: &dyn Backing,
        superblock: &Superblock,
    ) -> Result<()> {
        for body in &self.bodies {
            for operation in self.operations(body) {
                let operation = checked(operation, backing, superblock)?;
                let (offset, length) = operation.range();
                if offset + length > superblock.size_bytes {
                    continue;
                }
                match operation {
                    Operation::Bytes { offset, bytes } => memory.write(offset, bytes),
                    Operation::Zeros { offset, length } => memory.fill_zeros(offset, length),
                    Operation::Set { offset, mask } => {
                        memory.store(offset, memory.load(offset) | mask);
                    }
                    Operation::Clear { offset, mask } => {
                        memory.store(offset, memory.load(offset) & !mask);
                    }
                }
            }
        }
        Ok(())
    }

    fn operations<'a>(
        &'a self,
        body: &'a Body,
    ) -> impl Iterator<Item = Option<Operation<'a>>> + use<'a> {
        let mut rest = match body {
            Body::Here(range) => &self.bytes[range.clone()],
            Body::Outside(bytes) => bytes,
        };
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let decoded = Operation::decode(rest);
            rest = decoded.map_or(&[], |(_, rest)| rest);
            Some(decoded.map(|(operation, _)| operation))
        })
    }
}

/// Writes the images of an interrupted checkpoint in place again; durable on return.
pub(crate) fn restore(backing: &dyn Backing, superblock: &Superblock) -> Result<()> {
    let images = images(backing, superblock)?;
    if images.is_empty() {
        return Ok(());
    }
    for (offset, image) in &images {
        backing.write(Site::Restore, *offset, image)?;
    }
    backing.sync(Site::Restore)
}

/// The double-write area's images if they are whole and of a checkpoint from this head.
pub(crate) fn images(backing: &dyn Backing, superblock: &Superblock) -> Result<Vec<Image>> {
    let none = Ok(Vec::new());
    if backing.unit() == Unit::Word {
        return none;
    }
    let mut header = vec![0; PAGE_BYTES as usize];
    backing.read(superblock.double_offset, &mut header)?;
    let Some(found) = DoubleWrite::decode(&header, &superblock.heap_id) else { return none };
    let current = (found.head, found.generation) == (superblock.head, superblock.generation);
    if !current || found.pages.len() as u64 > superblock.double_pages {
        return none;
    }
    let mut images = Vec::new();
    for (index, (offset, checksum)) in found.pages.into_iter().enumerate() {
        let mut image = vec![0; PAGE_BYTES as usize];
        let at = superblock.double_offset + (index as u64 + 1) * PAGE_BYTES;
        backing.read(at, &mut image)?;
        // One torn image: the write of them was cut short, and nothing was written in place.
        if crc32c::crc32c(&image) != checksum || !superblock.holds_image(offset) {
            return none;
        }
        images.push((offset, image));
    }
    Ok(images)
}

/// What records do to pages, gathered so that each page is read and written once.
struct Pages<'a> {
    file: &'a HeapFile,
    superblock: &'a Superblock,
    pieces: Vec<(u64, Piece<'a>)>,
    /// Whether something written directly waits for a sync.
    unsynced: bool,
}

/// The part of an operation that falls into one page, at an offset within it.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Bytes { at: usize, bytes: &'a [u8] },
    Zeros { at: usize, length: usize },
    Set { at: usize, mask: u64 },
    Clear { at: usize, mask: u64 },
}

/// Pieces gathered at most.
const PIECES_MAX: usize = 1 << 19;
/// Whole pages of zeros from which on they are written at once, without images.
const ZERO_PAGES_MIN: u64 = 64;

impl<'a> Pages<'a> {
    fn take(&mut self, operation: Operation<'a>) -> Result<()> {
        match operation {
            Operation::Bytes { offset, bytes } => {
                let mut done = 0;
                while done < bytes.len() {
                    let (page, at, left) = place(offset + done as u64);
                    let bytes = &bytes[done..bytes.len().min(done + left)];
                    self.add(page, Piece::Bytes { at, bytes });
                    done += bytes.len();
                }
            }
            Operation::Zeros { offset, length } => self.take_zeros(offset, length)?,
            Operation::Set { offset, mask } => {
                let (page, at, _) = place(offset);
                self.add(page, Piece::Set { at, mask });
            }
            Operation::Clear { offset, mask } => {
                let (page, at, _) = place(offset);
                self.add(page, Piece::Clear { at, mask });
            }
        }
        if self.pieces.len() >= PIECES_MAX { self.write() } else { Ok(()) }
    }

    fn take_zeros(&mut self, mut offset: u64, length: u64) -> Result<()> {
        let end = (offset + length).min(self.superblock.size_bytes);
        while offset < end {
            let (page, at, left) = place(offset);
            let whole = (end - offset) / PAGE_BYTES;
            if at == 0 && whole >= ZERO_PAGES_MIN {
                // What stood there before in the log is written first.
                self.write()?;
                self.zero(page, whole)?;
                offset += whole * PAGE_BYTES;
                continue;
            }
            let length = left.min((end - offset) as usize);
            self.add(page, Piece::Zeros { at, length });
            offset += length as u64;
        }
        Ok(())
    }

    /// Whole pages of zeros: without images, or, where their stamps say so, by those alone.
    fn zero(&mut self, page: u64, count: u64) -> Result<()> {
        match self.file.images_of_zeros(page, count)? {
            Some(images) => write_images(self.file, self.superblock, &images),
            None => {
                self.unsynced = true;
                self.file.backing.zero(Site::InPlace, page, count * PAGE_BYTES)
            }
        }
    }

    /// Pages behind the end were cut off after they were freed.
    fn add(&mut self, page: u64, piece: Piece<'a>) {
        if self.file.holds(page, self.superblock.size_bytes) {
            self.pieces.push((page, piece));
        }
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        if self.unsynced {
            self.file.backing.sync(Site::InPlace)?;
        }
        Ok(())
    }

    /// Writes all pages that the gathered pieces change.
    fn write(&mut self) -> Result<()> {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_by_key(|(page, _)| *page);
        let mut batch = Batch::new(self.superblock.double_pages);
        for of_page in pieces.chunk_by(|(one, _), (other, _)| one == other) {
            let page = of_page[0].0;
            let mut old = vec![0; PAGE_BYTES as usize];
            self.file.read_page(page, &mut old)?;
            let mut image = old.clone();
            for (_, piece) in of_page {
                piece.apply(&mut image);
            }
            if self.file.backing.unit() == Unit::Word {
                self.write_lines(page, &old, &image)?;
            } else if old != image && batch.add(self.file, page, image) {
                self.write_batch(batch.take())?;
            }
        }
        self.write_batch(batch.take())
    }

    fn write_batch(&mut self, pages: Vec<Image>) -> Result<()> {
        let images = self.file.images(pages)?;
        if !images.is_empty() {
            write_images(self.file, self.superblock, &images)?;
            self.unsynced = false;
        }
        Ok(())
    }

    fn write_lines(&mut self, page: u64, old: &[u8], new: &[u8]) -> Result<()> {
        let line = LINE_BYTES as usize;
        for at in
            (0..new.len()).step_by(line).filter(|at| old[*at..at + line] != new[*at..at + line])
        {
            let offset = page + at as u64;
            self.file.backing.write(Site::InPlace, offset, &new[at..at + line])?;
            self.unsynced = true;
        }
        Ok(())
    }
}

/// Writes images, in ascending order, into the double-write area, then in place; durable on return.
pub(crate) fn write_images(
    file: &HeapFile,
    superblock: &Superblock,
    images: &[Image],
) -> Result<()> {
    for images in images.chunks(superblock.double_pages as usize) {
        write_group(&*file.backing, superblock, images)?;
    }
    Ok(())
}

fn write_group(backing: &dyn Backing, superblock: &Superblock, images: &[Image]) -> Result<()> {
    let Superblock { head, generation, .. } = *superblock;
    let pages = images.iter().map(|(page, image)| (*page, crc32c::crc32c(image))).collect();
    let header = DoubleWrite { head, generation, pages };
    let mut double = header.encode(&superblock.heap_id);
    images.iter().for_each(|(_, image)| double.extend_from_slice(image));
    backing.write(Site::DoubleWrite, superblock.double_offset, &double)?;
    backing.sync(Site::DoubleWrite)?;
    let follows = |one: &Image, other: &Image| one.0 + PAGE_BYTES == other.0;
    for neighbours in images.chunk_by(follows) {
        let bytes: Vec<u8> = neighbours.iter().flat_map(|(_, image)| image).copied().collect();
        backing.write(Site::InPlace, neighbours[0].0, &bytes)?;
    }
    backing.sync(Site::InPlace)
}

impl Piece<'_> {
    fn apply(&self, page: &mut [u8]) {
        match *self {
            Piece::Bytes { at, bytes } => page[at..at + bytes.len()].copy_from_slice(bytes),
            Piece::Zeros { at, length } => page[at..at + length].fill(0),
            Piece::Set { at, mask } => {
                let word = crate::format::get_u64(page, at) | mask;
                crate::format::put_u64(page, at, word);
            }
            Piece::Clear { at, mask } => {
                let word = crate::format::get_u64(page, at) & !mask;
                crate::format::put_u64(page, at, word);
            }
        }
    }
}

/// The page of an offset, the offset within it, and what is left of it.
fn place(offset: u64) -> (u64, usize, usize) {
    let at = offset % PAGE_BYTES;
    (offset - at, at as usize, (PAGE_BYTES - at) as usize)
}

fn checked<'a>(
    operation: Option<Operation<'a>>,
    backing: &dyn Backing,
    superblock: &Superblock,
) -> Result<Operation<'a>> {
    let inside = |operation: &Operation<'_>| {
        let (offset, length) = operation.range();
        superblock.holds(offset, length)
    };
    operation.filter(inside).ok_or_else(|| {
        let name = backing.name();
        let detail = format!("{name}: a whole record of the log holds an operation without sense");
        Error::new(ErrorKind::Corrupt, detail)
    })
}

fn read_ring(backing: &dyn Backing, superblock: &Superblock, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let at = superblock.head % superblock.log_bytes;
    let first = length.min(superblock.log_bytes - at) as usize;
    backing.read(LOG_OFFSET + at, &mut bytes[..first])?;
    backing.read(LOG_OFFSET, &mut bytes[first..])?;
    Ok(bytes)
}

fn read_extent(file: &HeapFile, superblock: &Superblock, body: &[u8]) -> Result<Vec<u8>> {
    let backing = &*file.backing;
    let corrupt = |what: &str| {
        let detail = format!("{}: {what} of a large transaction", backing.name());
        Error::new(ErrorKind::Corrupt, detail)
    };
    let senseless = || corrupt("senseless place");
    let read = |offset: u64, length: u64| {
        let end = offset.checked_add(length);
        if end.is_none_or(|end| backing.bytes().is_ok_and(|bytes| end > bytes)) {
            return Err(corrupt("the file ends before the bytes"));
        }
        let mut bytes = vec![0; length as usize];
        backing.read(offset, &mut bytes)?;
        Ok(bytes)
    };
    let Some(encryption) = &file.encryption else {
        let extent = Extent::decode(body).ok_or_else(senseless)?;
        let bytes = read(extent.offset, extent.length)?;
        if crc32c::crc32c_append(superblock.seed(), &bytes) != extent.checksum {
            return Err(corrupt("the checksum does not fit the bytes"));
        }
        return Ok(bytes);
    };
    let extent = EncryptedExtent::decode(body).ok_or_else(senseless)?;
    let mut bytes = read(extent.offset, extent.length.min(PIECE_BYTES_MAX))?;
    let EncryptedExtent { offset, stamp, .. } = extent;
    if !encryption.decrypt(Subject::Extent, offset, &stamp, &mut bytes)? {
        return Err(corrupt("the authentication tag does not fit the bytes"));
    }
    Ok(bytes)
}
