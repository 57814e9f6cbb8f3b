//! Records under comparison: of all that claim a key, the newest counts.
//!
//! Claims are spread over parts by the top bits of their hashes, in chunks taken from one table;
//! each part is small enough for a processor's cache and is settled there. What wins takes the
//! place of the part's claims, in the order of hashes, and goes into the index from there. A pass
//! takes as many parts, one behind the other, as there is memory for; where one key has more claims
//! than that, those that cannot count are let go meanwhile.

use std::ops::Range;

use entresol_device::{IoBuffer, Table};

use super::context::{Context, scratch_table};
use super::rows::{Gathered, Rows};
use super::scan::unreadable;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FooterLine, Manifest, RecordKind};
use crate::index::{Place, SizeCode};
use crate::large::Pieces;
use crate::record::Wanted;
use crate::shard::Shard;
use crate::types::{Owner, SpaceId};

/// Words of a claim.
const CLAIM_WORDS: usize = 5;
/// Words of a winner: hash and place.
const WINNER_WORDS: usize = 2;
/// Claims of a part: its share of a processor's second-level cache.
const PART_CLAIMS: u64 = 6_000;
const CUT_BITS_MAX: u32 = 16;
/// Claims of a chunk, and the winners that find room in one.
const CHUNK_CLAIMS: usize = 64;
const CHUNK_WINNERS: usize = CHUNK_CLAIMS * CLAIM_WORDS / WINNER_WORDS;
const CHUNK_BYTES: u64 = (CHUNK_CLAIMS * CLAIM_WORDS * 8) as u64;
/// The part of all chunks that letting claims go must free to be worth its time.
const FREED_PART: usize = 8;

const ADDRESS_BITS: u32 = 36;
const LENGTH_BITS: u32 = 25;
const LENGTH_MAX: u32 = (1 << LENGTH_BITS) - 1;

/// A record under comparison: the hash's high and low half, sequence; address, record bytes and
/// kind; end, space and partition.
#[derive(Debug, Clone, Copy)]
struct Claim([u64; CLAIM_WORDS]);

impl Claim {
    #[inline]
    fn new(line: FooterLine, address: u64) -> Claim {
        let length = u64::from(line.record_bytes().min(LENGTH_MAX));
        let kind = u64::from(line.kind_bits());
        let Owner { space, partition } = line.owner();
        Claim([
            line.hash_high(),
            line.hash_low(),
            line.sequence(),
            address | length << ADDRESS_BITS | kind << (ADDRESS_BITS + LENGTH_BITS),
            u64::from(line.ends_seconds()) | u64::from(space.0) << 32 | u64::from(partition) << 48,
        ])
    }

    #[inline]
    fn hash(&self) -> (u64, u64) {
        (self.0[0], self.0[1])
    }

    #[inline]
    fn sequence(&self) -> u64 {
        self.0[2]
    }

    #[inline]
    fn address(&self) -> u64 {
        self.0[3] & ((1 << ADDRESS_BITS) - 1)
    }

    #[inline]
    fn size(&self) -> SizeCode {
        SizeCode::covering(self.0[3] >> ADDRESS_BITS & u64::from(LENGTH_MAX))
    }

    #[inline]
    fn kind(&self) -> Option<RecordKind> {
        RecordKind::from_bits((self.0[3] >> (ADDRESS_BITS + LENGTH_BITS)) as u8)
    }

    #[inline]
    fn ends_seconds(&self) -> u32 {
        self.0[4] as u32
    }

    #[inline]
    fn owner(&self) -> Owner {
        let word = self.0[4];
        Owner { space: SpaceId((word >> 32) as u16), partition: (word >> 48) as u16 }
    }
}

/// How hashes are cut: their top bits are the number of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    part_bits: u32,
    records: u64,
}

impl Cut {
    /// For about `records` records.
    pub(super) fn new(records: u64) -> Cut {
        let parts = (records / PART_CLAIMS).max(1).next_power_of_two();
        Cut { part_bits: parts.trailing_zeros().min(CUT_BITS_MAX), records }
    }

    pub(super) fn parts(self) -> usize {
        1 << self.part_bits
    }

