//! The charts: what the server did in the last ten minutes or the last day.

use entresol_page::{Trend, Unit};

use crate::history::Sample;

/// How latencies are measured.
pub(super) const MEASURED: &str = "Latencies run from the bytes read to the reply ready.";

pub(super) const TRENDS: [Trend<Sample>; 6] = [
    Trend::calls("Commands"),
    Trend::READS,
    Trend::WRITES,
    Trend::gets("Gets by who answers"),
    Trend::DEVICE,
    Trend {
        title: "Clients' bytes",
        unit: Unit::ByteRate,
        lines: &[("received", |one| one.client_bytes[0]), ("sent", |one| one.client_bytes[1])],
    },
];
