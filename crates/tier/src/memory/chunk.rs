//! Memory for entries, a chunk at a time.

use std::sync::Arc;

use entresol_device::{Arena, ArenaPiece, HUGE_PAGE_BYTES};
use entresol_flash::Result;

/// A part of a queue.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) memory: Option<ArenaPiece>,
    pub(super) used: usize,
    pub(super) queue: QueueName,
}

/// Where the shards of a cache get memory for their chunks.
#[derive(Debug, Clone)]
pub(super) struct ChunkMemory {
    pub(super) arena: Arc<Arena>,
    /// A shard's part of the huge page that may be in use in part only, bytes.
    pub(super) rounding: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum QueueName {
    #[default]
    Small,
    Main,
}

/// Chunks a shard is divided into, at least.
pub(super) const CHUNKS_MIN: usize = 48;
/// How many times larger or smaller than planned a shard may become.
pub(super) const SCALE_MAX: usize = 4;

const CHUNK_BYTES_MIN: usize = 16 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Caches of at least so many bytes ask for huge pages: a part of one that is taken too early is
/// little beside them.
const HUGE_BYTES_MIN: usize = 32 * HUGE_PAGE_BYTES;

impl Chunk {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| memory.bytes())
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], |memory| memory.bytes_mut())
    }

    /// Moves to the memory of `unused`, which gets this one's.
    pub(super) fn move_to(&mut self, unused: &mut Chunk) {
        unused.bytes_mut()[..self.used].copy_from_slice(&self.bytes()[..self.used]);
        std::mem::swap(&mut self.memory, &mut unused.memory);
    }
}

impl ChunkMemory {
    /// For `shards` shards of `capacity` bytes each, and for what they may grow to.
    pub(super) fn new(capacity: u64, shards: usize) -> Result<ChunkMemory> {
        let each = capacity as usize;
        let chunk_bytes = (each / CHUNKS_MIN + 1).next_power_of_two() / 2;
        let chunk_bytes = chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let chunks = (each.saturating_mul(SCALE_MAX) / chunk_bytes + 1).saturating_mul(shards);
        Ok(match each.saturating_mul(shards) {
            ..HUGE_BYTES_MIN => {
                ChunkMemory { arena: Arena::reserve(chunk_bytes, chunks)?, rounding: 0 }
            }
            _ => {
                let arena = Arena::reserve_huge(chunk_bytes, chunks)?;
                ChunkMemory { arena, rounding: HUGE_PAGE_BYTES.div_ceil(shards) }
            }
        })
    }
}
