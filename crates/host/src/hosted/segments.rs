//! A map of the segments of a hosted store.

use entresol_tier::SegmentGroup;

use super::{Failure, HostedStore, Outbox};
use crate::figures::FIGURES_WAIT;

impl<O: Outbox> HostedStore<O> {
    /// All segments in about so many groups of neighbours; `None` while the device is waited for.
    ///
    /// # Errors
    /// The store is closed.
    pub fn segment_groups(&self, groups_max: usize) -> Result<Option<Vec<SegmentGroup>>, Failure> {
        Ok(self.tiered()?.store().segment_map(groups_max, FIGURES_WAIT).map(|map| map.groups))
    }
}
