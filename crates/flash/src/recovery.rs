//! Opening a store: superblock, then the checkpoint of a clean stop, or, after a crash, what the
//! segments themselves say.
//!
//! After a crash, per shard: 1. headers and footers of all segments; 2. segments without a whole
//! footer are scanned record by record (from the write buffers that outlived the process, where
//! they did) and sealed; 3. segments not proven durable before a power loss have every record
//! checked; 4. of all records of one key the highest sequence wins; 5. pieces find their manifests.
//!
//! Invariants: values are read only in steps 2 and 3; recovery may itself be interrupted anywhere
//! and run again; memory is bounded by the index's share of the cap and what an open may use
//! beside, and by twice `PASS_BYTES` a shard.

mod again;
mod claims;
mod context;
mod entries;
mod footers;
mod former;
mod former_parts;
mod growth;
mod intake;
mod journal;
mod orphan_segments;
mod rows;
mod scan;
mod survey;

use context::Context;
use entries::Taken;
pub(crate) use scan::{Scanner, parse, seal_image};

use std::sync::Arc;

use entresol_device::{Device, IoBuffer, OverlayDevice, SharedFile, check_unknown};
use parking_lot::Mutex;

use crate::buffers::Attached;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    FORMAT_VERSION, FORMAT_VERSION_FIRST, RECORD_ALIGNMENT, SEQUENCE_END, SUPERBLOCK_BYTES,
    Superblock,
};
use crate::index::{BESIDE_TABLE_BYTES, Index};
use crate::log::{Log, Shape, Siblings};
use crate::options::{
    Job, OpenMode, Parallel, Reclaim, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, StoreOptions,
};
use crate::policy::{self, Order};
use crate::record::{HashSeed, Payloads};
use crate::shard::{Limits, Shard, seconds_of};
use crate::statistics::{FormerBuffers, Opened};
use crate::superblock::{self, Root};
use crate::types::{Durability, Timestamp};
use former::Former;
use survey::Images;

/// Segments below this many a shard make no store.
const SEGMENTS_MIN: u32 = 16;
/// Sync units that a segment holds at least.
const UNITS_MIN: u32 = 4;
/// Bytes of a shard that the addresses of the index reach.
const SHARD_BYTES_MAX: u64 = RECORD_ALIGNMENT as u64 * (1 << ADDRESS_BITS_MAX);
const ADDRESS_BITS_MAX: u32 = 36;

/// A store as an opening found or made it.
pub(crate) struct Recovered {
    pub device: Arc<dyn Device>,
    /// Those given, with what was fixed when the store was made.
    pub options: StoreOptions,
    pub shards: Vec<Shard>,
    pub payloads: Arc<Payloads>,
    pub hash_seed: HashSeed,
    pub superblock: Superblock,
    /// What was wrong with one of its copies, and what became of it.
    pub superblock_damage: Option<String>,
    /// The file of the write buffers, if they outlive the process.
    pub buffer_file: Option<SharedFile>,
    pub former_buffers: FormerBuffers,
    pub opened: Opened,
}

