//! A heap's file: the backing and, in an encrypted heap, the encryption between its plain pages and
//! their bytes in the file.
//!
//! Invariants:
//! 1. No page, record or extent of an encrypted heap reaches the backing unencrypted.
//! 2. A page and its stamp in the cipher table are always written together, as images of one batch.
//!    Recovery from a batch that was cut short writes both again. So each page fits its stamp.
//! 3. Pages without a stamp are zeros, whatever bytes the file has there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backing::{Backing, Site, Unit};
use crate::cipher::Cipher;
use crate::encryption::format::{Places, STAMPS, Stamp, Subject};
use crate::encryption::{Encryption, text_of};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{PAGE_BYTES, SUPERBLOCKS, Superblock};
use crate::memory::Memory;

/// An offset in the file, and the page that stands there or shall.
pub(crate) type Image = (u64, Vec<u8>);

/// The file of an open heap. Thread-safe.
pub(crate) struct HeapFile {
    pub(crate) backing: Arc<dyn Backing>,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) places: Places,
    /// What stands in front of the file's own pages: images of a checkpoint that was cut short, in
    /// a file that is only read.
    shown: BTreeMap<u64, Vec<u8>>,
}

impl HeapFile {
    /// The file with this superblock. Errors: `WrongKey`; `InvalidInput` for an encrypted heap on a
    /// medium of stores.
    pub(crate) fn open(
        backing: Arc<dyn Backing>,
        superblock: &Superblock,
        cipher: Option<&Arc<dyn Cipher>>,
    ) -> Result<HeapFile> {
        let encryption = match (cipher, &superblock.cipher) {
            (None, None) => None,
            (None, Some(mark)) => {
                let (heap, name) = (backing.name(), text_of(mark));
                let detail = format!("{heap}: the heap is encrypted with {name}; give its key");
                return Err(Error::new(ErrorKind::WrongKey, detail));
            }
            (Some(cipher), _) => {
                let encryption = Encryption::new(cipher, superblock.heap_id)?;
                encryption.verify(&backing.name(), superblock)?;
                refuse_words(&*backing)?;
                Some(encryption)
            }
        };
        let places = Places::of(superblock);
        Ok(HeapFile { backing, encryption, places, shown: BTreeMap::new() })
    }

    /// Puts images in front of the file's own pages.
    pub(crate) fn show(&mut self, images: Vec<Image>) {
        self.shown.extend(images);
    }

    /// The bytes of the page at `offset`, in the clear. Errors: `Corrupt` if they are not those
    /// that were written there.
    pub(crate) fn read_page(&self, offset: u64, page: &mut [u8]) -> Result<()> {
        let Some(encryption) = &self.encryption else { return self.read(offset, page) };
        let number = self.places.number_of(offset);
        let stamps = self.stamps(encryption, number / STAMPS)?;
        self.decrypt_page(encryption, offset, &stamps[(number % STAMPS) as usize], page)
    }

    /// Brings the pages from `offset` on, all of them in the clear, to the same offset of `memory`,
    /// where stores never reach the file; those that the heap has at `size` bytes.
    pub(crate) fn map(
        &self,
        memory: &Memory,
        (offset, length): (u64, u64),
        size: u64,
    ) -> Result<()> {
        match self.map_whole(memory, (offset, length), size)?.into_iter().next() {
            Some(damaged) => Err(damaged),
            None => Ok(()),
        }
    }

