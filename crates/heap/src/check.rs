//! Check of a heap: superblocks, log, page table, bitmaps, root; and repair.
//!
//! A check changes nothing. A repair gives up as little as possible, and reports it: records behind
//! a damaged one, and allocations whose marks mean nothing. It invents no bytes.

use std::path::Path;
use std::sync::Arc;

use crate::allocator::{Allocator, Fix, Flaw};
use crate::backing::{Backing, FileBacking, Site};
use crate::cipher::Cipher;
use crate::core::map_all;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Operation, PAGE_BYTES, ROOT_OFFSET, SUPERBLOCKS, Superblock};
use crate::heap::Heap;
use crate::heap_file::HeapFile;
use crate::lost::Lost;
use crate::memory::Memory;
use crate::opening::{advance, read_superblock, registered_sizes};
use crate::options::Access;
use crate::replay::{self, Replay};

/// Whether [`check`] may change the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Look only.
    No,
    /// Give up what is damaged, so that the heap opens.
    Yes,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong, a sentence each; empty if the heap is sound.
    pub problems: Vec<String>,
    /// What is worth knowing and no damage.
    pub notes: Vec<String>,
    /// What a repair did, a sentence each.
    pub repaired: Vec<String>,
    /// Live allocations.
    pub live: u64,
    /// Bytes usable in them.
    pub live_bytes: u64,
    /// Records of the log that the next opening applies.
    pub log_records: u64,
}

/// Another than damage to it does not leave records of its generation, or pages behind the size.
const LOST: &str = "the newest superblock is damaged; the log tells what it said";

/// Checks the heap in a file that nobody writes.
///
/// Errors: `NotFound`; `InUse`; `Incompatible` if it is no heap at all; `WrongKey` if it is
/// encrypted and `cipher` is not what it was made with; `Corrupt` for what no repair mends.
pub fn check(path: &Path, repair: Repair, cipher: Option<&Arc<dyn Cipher>>) -> Result<Report> {
    let access = match repair {
        Repair::No => Access::ReadOnly,
        Repair::Yes => Access::ReadWrite,
    };
    let backing = Arc::new(FileBacking::open(path, access)?);
    let checked = check_on(backing.clone(), repair, cipher);
    backing.release();
    checked
}

/// As [`check`], for the heap on a backing.
pub fn check_on(
    backing: Arc<dyn Backing>,
    repair: Repair,
    cipher: Option<&Arc<dyn Cipher>>,
) -> Result<Report> {
    let mut superblock = read_superblock(&*backing)?;
    let mut file = HeapFile::open(Arc::clone(&backing), &superblock, cipher)?;
    let mut report = Report::default();
    note_superblocks(&*backing, &mut report)?;
    let lost = Lost::beside(&file, &superblock)?;
    let mut replay = Replay::read(&file, &superblock, None)?;
    report.log_records = replay.records() as u64;
    if let Some(damage) = replay.damage {
        report.problems.push(format!(
            "the log is damaged at position {}: {} whole records behind it would be lost",
            damage.at, damage.records_behind
        ));
    }
    if repair == Repair::Yes {
        replay::restore(&*backing, &superblock)?;
        while advance(&file, &mut superblock, &replay, lost)? {
            report.problems.push(LOST.to_owned());
            report.repaired.push("made a superblock out from the log".to_owned());
            replay::restore(&*backing, &superblock)?;
            replay = Replay::read(&file, &superblock, None)?;
        }
        if let Some(damage) = replay.damage {
            let sentence = format!("dropped {} records of the log", damage.records_behind);
            report.repaired.push(sentence);
        }
    }
    let memory = Memory::reserve(superblock.limit_bytes)?;
    if repair == Repair::No {
        file.show(replay::images(&*backing, &superblock)?);
    }
    let damaged = map_all(&file, &memory, &superblock)?;
    if !damaged.is_empty() {
        return tell_of(damaged, repair, report);
    }
    if repair == Repair::No {
        replay.apply_to(&memory, &*backing, &superblock)?;
        if lost.shows_in(&file, &superblock, (replay.end, &memory))? {
            report.problems.push(LOST.to_owned());
            return Ok(report);
        }
    }
    let flaws = look_over(&memory, &superblock, &mut report);
    if repair == Repair::Yes && !flaws.is_empty() {
        mend(&file, &mut superblock, &flaws, &mut report)?;
    }
    Ok(report)
}

