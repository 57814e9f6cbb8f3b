//! `/metrics`: all figures in the text format of Prometheus (version 0.0.4).

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

use entresol_host::ProcessFigures;
use entresol_tier::Statistics;

use crate::command::spec::{READONLY, WRITE};

use crate::command::table::SPECS;
use crate::figures;
use crate::meter::{Latency, Measured};
use crate::server::memory_cap;
use crate::shared::Shared;

/// Upper bounds of the buckets of latency histograms, microseconds.
const BUCKETS_US: [u64; 16] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// The text of all metrics.
pub(super) fn text(shared: &Shared) -> String {
    let mut out = String::new();
    let pending = shared.oldest_pending().map_or(0, |pending| pending.age.as_secs());
    metric(&mut out, "entresol_oldest_pending_io_seconds", "gauge", pending);
    of_store(&mut out, &shared.statistics_in_time());
    let process = ProcessFigures::read();
    let clients = &shared.clients;
    metric(&mut out, "entresol_memory_cap_bytes", "gauge", memory_cap(shared));
    metric(&mut out, "entresol_resident_bytes", "gauge", process.resident_bytes);
    let cpu = process.user_seconds + process.system_seconds;
    metric(&mut out, "entresol_cpu_seconds_total", "counter", cpu);
    metric(&mut out, "entresol_uptime_seconds", "gauge", shared.started.elapsed().as_secs());
    metric(&mut out, "entresol_connected_clients", "gauge", clients.count());
    let buffered = shared.memory.used();
    metric(&mut out, "entresol_client_buffer_bytes", "gauge", buffered);
    let accepted = clients.accepted.load(Ordering::Relaxed);
    metric(&mut out, "entresol_connections_accepted_total", "counter", accepted);
    let refused = clients.refused.load(Ordering::Relaxed);
    metric(&mut out, "entresol_connections_refused_total", "counter", refused);
    let measured = shared.measured();
    metric(&mut out, "entresol_client_read_bytes_total", "counter", measured.input_bytes);
    metric(&mut out, "entresol_client_written_bytes_total", "counter", measured.output_bytes);
    metric(&mut out, "entresol_error_replies_total", "counter", measured.errors);
    commands(&mut out, &measured);
    latencies(&mut out, &measured);
    out
}

fn of_store(out: &mut String, store: &Statistics) {
    for (name, value) in store.figures() {
        let (kind, suffix) =
            if figures::is_gauge(name) { ("gauge", "") } else { ("counter", "_total") };
        metric(out, &format!("entresol_{name}{suffix}"), kind, value);
    }
    for (name, value) in figures::ratios(store) {
        metric(out, &format!("entresol_{name}"), "gauge", value);
    }
    let amplification = store.write_amplification();
    metric(out, "entresol_write_amplification_ratio", "gauge", amplification);
    metric(out, "entresol_poisoned", "gauge", u8::from(store.poisoned));
}

/// Appends one metric; writing to a `String` cannot fail.
fn metric(out: &mut String, name: &str, kind: &str, value: impl Display) {
    let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
}

fn commands(out: &mut String, measured: &Measured) {
    let name = "entresol_commands_total";
    let _ = writeln!(out, "# TYPE {name} counter");
    for (spec, figures) in SPECS.iter().zip(&measured.commands) {
        if figures.calls > 0 {
            let _ = writeln!(out, "{name}{{command=\"{}\"}} {}", spec.name, figures.calls);
        }
    }
}

/// Latencies of commands that read, that write, and of all others.
pub(super) fn by_kind(measured: &Measured) -> [(&'static str, Latency); 3] {
    let mut kinds = [
        ("read", Latency::default()),
        ("write", Latency::default()),
        ("other", Latency::default()),
    ];
    for (spec, figures) in SPECS.iter().zip(&measured.commands) {
        let kind = match spec {
            spec if spec.has(READONLY) => 0,
            spec if spec.has(WRITE) => 1,
            _ => 2,
        };
        kinds[kind].1.add(&figures.latency);
    }
    kinds
}

fn latencies(out: &mut String, measured: &Measured) {
    let name = "entresol_command_latency_seconds";
    let _ = writeln!(out, "# TYPE {name} histogram");
    for (kind, latency) in by_kind(measured) {
        for bound in BUCKETS_US {
            let count = latency.count_up_to_us(bound);
            let bound = bound as f64 / 1e6;
            let _ = writeln!(out, "{name}_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {count}");
        }
        let count = latency.count();
        let _ = writeln!(out, "{name}_bucket{{kind=\"{kind}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{kind=\"{kind}\"}} {}", latency.sum_us() / 1e6);
        let _ = writeln!(out, "{name}_count{{kind=\"{kind}\"}} {count}");
    }
}
