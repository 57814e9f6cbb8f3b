//! A copy of a heap that is in use: its state at one moment, in a file of its own.
//!
//! First all committed changes are brought into their places. Then the pages are copied while the
//! next checkpoint waits. Commits go on in the log, and wait only if it fills up meanwhile.

use std::path::Path;
use std::sync::Arc;

use crate::backing::{Backing, FileBacking, Site};
use crate::core::{Core, room_for_table};
use crate::encryption::Encryption;
use crate::encryption::format::{STAMPS, Stamp, Subject};
use crate::error::Result;
use crate::format::{HEAD_OFFSET, LOG_OFFSET, PAGE_BYTES, SUPERBLOCKS, Superblock};
use crate::heap::{Heap, sync_directory};
use crate::heap_file::refuse_words;
use crate::opening::room_in_front;

/// Bytes copied at a time; pieces of zeros stay holes.
const PIECE_BYTES: u64 = 256 << 10;

impl Heap {
    /// Copies the heap as the commits so far left it into a new file, which opens as a heap like
    /// any other. Durable on return. The copy of an encrypted heap is encrypted with the same
    /// cipher, under fresh keys.
    ///
    /// Errors: `Exists`; `Full`; `Poisoned` if this heap is; `Closed`.
    pub fn backup(&self, path: &Path) -> Result<()> {
        let backing = FileBacking::create(path)?;
        let copied = self.copy_to(&backing).and_then(|()| sync_directory(path));
        backing.release();
        if copied.is_err() {
            // Made by this call and worth nothing; the error at hand says more than another.
            let _removed = std::fs::remove_file(path);
        }
        copied
    }

    /// As [`Heap::backup`], onto a backing of zeros.
    pub fn backup_on(&self, backing: &Arc<dyn Backing>) -> Result<()> {
        self.copy_to(&**backing)
    }

    fn copy_to(&self, target: &dyn Backing) -> Result<()> {
        let core = self.core();
        let mut superblock = core.superblock.lock();
        core.log.check_whole()?;
        if !core.is_read_only {
            core.checkpoint_locked(&mut superblock)?;
        }
        let Superblock { table_offset, data_offset, size_bytes, .. } = *superblock;
        let table_bytes = ((size_bytes - data_offset) / 512).next_multiple_of(PAGE_BYTES);
        let table_end = data_offset.min(table_offset + table_bytes);
        target.resize(size_bytes)?;
        target.make_room(0, room_in_front(&superblock))?;
        room_for_table(target, (table_offset, data_offset), size_bytes)?;
        target.make_room(data_offset, size_bytes - data_offset)?;
        // An empty log of a generation that never was: no byte of a log is taken for a record.
        let mut first =
            Superblock { sequence: 1, generation: superblock.generation + 1, ..superblock.clone() };
        match &core.file.encryption {
            Some(own) => {
                refuse_words(target)?;
                let fresh = Encryption::new(own.cipher(), superblock.heap_id)?;
                encrypt(core, target, &fresh, size_bytes)?;
                fresh.sign(&mut first)?;
            }
            None => {
                let parts = [
                    (HEAD_OFFSET, LOG_OFFSET),
                    (table_offset, table_end),
                    (data_offset, size_bytes),
                ];
                for (start, end) in parts {
                    copy(core, target, start, end)?;
                }
            }
        }
        target.sync(Site::InPlace)?;
        target.write(Site::Head, SUPERBLOCKS[1], &first.encode())?;
        target.sync(Site::Head)
    }
}

fn copy(core: &Core, target: &dyn Backing, start: u64, end: u64) -> Result<()> {
    let mut at = start;
    while at < end {
        let mut piece = vec![0; PIECE_BYTES.min(end - at) as usize];
        // What a heap that is only read has in its log is applied to its memory alone.
        if core.is_read_only {
            core.memory.read(at, &mut piece);
        } else {
            core.file.backing.read(at, &mut piece)?;
        }
        if piece.iter().any(|byte| *byte != 0) {
            target.write(Site::InPlace, at, &piece)?;
        }
        at += piece.len() as u64;
    }
    Ok(())
}

/// As `copy`, for all pages of an encrypted heap, which get other keys.
fn encrypt(core: &Core, target: &dyn Backing, fresh: &Encryption, size: u64) -> Result<()> {
    let places = core.file.places;
    let mut page = vec![0; PAGE_BYTES as usize];
    for table in 0..places.tables(size) {
        let numbers = table * STAMPS..((table + 1) * STAMPS).min(places.pages(size));
        let mut stamps = vec![Stamp::BLANK; STAMPS as usize];
        for (stamp, number) in stamps.iter_mut().zip(numbers) {
            let at = places.offset_of(number);
            if core.is_read_only {
                core.memory.read(at, &mut page);
            } else {
                core.file.read_page(at, &mut page)?;
            }
            if page.iter().any(|byte| *byte != 0) {
                *stamp = fresh.encrypt(Subject::Page, at, &mut page);
                target.write(Site::InPlace, at, &page)?;
            }
        }
        let offset = places.table_offset(table);
        target.write(Site::InPlace, offset, &fresh.table_image(offset, &stamps))?;
    }
    Ok(())
}