impl Heap {
    /// Checks the heap's committed state while it is used. Checkpoints wait meanwhile.
    pub fn check(&self) -> Result<Report> {
        let core = self.core();
        let mut superblock = core.superblock.lock();
        core.log.check_whole()?;
        if !core.is_read_only {
            core.checkpoint_locked(&mut superblock)?;
        }
        let mut report = Report::default();
        let memory = Memory::reserve(superblock.limit_bytes)?;
        let damaged = map_all(&core.file, &memory, &superblock)?;
        if !damaged.is_empty() {
            return tell_of(damaged, Repair::No, report);
        }
        if core.is_read_only {
            let replay = Replay::read(&core.file, &superblock, None)?;
            replay.apply_to(&memory, &*core.file.backing, &superblock)?;
        }
        // Pages of the file that are not copied yet change with it: the lock is held to the end.
        look_over(&memory, &superblock, &mut report);
        Ok(report)
    }
}

/// Bytes that are lost are not invented by a repair.
fn tell_of(damaged: Vec<Error>, repair: Repair, mut report: Report) -> Result<Report> {
    report.problems.extend(damaged.iter().map(Error::to_string));
    match (repair, damaged.into_iter().next()) {
        (Repair::Yes, Some(first)) => {
            let detail = format!("{} pages cannot be repaired: {first}", report.problems.len());
            Err(Error::new(ErrorKind::Corrupt, detail))
        }
        _ => Ok(report),
    }
}

fn note_superblocks(backing: &dyn Backing, report: &mut Report) -> Result<()> {
    for place in SUPERBLOCKS {
        let mut page = vec![0; PAGE_BYTES as usize];
        backing.read(place, &mut page)?;
        let is_blank = page.iter().all(|byte| *byte == 0);
        if !is_blank && !matches!(Superblock::decode(&page), Ok(Some(_))) {
            report.notes.push(format!(
                "the superblock at {place} is not whole, as after power loss; the other one counts"
            ));
        }
    }
    Ok(())
}

/// Reads page table and bitmaps; tells of all flaws.
fn look_over(memory: &Memory, superblock: &Superblock, report: &mut Report) -> Vec<Flaw> {
    let places = (superblock.table_offset, superblock.data_offset, superblock.size_bytes);
    let sizes = registered_sizes(memory);
    let (allocator, flaws) = Allocator::read(memory, places, &sizes);
    for flaw in &flaws {
        report.problems.push(format!("page {} of the data: {}", flaw.page, flaw.detail));
    }
    (report.live, report.live_bytes) = (allocator.live, allocator.live_bytes);
    let root = memory.load(ROOT_OFFSET);
    if root != 0 && allocator.find(root).is_none() {
        let sentence = format!("the root is {root}, which is not the handle of a live allocation");
        report.notes.push(sentence);
    }
    flaws
}

/// Writes what makes the flaws go away, with the same care as a checkpoint.
fn mend(
    file: &HeapFile,
    superblock: &mut Superblock,
    flaws: &[Flaw],
    report: &mut Report,
) -> Result<()> {
    let mut body = Vec::new();
    for flaw in flaws {
        for fix in &flaw.fixes {
            match *fix {
                Fix::Zero { word } => {
                    Operation::Bytes { offset: word, bytes: &[0; 8] }.encode(&mut body);
                    let page = flaw.page;
                    report.repaired.push(format!("page {page} of the data: called free"));
                }
                Fix::Clear { word, mask } => {
                    Operation::Clear { offset: word, mask }.encode(&mut body);
                    let page = flaw.page;
                    report.repaired.push(format!("page {page} of the data: cleared marks"));
                }
            }
        }
    }
    Replay::of_body(body, superblock).apply(file, superblock)?;
    file.write_superblock(superblock, Site::Head)
}
