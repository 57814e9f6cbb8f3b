//! Figures of a store for people who must not wait for its device.

use std::time::Duration;

/// How long whoever asks for figures waits for a shard that is at work: longer than a shard is, and
/// not so long that others whom the same thread serves notice.
pub const FIGURES_WAIT: Duration = Duration::from_millis(200);
