//! Making heaps, opening them, and recovery during an opening.
//!
//! ```text
//! choose a superblock ► write interrupted images again ► read the log ► damaged in the middle?
//! refuse : apply it ► next generation's superblock ► map ► rebuild the allocator
//! ```
//! If a crash cuts a step short, the next opening begins again with the first step.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use crate::allocator::Allocator;
use crate::backing::{Backing, Site};
use crate::cipher::Cipher;
use crate::core::{Core, map_all, room_for_table};
use crate::encryption::Encryption;
use crate::encryption::format::Places;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    DOUBLE_PAGES_MAX, LIMIT_BYTES_MAX, LOG_OFFSET, PAGE_BYTES, SIZES_MAX, SIZES_OFFSET,
    SUPERBLOCKS, Superblock,
};
use crate::guard::Guards;
use crate::heap_file::{self, HeapFile};
use crate::log::Log;
use crate::lost::Lost;
use crate::memory::Memory;
use crate::options::{Access, CreateOptions, OpenOptions};
use crate::random_id::draw_id;
use crate::replay::{self, Replay};
use crate::signal::Signal;

const LOG_BYTES_MIN: u64 = 64 << 10;
const LOG_BYTES_MAX: u64 = 64 << 20;
const LOG_BYTES_AT_MOST: u64 = 1 << 30;
/// Part of the heap that the log takes unless told otherwise.
const LOG_SHARE: u64 = 8;
const DOUBLE_PAGES_MIN: u64 = 16;
/// Pages of the heap for each page of the double-write area.
const DOUBLE_SHARE: u64 = 64;

