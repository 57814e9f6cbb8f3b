//! What the logs of one store share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// What the logs of one store share.
#[derive(Debug)]
pub(crate) struct Siblings {
    /// The next segment sequence.
    pub(crate) sequences: AtomicU64,
    /// Why nothing is written any more. A failed sync may have lost what any shard wrote, and the
    /// next one may succeed: one shard's failure is every shard's.
    pub(super) failure: OnceLock<String>,
}

impl Siblings {
    pub(crate) fn new() -> Arc<Siblings> {
        Arc::new(Siblings { sequences: AtomicU64::new(1), failure: OnceLock::new() })
    }
}
