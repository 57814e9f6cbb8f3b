//! The charts: what the server did in the last ten minutes or the last day.

use entresol_page::{Trend, Unit};

use crate::history::Sample;

/// How latencies are measured.
pub(super) const MEASURED: &str = "Latencies run from the bytes read to the reply ready.";

pub(super) const TRENDS: [Trend<Sample>; 6] = [
    Trend::calls("Commands"),
    Trend::READS,
    Trend::WRITES,
    Trend {
        title: "Gets by who answers",
        unit: Unit::Rate,
        lines: &[
            ("memory cache", |one| one.gets[0]),
            ("write buffer", |one| one.gets[1]),
            ("device", |one| one.gets[2]),
            ("no such entry", |one| one.gets[3]),
        ],
    },
    Trend {
        title: "Device",
        unit: Unit::ByteRate,
        lines: &[("read", |one| one.device_bytes[0]), ("written", |one| one.device_bytes[1])],
    },
    Trend {
        title: "Clients' bytes",
        unit: Unit::ByteRate,
        lines: &[("received", |one| one.client_bytes[0]), ("sent", |one| one.client_bytes[1])],
    },
];