/// Opens or makes the store on `device`.
pub(crate) fn open(
    device: Arc<dyn Device>,
    mut options: StoreOptions,
    now: Timestamp,
) -> Result<Recovered> {
    check_options(&options)?;
    let payloads = Arc::new(Payloads::new(options.compression, options.encryption.as_ref())?);
    let (root, made) = find_or_make_root(&*device, &mut options, &payloads, now)?;
    let Root { mut superblock, damage } = root;
    let mut former = Former::find(&options, &superblock, &*device)?;
    let mut images = former.take_images(&superblock);
    let device = match options.mode {
        // What only they hold is shown over the device, which stays as it is.
        OpenMode::ReadOnly if !images.is_empty() => Arc::new(OverlayDevice::new(device)),
        _ => device,
    };
    let siblings = Siblings::new();
    let same_boot = options.boot != 0 && superblock.boot == options.boot;
    let hash_seed = HashSeed::new(superblock.hash_seed, options.index_hash_bits);
    let mut shards = Vec::new();
    for number in 0..superblock.shards {
        let shape = shape_of(&superblock, number, &*device, &options);
        let log = Log::new(shape, Arc::clone(&device), Arc::clone(&siblings))?;
        let index = new_index(&shape, &options)?;
        let mut shard = Shard::new(log, index, Arc::clone(&payloads), limits(&options));
        shard.take_root(&superblock.floors, hash_seed);
        // What a former run dropped as ended is not in the index that a checkpoint brings back;
        // later checkpoints say it themselves.
        shard.know_ended(seconds_of(now));
        shards.push(shard);
    }
    let mut opened = load_checkpoint(&mut shards, &superblock, options.parallel)?;
    if made {
        opened = Opened::Made;
        shards.iter_mut().for_each(|shard| shard.begin_after(superblock.record_sequence));
    } else if opened != Opened::Checkpoint {
        let read_only = options.mode == OpenMode::ReadOnly;
        let scratch_bytes = options.scratch_bytes_max / u64::from(superblock.shards);
        let context = Context { same_boot, read_only, now, scratch_bytes };
        recover_all(&mut shards, std::mem::take(&mut images), context, options.parallel)?;
    }
    superblock.record_sequence += jump_of_restored(&superblock, &payloads, options.seed ^ now.0);
    renew_sequences(&mut shards, &mut superblock, opened);
    siblings
        .sequences
        .store(superblock.next_segment_sequence, std::sync::atomic::Ordering::Relaxed);
    shards.iter_mut().for_each(|shard| shard.log.collect_free());
    // Nobody else may have their file open by now.
    drop(images);
    let (former_state, mut buffer_file) = (former.state.clone(), None);
    if options.mode != OpenMode::ReadOnly {
        let root = (&*device, &mut superblock);
        let Attached { shards: buffers, file } =
            former.succeed(root, &options, options.seed ^ now.0)?;
        superblock.checkpoint = Vec::new();
        superblock.boot = options.boot;
        if options.journal_bytes > 0 {
            superblock.version = FORMAT_VERSION;
        }
        superblock::write(&*device, &mut superblock)?;
        shards.iter_mut().zip(buffers).for_each(|(shard, buffers)| shard.log.attach(buffers));
        buffer_file = file;
    }
    Ok(Recovered {
        device,
        options,
        shards,
        payloads,
        hash_seed,
        superblock,
        superblock_damage: damage,
        buffer_file,
        former_buffers: former_state,
        opened,
    })
}

/// The root of the store, as large as `options` want it, and whether it was made just now.
fn find_or_make_root(
    device: &dyn Device,
    options: &mut StoreOptions,
    payloads: &Payloads,
    now: Timestamp,
) -> Result<(Root, bool)> {
    let found = find_superblock(device, options)?;
    let made = found.is_none();
    let Root { mut superblock, damage } = match found {
        Some(root) => root,
        None => Root { superblock: new_superblock(device, options, payloads, now)?, damage: None },
    };
    check_superblock(&superblock, device, payloads)?;
    let kind = if made { ErrorKind::InvalidInput } else { ErrorKind::Incompatible };
    check_unit(superblock.segment_bytes, device).map_err(|detail| Error::new(kind, detail))?;
    check_journal(&superblock, options)?;
    options.segment_bytes = superblock.segment_bytes;
    options.shards = superblock.shards;
    if made {
        erase_segments(device, &superblock, 0..superblock.segments_per_shard)?;
        superblock::write(device, &mut superblock)?;
    } else {
        growth::grow(device, &mut superblock, options)?;
    }
    // Every opening that may write writes both copies.
    let remedy = match options.mode {
        OpenMode::ReadOnly => "; whoever opens the store to write writes it anew",
        _ => "; it was written anew",
    };
    Ok((Root { superblock, damage: damage.map(|said| said + remedy) }, made))
}

