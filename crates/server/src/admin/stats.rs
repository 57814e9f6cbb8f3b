//! `/stats`: all figures as JSON, sizes in bytes and latencies in microseconds.

use std::sync::atomic::Ordering;

use entresol_host::ProcessFigures;
use entresol_tier::{Distribution, Statistics};
use serde_json::{Map, Value, json};

use super::metrics::by_kind;
use crate::command::table::SPECS;
use crate::figures;
use crate::meter::{CommandFigures, Latency, Measured};
use crate::server::memory_cap;
use crate::shared::Shared;

/// Percentiles shown of latencies.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The text of all figures.
pub(super) fn text(shared: &Shared) -> String {
    let store = shared.statistics_in_time();
    let measured = shared.measured();
    let kinds = by_kind(&measured).into_iter();
    let kinds: Map<String, Value> =
        kinds.map(|(kind, figures)| (kind.to_owned(), latency(&figures))).collect();
    let all = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "threads": shared.trays.len(),
        "certificate_end_seconds": shared.certificate_end_seconds(),
        "superblock_damage": shared.tier.store().superblock_damage(),
        "store": of_store(&store),
        "memory": {
            "cap_bytes": memory_cap(shared),
            "resident_bytes": ProcessFigures::read().resident_bytes,
            "index_bytes": store.index_bytes,
            "write_buffer_bytes": store.buffer_bytes,
            "cache_bytes": store.cache_bytes,
            "other_bytes": store.other_bytes,
            "client_buffer_bytes": shared.memory.used(),
        },
        "clients": {
            "connected": shared.clients.count(),
            "accepted": shared.clients.accepted.load(Ordering::Relaxed),
            "refused": shared.clients.refused.load(Ordering::Relaxed),
            "read_bytes": measured.input_bytes,
            "written_bytes": measured.output_bytes,
            "error_replies": measured.errors,
        },
        "latency_us": kinds,
        "commands": commands(&measured),
    });
    format!("{all}\n")
}

fn of_store(store: &Statistics) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in store.figures() {
        out.insert(name.to_owned(), json!(value));
    }
    for (name, value) in figures::ratios(store) {
        out.insert(name.to_owned(), number(value));
    }
    out.insert("write_amplification".to_owned(), number(store.write_amplification()));
    out.insert("poisoned".to_owned(), json!(store.poisoned));
    out.insert("key_bytes".to_owned(), distribution(&store.key_bytes));
    out.insert("value_bytes".to_owned(), distribution(&store.value_bytes));
    out
}

/// What was called at all.
fn commands(measured: &Measured) -> Map<String, Value> {
    let named = SPECS.iter().zip(&measured.commands);
    let called = named.filter(|(_, figures)| figures.calls + figures.rejected > 0);
    called.map(|(spec, figures)| (spec.name.to_owned(), command(figures))).collect()
}

fn command(figures: &CommandFigures) -> Value {
    json!({
        "calls": figures.calls,
        "rejected": figures.rejected,
        "failed": figures.failed,
        "latency_us": latency(&figures.latency),
    })
}

fn latency(latency: &Latency) -> Value {
    let mut out = json!({
        "n": latency.count(),
        "min": number(latency.min_us()),
        "max": number(latency.max_us()),
        "mean": number(latency.mean_us()),
        "geometric_mean": number(latency.geometric_mean_us()),
        "standard_deviation": number(latency.standard_deviation_us()),
    });
    for percent in PERCENTILES {
        out[percentile_name(percent)] = number(latency.percentile_us(percent));
    }
    out
}

fn distribution(sizes: &Distribution) -> Value {
    let mut out = json!({
        "n": sizes.count,
        "min": sizes.min,
        "max": sizes.max,
        "mean": number(sizes.mean),
        "geometric_mean": number(sizes.geometric_mean),
        "standard_deviation": number(sizes.standard_deviation),
    });
    for (percent, value) in &sizes.percentiles {
        out[percentile_name(*percent)] = json!(value);
    }
    out
}

/// Six digits behind the point: more say nothing of a measurement.
fn number(value: f64) -> Value {
    let value = if value.is_finite() { value } else { 0.0 };
    json!((value * 1e6).round() / 1e6)
}

/// `p50`, `p99`, `p999`.
fn percentile_name(percent: f64) -> String {
    format!("p{}", percent.to_string().replace('.', ""))
}
