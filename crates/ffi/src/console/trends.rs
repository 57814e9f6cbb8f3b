//! The charts: what a store did in the last ten minutes or the last day.

use entresol_page::{Sampled, Trend, Unit};

use super::history::Sample;

/// What points of charts are.
pub(super) const POINTS: &str = "Charts have points by the second for the last ten minutes, by \
    the minute for the last day. Where a point is of several of them, it is their mean, and of a \
    latency the longest. A latency is that of a call of the store, from the call to its end.";

pub(super) const TRENDS: [Trend<Sample>; 8] = [
    Trend {
        title: "Calls of the cache on this node",
        unit: Unit::Rate,
        lines: &[
            ("reads", |one| one.calls().rates[0]),
            ("writes", |one| one.calls().rates[1]),
            ("removals", |one| one.calls().rates[2]),
        ],
    },
    Trend::reads("Latency of the store's reads"),
    Trend::writes("Latency of the store's writes"),
    Trend::gets("Gets of the store by who answers"),
    Trend::DEVICE,
    Trend { title: "Live on the device", unit: Unit::Bytes, lines: &[("live", |one| one.kept[0])] },
    Trend {
        title: "Entries on flash",
        unit: Unit::Count,
        lines: &[("entries", |one| one.kept[1])],
    },
    Trend {
        title: "Memory",
        unit: Unit::Bytes,
        lines: &[
            ("index", |one| one.memory_bytes[0]),
            ("write buffers", |one| one.memory_bytes[1]),
            ("cache", |one| one.memory_bytes[2]),
        ],
    },
];