/// Loads the checkpoint of a clean stop, if there is one and it is whole. What it says is in the
/// segments, too, so one that is damaged or cannot be read costs time only.
fn load_checkpoint(
    shards: &mut [Shard],
    superblock: &Superblock,
    parallel: Parallel,
) -> Result<Opened> {
    if superblock.checkpoint.len() != shards.len() {
        return Ok(Opened::Recovered);
    }
    let load = |shard: &mut Shard| {
        let list = &superblock.checkpoint[usize::from(shard.log.shape().shard)];
        crate::checkpoint::load(shard, list)
    };
    for loaded in each_shard(shards, parallel, &load) {
        match loaded {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                for (shard, list) in shards.iter_mut().zip(&superblock.checkpoint) {
                    shard.forget_all();
                    // Whatever is found there: no record stands in them.
                    list.iter().for_each(|part| shard.log.hold_checkpoint(*part));
                }
                return Ok(Opened::DamagedCheckpoint);
            }
            loaded => loaded?,
        }
    }
    Ok(Opened::Checkpoint)
}

/// Rebuilds all shards from their segments. The copies of former write buffers go before an index
/// comes to its full size: both count for the memory cap.
fn recover_all(
    shards: &mut [Shard],
    images: Images,
    context: Context,
    parallel: Parallel,
) -> Result<()> {
    let taken: Vec<Mutex<Option<Taken>>> = shards.iter().map(|_| Mutex::default()).collect();
    let of = |shard: &Shard| &taken[usize::from(shard.log.shape().shard)];
    let take = |shard: &mut Shard| {
        *of(shard).lock() = Some(entries::take(shard, &images, context)?);
        Ok(())
    };
    each_shard(shards, parallel, &take).into_iter().collect::<Result<()>>()?;
    drop(images);
    let rebuild = |shard: &mut Shard| {
        let found = of(shard).lock().take();
        found.map_or(Ok(()), |found| entries::rebuild(shard, found, context))
    };
    each_shard(shards, parallel, &rebuild).into_iter().collect()
}

/// Does `work` on every shard, at the same time where the caller's `parallel` does so.
fn each_shard(
    shards: &mut [Shard],
    parallel: Parallel,
    work: &(dyn Fn(&mut Shard) -> Result<()> + Sync),
) -> Vec<Result<()>> {
    let mut results: Vec<Option<Result<()>>> = shards.iter().map(|_| None).collect();
    let jobs = shards.iter_mut().zip(&mut results).map(|(shard, result)| {
        let job: Job<'_> = Box::new(move || *result = Some(work(shard)));
        job
    });
    parallel(jobs.collect());
    let ran = "whoever lends threads runs every job, or unwinds";
    results.into_iter().map(|result| result.expect(ran)).collect()
}

/// Puts the sequences beyond all that may have been used, also in segments whose headers were lost,
/// and says so in the superblock.
fn renew_sequences(shards: &mut [Shard], superblock: &mut Superblock, opened: Opened) {
    let segments = shards.iter().flat_map(|s| s.log.segments());
    let highest = segments.map(|s| s.sequence).max().unwrap_or(0);
    let floors = superblock.floors.iter().map(|f| f.below).max().unwrap_or(0);
    let next = (highest + 1).max(superblock.next_segment_sequence).max(floors);
    let count = u64::from(superblock.segments_per_shard) * u64::from(superblock.shards);
    // A segment is used again only after a sync, so a crash loses one use of each at most.
    let lost = if opened.is_clean() { 0 } else { 2 * count };
    superblock.next_segment_sequence = next + lost;
    if opened.is_clean() {
        return;
    }
    let highest = shards.iter().map(Shard::sequence).max().unwrap_or(0);
    let sequence = highest.max(superblock.record_sequence) + SEQUENCE_GAP;
    shards.iter_mut().for_each(|shard| shard.begin_after(sequence));
    superblock.record_sequence = sequence;
}

/// Set apart from the sequences of records that a crash may have lost: they must not be used again,
/// neither as versions nor in the nonces of encryption.
const SEQUENCE_GAP: u64 = 1 << 32;

/// How much further the sequences of a store begin that was restored, if it is encrypted: it must
/// use no nonce that the store that it is a copy of has used since, nor another copy. Only in a
/// snapshot does the root name no boot.
fn jump_of_restored(superblock: &Superblock, payloads: &Payloads, seed: u64) -> u64 {
    let is_restored = superblock.boot == 0 && payloads.encrypts();
    let drawn = xxhash_rust::xxh3::xxh3_64_with_seed(b"restored", seed) >> (64 - JUMP_BITS);
    if is_restored { drawn } else { 0 }
}

