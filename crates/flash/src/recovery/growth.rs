//! Taking more of the device for a store that is there.
//!
//! Segments of all shards take turns on the device, so more of them go behind the last one and
//! none moves. Invariants: 1. the root names them only once nothing of what stood there can be
//! taken for segments of ours; 2. each crash leaves the store as it was, or grown.

use entresol_device::Device;

use super::{address_bits, capacity_of, erase_segments, segments_a_shard, used_bytes};
use crate::error::Result;
use crate::format::Superblock;
use crate::options::{OpenMode, StoreOptions};
use crate::superblock;

/// Grows the store to the capacity that `options` name, if they do.
pub(super) fn grow(
    device: &dyn Device,
    superblock: &mut Superblock,
    options: &StoreOptions,
) -> Result<()> {
    let capacity = capacity_of(device, options);
    let grows = options.capacity_bytes.is_some()
        && options.mode != OpenMode::ReadOnly
        && u128::from(capacity) > used_bytes(superblock);
    if !grows {
        return Ok(());
    }
    let former = superblock.segments_per_shard;
    let segments = segments_a_shard(&device.name(), capacity, options)?;
    if segments <= former {
        return Ok(());
    }
    let bits = |segments| address_bits(segments, superblock.segment_bytes);
    if bits(segments) != bits(former) {
        // Its index has no room for the new addresses; the segments say all that it says.
        superblock.checkpoint.clear();
    }
    erase_segments(device, superblock, former..segments)?;
    superblock.segments_per_shard = segments;
    superblock::write(device, superblock)
}