    /// The parts from `first` on that a pass with memory of `bytes` takes, at least one.
    pub(super) fn pass(self, first: usize, bytes: u64) -> Range<usize> {
        // A part's last chunk is half empty, and some parts have a little more than others.
        let claims = self.records / self.parts() as u64 + CHUNK_CLAIMS as u64;
        let part_bytes = (claims + claims / 16) * 8 * CLAIM_WORDS as u64;
        let parts = (bytes / part_bytes).clamp(1, (self.parts() - first) as u64);
        first..first + parts as usize
    }

    /// Number of the part over all passes.
    #[inline]
    fn part_of(self, hash: u64) -> usize {
        // Two shifts: one by 64 would be none.
        (hash >> 1 >> (63 - self.part_bits)) as usize
    }
}

/// The claims of one pass, part by part.
pub(super) struct Claims {
    memory: Table,
    cut: Cut,
    /// The parts of the pass.
    pass: Range<usize>,
    parts: Vec<Part>,
    /// Chunks in use or free, and how many there may be.
    chunks: u32,
    chunks_max: u32,
    /// Chunks that letting claims go gave back.
    free: Vec<u32>,
    /// There was no memory for another chunk.
    overflowed: bool,
}

#[derive(Debug, Default)]
struct Part {
    /// Where the next claim goes; at a chunk's end if another chunk is needed.
    next: usize,
    chunks: Vec<u32>,
    winners: usize,
}

impl Claims {
    /// For one pass at a time, each of at most `bytes`.
    pub(super) fn new(cut: Cut, bytes: u64) -> Result<Claims> {
        let bytes = bytes.clamp(CHUNK_BYTES, u64::from(u32::MAX) * CHUNK_BYTES);
        Ok(Claims {
            memory: scratch_table(bytes.next_multiple_of(CHUNK_BYTES))?,
            cut,
            pass: 0..0,
            parts: Vec::new(),
            chunks: 0,
            chunks_max: 0,
            free: Vec::new(),
            overflowed: false,
        })
    }

    /// Forgets all claims, and takes those of the parts of `pass` from now on, in memory of
    /// `bytes`.
    pub(super) fn begin(&mut self, pass: Range<usize>, bytes: u64) -> Result<()> {
        self.parts.clear();
        self.parts.resize_with(pass.len(), Part::default);
        self.pass = pass;
        self.free.clear();
        self.chunks = 0;
        let most = (self.memory.words_max() / (CHUNK_CLAIMS * CLAIM_WORDS)) as u64;
        self.chunks_max = (bytes / CHUNK_BYTES).clamp(1, most) as u32;
        self.overflowed = false;
        Ok(self.memory.shrink(self.chunks_max as usize * CHUNK_CLAIMS * CLAIM_WORDS)?)
    }

    /// The parts of the pass.
    pub(super) fn pass(&self) -> Range<usize> {
        self.pass.clone()
    }

    /// Whether claims were left out, because there was no memory for them.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Adds the record of `line` at `address`, if it is of this pass and no piece.
    #[inline]
    pub(super) fn add(&mut self, line: FooterLine, address: u64) {
        if line.is_kind(RecordKind::Piece) {
            return;
        }
        let number = self.cut.part_of(line.hash_high()).wrapping_sub(self.pass.start);
        if self.overflowed || number >= self.parts.len() {
            return;
        }
        if self.parts[number].next.is_multiple_of(CHUNK_CLAIMS) {
            let Some(chunk) = self.take_chunk() else {
                self.overflowed = true;
                return;
            };
            let part = &mut self.parts[number];
            // Letting claims go may have left room where there was none.
            if part.next.is_multiple_of(CHUNK_CLAIMS) {
                part.chunks.push(chunk);
                part.next = chunk as usize * CHUNK_CLAIMS;
            } else {
                self.free.push(chunk);
            }
        }
        let part = &mut self.parts[number];
        self.memory.as_chunks_mut::<CLAIM_WORDS>().0[part.next] = Claim::new(line, address).0;
        part.next += 1;
        // By the time the part's next claim comes, its memory is there.
        self.memory.prefetch(part.next * CLAIM_WORDS + CLAIM_WORDS - 1);
    }

