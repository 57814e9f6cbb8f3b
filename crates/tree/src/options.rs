//! How ordered tables are kept.

use entresol_flash::SpaceId;

/// How ordered tables are kept.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The space of the store that their pages are in. Nothing else may use it.
    pub space: SpaceId,
    /// The lane of the store's journal that their changes are in. Nothing else may use it.
    pub lane: u16,
    /// Most bytes of changes that wait in memory for a merge.
    pub waiting_bytes_max: u64,
    /// A leaf with more bytes is split.
    pub leaf_bytes_max: usize,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions {
            space: SpaceId(u16::MAX - 1),
            lane: 0,
            waiting_bytes_max: 32 << 20,
            leaf_bytes_max: 8 << 10,
        }
    }
}