/// So many restores fit the sequences that there are, and two of them hardly meet.
const JUMP_BITS: u32 = 48;

/// The root of the store to open; `None` if one is to be made.
fn find_superblock(device: &dyn Device, options: &StoreOptions) -> Result<Option<Root>> {
    let mode = options.mode;
    if mode == OpenMode::Reformat {
        return Ok(None);
    }
    match superblock::read(device) {
        Err(error) if error.kind() == ErrorKind::Corrupt && mode == OpenMode::OpenOrOverwrite => {
            Ok(None)
        }
        Ok(None) if mode != OpenMode::OpenOrOverwrite => {
            orphan_segments::refuse(device, options.segment_bytes)?;
            if mode == OpenMode::ReadOnly {
                let detail = format!("{} holds no store to open for reading", device.name());
                return Err(Error::new(ErrorKind::Incompatible, detail));
            }
            check_unknown(device, 2 * SUPERBLOCK_BYTES as u64)?;
            Ok(None)
        }
        found => found,
    }
}

fn new_superblock(
    device: &dyn Device,
    options: &StoreOptions,
    payloads: &Payloads,
    now: Timestamp,
) -> Result<Superblock> {
    let capacity = capacity_of(device, options);
    let per_shard = segments_a_shard(&device.name(), capacity, options)?;
    let seed = xxhash_rust::xxh3::xxh3_128_with_seed(
        format!("{} {}", device.name(), capacity).as_bytes(),
        now.0 ^ options.seed,
    );
    Ok(Superblock {
        version: FORMAT_VERSION_FIRST,
        generation: 0,
        store: (seed >> 64) as u64,
        hash_seed: seed as u64,
        segment_bytes: options.segment_bytes,
        shards: options.shards,
        segments_per_shard: per_shard,
        boot: options.boot,
        key_check: payloads.key_check(),
        // A former store on the medium may have left records behind: ours are of other generations.
        next_segment_sequence: 1 + ((seed >> 32) as u64 & 0x7fff_ffff),
        // Stores may share a key: each has nonces of its own.
        record_sequence: 1 + if payloads.encrypts() { (seed >> 64) as u64 >> 3 } else { 0 },
        floors: Vec::new(),
        checkpoint: Vec::new(),
        opening: 0,
    })
}

/// Bytes that a new store takes, or one that grows.
fn capacity_of(device: &dyn Device, options: &StoreOptions) -> u64 {
    let there = device.geometry().capacity_bytes;
    options.capacity_bytes.map_or(there, |wanted| wanted.min(there))
}

/// How many segments each shard of so large a store gets.
fn segments_a_shard(name: &str, capacity: u64, options: &StoreOptions) -> Result<u32> {
    let (shards, bytes) = (u64::from(options.shards), u64::from(options.segment_bytes));
    let base = base_offset(options.segment_bytes);
    let segments = capacity.saturating_sub(base) / bytes / shards;
    let detail = if segments < u64::from(SEGMENTS_MIN) {
        let needed = base + u64::from(SEGMENTS_MIN) * shards * bytes;
        format!(
            "{name} has {capacity} bytes; {shards} shards with segments of {bytes} bytes need at \
             least {needed}: give it more, or make the store with fewer `shards` or a smaller \
             `segment`"
        )
    } else if segments * bytes > SHARD_BYTES_MAX {
        format!(
            "{name} has {capacity} bytes; {shards} shards address {} at most: make the store with \
             {} shards or more",
            shards * SHARD_BYTES_MAX,
            capacity.div_ceil(SHARD_BYTES_MAX)
        )
    } else {
        return Ok(segments as u32);
    };
    Err(Error::new(ErrorKind::InvalidInput, detail))
}

/// Where segments start: behind both superblock copies.
fn base_offset(segment_bytes: u32) -> u64 {
    u64::from(segment_bytes).max(2 * SUPERBLOCK_BYTES as u64)
}