    /// A chunk that is not in use. `None` if there is none, nor enough that can be let go.
    fn take_chunk(&mut self) -> Option<u32> {
        if let Some(chunk) = self.free.pop() {
            return Some(chunk);
        }
        if self.chunks < self.chunks_max {
            let end = (self.chunks as usize + 1) * CHUNK_CLAIMS * CLAIM_WORDS;
            if end <= self.memory.len() || self.memory.grow(end).is_ok() {
                self.chunks += 1;
                return Some(self.chunks - 1);
            }
        }
        self.let_go();
        if self.free.len() < (self.chunks as usize / FREED_PART).max(1) {
            return None;
        }
        self.free.pop()
    }

    /// Lets claims go that cannot count: those older than one of their key that does in any case.
    fn let_go(&mut self) {
        let mut claims = Vec::new();
        for number in 0..self.parts.len() {
            self.gather(number, &mut claims);
            let before = claims.len();
            keep_newest(&mut claims);
            if claims.len() == before {
                continue;
            }
            let part = &mut self.parts[number];
            let kept = claims.len().div_ceil(CHUNK_CLAIMS);
            self.free.extend(part.chunks.drain(kept..));
            let memory = self.memory.as_chunks_mut::<CLAIM_WORDS>().0;
            for (chunk, claims) in part.chunks.iter().zip(claims.chunks(CHUNK_CLAIMS)) {
                let start = *chunk as usize * CHUNK_CLAIMS;
                memory[start..start + claims.len()].copy_from_slice(claims);
                part.next = start + claims.len();
            }
        }
    }

    /// The claims of a part, in the order in which they came.
    fn gather(&self, number: usize, claims: &mut Vec<[u64; CLAIM_WORDS]>) {
        claims.clear();
        let part = &self.parts[number];
        let memory = self.memory.as_chunks::<CLAIM_WORDS>().0;
        let last = part.chunks.len().saturating_sub(1);
        for (at, chunk) in part.chunks.iter().enumerate() {
            let start = *chunk as usize * CHUNK_CLAIMS;
            let end = if at == last { part.next } else { start + CHUNK_CLAIMS };
            claims.extend_from_slice(&memory[start..end]);
        }
    }

    /// Settles all parts: what wins takes their place. Returns how many do.
    pub(super) fn settle(&mut self, settling: &mut Settling<'_>) -> Result<usize> {
        if self.overflowed {
            let detail = "the footers of a shard changed while they were read";
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        let mut winners = 0;
        let mut claims: Vec<[u64; CLAIM_WORDS]> = Vec::new();
        for number in 0..self.parts.len() {
            self.gather(number, &mut claims);
            settling.settle(&claims, self.cut.part_bits)?;
            let part = &mut self.parts[number];
            for (won, chunk) in settling.winners.chunks(CHUNK_WINNERS).zip(&part.chunks) {
                let start = *chunk as usize * CHUNK_WINNERS;
                let memory = self.memory.as_chunks_mut::<WINNER_WORDS>().0;
                memory[start..start + won.len()].copy_from_slice(won);
            }
            part.winners = settling.winners.len();
            winners += part.winners;
        }
        settling.finish_counts();
        Ok(winners)
    }

    /// The winners, in the order of their hashes.
    pub(super) fn winners(&self) -> impl Iterator<Item = (u64, Place)> + '_ {
        let memory = self.memory.as_chunks::<WINNER_WORDS>().0;
        let of_part = move |part: &'_ Part| {
            let mut left = part.winners;
            part.chunks.clone().into_iter().flat_map(move |chunk| {
                let start = chunk as usize * CHUNK_WINNERS;
                let count = left.min(CHUNK_WINNERS);
                left -= count;
                &memory[start..start + count]
            })
        };
        self.parts.iter().flat_map(of_part).map(|[hash, place]| {
            let address = place & ((1 << ADDRESS_BITS) - 1);
            (*hash, Place { address, size: SizeCode::covering(place >> ADDRESS_BITS) })
        })
    }
}