/// The layout of a new heap. Errors: `InvalidInput` if its own structures leave no page for data.
pub(crate) fn plan(options: &CreateOptions) -> Result<Superblock> {
    let pages = |bytes: u64| bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
    let asked = pages(options.bytes);
    let limit = pages(options.limit_bytes.max(options.bytes));
    if limit > LIMIT_BYTES_MAX {
        let detail = format!("a heap of {limit} bytes; expected at most {LIMIT_BYTES_MAX}");
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    let wanted = options.log_bytes.unwrap_or(asked / LOG_SHARE);
    let log_most = if options.log_bytes.is_some() { LOG_BYTES_AT_MOST } else { LOG_BYTES_MAX };
    let log_least = if options.log_bytes.is_some() { 4 * PAGE_BYTES } else { LOG_BYTES_MIN };
    let log_bytes = pages(wanted).clamp(log_least, log_most);
    let double_pages =
        (asked / PAGE_BYTES / DOUBLE_SHARE).clamp(DOUBLE_PAGES_MIN, DOUBLE_PAGES_MAX);
    let double_offset = LOG_OFFSET + log_bytes;
    let cipher_bytes = match options.cipher {
        Some(_) => Places::table_bytes_at_limit(limit),
        None => 0,
    };
    let table_offset = double_offset + (double_pages + 1) * PAGE_BYTES + cipher_bytes;
    let data_offset = table_offset + pages(limit.saturating_sub(table_offset) / PAGE_BYTES * 8);
    let least = data_offset + PAGE_BYTES;
    let size_bytes = if limit > asked { asked.max(least) } else { asked };
    if size_bytes < least || limit < size_bytes {
        let detail = format!(
            "a heap of {asked} bytes that may grow to {limit}: its own structures take {least}"
        );
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    let heap_id = match options.heap_id {
        Some(heap_id) => heap_id,
        None => draw_id()?,
    };
    Ok(Superblock {
        heap_id,
        label: options.label,
        sequence: 0,
        generation: 0,
        log_bytes,
        double_offset,
        double_pages,
        table_offset,
        data_offset,
        size_bytes,
        limit_bytes: limit,
        head: 0,
        cipher: None,
    })
}

/// Lays the heap of `superblock` out on a backing of zeros. Opening it makes it durable.
pub(crate) fn format(
    backing: &dyn Backing,
    superblock: &Superblock,
    cipher: Option<&Arc<dyn Cipher>>,
) -> Result<()> {
    let Superblock { table_offset, data_offset, size_bytes, .. } = *superblock;
    if cipher.is_some() {
        heap_file::refuse_words(backing)?;
    }
    backing.resize(size_bytes)?;
    let places = Places::of(superblock);
    let mut first = Superblock { sequence: 1, ..superblock.clone() };
    let encryption = match cipher {
        Some(cipher) => {
            let encryption = Encryption::new(cipher, superblock.heap_id)?;
            encryption.sign(&mut first)?;
            Some(encryption)
        }
        None => None,
    };
    backing.make_room(0, room_in_front(&first))?;
    room_for_table(backing, (table_offset, data_offset), size_bytes)?;
    backing.make_room(data_offset, size_bytes - data_offset)?;
    // Blocks that were written once are written again without a change of the file's own records.
    let zeros = vec![0; (256 << 10).min(superblock.log_bytes) as usize];
    let mut at = LOG_OFFSET;
    while at < places.cipher_table {
        let length = (places.cipher_table - at).min(zeros.len() as u64) as usize;
        backing.write(Site::Create, at, &zeros[..length])?;
        at += length as u64;
    }
    if let Some(encryption) = encryption {
        for (at, page) in encryption.blank_tables(places, 0, size_bytes) {
            backing.write(Site::Create, at, &page)?;
        }
    }
    backing.write(Site::Create, SUPERBLOCKS[1], &first.encode())
}

/// Bytes in front of the page table that are written sooner or later at this size.
pub(crate) fn room_in_front(superblock: &Superblock) -> u64 {
    let places = Places::of(superblock);
    match superblock.cipher {
        Some(_) => places.table_offset(places.tables(superblock.size_bytes)),
        None => places.cipher_table,
    }
}

/// The superblock that counts.
pub(crate) fn read_superblock(backing: &dyn Backing) -> Result<Superblock> {
    let bytes = backing.bytes()?;
    let mut best: Option<Superblock> = None;
    let mut refused = None;
    for place in SUPERBLOCKS.into_iter().filter(|place| place + PAGE_BYTES <= bytes) {
        let mut page = vec![0; PAGE_BYTES as usize];
        backing.read(place, &mut page)?;
        match Superblock::decode(&page) {
            Ok(found) => {
                let newer = |found: &Superblock| {
                    best.as_ref().is_none_or(|best| best.sequence < found.sequence)
                };
                best = found.filter(newer).or(best);
            }
            Err(error) => refused = Some(error),
        }
    }
    let name = backing.name();
    // One that is whole and not understood may be the newer one.
    if let Some(found) = best.filter(|_| refused.is_none()) {
        if found.size_bytes > bytes {
            let detail = format!(
                "{name}: the file has {bytes} bytes; its superblock says {}",
                found.size_bytes
            );
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        return Ok(found);
    }
    match refused {
        Some(error) => Err(Error::new(error.kind(), format!("{name}: {error}"))),
        None => {
            let detail = format!(
                "{name}: not a heap, or one whose making was cut short: neither of its two \
                 superblocks is whole"
            );
            Err(Error::new(ErrorKind::Incompatible, detail))
        }
    }
}

/// Opens the heap on `backing`; recovers it unless it is only read.
pub(crate) fn open(
    backing: Arc<dyn Backing>,
    options: &OpenOptions,
    has_keeper: bool,
) -> Result<Core> {
    let mut superblock = read_superblock(&*backing)?;
    check_label(&*backing, &superblock, options)?;
    let memory = Memory::reserve(superblock.limit_bytes)?;
    let mut file = HeapFile::open(Arc::clone(&backing), &superblock, options.cipher.as_ref())?;
    let replay = match options.access {
        Access::ReadWrite => {
            recover(&file, &mut superblock)?;
            None
        }
        Access::ReadOnly => {
            file.show(replay::images(&*backing, &superblock)?);
            Some(read_log(&file, &superblock)?)
        }
    };
    if let Some(damaged) = map_all(&file, &memory, &superblock)?.into_iter().next() {
        return Err(damaged);
    }
    let file = Arc::new(file);
    let log = Log::new(Arc::clone(&file), &superblock);
    if let Some(replay) = replay {
        replay.apply_to(&memory, &*backing, &superblock)?;
        let lost = Lost::beside(&file, &superblock)?;
        if lost.shows_in(&file, &superblock, (replay.end, &memory))? {
            let detail = format!(
                "{}: the newest superblock is damaged; open the heap for writing, or run \
                 `entresol heap check --repair`: what it said is made out from the log",
                backing.name()
            );
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        log.close_for_reading();
    }
    let Superblock { table_offset, data_offset, size_bytes, limit_bytes, .. } = superblock;
    let sizes = registered_sizes(&memory);
    let places = (table_offset, data_offset, size_bytes);
    let (allocator, flaws) = Allocator::read(&memory, places, &sizes);
    if let Some(flaw) = flaws.first() {
        let detail = format!(
            "{}: page {} of the data: {} ({} such pages); a backup is the way back",
            backing.name(),
            flaw.page,
            flaw.detail,
            flaws.len()
        );
        return Err(Error::new(ErrorKind::Corrupt, detail));
    }
    Ok(Core {
        file,
        memory,
        log,
        superblock: Mutex::new(superblock),
        allocator: Mutex::new(allocator),
        registering: Mutex::new(()),
        guards: Guards::new(),
        signal: Signal::default(),
        durability: options.durability,
        size: AtomicU64::new(size_bytes),
        limit: limit_bytes,
        data_offset,
        table_offset,
        checkpoints: AtomicU64::new(0),
        commits: AtomicU64::new(0),
        transactions: AtomicU64::new(1),
        has_keeper,
        is_read_only: options.access == Access::ReadOnly,
    })
}

/// Brings the file to the end of its log and begins the next generation.
fn recover(file: &HeapFile, superblock: &mut Superblock) -> Result<()> {
    let backing = &*file.backing;
    let lost = Lost::beside(file, superblock)?;
    loop {
        replay::restore(backing, superblock)?;
        let replay = read_log(file, superblock)?;
        if !advance(file, superblock, &replay, lost)? {
            break;
        }
    }
    if backing.bytes()? > superblock.size_bytes {
        if file.encryption.is_none() {
            // To the other one, records are missing that stood in what is cut off.
            file.write_superblock(superblock, Site::Head)?;
        }
        backing.resize(superblock.size_bytes)?;
    }
    Ok(())
}

/// Applies what was read and begins the next generation. True if a superblock that was lost had
/// said more, which this one says now: then the log is to be read again.
pub(crate) fn advance(
    file: &HeapFile,
    superblock: &mut Superblock,
    replay: &Replay,
    lost: Lost,
) -> Result<bool> {
    replay.apply(file, superblock)?;
    if lost.growth(file, superblock)? {
        return Ok(true);
    }
    let is_room_freed = replay.end.next_multiple_of(PAGE_BYTES) != superblock.head;
    superblock.begin_generation(replay.end);
    file.write_superblock(superblock, Site::Head)?;
    if lost.opening(file, superblock)? {
        return Ok(true);
    }
    if lost.is_possible() {
        // Records of the opening whose superblock is lost may stand further on in the log.
        superblock.generation += 1;
        file.write_superblock(superblock, Site::Head)?;
    }
    if is_room_freed || lost.is_possible() || file.encryption.is_some() {
        // Both say so before the room of the records that were applied is used again: what is
        // behind the other one's head would be missing. Of an encrypted heap nothing would tell
        // of the records of this opening, without its salt.
        file.write_superblock(superblock, Site::Head)?;
    }
    Ok(false)
}

fn read_log(file: &HeapFile, superblock: &Superblock) -> Result<Replay> {
    let replay = Replay::read(file, superblock, None)?;
    if let Some(damage) = replay.damage {
        let detail = format!(
            "{}: the log is damaged at position {}: what stood there was durable, and {} whole \
             records stand behind it; `entresol heap check --repair` opens the heap without them, \
             or restore a backup",
            file.backing.name(),
            damage.at,
            damage.records_behind
        );
        return Err(Error::new(ErrorKind::Corrupt, detail));
    }
    Ok(replay)
}

fn check_label(
    backing: &dyn Backing,
    superblock: &Superblock,
    options: &OpenOptions,
) -> Result<()> {
    match options.label {
        Some(expected) if expected != superblock.label => {
            let text = |label: &[u8; 16]| label.escape_ascii().to_string().replace("\\x00", "");
            let detail = format!(
                "{}: a heap of kind `{}`; expected `{}`",
                backing.name(),
                text(&superblock.label),
                text(&expected)
            );
            Err(Error::new(ErrorKind::Incompatible, detail))
        }
        _ => Ok(()),
    }
}

/// The sizes that were registered, in order.
pub(crate) fn registered_sizes(memory: &Memory) -> Vec<u64> {
    let words = (0..SIZES_MAX).map(|index| memory.load(SIZES_OFFSET + index * 8));
    words.take_while(|bytes| *bytes > 0).collect()
}
