//! `/stats`: all figures as JSON, sizes in bytes and latencies in microseconds.

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

use entresol_host::ProcessFigures;
use entresol_tier::Distribution;

use super::metrics::by_kind;
use crate::command::table::SPECS;
use crate::figures;
use crate::meter::Latency;
use crate::server::memory_cap;
use crate::shared::Shared;

/// Percentiles shown of latencies.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// A JSON object being written. Keys are our own, so nothing needs escaping.
struct Object {
    text: String,
}

impl Object {
    fn new() -> Object {
        Object { text: String::from("{") }
    }

    /// Adds a field; writing to a `String` cannot fail.
    fn field(&mut self, name: &str, value: impl Display) {
        let comma = if self.text.len() > 1 { "," } else { "" };
        let _ = write!(self.text, "{comma}\"{name}\":{value}");
    }

    fn number(&mut self, name: &str, value: f64) {
        let value = if value.is_finite() { value } else { 0.0 };
        self.field(name, format!("{value:.6}"));
    }

    fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

/// The text of all figures.
pub(super) fn text(shared: &Shared) -> String {
    let store = shared.statistics_in_time();
    let measured = shared.measured();
    let mut out = Object::new();
    out.field("version", format!("\"{}\"", env!("CARGO_PKG_VERSION")));
    out.field("uptime_seconds", shared.started.elapsed().as_secs());
    out.field("threads", shared.trays.len());
    let mut store_object = Object::new();
    for (name, value) in store.figures() {
        store_object.field(name, value);
    }
    for (name, value) in figures::ratios(&store) {
        store_object.number(name, value);
    }
    store_object.number("write_amplification", store.write_amplification());
    store_object.field("poisoned", store.poisoned);
    store_object.field("key_bytes", distribution(&store.key_bytes));
    store_object.field("value_bytes", distribution(&store.value_bytes));
    out.field("store", store_object.end());
    out.field("memory", memory(shared, &store));
    let mut clients = Object::new();
    clients.field("connected", shared.clients.count());
    clients.field("accepted", shared.clients.accepted.load(Ordering::Relaxed));
    clients.field("refused", shared.clients.refused.load(Ordering::Relaxed));
    clients.field("read_bytes", measured.input_bytes);
    clients.field("written_bytes", measured.output_bytes);
    clients.field("error_replies", measured.errors);
    out.field("clients", clients.end());
    let mut kinds = Object::new();
    for (kind, figures) in by_kind(&measured) {
        kinds.field(kind, latency(&figures));
    }
    out.field("latency_us", kinds.end());
    let mut commands = Object::new();
    for (spec, figures) in SPECS.iter().zip(&measured.commands) {
        if figures.calls + figures.rejected > 0 {
            let mut command = Object::new();
            command.field("calls", figures.calls);
            command.field("rejected", figures.rejected);
            command.field("failed", figures.failed);
            command.field("latency_us", latency(&figures.latency));
            commands.field(spec.name, command.end());
        }
    }
    out.field("commands", commands.end());
    out.end() + "\n"
}

/// Memory by use.
fn memory(shared: &Shared, store: &entresol_tier::Statistics) -> String {
    let mut out = Object::new();
    out.field("cap_bytes", memory_cap(shared));
    out.field("resident_bytes", ProcessFigures::read().resident_bytes);
    out.field("index_bytes", store.index_bytes);
    out.field("write_buffer_bytes", store.buffer_bytes);
    out.field("cache_bytes", store.cache_bytes);
    out.field("other_bytes", store.other_bytes);
    out.field("client_buffer_bytes", shared.memory.used());
    out.end()
}

fn latency(latency: &Latency) -> String {
    let mut out = Object::new();
    out.field("n", latency.count());
    out.number("min", latency.min_us());
    out.number("max", latency.max_us());
    out.number("mean", latency.mean_us());
    out.number("geometric_mean", latency.geometric_mean_us());
    out.number("standard_deviation", latency.standard_deviation_us());
    for percent in PERCENTILES {
        out.number(&percentile_name(percent), latency.percentile_us(percent));
    }
    out.end()
}

fn distribution(sizes: &Distribution) -> String {
    let mut out = Object::new();
    out.field("n", sizes.count);
    out.field("min", sizes.min);
    out.field("max", sizes.max);
    out.number("mean", sizes.mean);
    out.number("geometric_mean", sizes.geometric_mean);
    out.number("standard_deviation", sizes.standard_deviation);
    for (percent, value) in &sizes.percentiles {
        out.field(&percentile_name(*percent), value);
    }
    out.end()
}

/// `p50`, `p99`, `p999`.
fn percentile_name(percent: f64) -> String {
    format!("p{}", percent.to_string().replace('.', ""))
}