fn check_options(options: &StoreOptions) -> Result<()> {
    let fail = |detail: String| Err(Error::new(ErrorKind::InvalidInput, detail));
    if !(1..=64).contains(&options.shards) {
        return fail(format!("{} shards; 1 to 64 expected", options.shards));
    }
    let bytes = options.segment_bytes;
    if !is_segment_size(bytes) {
        let detail =
            format!("segments of {bytes} bytes; a power of two from 65536 to 8388608 expected");
        return fail(detail);
    }
    if options.buffers_per_shard < 6 {
        return fail(format!("{} buffers a shard; at least 6 expected", options.buffers_per_shard));
    }
    Ok(())
}

fn is_segment_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes)
}

fn check_superblock(
    superblock: &Superblock,
    device: &dyn Device,
    payloads: &Payloads,
) -> Result<()> {
    if superblock.key_check != payloads.key_check() {
        let detail = match (superblock.key_check, payloads.key_check()) {
            (0, _) => "the store is not encrypted, but a key was given; open it without the key",
            (_, 0) => "the store is encrypted; give the file with its key",
            _ => "the store was made with another encryption key; give that key's file",
        };
        return Err(Error::new(ErrorKind::WrongKey, format!("{}: {detail}", device.name())));
    }
    let sequences = [superblock.next_segment_sequence, superblock.record_sequence];
    let floors = superblock.floors.iter().map(|floor| floor.below);
    let highest = floors.chain(sequences).chain([superblock.generation]).max().unwrap_or(0);
    let plausible = is_segment_size(superblock.segment_bytes)
        && (1..=64).contains(&superblock.shards)
        && superblock.segments_per_shard >= SEGMENTS_MIN
        && highest < SEQUENCE_END;
    if !plausible {
        let detail = format!(
            "{} has a superblock with a valid checksum and impossible contents; restore the \
             device from a copy, or force a new store to be made over it",
            device.name()
        );
        return Err(Error::unless_forced(ErrorKind::Corrupt, detail));
    }
    let needed = used_bytes(superblock);
    let capacity = device.geometry().capacity_bytes;
    if needed > u128::from(capacity) {
        let detail = format!(
            "{} has {capacity} bytes, but its store was made for {needed} and does not shrink; use \
             the whole device it was made on",
            device.name()
        );
        return Err(Error::new(ErrorKind::Incompatible, detail));
    }
    Ok(())
}

/// What to say of segments that are too small for the units that `device` writes safely: the
/// erasure of one would reach into the next, and a sync would leave little but padding in one.
fn check_unit(segment_bytes: u32, device: &dyn Device) -> std::result::Result<(), String> {
    let unit = device.geometry().sync_unit_bytes;
    let least = unit.saturating_mul(UNITS_MIN);
    if segment_bytes >= least && segment_bytes.is_multiple_of(unit) {
        return Ok(());
    }
    Err(format!(
        "{} writes {unit} bytes at a time so that no power failure harms others; segments of \
         {segment_bytes} bytes are too small for it: {least} or a multiple expected; give the \
         store larger segments, which are fixed when it is made, or a device with smaller units",
        device.name()
    ))
}

/// Bytes of the device that a store uses, from its beginning.
fn used_bytes(superblock: &Superblock) -> u128 {
    u128::from(base_offset(superblock.segment_bytes))
        + u128::from(superblock.segments_per_shard)
            * u128::from(superblock.shards)
            * u128::from(superblock.segment_bytes)
}

fn shape_of(
    superblock: &Superblock,
    shard: u16,
    device: &dyn Device,
    options: &StoreOptions,
) -> Shape {
    Shape {
        store: superblock.store,
        shard,
        shards: superblock.shards,
        segment_bytes: superblock.segment_bytes,
        segments: superblock.segments_per_shard,
        base: base_offset(superblock.segment_bytes),
        sync_unit: device.geometry().sync_unit_bytes,
        durable_writes: options.durability == Durability::Synced,
        erases_in_order: policy::of(options.reclaim).order() == Order::InTurn,
        journal_segments: journal_segments(superblock, options),
    }
}

/// Segments of a shard that the journal may take.
fn journal_segments(superblock: &Superblock, options: &StoreOptions) -> u32 {
    let each = u64::from(superblock.shards) * u64::from(superblock.segment_bytes);
    match options.journal_bytes.div_ceil(each) {
        0 => 0,
        segments => segments.clamp(2, u64::from(u32::MAX)) as u32,
    }
}