    /// As [`HeapFile::map`]; pages that are damaged stay zeros, and an error for each is returned.
    pub(crate) fn map_whole(
        &self,
        memory: &Memory,
        (offset, length): (u64, u64),
        size: u64,
    ) -> Result<Vec<Error>> {
        let Some(encryption) = &self.encryption else {
            self.backing.map(memory, offset, length)?;
            for (at, image) in self.shown.range(offset..offset + length) {
                memory.write(*at, image);
            }
            return Ok(Vec::new());
        };
        memory.provide(offset, length)?;
        let mut damaged = Vec::new();
        let mut page = vec![0; PAGE_BYTES as usize];
        let pages = self.places.pages(size);
        for table in 0..self.places.tables(size) {
            let first = table * STAMPS;
            let inside = |number: &u64| {
                let at = self.places.offset_of(*number);
                (offset..offset + length).contains(&at)
            };
            let mut numbers = (first..pages.min(first + STAMPS)).filter(inside).peekable();
            if numbers.peek().is_none() {
                continue;
            }
            let stamps = match self.stamps(encryption, table) {
                Ok(stamps) => stamps,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    damaged.push(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            for number in numbers {
                let (at, stamp) =
                    (self.places.offset_of(number), &stamps[(number - first) as usize]);
                if *stamp == Stamp::BLANK {
                    continue;
                }
                match self.decrypt_page(encryption, at, stamp, &mut page) {
                    Ok(()) => memory.write(at, &page),
                    Err(error) if error.kind() == ErrorKind::Corrupt => damaged.push(error),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(damaged)
    }

    /// Whether the page at `offset` is one of a heap of `size` bytes.
    pub(crate) fn holds(&self, offset: u64, size: u64) -> bool {
        offset < size
            && (self.encryption.is_none()
                || self.places.number_of(offset) < self.places.pages(size))
    }

    /// What to write so that these pages stand in the file, in ascending order.
    pub(crate) fn images(&self, batch: Vec<Image>) -> Result<Vec<Image>> {
        let Some(encryption) = &self.encryption else { return Ok(batch) };
        let mut images = Vec::new();
        let mut stamped = BTreeMap::new();
        for (offset, mut page) in batch {
            let stamp = if page.iter().all(|byte| *byte == 0) {
                Stamp::BLANK
            } else {
                let stamp = encryption.encrypt(Subject::Page, offset, &mut page);
                images.push((offset, page));
                stamp
            };
            stamped.insert(self.places.number_of(offset), stamp);
        }
        images.extend(self.tables_with(encryption, &stamped)?);
        images.sort_unstable_by_key(|(offset, _)| *offset);
        Ok(images)
    }

    /// What to write so that `count` pages from `offset` on are zeros; `None` if the heap is not
    /// encrypted.
    pub(crate) fn images_of_zeros(&self, offset: u64, count: u64) -> Result<Option<Vec<Image>>> {
        let Some(encryption) = &self.encryption else { return Ok(None) };
        let number = |page| self.places.number_of(offset + page * PAGE_BYTES);
        let blank = (0..count).map(|page| (number(page), Stamp::BLANK)).collect();
        self.tables_with(encryption, &blank).map(Some)
    }

    /// Room for the cipher table of a heap of `size` bytes.
    pub(crate) fn make_table_room(&self, size: u64) -> Result<()> {
        if self.encryption.is_none() {
            return Ok(());
        }
        let bytes = self.places.tables(size) * PAGE_BYTES;
        self.backing.make_room(self.places.cipher_table, bytes)
    }

    /// What to write before a heap of `before` bytes has `after`: all its new pages are zeros.
    pub(crate) fn images_of_growth(&self, before: u64, after: u64) -> Result<Vec<Image>> {
        let Some(encryption) = &self.encryption else { return Ok(Vec::new()) };
        let (pages, tables) = (self.places.pages(before), self.places.tables(before));
        // The last page of the table may tell of pages that were cut off.
        let blank = (pages..tables * STAMPS).map(|number| (number, Stamp::BLANK)).collect();
        let mut images = self.tables_with(encryption, &blank)?;
        images.extend(encryption.blank_tables(self.places, tables, after));
        Ok(images)
    }

    /// Writes the next superblock, beside the one that counts so far; durable on return.
    pub(crate) fn write_superblock(&self, superblock: &mut Superblock, site: Site) -> Result<()> {
        superblock.sequence += 1;
        if let Some(encryption) = &self.encryption {
            encryption.sign(superblock)?;
        }
        let place = SUPERBLOCKS[(superblock.sequence % 2) as usize];
        self.backing.write(site, place, &superblock.encode())?;
        self.backing.sync(site)
    }

    /// Writes both superblocks, one after the other: damage to either of them leaves the other,
    /// which says the same.
    pub(crate) fn write_superblocks(&self, superblock: &mut Superblock, site: Site) -> Result<()> {
        self.write_superblock(superblock, site)?;
        self.write_superblock(superblock, site)
    }

    /// Pages of the cipher table with these stamps in them, each under its page's number.
    fn tables_with(
        &self,
        encryption: &Encryption,
        stamped: &BTreeMap<u64, Stamp>,
    ) -> Result<Vec<Image>> {
        let tables: BTreeSet<u64> = stamped.keys().map(|number| number / STAMPS).collect();
        let image_of = |table: u64| {
            let mut stamps = self.stamps(encryption, table)?;
            for (number, stamp) in stamped.range(table * STAMPS..(table + 1) * STAMPS) {
                stamps[(number % STAMPS) as usize] = *stamp;
            }
            let offset = self.places.table_offset(table);
            Ok((offset, encryption.table_image(offset, &stamps)))
        };
        tables.into_iter().map(image_of).collect()
    }

    fn stamps(&self, encryption: &Encryption, table: u64) -> Result<Vec<Stamp>> {
        let offset = self.places.table_offset(table);
        let mut page = vec![0; PAGE_BYTES as usize];
        self.read(offset, &mut page)?;
        encryption.table_stamps(offset, &mut page)?.ok_or_else(|| {
            self.damaged(&format!("{STAMPS} pages' stamps, in the cipher table at {offset},"))
        })
    }

    fn decrypt_page(
        &self,
        encryption: &Encryption,
        offset: u64,
        stamp: &Stamp,
        page: &mut [u8],
    ) -> Result<()> {
        if *stamp == Stamp::BLANK {
            page.fill(0);
            return Ok(());
        }
        self.read(offset, page)?;
        match encryption.decrypt(Subject::Page, offset, stamp, page)? {
            true => Ok(()),
            false => Err(self.damaged(&format!("the page at offset {offset}"))),
        }
    }

    fn damaged(&self, what: &str) -> Error {
        let detail = format!(
            "{}: {what} is not what was written there: its authentication tag does not fit; a \
             backup is the way back",
            self.backing.name()
        );
        Error::new(ErrorKind::Corrupt, detail)
    }

    /// A page as it stands in the file, or in front of it.
    fn read(&self, offset: u64, page: &mut [u8]) -> Result<()> {
        match self.shown.get(&offset) {
            Some(image) => page.copy_from_slice(image),
            None => self.backing.read(offset, page)?,
        }
        Ok(())
    }
}

/// Pages that are written together, as many as the double-write area has room for.
pub(crate) struct Batch {
    pages: Vec<Image>,
    tables: BTreeSet<u64>,
    images_max: u64,
}

impl Batch {
    pub(crate) fn new(images_max: u64) -> Batch {
        Batch { pages: Vec::new(), tables: BTreeSet::new(), images_max }
    }

    /// Adds a page; true once no other surely fits.
    pub(crate) fn add(&mut self, file: &HeapFile, offset: u64, page: Vec<u8>) -> bool {
        self.pages.push((offset, page));
        if file.encryption.is_none() {
            return self.pages.len() as u64 == self.images_max;
        }
        self.tables.insert(file.places.number_of(offset) / STAMPS);
        (self.pages.len() + self.tables.len()) as u64 + 2 > self.images_max
    }

    /// Takes the pages.
    pub(crate) fn take(&mut self) -> Vec<Image> {
        self.tables.clear();
        std::mem::take(&mut self.pages)
    }
}

/// Refuses to encrypt on a medium of stores.
pub(crate) fn refuse_words(backing: &dyn Backing) -> Result<()> {
    match backing.unit() {
        Unit::Page => Ok(()),
        Unit::Word => Err(no_words(&backing.name())),
    }
}

/// Why an encrypted heap does not lie on a medium of stores.
pub(crate) fn no_words(name: &str) -> Error {
    let detail = format!(
        "{name}: an encrypted heap cannot be written by stores: they reach the medium word by \
         word, and an encrypted page changes as a whole, with its stamp; use pages"
    );
    Error::new(ErrorKind::InvalidInput, detail)
}
