//! The metrics of volumes: which figures of the report each is made of.

/// One metric.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) figures: &'static [Figure],
}

/// Labels of a figure, beside the volume's name.
pub(super) type Labels = &'static [(&'static str, &'static str)];

/// What a number of a metric is made of: paths in the report.
pub(super) enum Figure {
    /// A number, as it is.
    Number(&'static str, Labels),
    /// A number of blocks, in bytes.
    Blocks(&'static str, Labels),
    /// What the first number has beside the second.
    Others(&'static str, &'static str, Labels),
    /// The same of blocks, in bytes.
    OtherBlocks(&'static str, &'static str, Labels),
    /// Whether there is anything to say.
    IsSaid(&'static str),
}

use Figure::{Blocks, IsSaid, Number, OtherBlocks, Others};

const fn row(name: &'static str, help: &'static str, figures: &'static [Figure]) -> Row {
    Row { name, help, figures }
}

/// Metrics of the cache and of the server.
pub(super) const OF_ALL: &[Row] = &[
    row(
        "entresol_volume_cache_capacity_bytes",
        "Room of the cache for entries.",
        &[Number("cache.capacity_bytes", &[])],
    ),
    row(
        "entresol_volume_cache_live_bytes",
        "About the room of the cache that live entries take.",
        &[Number("cache.live_bytes", &[])],
    ),
    row(
        "entresol_volume_cache_segments",
        "Segments of the cache.",
        &[
            Number("cache.segments_free", &[("state", "free")]),
            Others("cache.segments", "cache.segments_free", &[("state", "used")]),
        ],
    ),
    row(
        "entresol_volume_cache_reclaim_segments_total",
        "Segments that reclaim freed.",
        &[Number("cache.segments_reclaimed", &[])],
    ),
    row(
        "entresol_volume_cache_reclaim_moved_bytes_total",
        "Bytes that reclaim copied.",
        &[Number("cache.moved_bytes", &[])],
    ),
    row(
        "entresol_volume_cache_evictions_total",
        "Entries that made room for others.",
        &[Number("cache.evicted", &[])],
    ),
    row(
        "entresol_volume_cache_dirty_max_bytes",
        "Most dirty blocks of all volumes together, at which writers wait.",
        &[Blocks("cache.dirty_blocks_max", &[])],
    ),
    row(
        "entresol_volume_cache_failed",
        "1: the cache is no longer used.",
        &[IsSaid("cache.failed")],
    ),
    row(
        "entresol_volume_cache_oldest_pending_io_seconds",
        "Time, at least, for which the oldest request to the cache device has been waiting.",
        &[Number("cache.oldest_pending_io_seconds", &[])],
    ),
    row(
        "entresol_volume_memory_bytes",
        "Memory by use.",
        &[
            Number("cache.index_bytes", &[("use", "index")]),
            Number("server.held_bytes", &[("use", "clients")]),
        ],
    ),
    row("entresol_volume_connected_clients", "Clients now.", &[Number("server.connections", &[])]),
    row(
        "entresol_volume_connections_total",
        "Connections that were accepted, and those refused because there were too many.",
        &[
            Number("server.accepted", &[("outcome", "accepted")]),
            Number("server.refused", &[("outcome", "refused")]),
        ],
    ),
    row(
        "entresol_volume_handshakes_total",
        "Handshakes that came to their end.",
        &[Number("server.handshakes", &[])],
    ),
    row(
        "entresol_volume_protocol_errors_total",
        "Clients that broke the protocol.",
        &[Number("server.protocol_errors", &[])],
    ),
    row(
        "entresol_volume_error_replies_total",
        "Requests that were answered with an error.",
        &[Number("server.request_errors", &[])],
    ),
    row(
        "entresol_volume_network_bytes_total",
        "Bytes received from clients, and sent to them.",
        &[
            Number("server.received_bytes", &[("direction", "received")]),
            Number("server.sent_bytes", &[("direction", "sent")]),
        ],
    ),
    row(
        "entresol_volume_certificate_end_timestamp_seconds",
        "When the certificates end that clients are shown, and that HTTP shows, since the epoch.",
        &[
            Number("server.certificate_end_seconds", &[("use", "clients")]),
            Number("server.admin_certificate_end_seconds", &[("use", "http")]),
        ],
    ),
];

/// Metrics of each volume; their paths begin at the volume.
pub(super) const OF_VOLUMES: &[Row] = &[
    row("entresol_volume_size_bytes", "Size of the volume.", &[Number("bytes", &[])]),
    row(
        "entresol_volume_cached_bytes",
        "Blocks in the cache: the backing has them, still lacks them, or lacks a later copy.",
        &[
            Blocks("usage.clean", &[("state", "clean")]),
            Blocks("usage.dirty", &[("state", "dirty")]),
            OtherBlocks("usage.logged", "usage.dirty", &[("state", "superseded")]),
        ],
    ),
    row(
        "entresol_volume_log_entries",
        "Entries of the volume's log.",
        &[Number("usage.log_entries", &[])],
    ),
    row(
        "entresol_volume_share_bytes",
        "Most that clean blocks may take; 0: all.",
        &[Number("usage.share_bytes", &[])],
    ),
    row(
        "entresol_volume_requests_total",
        "Reads and writes: all blocks were cached, some, none, or the request went around.",
        &[
            Number("requests.read_hits", READ_HIT),
            Number("requests.read_partial_misses", READ_PARTIAL_MISS),
            Number("requests.read_full_misses", READ_MISS),
            Number("requests.pass_through_reads", READ_AROUND),
            Number("requests.write_hits", WRITE_HIT),
            Number("requests.write_partial_misses", WRITE_PARTIAL_MISS),
            Number("requests.write_full_misses", WRITE_MISS),
            Number("requests.pass_through_writes", WRITE_AROUND),
        ],
    ),
    row(
        "entresol_volume_other_requests_total",
        "Flushes, trims (requests for zeros included) and prefetches.",
        &[
            Number("requests.flushes", &[("request", "flush")]),
            Number("requests.trims", &[("request", "trim")]),
            Number("requests.prefetches", &[("request", "prefetch")]),
        ],
    ),
    row(
        "entresol_volume_coalesced_reads_total",
        "Reads that were answered by another read of the same blocks.",
        &[Number("requests.coalesced", &[])],
    ),
    row(
        "entresol_volume_lookup_bytes_total",
        "Blocks of reads and writes that were cached or not, without requests that went around.",
        &[
            Blocks("blocks.read_hit", READ_HIT),
            OtherBlocks("blocks.read", "blocks.read_hit", READ_MISS),
            Blocks("blocks.written_hit", WRITE_HIT),
            OtherBlocks("blocks.written", "blocks.written_hit", WRITE_MISS),
        ],
    ),
    row(
        "entresol_volume_client_bytes_total",
        "Bytes of clients' reads and writes, in whole blocks.",
        &[Blocks("blocks.to_clients", READ), Blocks("blocks.from_clients", WRITE)],
    ),
    row(
        "entresol_volume_backing_bytes_total",
        "Bytes read from the backing, and written to it.",
        &[Blocks("blocks.from_backing", READ), Blocks("blocks.to_backing", WRITE)],
    ),
    row(
        "entresol_volume_backing_requests_total",
        "Requests to the backing.",
        &[
            Number("backing_requests.reads", READ),
            Number("backing_requests.writes", WRITE),
            Number("backing_requests.flushes", &[("request", "flush")]),
        ],
    ),
    row(
        "entresol_volume_inserted_bytes_total",
        "Blocks that were put into the cache.",
        &[Blocks("blocks.insertions", &[])],
    ),
    row(
        "entresol_volume_written_back_bytes_total",
        "Blocks that were written back.",
        &[Blocks("blocks.cleaned", &[])],
    ),
    row(
        "entresol_volume_errors_total",
        "Requests to the cache or to the backing that failed; flushes count as writes.",
        &[
            Number("errors.cache_reads", &[("at", "cache"), ("request", "read")]),
            Number("errors.cache_writes", &[("at", "cache"), ("request", "write")]),
            Number("errors.backing_reads", &[("at", "backing"), ("request", "read")]),
            Number("errors.backing_writes", &[("at", "backing"), ("request", "write")]),
        ],
    ),
    row(
        "entresol_volume_write_back_failing",
        "1 while writing back fails.",
        &[IsSaid("errors.write_back")],
    ),
    row(
        "entresol_volume_backing_oldest_pending_io_seconds",
        "Time, at least, for which the oldest request to the backing has been waiting.",
        &[Number("oldest_pending_io_seconds", &[])],
    ),
];

const READ: Labels = &[("request", "read")];
const READ_HIT: Labels = &[("request", "read"), ("outcome", "hit")];
const READ_PARTIAL_MISS: Labels = &[("request", "read"), ("outcome", "partial_miss")];
const READ_MISS: Labels = &[("request", "read"), ("outcome", "miss")];
const READ_AROUND: Labels = &[("request", "read"), ("outcome", "pass_through")];
const WRITE: Labels = &[("request", "write")];
const WRITE_HIT: Labels = &[("request", "write"), ("outcome", "hit")];
const WRITE_PARTIAL_MISS: Labels = &[("request", "write"), ("outcome", "partial_miss")];
const WRITE_MISS: Labels = &[("request", "write"), ("outcome", "miss")];
const WRITE_AROUND: Labels = &[("request", "write"), ("outcome", "pass_through")];
