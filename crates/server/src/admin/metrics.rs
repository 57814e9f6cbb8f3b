//! `/metrics`: all figures, by OpenMetrics. `docs/guides/monitoring.md` has a row for each.

use std::sync::atomic::Ordering;

use entresol_host::{Histogram, Metrics, Series};
use entresol_page::Kind;
use entresol_tier::Statistics;

use crate::command::table::SPECS;
use crate::meter::{Latency, Measured};
use crate::server::memory_cap;
use crate::shared::Shared;

/// Upper bounds of the buckets of latency histograms, microseconds.
const BUCKETS_US: [u64; 16] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// The text of all metrics.
pub(super) fn text(shared: &Shared) -> String {
    let mut metrics = Metrics::of_process(env!("CARGO_PKG_VERSION"));
    let store = shared.statistics_in_time();
    of_reads(&mut metrics, &store);
    of_writes(&mut metrics, &store);
    of_space(&mut metrics, &store);
    of_device(&mut metrics, &store);
    let pending = shared.oldest_pending().map_or(0, |pending| pending.age.as_secs());
    metrics.one(
        "entresol_oldest_pending_io_seconds",
        "Time, at least, for which the oldest request to the device has been waiting.",
        pending,
    );
    of_reclaim(&mut metrics, &store);
    of_memory(&mut metrics, &store, shared.memory.used() as u64);
    metrics.one(
        "entresol_memory_cap_bytes",
        "Most memory that the server takes for all uses together.",
        memory_cap(shared),
    );
    metrics.one(
        "entresol_superblock_damaged",
        "1 if the start found one of the two copies of the superblock damaged, and wrote it anew.",
        shared.tier.store().superblock_damage().is_some(),
    );
    let certificates = [
        ("clients", shared.certificate_end_seconds()),
        ("http", shared.admin_certificate_end_seconds()),
    ];
    metrics.family(
        "entresol_certificate_end_timestamp_seconds",
        "When the certificates end that clients are shown, and that HTTP shows, since the epoch.",
        certificates.into_iter().filter_map(|(of, end)| Some(Series::of(end?).labelled("use", of))),
    );
    let measured = shared.measured();
    of_clients(&mut metrics, shared, &measured);
    of_commands(&mut metrics, &measured);
    metrics.text()
}

fn of_reads(metrics: &mut Metrics, store: &Statistics) {
    metrics.one("entresol_gets_total", "Gets.", store.gets);
    let by = |tier: &str, hits: u64| Series::of(hits).labelled("answered_by", tier);
    metrics.family(
        "entresol_hits_total",
        "Gets that found an entry, by the tier that had it.",
        [
            by("cache", store.memory_hits),
            by("write_buffer", store.buffer_hits),
            by("device", store.flash_hits),
        ],
    );
    metrics.one("entresol_misses_total", "Gets that found no entry.", store.misses);
    metrics.one(
        "entresol_segments_ahead_total",
        "Whole segments read ahead of gets that follow the order of writing.",
        store.segments_ahead,
    );
    let of = |operation: &str, count: u64| Series::of(count).labelled("operation", operation);
    metrics.family(
        "entresol_collisions_total",
        "Records read that turned out to have another key.",
        [of("get", store.collisions_get), of("put", store.collisions_put)],
    );
    metrics.one(
        "entresol_damaged_total",
        "Damaged records that a get, a write or a scan met.",
        store.damaged,
    );
}

fn of_writes(metrics: &mut Metrics, store: &Statistics) {
    metrics.one("entresol_puts_total", "Puts, touches and overwrites included.", store.puts);
    metrics.one("entresol_overwrites_total", "Puts that replaced an entry.", store.overwrites);
    metrics.one("entresol_touches_total", "Changes of an entry's end.", store.touches);
    metrics.one("entresol_removes_total", "Removes that found an entry.", store.removes);
    metrics.one("entresol_expired_total", "Entries that expired.", store.expired);
    let from = |place: &str, count: u64| Series::of(count).labelled("from", place);
    metrics.family(
        "entresol_evictions_total",
        "Entries that made room: on the device in a cache, or in a queue of the cache in memory.",
        [
            from("device", store.evicted_flash),
            from("small_queue", store.evicted_small),
            from("main_queue", store.evicted_main),
        ],
    );
    metrics.one(
        "entresol_user_written_bytes_total",
        "Bytes of keys and values that callers put.",
        store.user_written_bytes,
    );
    metrics.one(
        "entresol_write_amplification_ratio",
        "Bytes written to the device for each byte put, without what the opening wrote.",
        store.write_amplification(),
    );
}