/// Leaves of each key's claims the newest that counts in any case, and those that count before it
/// if they are whole: large values.
fn keep_newest(claims: &mut Vec<[u64; CLAIM_WORDS]>) {
    let rank = |claim: &Claim| std::cmp::Reverse(claim.sequence());
    claims.sort_unstable_by_key(|claim| (Claim(*claim).hash(), rank(&Claim(*claim))));
    let mut newest: Option<Claim> = None;
    claims.retain(|claim| {
        let claim = Claim(*claim);
        let sure = newest.filter(|newest| newest.hash() == claim.hash());
        if sure.is_none() && claim.kind() != Some(RecordKind::Manifest) {
            newest = Some(claim);
        }
        // Of copies the last in the log counts, which is not known here.
        sure.is_none_or(|newest| newest.sequence() == claim.sequence())
    });
}

/// What settling needs, and where its results go.
pub(super) struct Settling<'a> {
    shard: &'a mut Shard,
    context: Context,
    pieces: &'a mut Gathered,
    rows: &'a mut Rows,
    /// Leading bits of the hash and, in the low bits, number of the claim.
    keys: Vec<u64>,
    winners: Vec<[u64; WINNER_WORDS]>,
    /// Claims that share the leading bits; empty between calls.
    group: Vec<Claim>,
    /// Entries counted of the space and partition that the last one was of.
    counted: (Owner, i64),
}

impl<'a> Settling<'a> {
    pub(super) fn new(
        shard: &'a mut Shard,
        context: Context,
        pieces: &'a mut Gathered,
        rows: &'a mut Rows,
    ) -> Settling<'a> {
        Settling {
            shard,
            context,
            pieces,
            rows,
            keys: Vec::new(),
            winners: Vec::new(),
            group: Vec::new(),
            counted: (Owner::default(), 0),
        }
    }

    /// Finds the newest claim of each key of a part. Of equal ones (copies) the last in the log
    /// wins: the segment of an older one may have been written over in part.
    /// The hashes of all of them start with the same `shared` bits.
    fn settle(&mut self, claims: &[[u64; CLAIM_WORDS]], shared: u32) -> Result<()> {
        self.winners.clear();
        let number_bits = claims.len().next_power_of_two().trailing_zeros();
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.extend((0..).zip(claims).map(|(number, claim): (u64, _)| {
            (claim[0] << shared) >> number_bits << number_bits | number
        }));
        keys.sort_unstable();
        let number_of = |key: u64| (key & ((1 << number_bits) - 1)) as usize;
        let mut at = 0;
        while at < keys.len() {
            let leading = keys[at] >> number_bits;
            let same = keys[at + 1..].iter().take_while(|key| **key >> number_bits == leading);
            let end = at + 1 + same.count();
            if end == at + 1 {
                self.settle_one(&Claim(claims[number_of(keys[at])]), false)?;
            } else {
                let group = keys[at..end].iter().map(|key| Claim(claims[number_of(*key)]));
                self.group.extend(group);
                self.settle_group()?;
            }
            at = end;
        }
        self.keys = keys;
        Ok(())
    }

    /// Settles claims that share the leading bits of their hashes, and most often a key.
    fn settle_group(&mut self) -> Result<()> {
        let mut claims = std::mem::take(&mut self.group);
        let rank = |claim: &Claim| (claim.sequence(), self.shard.segment_sequence(claim.address()));
        claims.sort_unstable_by(|a, b| (a.hash(), rank(b)).cmp(&(b.hash(), rank(a))));
        let mut settled = None;
        for (at, claim) in claims.iter().enumerate() {
            let same =
                |next: &Claim| (next.hash(), next.sequence()) == (claim.hash(), claim.sequence());
            let copied = claims.get(at + 1).is_some_and(same);
            if settled != Some(claim.hash()) && self.settle_one(claim, copied)? {
                settled = Some(claim.hash());
            }
        }
        claims.clear();
        self.group = claims;
        Ok(())
    }

    /// Takes `claim` for the newest of its key; false if it cannot be: a large value of which a
    /// piece is missing never was whole, so the next older claim counts. One whose manifest the
    /// medium damaged was: whoever reads it is told, unless another `copied` one stands.
    #[inline]
    fn settle_one(&mut self, claim: &Claim, copied: bool) -> Result<bool> {
        let kind = claim.kind();
        let ends = claim.ends_seconds();
        let ended = ends != 0 && u64::from(ends) * 1000 <= self.context.now.0;
        let whole = if kind == Some(RecordKind::Manifest) {
            match gather(self.shard, claim, self.pieces)? {
                Gathering::Whole(version, pieces) => Some((version, pieces)),
                Gathering::Damaged if !copied => None,
                Gathering::Lacking | Gathering::Damaged => return Ok(false),
            }
        } else {
            None
        };
        let owner = claim.owner();
        let dropped = self.shard.has_floors()
            && self.shard.segment_sequence(claim.address()) < self.shard.floor_of(owner);
        // A large value that ended is dropped by a sweep, with a tombstone: without its pieces it
        // would look like one that never was whole, and hide nothing.
        let ended = ended && whole.is_none();
        if kind == Some(RecordKind::Tombstone) || ended || dropped {
            return Ok(true);
        }
        let (address, size) = (claim.address(), claim.size().bytes());
        self.winners.push([claim.0[0], address | size << ADDRESS_BITS]);
        self.rows.add_live(address, size);
        self.count(owner);
        if let Some((version, value)) = whole {
            for (address, bytes) in &value.places {
                self.rows.add_live(*address, SizeCode::covering(u64::from(*bytes)).bytes());
            }
            self.shard.large.insert(address, version, value);
        }
        Ok(true)
    }

    #[inline]
    fn count(&mut self, owner: Owner) {
        if self.counted.0 != owner {
            self.finish_counts();
            self.counted.0 = owner;
        }
        self.counted.1 += 1;
    }

    fn finish_counts(&mut self) {
        let (owner, count) = self.counted;
        if count != 0 {
            self.shard.counts_mut().add(owner, count);
        }
        self.counted.1 = 0;
    }
}