/// Refuses a journal to a cache, and one that leaves entries less than half of the store.
fn check_journal(superblock: &Superblock, options: &StoreOptions) -> Result<()> {
    let wanted = journal_segments(superblock, options);
    if wanted == 0 {
        return Ok(());
    }
    let fail = |detail: String| Err(Error::new(ErrorKind::InvalidInput, detail));
    let bytes = options.journal_bytes;
    if options.reclaim == Reclaim::Evict {
        return fail(format!("{bytes} bytes for the journal of a cache, which has none; give 0"));
    }
    let most = superblock.segments_per_shard / JOURNAL_PART;
    if wanted > most {
        let each = u64::from(superblock.shards) * u64::from(superblock.segment_bytes);
        return fail(format!(
            "{bytes} bytes for the journal, {wanted} segments in each of {} shards; at most {most} \
             expected: give at most {}, or the store more capacity",
            superblock.shards,
            u64::from(most) * each
        ));
    }
    Ok(())
}

/// The journal takes at most this part of a store.
const JOURNAL_PART: u32 = 4;

fn new_index(shape: &Shape, options: &StoreOptions) -> Result<Index> {
    let bits = address_bits(shape.segments, shape.segment_bytes);
    Index::new(bits, index_buckets_max(shape, options))
}

/// Bits of the index that the addresses of a shard take.
fn address_bits(segments: u32, segment_bytes: u32) -> u32 {
    let units = u64::from(segments) * u64::from(segment_bytes) / RECORD_ALIGNMENT as u64;
    (64 - units.leading_zeros()).clamp(20, ADDRESS_BITS_MAX)
}

/// Buckets that the smallest records would need, or that the memory cap allows.
pub(crate) fn index_buckets_max(shape: &Shape, options: &StoreOptions) -> u64 {
    let units = u64::from(shape.segments) * u64::from(shape.segment_bytes) / 96;
    let share = options.index_bytes_max / u64::from(shape.shards);
    let allowed = share.saturating_sub(BESIDE_TABLE_BYTES.min(share / 2)) / 64;
    (units / 6 + 64).min(allowed.max(64))
}

fn limits(options: &StoreOptions) -> Limits {
    Limits {
        policy: policy::of(options.reclaim),
        index_bytes_max: options.index_bytes_max / u64::from(options.shards),
        full_mark_percent: options.full_mark_percent,
        slow_mark_percent: options.slow_mark_percent,
    }
}

/// Clears the first block of `segments` of each shard, so that nothing of a former store is found.
fn erase_segments(
    device: &dyn Device,
    superblock: &Superblock,
    segments: std::ops::Range<u32>,
) -> Result<()> {
    let block = device.geometry().sync_unit_bytes.max(4096) as usize;
    let mut found = IoBuffer::aligned(block);
    let zeros = IoBuffer::aligned(block);
    let shards = u64::from(superblock.shards);
    let bytes = u64::from(superblock.segment_bytes);
    for segment in u64::from(segments.start) * shards..u64::from(segments.end) * shards {
        let offset = base_offset(superblock.segment_bytes) + segment * bytes;
        device.read_at(offset, &mut found)?;
        if found.iter().any(|b| *b != 0) {
            device.write_at(offset, &zeros)?;
        }
    }
    device.sync()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_beyond_the_reach_of_its_shards_is_refused_with_the_number_needed() {
        let options = StoreOptions { shards: 2, ..StoreOptions::default() };
        let reach = 2 * SHARD_BYTES_MAX;
        let most = segments_a_shard("d", reach, &options).map(u64::from);
        let bytes = u64::from(options.segment_bytes);
        assert!(
            most.is_ok_and(|n| n * bytes <= SHARD_BYTES_MAX && n * bytes > reach / 2 - 2 * bytes)
        );
        let error = segments_a_shard("d", reach + (8 << 30), &options).err();
        let detail = error.map(|e| e.to_string()).unwrap_or_default();
        assert!(detail.contains("make the store with 3 shards or more"), "{detail}");
    }
}