fn of_space(metrics: &mut Metrics, store: &Statistics) {
    let mut entries = store.entries_of.clone();
    // The first one is there even if nothing is in it.
    entries.entry(Default::default()).or_default();
    let of = |(space, count): (&entresol_tier::SpaceId, &u64)| {
        Series::of(*count).labelled("space", space.0.to_string())
    };
    metrics.family(
        "entresol_entries",
        "Entries on flash, by the space (the database of RESP) that has them.",
        entries.iter().map(of),
    );
    metrics.one(
        "entresol_capacity_bytes",
        "Bytes of the device that records may take, those that reclaim needs included.",
        store.capacity_bytes,
    );
    metrics.one(
        "entresol_flash_allocated_bytes",
        "Bytes of the device that are given to segments.",
        store.flash_allocated_bytes,
    );
    metrics.one("entresol_flash_live_bytes", "Bytes of live records.", store.flash_live_bytes);
    let state = |state: &str, count: u64| Series::of(count).labelled("state", state);
    metrics.family(
        "entresol_segments",
        "Segments of the store.",
        [
            state("free", store.segments_free),
            state("used", store.segments.saturating_sub(store.segments_free)),
        ],
    );
}

fn of_device(metrics: &mut Metrics, store: &Statistics) {
    let asked = |request: &str, count: u64| Series::of(count).labelled("request", request);
    metrics.family(
        "entresol_device_requests_total",
        "Requests to the device; the syncs include durable writes.",
        [
            asked("read", store.device_reads),
            asked("write", store.device_writes),
            asked("sync", store.device_syncs),
        ],
    );
    metrics.family(
        "entresol_device_bytes_total",
        "Bytes read from the device, and written to it.",
        [asked("read", store.device_read_bytes), asked("write", store.device_written_bytes)],
    );
    metrics.one(
        "entresol_pending_io",
        "Writes of the log that the device has not answered.",
        store.pending_io,
    );
    metrics.one("entresol_poisoned", "1 after a failed write or sync.", store.poisoned);
    metrics.one(
        "entresol_ground_lost",
        "1 while write buffers or files are not where the next start needs them.",
        store.ground_lost,
    );
    metrics.one(
        "entresol_buffers_remade_total",
        "Times that write buffers were made again after their removal.",
        store.buffers_remade,
    );
}

fn of_reclaim(metrics: &mut Metrics, store: &Statistics) {
    metrics.one(
        "entresol_reclaim_moved_bytes_total",
        "Bytes that reclaim copied.",
        store.reclaim_moved_bytes,
    );
    metrics.one(
        "entresol_reclaim_segments_total",
        "Segments that reclaim freed.",
        store.reclaim_segments,
    );
    metrics.one(
        "entresol_reclaims_by_writers_total",
        "Writes that found no room and waited for it.",
        store.reclaims_by_writers,
    );
    metrics.one(
        "entresol_steps_by_writers_total",
        "Times that a write did a few records of reclaim, which was behind.",
        store.steps_by_writers,
    );
}

fn of_memory(metrics: &mut Metrics, store: &Statistics, client_bytes: u64) {
    let of = |of: &str, bytes: u64| Series::of(bytes).labelled("use", of);
    metrics.family(
        "entresol_memory_bytes",
        "Memory by use.",
        [
            of("index", store.index_bytes),
            of("write_buffers", store.buffer_bytes),
            of("cache", store.cache_bytes),
            of("clients", client_bytes),
            of("other", store.other_bytes),
        ],
    );
}

fn of_clients(metrics: &mut Metrics, shared: &Shared, measured: &Measured) {
    let clients = &shared.clients;
    metrics.one("entresol_connected_clients", "Clients now.", clients.count() as u64);
    let outcome = |outcome: &str, count: u64| Series::of(count).labelled("outcome", outcome);
    metrics.family(
        "entresol_connections_total",
        "Connections that were accepted, and those refused because there were too many.",
        [
            outcome("accepted", clients.accepted.load(Ordering::Relaxed)),
            outcome("refused", clients.refused.load(Ordering::Relaxed)),
        ],
    );
    let direction = |way: &str, bytes: u64| Series::of(bytes).labelled("direction", way);
    metrics.family(
        "entresol_client_bytes_total",
        "Bytes of commands that were received, and of replies that were sent.",
        [direction("received", measured.input_bytes), direction("sent", measured.output_bytes)],
    );
    metrics.one("entresol_error_replies_total", "Replies that are errors.", measured.errors);
}

