//! Whether the index's share of the memory cap holds what the store has.

use crate::error::{Error, Result};
use crate::index::Index;
use crate::shard::Shard;

/// Refuses to open a shard of so many `entries` with an index that has no room for them: one that
/// grew all the same would pass the memory cap for good.
pub(crate) fn demand_slots(shard: &Shard, entries: u64) -> Result<()> {
    let most = shard.index.entries_max();
    // A few more than puts may fill come back where removals were lost, or hidden ones were found.
    if entries <= most.saturating_add(most / 64) {
        return Ok(());
    }
    let shards = u64::from(shard.log.shape.shards);
    let needed = Index::bytes_for(entries.saturating_add(entries / 32)).saturating_mul(shards);
    let found = shard.limits.index_bytes_max.saturating_mul(shards);
    let detail = format!(
        "an index of {found} bytes at most; shard {} of {shards} holds {entries} entries, and for \
         all shards {needed} are needed; open the store with a larger memory cap",
        shard.log.shape.shard
    );
    Err(Error::too_small(detail, needed))
}
