//! `INFO`: figures as redis-server names them, and a section of our own.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_host::ProcessFigures;
use entresol_tier::Statistics;

use super::arguments::shown;
use super::connection::COMPATIBLE_VERSION;
use super::plan::Local;
use super::table::SPECS;
use crate::failure::Failure;
use crate::lock::lock;
use crate::meter::{Counted, Measured};
use crate::shared::Shared;

/// What the sections are written from.
struct Source<'a> {
    shared: &'a Shared,
    figures: Statistics,
    measured: Measured,
    process: ProcessFigures,
}

type Section = fn(&Source<'_>, &mut String);

/// Sections with their titles; those after the first ten come only when asked for.
const SECTIONS: [(&str, Section); 12] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
    ("Entresol", entresol),
    ("Commandstats", commandstats),
    ("Latencystats", latencystats),
];
const DEFAULT_SECTIONS: usize = 10;

pub(crate) fn info(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    let names: Vec<String> =
        local.request.arguments.from(1).map(|name| shown(name).to_ascii_lowercase()).collect();
    local.reply.verbatim(&text(&local.engine.shared, &names));
    Ok(())
}

/// The sections called `names`; none means the usual ones.
fn text(shared: &Shared, names: &[String]) -> String {
    let source = Source {
        shared,
        figures: shared.statistics_in_time(),
        measured: shared.measured(),
        process: ProcessFigures::read(),
    };
    let everything = names.iter().any(|name| name == "all" || name == "everything");
    let usual = names.is_empty() || names.iter().any(|name| name == "default");
    let mut out = String::new();
    for (place, (title, write)) in SECTIONS.iter().enumerate() {
        let named = names.iter().any(|name| name.eq_ignore_ascii_case(title));
        if named || everything || (usual && place < DEFAULT_SECTIONS) {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            out.push_str(&format!("# {title}\r\n"));
            write(&source, &mut out);
        }
    }
    out
}

/// Appends a line; writing to a `String` cannot fail.
fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}:{value}\r\n");
}

fn server(source: &Source<'_>, out: &mut String) {
    let shared = source.shared;
    let uptime = shared.started.elapsed().as_secs();
    line(out, "redis_version", COMPATIBLE_VERSION);
    line(out, "redis_mode", "standalone");
    line(out, "entresol_version", env!("CARGO_PKG_VERSION"));
    line(out, "os", std::env::consts::OS);
    line(out, "arch_bits", usize::BITS);
    line(out, "process_id", std::process::id());
    line(out, "run_id", format!("{:040x}", shared.seed));
    if let Some(port) = shared.ports.get().and_then(|ports| ports.resp.first()) {
        line(out, "tcp_port", port.port());
    }
    line(out, "server_threads", shared.trays.len());
    line(out, "uptime_in_seconds", uptime);
    line(out, "uptime_in_days", uptime / 86_400);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    line(out, "server_time_usec", now.as_micros());
    if let Some(end) = shared.certificate_end_seconds() {
        line(out, "certificate_end_seconds", end);
    }
    if let Some(end) = shared.admin_certificate_end_seconds() {
        line(out, "admin_certificate_end_seconds", end);
    }
    let file = lock(&shared.config).file().map(|file| file.display().to_string());
    line(out, "config_file", file.unwrap_or_default());
}

fn clients(source: &Source<'_>, out: &mut String) {
    let shared = source.shared;
    line(out, "connected_clients", shared.clients.count());
    line(out, "maxclients", lock(&shared.config).clients_max());
    line(out, "client_buffer_bytes", shared.memory.used());
    line(out, "blocked_clients", shared.clients.paused());
}

fn memory(source: &Source<'_>, out: &mut String) {
    let figures = &source.figures;
    let used = source.shared.used_bytes(figures);
    let peak = source.shared.recent.peak_bytes(used);
    line(out, "used_memory", used);
    line(out, "used_memory_human", human(used));
    line(out, "used_memory_peak", peak);
    line(out, "used_memory_peak_human", human(peak));
    line(out, "used_memory_rss", source.process.resident_bytes);
    line(out, "used_memory_rss_human", human(source.process.resident_bytes));
    let config = lock(&source.shared.config);
    line(out, "maxmemory", config.memory_bytes());
    line(out, "maxmemory_human", human(config.memory_bytes()));
    line(out, "maxmemory_policy", config.eviction_policy());
    drop(config);
    line(out, "used_memory_index", figures.index_bytes);
    line(out, "used_memory_write_buffers", figures.buffer_bytes);
    line(out, "used_memory_cache", figures.cache_bytes);
    line(out, "used_memory_other", figures.other_bytes);
}