/// What was found of a large value.
enum Gathering {
    /// What it is known by, and its pieces.
    Whole(u64, Pieces),
    /// A piece is missing.
    Lacking,
    /// The manifest does not verify.
    Damaged,
}

/// Finds the value whose manifest is `claim`. Its pieces are taken out: they belong to one value.
fn gather(shard: &Shard, claim: &Claim, pieces: &mut Gathered) -> Result<Gathering> {
    let (segment, offset) = shard.log.shape().split(claim.address());
    let sector = 4096;
    let start = u64::from(offset) / sector * sector;
    let end = u64::from(offset) + claim.size().bytes();
    let end = end.next_multiple_of(sector).min(u64::from(shard.log.shape().segment_bytes));
    let mut bytes = IoBuffer::aligned(end.saturating_sub(start).max(sector) as usize);
    let at = shard.log.shape().offset_of(segment) + start;
    if shard.log.device().read_at(at, &mut bytes).is_err() {
        let (start, end) = (start as usize, start as usize + bytes.len());
        let why = "which pieces are of a large value is not known";
        return Err(unreadable(shard, segment, start..end, why));
    }
    let record = bytes.get((u64::from(offset) - start) as usize..).unwrap_or_default();
    let wanted = Wanted::any(shard.segment_sequence(claim.address()));
    let mut scratch = Vec::new();
    let opened = shard.payloads().open(shard.log.shape().shard, record, wanted, &mut scratch);
    let Ok(record) = opened else { return Ok(Gathering::Damaged) };
    let version = record.header.sequence;
    let Some(Manifest { stored_bytes, pieces: count, .. }) = Manifest::decode(record.value) else {
        return Ok(Gathering::Damaged);
    };
    if pieces.get(&version).map_or(0, Vec::len) != count as usize {
        return Ok(Gathering::Lacking);
    }
    let list = pieces.remove(&version).unwrap_or_default();
    let places = list.iter().map(|(_, address, bytes)| (*address, *bytes)).collect();
    Ok(Gathering::Whole(version, Pieces { stored_bytes, places }))
}
