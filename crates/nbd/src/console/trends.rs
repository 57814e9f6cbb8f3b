//! The charts: what the server did in the last ten minutes or the last day.

use entresol_page::{Trend, Unit};

use crate::history::Sample;

/// How latencies are measured, and what dirty data are.
pub(super) const MEASURED: &str = "Latencies run from the request read to the volume's answer. \
    Dirty data are what backings still lack; a point has their mean.";

pub(super) const TRENDS: [Trend<Sample>; 6] = [
    Trend::calls("Requests"),
    Trend::READS,
    Trend::WRITES,
    Trend {
        title: "Reads by who answers",
        unit: Unit::Rate,
        lines: &[
            ("cache", |one| one.reads[0]),
            ("cache and backing", |one| one.reads[1]),
            ("backing", |one| one.reads[2]),
            ("around the cache", |one| one.reads[3]),
        ],
    },
    Trend {
        title: "Bytes of clients and backings",
        unit: Unit::ByteRate,
        lines: &[
            ("from clients", |one| one.client_bytes[0]),
            ("to clients", |one| one.client_bytes[1]),
            ("from backings", |one| one.backing_bytes[0]),
            ("to backings", |one| one.backing_bytes[1]),
        ],
    },
    Trend { title: "Dirty data", unit: Unit::Bytes, lines: &[("dirty", |one| one.dirty_bytes)] },
];
