//! Items of ACT before 6, so that old files can be read, with the present meaning of each.

/// An item of old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LegacyItem {
    /// Queues; with the threads of each, how many reads may be in flight.
    Queues,
    /// Threads of each queue.
    QueueThreads,
    /// Threads of the index cache.
    CacheThreads,
    /// Record size in units of 512 bytes.
    ReadBlocks,
    /// Large blocks a second of each kind, given instead of derived.
    LargeBlockOps,
    /// Has no meaning here; the sentence says why.
    Ignored(&'static str),
}

/// All of them.
pub(super) const ITEMS: &[(&str, LegacyItem)] = &[
    ("num-queues", LegacyItem::Queues),
    ("threads-per-queue", LegacyItem::QueueThreads),
    ("num-cache-threads", LegacyItem::CacheThreads),
    ("read-req-num-512-blocks", LegacyItem::ReadBlocks),
    ("large-block-ops-per-sec", LegacyItem::LargeBlockOps),
    (
        "scheduler-mode",
        LegacyItem::Ignored(
            "the scheduler is left as it is; set it with /sys/block/DEVICE/queue/scheduler",
        ),
    ),
    ("use-valloc", LegacyItem::Ignored("buffers are always aligned")),
    ("queue-per-device", LegacyItem::Ignored("there are no queues of requests any more")),
    ("num-write-buffers", LegacyItem::Ignored("every write has data of its own")),
    (
        "max-reqs-queued",
        LegacyItem::Ignored("no requests are queued; `max-lag-sec` stops a test that falls behind"),
    ),
];

/// The line that the configuration helper of ACT 4 wrote without a comment sign.
pub(super) const HELPER_LINE: &str = "act config file for";
