//! The root of a store: what it is, what was dropped, and where the checkpoint of a clean stop
//! stands.

use super::{
    FORMAT_VERSION, FORMAT_VERSION_FIRST, MAGIC, SUPERBLOCK_BYTES, u16_at, u32_at, u64_at,
};
use crate::types::SpaceId;

/// Everything of `space` (or of one partition of it) in segments older than `below` is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floor {
    pub space: SpaceId,
    /// `None`: all partitions.
    pub partition: Option<u16>,
    /// A segment sequence.
    pub below: u64,
}

/// The root: what the store is, and where the checkpoint of a clean stop stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The format of the store: the first one that knows all that stands in it.
    pub version: u32,
    pub generation: u64,
    pub store: u64,
    pub hash_seed: u64,
    pub segment_bytes: u32,
    pub shards: u16,
    pub segments_per_shard: u32,
    /// Identifies the boot of the machine under which the store was last opened; 0: unknown.
    pub boot: u128,
    /// CRC-32C of the encryption key's check block; 0: not encrypted.
    pub key_check: u64,
    /// Segments opened since the store was last opened have this sequence or a higher one: none
    /// that a crash lost is used again.
    pub next_segment_sequence: u64,
    /// Records appended since then have higher sequences than this.
    pub record_sequence: u64,
    pub floors: Vec<Floor>,
    /// Per shard: the segments that hold its checkpoint, in order. Empty: none.
    pub checkpoint: Vec<Vec<u32>>,
    /// Names the file of write buffers that outlive the process; drawn anew at each opening. 0:
    /// there is none, or it was left by a version that did not number openings.
    pub opening: u128,
}

const SUPERBLOCK_FIXED_BYTES: usize = 96;
/// Where the number of the opening stands; earlier versions have zeros there.
const OPENING_AT: usize = SUPERBLOCK_BYTES - 20;

impl Superblock {
    /// The bytes of one copy, or `None` if floors and checkpoint do not fit.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(SUPERBLOCK_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.segment_bytes.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        out.extend_from_slice(&self.hash_seed.to_le_bytes());
        out.extend_from_slice(&self.boot.to_le_bytes());
        out.extend_from_slice(&self.key_check.to_le_bytes());
        out.extend_from_slice(&self.segments_per_shard.to_le_bytes());
        out.extend_from_slice(&u32::from(self.shards).to_le_bytes());
        out.extend_from_slice(&(self.floors.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.checkpoint.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.next_segment_sequence.to_le_bytes());
        out.extend_from_slice(&self.record_sequence.to_le_bytes());
        out.resize(SUPERBLOCK_FIXED_BYTES, 0);
        for floor in &self.floors {
            out.extend_from_slice(&floor.below.to_le_bytes());
            out.extend_from_slice(&floor.space.0.to_le_bytes());
            let partition = floor.partition.map_or(u32::MAX, u32::from);
            out.extend_from_slice(&partition.to_le_bytes());
        }
        for segments in &self.checkpoint {
            out.extend_from_slice(&(segments.len() as u32).to_le_bytes());
            for segment in segments {
                out.extend_from_slice(&segment.to_le_bytes());
            }
        }
        if out.len() > OPENING_AT {
            return None;
        }
        out.resize(OPENING_AT, 0);
        out.extend_from_slice(&self.opening.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        Some(out)
    }

    /// Decodes a copy whose checksum holds and whose version is ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Superblock> {
        let bytes = bytes.get(..SUPERBLOCK_BYTES)?;
        let body = bytes.get(..SUPERBLOCK_BYTES - 4)?;
        if bytes.get(..8)? != MAGIC
            || u32_at(bytes, SUPERBLOCK_BYTES - 4)? != crc32c::crc32c(body)
            || !(FORMAT_VERSION_FIRST..=FORMAT_VERSION).contains(&u32_at(bytes, 8)?)
        {
            return None;
        }
        let mut at = SUPERBLOCK_FIXED_BYTES;
        let mut floors = Vec::new();
        for _ in 0..u32_at(bytes, 72)? {
            let partition = u32_at(body, at + 10)?;
            floors.push(Floor {
                below: u64_at(body, at)?,
                space: SpaceId(u16_at(body, at + 8)?),
                partition: u16::try_from(partition).ok(),
            });
            at += 14;
        }
        let mut checkpoint = Vec::new();
        for _ in 0..u32_at(bytes, 76)? {
            let count = u32_at(body, at)? as usize;
            at += 4;
            let list = body.get(at..at.checked_add(count.checked_mul(4)?)?)?;
            checkpoint.push(list.chunks_exact(4).filter_map(|c| u32_at(c, 0)).collect());
            at += count * 4;
        }
        Some(Superblock {
            version: u32_at(bytes, 8)?,
            segment_bytes: u32_at(bytes, 12)?,
            generation: u64_at(bytes, 16)?,
            store: u64_at(bytes, 24)?,
            hash_seed: u64_at(bytes, 32)?,
            boot: u128::from(u64_at(bytes, 40)?) | u128::from(u64_at(bytes, 48)?) << 64,
            key_check: u64_at(bytes, 56)?,
            next_segment_sequence: u64_at(bytes, 80)?,
            record_sequence: u64_at(bytes, 88)?,
            segments_per_shard: u32_at(bytes, 64)?,
            shards: u16::try_from(u32_at(bytes, 68)?).ok()?,
            floors,
            checkpoint,
            opening: u128::from(u64_at(bytes, OPENING_AT)?)
                | u128::from(u64_at(bytes, OPENING_AT + 8)?) << 64,
        })
    }

    /// The version a copy claims to have, if it carries our magic at all.
    pub(crate) fn claimed_version(bytes: &[u8]) -> Option<u32> {
        if bytes.get(..8)? == MAGIC { u32_at(bytes, 8) } else { None }
    }
}
