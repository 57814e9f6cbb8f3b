//! What the server counts of its clients, and figures as metrics.

use std::fmt::Write;

use entresol_wire::nbd::Command;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

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
    requests: [u64; Command::ALL.len()],
    unknown: u64,
    asked_bytes: [u64; Command::ALL.len()],
    latency_us: Histogram<u64>,
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
            requests: [0; Command::ALL.len()],
            unknown: 0,
            asked_bytes: [0; Command::ALL.len()],
            latency_us,
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

    /// A volume has answered a request after so long.
    pub(crate) fn answered(&mut self, latency_ns: u64) {
        self.latency_us.saturating_record((latency_ns / 1000).max(1));
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
                "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999),
                "max": self.latency_us.max(), "mean": self.latency_us.mean(),
            },
        })
    }
}

/// Figures as metrics of Prometheus: each number of `value` becomes one, its name the path to it.
/// Elements of a list are told apart by a label: their `name`, or their place.
pub fn metrics(value: &Value) -> String {
    let mut lines = Vec::new();
    walk("entresol", "", value, &mut lines);
    // Values of one metric stand together.
    lines.sort();
    let mut text = String::new();
    let mut last = String::new();
    for (name, labels, number) in lines {
        if name != last {
            let _ = writeln!(text, "# TYPE {name} untyped");
            last.clone_from(&name);
        }
        let _ = writeln!(text, "{name}{labels} {number}");
    }
    text
}

fn walk(name: &str, labels: &str, value: &Value, lines: &mut Vec<(String, String, String)>) {
    let labelled = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    match value {
        Value::Number(number) => lines.push((name.to_owned(), labelled, number.to_string())),
        Value::Bool(truth) => {
            lines.push((name.to_owned(), labelled, u8::from(*truth).to_string()));
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let allowed = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
                let key: String = key.chars().map(allowed).collect();
                walk(&format!("{name}_{key}"), labels, field, lines);
            }
        }
        Value::Array(elements) => {
            let label = name.rsplit('_').next().unwrap_or_default().trim_end_matches('s');
            for (place, element) in elements.iter().enumerate() {
                let own = element.get("name").and_then(Value::as_str);
                let own = own.map_or(place.to_string(), escaped);
                let separator = if labels.is_empty() { "" } else { "," };
                let labels = format!("{labels}{separator}{label}=\"{own}\"");
                walk(name, &labels, element, lines);
            }
        }
        Value::String(_) | Value::Null => {}
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_metrics_with_the_names_of_volumes_as_labels() {
        let value = json!({
            "cache": {"used bytes": 7, "is_poisoned": true, "mode": "wb"},
            "volumes": [
                {"name": "a\"b", "requests": {"read_hits": 1}},
                {"name": "c", "requests": {"read_hits": 2}},
            ],
        });
        let expected = "\
# TYPE entresol_cache_is_poisoned untyped
entresol_cache_is_poisoned 1
# TYPE entresol_cache_used_bytes untyped
entresol_cache_used_bytes 7
# TYPE entresol_volumes_requests_read_hits untyped
entresol_volumes_requests_read_hits{volume=\"a\\\"b\"} 1
entresol_volumes_requests_read_hits{volume=\"c\"} 2
";
        assert_eq!(metrics(&value), expected);
    }
}
