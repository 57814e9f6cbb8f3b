//! Records under comparison: of all that claim a key, the newest counts.
//!
//! Claims are spread over parts by the top bits of their hashes, in chunks taken from one table;
//! each part is small enough for a processor's cache and is settled there. What wins takes the
//! place of the part's claims, in the order of hashes, and goes into the index from there.

use entresol_device::{IoBuffer, Table};

use super::entries::{Gathered, Rows};
use super::scan::{Context, unreadable};
use super::survey::scratch_table;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FooterLine, RecordKind};
use crate::index::{Place, SizeCode};
use crate::large::Pieces;
use crate::session::decode_manifest;
use crate::shard::Shard;
use crate::types::SpaceId;

/// Memory for claims, bytes a shard, and again for footers kept; more records take more passes.
pub(super) const PASS_BYTES: u64 = 768 << 20;
pub(super) const PASS_CLAIMS: u64 = PASS_BYTES / (8 * CLAIM_WORDS as u64);
/// Words of a claim.
const CLAIM_WORDS: usize = 5;
/// Words of a winner: hash and place.
const WINNER_WORDS: usize = 2;
/// Claims of a part: its share of a processor's second-level cache.
const PART_CLAIMS: u64 = 6_000;
const CUT_BITS_MAX: u32 = 12;
/// Claims of a chunk, and the winners that find room in one.
const CHUNK_CLAIMS: usize = 64;
const CHUNK_WINNERS: usize = CHUNK_CLAIMS * CLAIM_WORDS / WINNER_WORDS;

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
        let (space, partition) = line.owner();
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
    fn owner(&self) -> (SpaceId, u16) {
        (SpaceId((self.0[4] >> 32) as u16), (self.0[4] >> 48) as u16)
    }
}

/// How hashes are cut: the top bits into passes, those below into parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pass_bits: u32,
    part_bits: u32,
}

impl Cut {
    /// For about `records` records, of which a pass holds `pass_records`.
    pub(super) fn new(records: u64, pass_records: u64) -> Cut {
        let bits = |count: u64| count.max(1).next_power_of_two().trailing_zeros().min(CUT_BITS_MAX);
        let pass_bits = bits(records.div_ceil(pass_records));
        let part_bits = bits(records / PART_CLAIMS).saturating_sub(pass_bits);
        Cut { pass_bits, part_bits }
    }

    pub(super) fn passes(self) -> usize {
        1 << self.pass_bits
    }

    fn parts(self) -> usize {
        1 << self.part_bits
    }

    /// Number of the part over all passes.
    #[inline]
    fn part_of(self, hash: u64) -> usize {
        // Two shifts: one by 64 would be none.
        (hash >> 1 >> (63 - self.pass_bits - self.part_bits)) as usize
    }
}

/// The claims of one pass, part by part.
pub(super) struct Claims {
    memory: Table,
    cut: Cut,
    pass: usize,
    parts: Vec<Part>,
    /// Chunks in use.
    chunks: u32,
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
    /// Room for one pass at a time, of up to `bytes`.
    pub(super) fn new(cut: Cut, bytes: u64) -> Result<Claims> {
        let memory = scratch_table(bytes)?;
        let (parts, chunks) = (Vec::new(), 0);
        let mut claims = Claims { memory, cut, pass: 0, parts, chunks, overflowed: false };
        claims.begin(0);
        Ok(claims)
    }

    /// Memory for all of `records` claims, should they be of one pass, part or even key.
    pub(super) fn bytes_for(cut: Cut, records: u64) -> u64 {
        let chunks = records / CHUNK_CLAIMS as u64 + cut.parts() as u64 + 1;
        chunks * (CHUNK_CLAIMS * CLAIM_WORDS * 8) as u64
    }

    pub(super) fn passes(&self) -> usize {
        self.cut.passes()
    }

    /// Forgets all claims, and takes those of `pass` from now on.
    pub(super) fn begin(&mut self, pass: usize) {
        self.pass = pass;
        self.parts.clear();
        self.parts.resize_with(self.cut.parts(), Part::default);
        self.chunks = 0;
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
        let number = self.cut.part_of(line.hash_high());
        let number = number.wrapping_sub(self.pass << self.cut.part_bits);
        let Some(part) = self.parts.get_mut(number) else { return };
        if part.next.is_multiple_of(CHUNK_CLAIMS) {
            let end = (self.chunks as usize + 1) * CHUNK_CLAIMS * CLAIM_WORDS;
            if end > self.memory.len() && self.memory.grow(end).is_err() {
                self.overflowed = true;
                return;
            }
            part.chunks.push(self.chunks);
            part.next = self.chunks as usize * CHUNK_CLAIMS;
            self.chunks += 1;
        }
        self.memory.as_chunks_mut::<CLAIM_WORDS>().0[part.next] = Claim::new(line, address).0;
        part.next += 1;
        // By the time the part's next claim comes, its memory is there.
        self.memory.prefetch(part.next * CLAIM_WORDS + CLAIM_WORDS - 1);
    }

