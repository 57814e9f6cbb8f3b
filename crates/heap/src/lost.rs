//! The contents of a damaged superblock, as far as the log and the page table still show them.
//!
//! If power fails during the write of a superblock, that superblock is damaged, and nothing has
//! been done that needs it. Later damage looks alike, but leaves traces: records of the generation
//! that the superblock began, or pages in use behind the former size. While both superblocks are
//! whole, nobody searches for traces. An encrypted heap would leave none, because the salt of the
//! opening would be gone, too: it has its opening in both superblocks instead.

use crate::backing::Site;
use crate::core::room_for_table;
use crate::error::Result;
use crate::format::{
    LOG_OFFSET, PAGE_BYTES, RECORD_HEADER_BYTES, RecordHeader, SUPERBLOCKS, Superblock, get_u32,
    get_u64,
};
use crate::heap_file::HeapFile;
use crate::memory::Memory;

/// What is looked for, beside a superblock that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    /// Whether there may be anything.
    is_possible: bool,
}

impl Lost {
    /// Whether the superblock beside this one is damaged.
    pub(crate) fn beside(file: &HeapFile, superblock: &Superblock) -> Result<Lost> {
        let mut page = vec![0; PAGE_BYTES as usize];
        let place = SUPERBLOCKS[((superblock.sequence + 1) % 2) as usize];
        file.backing.read(place, &mut page)?;
        let is_blank = page.iter().all(|byte| *byte == 0);
        let is_damaged = !is_blank && matches!(Superblock::decode(&page), Ok(None));
        Ok(Lost { is_possible: is_damaged && file.encryption.is_none() })
    }

    /// Whether there may be anything.
    pub(crate) fn is_possible(&self) -> bool {
        self.is_possible
    }

    /// Whether a record of this superblock's generation stands at its head already.
    pub(crate) fn opening(&self, file: &HeapFile, superblock: &Superblock) -> Result<bool> {
        let Superblock { head, generation, log_bytes, .. } = *superblock;
        let (backing, at) = (&*file.backing, head % log_bytes);
        if !self.is_possible {
            return Ok(false);
        }
        let mut record = vec![0; RECORD_HEADER_BYTES as usize];
        backing.read(LOG_OFFSET + at, &mut record)?;
        let is_here = get_u64(&record, 8) == head && get_u32(&record, 24) == generation;
        let length = u64::from(get_u32(&record, 4));
        if !is_here || length > log_bytes - at || length < RECORD_HEADER_BYTES {
            return Ok(false);
        }
        record.resize(length as usize, 0);
        backing.read(LOG_OFFSET + at, &mut record)?;
        Ok(RecordHeader::decode(&record, head, generation, superblock.seed()).is_some())
    }

    /// Makes the heap as large as it was if its page table tells of more than its size; whether it
    /// did. Records up to the end of the log were applied.
    pub(crate) fn growth(&self, file: &HeapFile, superblock: &mut Superblock) -> Result<bool> {
        let Superblock { table_offset, data_offset, size_bytes: before, .. } = *superblock;
        let backing = &*file.backing;
        let after = superblock.limit_bytes.min(backing.bytes()? / PAGE_BYTES * PAGE_BYTES);
        if !self.is_possible || after <= before {
            return Ok(false);
        }
        let words = unused(superblock);
        let (mut at, mut page) = (words.0 / PAGE_BYTES * PAGE_BYTES, vec![0; PAGE_BYTES as usize]);
        let mut is_used = false;
        while at < words.1 && !is_used {
            backing.read(at, &mut page)?;
            let from = words.0.saturating_sub(at).min(PAGE_BYTES) as usize;
            is_used = page[from..].iter().any(|byte| *byte != 0);
            at += PAGE_BYTES;
        }
        if !is_used {
            return Ok(false);
        }
        room_for_table(backing, (table_offset, data_offset), after)?;
        backing.make_room(before, after - before)?;
        superblock.size_bytes = after;
        file.write_superblock(superblock, Site::Size)?;
        Ok(true)
    }

    /// Whether any of it is the case of a heap that is only read: its log, which ends at `end`, was
    /// applied to `memory`.
    pub(crate) fn shows_in(
        &self,
        file: &HeapFile,
        superblock: &Superblock,
        (end, memory): (u64, &Memory),
    ) -> Result<bool> {
        let (start, stop) = unused(superblock);
        let is_longer = self.is_possible && file.backing.bytes()? > superblock.size_bytes;
        if is_longer && memory.leading_zeros(start, stop - start) < stop - start {
            return Ok(true);
        }
        let mut next = superblock.clone();
        next.begin_generation(end);
        self.opening(file, &next)
    }
}

/// The part of the page table that tells of pages behind the size: from where to where.
fn unused(superblock: &Superblock) -> (u64, u64) {
    let Superblock { table_offset, data_offset, size_bytes, .. } = *superblock;
    (table_offset + (size_bytes - data_offset) / PAGE_BYTES * 8, data_offset)
}