/// Bytes as redis-server shows them to people.
fn human(bytes: u64) -> String {
    let exact = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.2}K", exact / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.2}M", exact / 1_048_576.0),
        _ => format!("{:.2}G", exact / 1_073_741_824.0),
    }
}

fn persistence(source: &Source<'_>, out: &mut String) {
    line(out, "loading", 0);
    line(out, "rdb_changes_since_last_save", 0);
    line(out, "rdb_bgsave_in_progress", 0);
    let saved = source.shared.last_save_seconds.load(Ordering::Relaxed);
    line(out, "rdb_last_save_time", saved);
    line(out, "aof_enabled", 0);
}

fn stats(source: &Source<'_>, out: &mut String) {
    let (shared, measured) = (source.shared, &source.measured);
    let counted = Counted::of(&shared.clients, &source.figures).since(*lock(&shared.forgotten));
    line(out, "total_connections_received", counted.accepted);
    line(out, "total_commands_processed", measured.calls());
    let rates = shared.recent.rates();
    line(out, "instantaneous_ops_per_sec", rates.commands.round());
    line(out, "total_net_input_bytes", measured.input_bytes);
    line(out, "total_net_output_bytes", measured.output_bytes);
    line(out, "instantaneous_input_kbps", format!("{:.2}", rates.input_bytes / 1024.0));
    line(out, "instantaneous_output_kbps", format!("{:.2}", rates.output_bytes / 1024.0));
    line(out, "rejected_connections", counted.refused);
    line(out, "expired_keys", counted.expired);
    line(out, "evicted_keys", counted.evicted);
    line(out, "keyspace_hits", counted.hits);
    line(out, "keyspace_misses", counted.misses);
    line(out, "total_error_replies", measured.errors);
}

fn replication(_: &Source<'_>, out: &mut String) {
    line(out, "role", "master");
    line(out, "connected_slaves", 0);
    line(out, "master_repl_offset", 0);
}

fn cpu(source: &Source<'_>, out: &mut String) {
    line(out, "used_cpu_sys", format!("{:.6}", source.process.system_seconds));
    line(out, "used_cpu_user", format!("{:.6}", source.process.user_seconds));
}

fn cluster(_: &Source<'_>, out: &mut String) {
    line(out, "cluster_enabled", 0);
}

fn keyspace(source: &Source<'_>, out: &mut String) {
    for (space, keys) in &source.figures.entries_of {
        if *keys > 0 {
            let name = format!("db{}", space.0);
            line(out, &name, format!("keys={keys},expires=0,avg_ttl=0"));
        }
    }
}

fn entresol(source: &Source<'_>, out: &mut String) {
    let figures = &source.figures;
    for (name, value) in figures.figures() {
        line(out, name, value);
    }
    line(out, "write_amplification", format!("{:.3}", figures.write_amplification()));
    line(out, "poisoned", u8::from(figures.poisoned));
}

fn commandstats(source: &Source<'_>, out: &mut String) {
    for (spec, figures) in SPECS.iter().zip(&source.measured.commands) {
        if figures.calls + figures.rejected == 0 {
            continue;
        }
        let value = format!(
            "calls={},usec={:.0},usec_per_call={:.2},rejected_calls={},failed_calls={}",
            figures.calls,
            figures.latency.sum_us(),
            figures.latency.mean_us(),
            figures.rejected,
            figures.failed
        );
        line(out, &format!("cmdstat_{}", spec.name), value);
    }
}

fn latencystats(source: &Source<'_>, out: &mut String) {
    for (spec, figures) in SPECS.iter().zip(&source.measured.commands) {
        if figures.calls == 0 {
            continue;
        }
        let [p50, p99, p999] =
            [50.0, 99.0, 99.9].map(|percent| figures.latency.percentile_us(percent));
        let value = format!("p50={p50:.3},p99={p99:.3},p99.9={p999:.3}");
        line(out, &format!("latency_percentiles_usec_{}", spec.name), value);
    }
}
