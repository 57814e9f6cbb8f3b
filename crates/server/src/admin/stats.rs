//! `/stats`: all figures as JSON, sizes in bytes and latencies in microseconds.

use std::sync::atomic::Ordering;

use entresol_host::{FIGURES_WAIT, ProcessFigures};
use entresol_page::{StoreRates, measured, percentiles};
use entresol_tier::{Distribution, Statistics};
use serde_json::{Map, Value, json};

use super::metrics::by_kind;
use crate::command::table::SPECS;
use crate::figures;
use crate::history::{History, Sample};
use crate::meter::{CommandFigures, Latency, Measured};
use crate::server::memory_cap;
use crate::shared::{Shared, random_seed};
use crate::survey::Surveyed;

/// Percentiles shown of latencies.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The text of all figures.
pub(super) fn text(shared: &Shared) -> String {
    format!("{}\n", all(shared))
}

/// All figures.
pub(super) fn all(shared: &Shared) -> Value {
    let store = shared.statistics_in_time();
    let measured = shared.measured();
    let kinds = by_kind(&measured).into_iter();
    let kinds: Map<String, Value> =
        kinds.map(|(kind, figures)| (kind.to_owned(), latency(&figures))).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "threads": shared.trays.len(),
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
        "health": super::health(shared).1,
        "second": second(shared),
        "spaces": spaces(shared, &store),
        "certificate_end_seconds": shared.certificate_end_seconds(),
        "superblock_damage": shared.tier.store().superblock_damage(),
        "segment_ages": segment_ages(shared),
        "admin_certificate_end_seconds": shared.admin_certificate_end_seconds(),
    })
}

/// Sealed segments in quarters by age, the youngest first; null while a shard waits for its device.
fn segment_ages(shared: &Shared) -> Value {
    let found = shared.tier.store().segment_map(1, FIGURES_WAIT);
    let quarters = found.map(|map| {
        map.ages.map(|quarter| {
            json!({
                "segments": quarter.segments,
                "used_bytes": quarter.used_bytes,
                "live_bytes": quarter.live_bytes,
                "age_writes_max": quarter.age_writes_max,
            })
        })
    });
    json!(quarters)
}

/// What was done in the latest second.
fn second(shared: &Shared) -> Value {
    let Sample { commands, store, client_bytes, .. } =
        shared.history.as_ref().map(History::latest).unwrap_or_default();
    let StoreRates { gets, device_bytes } = store;
    json!({
        "commands": measured(commands.rate()),
        "reads": measured(commands.rates[0].into()),
        "writes": measured(commands.rates[1].into()),
        "memory_hits": measured(gets[0].into()),
        "buffer_hits": measured(gets[1].into()),
        "flash_hits": measured(gets[2].into()),
        "misses": measured(gets[3].into()),
        "device_read_bytes": measured(device_bytes[0].into()),
        "device_written_bytes": measured(device_bytes[1].into()),
        "client_read_bytes": measured(client_bytes[0].into()),
        "client_written_bytes": measured(client_bytes[1].into()),
        "read_us": percentiles(commands.read_us),
        "write_us": percentiles(commands.write_us),
    })
}

/// Entries by the number of their database, and what those are that a survey read.
fn spaces(shared: &Shared, store: &Statistics) -> Map<String, Value> {
    shared.survey.look(&shared.tier, random_seed);
    let found = shared.survey.found();
    let mut entries = store.entries_of.clone();
    entries.entry(Default::default()).or_default();
    let named = entries.iter().map(|(space, count)| {
        let is_database = space.0 < shared.spaces();
        let sample = found.get(space).copied();
        let estimated = sample.and_then(|sample| sample.estimated_bytes(*count));
        let of = json!({
            "entries": count,
            "is_database": is_database,
            "estimated_bytes": estimated,
            "sample": sample.map(of_sample),
        });
        (space.0.to_string(), of)
    });
    named.collect()
}

fn of_sample(sample: Surveyed) -> Value {
    let mean = |sum: u64| measured(sum as f64 / sample.entries.max(1) as f64);
    json!({
        "entries": sample.entries,
        "strings": sample.strings,
        "hashes": sample.hashes,
        "ending": sample.ending,
        "key_bytes_mean": mean(sample.key_bytes),
        "value_bytes_mean": mean(sample.value_bytes),
        "record_bytes_mean": mean(sample.record_bytes),
    })
}

fn of_store(store: &Statistics) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in store.figures() {
        out.insert(name.to_owned(), json!(value));
    }
    out.insert("capacity_bytes".to_owned(), json!(store.capacity_bytes));
    for (name, value) in figures::ratios(store) {
        out.insert(name.to_owned(), measured(value));
    }
    out.insert("write_amplification".to_owned(), measured(store.write_amplification()));
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
        "min": measured(latency.min_us()),
        "max": measured(latency.max_us()),
        "mean": measured(latency.mean_us()),
        "geometric_mean": measured(latency.geometric_mean_us()),
        "standard_deviation": measured(latency.standard_deviation_us()),
    });
    for percent in PERCENTILES {
        out[percentile_name(percent)] = measured(latency.percentile_us(percent));
    }
    out
}

fn distribution(sizes: &Distribution) -> Value {
    let mut out = json!({
        "n": sizes.count,
        "min": sizes.min,
        "max": sizes.max,
        "mean": measured(sizes.mean),
        "geometric_mean": measured(sizes.geometric_mean),
        "standard_deviation": measured(sizes.standard_deviation),
    });
    for (percent, value) in &sizes.percentiles {
        out[percentile_name(*percent)] = json!(value);
    }
    out
}

/// `p50`, `p99`, `p999`.
fn percentile_name(percent: f64) -> String {
    format!("p{}", percent.to_string().replace('.', ""))
}