fn of_commands(metrics: &mut Metrics, measured: &Measured) {
    let named = || SPECS.iter().zip(&measured.commands);
    metrics.family(
        "entresol_commands_total",
        "Calls of each command that were answered.",
        named()
            .filter(|(_, figures)| figures.calls > 0)
            .map(|(spec, figures)| Series::of(figures.calls).labelled("command", spec.name)),
    );
    metrics.family(
        "entresol_command_errors_total",
        "Calls of each command that were refused before they began, or answered with an error.",
        named().filter(|(_, figures)| figures.calls + figures.rejected > 0).flat_map(
            |(spec, figures)| {
                [("refused", figures.rejected), ("failed", figures.failed)].map(
                    |(reason, count)| {
                        Series::of(count).labelled("command", spec.name).labelled("reason", reason)
                    },
                )
            },
        ),
    );
    metrics.family(
        "entresol_command_latency_seconds",
        "Latencies of commands that read, that write, and of all others: from the bytes read to \
         the reply ready.",
        by_kind(measured)
            .into_iter()
            .map(|(kind, latency)| Series::of(histogram(&latency)).labelled("kind", kind)),
    );
}

/// Latencies of commands that read, that write, and of all others.
pub(super) fn by_kind(measured: &Measured) -> [(&'static str, Latency); 3] {
    let mut kinds = Kind::ALL.map(|kind| (kind.name(), Latency::default()));
    for (spec, figures) in SPECS.iter().zip(&measured.commands) {
        kinds[spec.kind() as usize].1.add(&figures.latency);
    }
    kinds
}

fn histogram(latency: &Latency) -> Histogram {
    let up_to = BUCKETS_US.map(|bound| (bound as f64 / 1e6, latency.count_up_to_us(bound)));
    Histogram { up_to: up_to.to_vec(), count: latency.count(), sum: latency.sum_us() / 1e6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that no metric showed would be missed by whoever looks for it.
    #[test]
    fn every_figure_of_the_store_is_shown() {
        let mut metrics = Metrics::default();
        let store = told_apart();
        of_reads(&mut metrics, &store);
        of_writes(&mut metrics, &store);
        of_space(&mut metrics, &store);
        of_device(&mut metrics, &store);
        of_reclaim(&mut metrics, &store);
        of_memory(&mut metrics, &store, 0);
        let text = metrics.text();
        let values: Vec<&str> =
            text.lines().filter_map(|line| Some(line.rsplit_once(' ')?.1)).collect();
        for (name, value) in store.figures() {
            // All segments are those that are free and those that are used.
            let value = if name == "segments" { value - store.segments_free } else { value };
            assert!(values.contains(&value.to_string().as_str()), "{name} {value} in\n{text}");
        }
    }

    /// Figures each of which is another number.
    fn told_apart() -> Statistics {
        Statistics {
            gets: 1001,
            memory_hits: 1002,
            buffer_hits: 1003,
            flash_hits: 1004,
            misses: 1005,
            segments_ahead: 1006,
            puts: 1007,
            removes: 1008,
            touches: 1009,
            overwrites: 1010,
            collisions_get: 1011,
            collisions_put: 1012,
            damaged: 1013,
            expired: 1014,
            evicted_flash: 1015,
            evicted_small: 1016,
            evicted_main: 1017,
            entries: 1018,
            entries_of: [(Default::default(), 1018)].into(),
            capacity_bytes: 1019,
            pending_io: 1020,
            flash_allocated_bytes: 1021,
            flash_live_bytes: 1022,
            user_written_bytes: 1023,
            device_written_bytes: 1024,
            opening_written_bytes: 1025,
            device_writes: 1026,
            device_read_bytes: 1027,
            device_reads: 1028,
            device_syncs: 1029,
            reclaim_moved_bytes: 1030,
            reclaim_segments: 1031,
            reclaims_by_writers: 1032,
            steps_by_writers: 1033,
            segments: 9034,
            segments_free: 1035,
            index_bytes: 1036,
            buffer_bytes: 1037,
            cache_bytes: 1038,
            other_bytes: 1039,
            buffers_remade: 1040,
            ground_lost: 1041,
            poisoned: true,
            key_bytes: Default::default(),
            value_bytes: Default::default(),
        }
    }
}