    /// Settles all parts: what wins takes their place. Returns how many do.
    pub(super) fn settle(&mut self, settling: &mut Settling<'_>) -> Result<usize> {
        if self.overflowed {
            let detail = "the footers of a shard changed while they were read";
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        let mut winners = 0;
        let mut claims: Vec<[u64; CLAIM_WORDS]> = Vec::new();
        let shared = self.cut.pass_bits + self.cut.part_bits;
        for part in &mut self.parts {
            claims.clear();
            for chunk in &part.chunks {
                let start = *chunk as usize * CHUNK_CLAIMS;
                let end = if part.next > start && part.next <= start + CHUNK_CLAIMS {
                    part.next
                } else {
                    start + CHUNK_CLAIMS
                };
                let memory = self.memory.as_chunks::<CLAIM_WORDS>().0;
                claims.extend_from_slice(&memory[start..end]);
            }
            settling.settle(&claims, shared)?;
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
    counted: ((SpaceId, u16), i64),
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
            counted: ((SpaceId(0), 0), 0),
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
        let (space, partition) = claim.owner();
        let dropped = !self.shard.floors.is_empty()
            && self.shard.segment_sequence(claim.address()) < self.shard.floor_of(space, partition);
        // A large value that ended is dropped by a sweep, with a tombstone: without its pieces it
        // would look like one that never was whole, and hide nothing.
        let ended = ended && whole.is_none();
        if kind == Some(RecordKind::Tombstone) || ended || dropped {
            return Ok(true);
        }
        let (address, size) = (claim.address(), claim.size().bytes());
        self.winners.push([claim.0[0], address | size << ADDRESS_BITS]);
        self.rows.add_live(address, size);
        self.count(space, partition);
        if let Some((version, value)) = whole {
            for (address, bytes) in &value.places {
                self.rows.add_live(*address, SizeCode::covering(u64::from(*bytes)).bytes());
            }
            self.shard.large.insert(address, version, value);
        }
        Ok(true)
    }

    #[inline]
    fn count(&mut self, space: SpaceId, partition: u16) {
        if self.counted.0 != (space, partition) {
            self.finish_counts();
            self.counted.0 = (space, partition);
        }
        self.counted.1 += 1;
    }

    fn finish_counts(&mut self) {
        let ((space, partition), count) = self.counted;
        if count != 0 {
            self.shard.count(space, partition, count);
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
    let (segment, offset) = shard.log.shape.split(claim.address());
    let sector = 4096;
    let start = u64::from(offset) / sector * sector;
    let end = u64::from(offset) + claim.size().bytes();
    let end = end.next_multiple_of(sector).min(u64::from(shard.log.shape.segment_bytes));
    let mut bytes = IoBuffer::aligned(end.saturating_sub(start).max(sector) as usize);
    let at = shard.log.shape.offset_of(segment) + start;
    if shard.log.device.read_at(at, &mut bytes).is_err() {
        let (start, end) = (start as usize, start as usize + bytes.len());
        let why = "which pieces are of a large value is not known";
        return Err(unreadable(shard, segment, start..end, why));
    }
    let record = bytes.get((u64::from(offset) - start) as usize..).unwrap_or_default();
    let wanted = (shard.segment_sequence(claim.address()) as u32, None);
    let mut scratch = Vec::new();
    let opened = shard.payloads.open(shard.log.shape.shard, record, wanted, &mut scratch);
    let Ok(record) = opened else { return Ok(Gathering::Damaged) };
    let version = record.header.sequence;
    let Some((stored_bytes, _, _, count)) = decode_manifest(record.value) else {
        return Ok(Gathering::Damaged);
    };
    if pieces.get(&version).map_or(0, Vec::len) != count as usize {
        return Ok(Gathering::Lacking);
    }
    let list = pieces.remove(&version).unwrap_or_default();
    let places = list.iter().map(|(_, address, bytes)| (*address, *bytes)).collect();
    Ok(Gathering::Whole(version, Pieces { stored_bytes, places }))
}
