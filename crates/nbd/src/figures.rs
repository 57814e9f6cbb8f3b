//! What the server counts of its clients.

use entresol_page::{Interval, Kind};
use entresol_wire::nbd::Command;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

/// Bounds up to which latencies are counted, microseconds.
const BOUNDS_US: [u64; 14] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 1_000_000,
    10_000_000,
];

/// What the server counts of its clients.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) connections: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) handshakes: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) errors: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) held_bytes: u64,
    /// When the certificates end that clients and the HTTP interface are for, seconds since 1970.
    pub(crate) certificate_end_seconds: Option<u64>,
    pub(crate) admin_certificate_end_seconds: Option<u64>,
    requests: [u64; Command::ALL.len()],
    unknown: u64,
    asked_bytes: [u64; Command::ALL.len()],
    latency_us: Histogram<u64>,
    /// What clients asked since that was taken last.
    interval: Interval,
    /// Failures of volumes since they were told of last, and what the first of them said.
    failures: Option<(u64, String)>,
}

impl Default for Figures {
    fn default() -> Figures {
        /// Longest latency told apart, an hour in microseconds.
        const LATENCY_MAX_US: u64 = 3_600_000_000;
        let latency_us = Histogram::new_with_bounds(1, LATENCY_MAX_US, 2)
            .expect("bounds in order and two digits are what a histogram takes");
        Figures {
            connections: 0,
            accepted: 0,
            refused: 0,
            handshakes: 0,
            protocol_errors: 0,
            errors: 0,
            bytes_in: 0,
            bytes_out: 0,
            held_bytes: 0,
            certificate_end_seconds: None,
            admin_certificate_end_seconds: None,
            requests: [0; Command::ALL.len()],
            unknown: 0,
            asked_bytes: [0; Command::ALL.len()],
            latency_us,
            interval: Interval::default(),
            failures: None,
        }
    }
}

impl Figures {
    /// A request has come.
    pub(crate) fn count(&mut self, command: u16, length: u64) {
        match self.requests.get_mut(usize::from(command)) {
            Some(count) => {
                *count += 1;
                let bytes = &mut self.asked_bytes[usize::from(command)];
                *bytes = bytes.saturating_add(length);
            }
            None => self.unknown += 1,
        }
    }

    /// A volume has failed a request.
    pub(crate) fn note_failure(&mut self, sentence: String) {
        self.failures.get_or_insert((0, sentence)).0 += 1;
    }

    /// What people are to be told of failures since the last call: one sentence, however many.
    pub(crate) fn take_failures(&mut self) -> Option<String> {
        let (count, sentence) = self.failures.take()?;
        let others = count - 1;
        Some(if others == 0 { sentence } else { format!("{sentence} (and {others} more)") })
    }

    /// A volume has answered a request after so long; it is of a `kind` if a client asked.
    pub(crate) fn answered(&mut self, kind: Option<Kind>, latency_ns: u64) {
        self.latency_us.saturating_record((latency_ns / 1000).max(1));
        if let Some(kind) = kind {
            self.interval.record(kind, latency_ns, 1);
        }
    }

    /// What clients asked since the last call.
    pub(crate) fn take_interval(&mut self) -> Interval {
        std::mem::take(&mut self.interval)
    }

    /// All figures, as JSON.
    pub(crate) fn json(&self) -> Value {
        let by_command = |counts: &[u64]| -> Map<String, Value> {
            let name = |command: Command| command.name().replace(' ', "_");
            let pairs = Command::ALL.iter().zip(counts);
            pairs.map(|(command, count)| (name(*command), json!(count))).collect()
        };
        let mut requests = by_command(&self.requests);
        requests.insert("unknown".to_owned(), json!(self.unknown));
        let up_to: Map<String, Value> = BOUNDS_US
            .iter()
            .map(|bound| (bound.to_string(), json!(self.latency_us.count_between(0, *bound))))
            .collect();
        let at = |quantile| self.latency_us.value_at_quantile(quantile);
        json!({
            "connections": self.connections,
            "accepted": self.accepted,
            "refused": self.refused,
            "handshakes": self.handshakes,
            "protocol_errors": self.protocol_errors,
            "request_errors": self.errors,
            "received_bytes": self.bytes_in,
            "sent_bytes": self.bytes_out,
            "held_bytes": self.held_bytes,
            "requests": requests,
            "asked_bytes": by_command(&self.asked_bytes),
            "latency_us": {
                "n": self.latency_us.len(),
                "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999),
                "max": self.latency_us.max(), "mean": self.latency_us.mean(),
                "up_to": up_to,
            },
            "certificate_end_seconds": self.certificate_end_seconds,
            "admin_certificate_end_seconds": self.admin_certificate_end_seconds,
        })
    }
}
