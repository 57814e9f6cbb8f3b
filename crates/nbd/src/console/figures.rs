//! Figures of `/stats` as tiles and tables.

use entresol_page::{
    Answered, BLOCK_BYTES, Figures, Row, Unit, bar, call_tiles, mark, rows, seconds, share, shown,
    text_of, tile,
};
use maud::{Markup, html};
use serde_json::Value;

/// Volumes that are listed.
const VOLUMES_MAX: usize = 200;

/// What is looked for first.
pub(super) fn tiles(figures: Figures<'_>) -> Markup {
    let (blocks, room) = ("/total/usage/occupancy", "/cache/capacity_bytes");
    let full = share(figures.number(blocks) * BLOCK_BYTES, figures.number(room));
    let (dirty, most) = ("/total/usage/dirty", "/cache/dirty_blocks_max");
    let (hits, read) = ("/total/blocks/read_hit", "/total/blocks/read");
    let part = |some, all| html! { (share(figures.number(some), figures.number(all))) };
    let show = |path: &str, unit| figures.show(path, unit);
    html! {
        ul.tiles {
            (tile("Cache in use", &html! { (full) }, &html! {
                (show(blocks, Unit::Blocks)) " of blocks in " (show(room, Unit::Bytes))
            }))
            (tile("Dirty data", &show(dirty, Unit::Blocks), &html! {
                (part(dirty, most)) " of the " (show(most, Unit::Blocks)) " at which writers wait"
            }))
            (tile("Blocks read from the cache", &part(hits, read), &html! {
                (show(hits, Unit::Blocks)) " of " (show(read, Unit::Blocks))
            }))
            (call_tiles(figures, "Requests", "/second/requests"))
            (tile("Volumes", &show("/total/volumes", Unit::Count), &html! {
                (show("/total/absent", Unit::Count)) " more whose backing is not there"
            }))
            (tile("Clients", &show("/server/connections", Unit::Count), &html! {
                (show("/server/refused", Unit::Count)) " refused since the start"
            }))
        }
    }
}

/// How a column of the table of volumes is called, where its figure stands, how it is written.
const COLUMNS: [(&str, &str, Unit); 10] = [
    ("Size", "bytes", Unit::Bytes),
    ("Clean", "usage/clean", Unit::Blocks),
    ("Dirty", "usage/dirty", Unit::Blocks),
    ("Reads", "requests/reads", Unit::Count),
    ("Writes", "requests/writes", Unit::Count),
    ("Around: reads", "requests/pass_through_reads", Unit::Count),
    ("Around: writes", "requests/pass_through_writes", Unit::Count),
    ("From backing", "blocks/from_backing", Unit::Blocks),
    ("To backing", "blocks/to_backing", Unit::Blocks),
    ("Written back", "blocks/cleaned", Unit::Blocks),
];

/// Counts of requests that failed.
const FAILED: [(&str, &str); 4] = [
    ("cache reads", "errors/cache_reads"),
    ("cache writes", "errors/cache_writes"),
    ("backing reads", "errors/backing_reads"),
    ("backing writes", "errors/backing_writes"),
];

/// Each volume.
pub(super) fn volumes(figures: Figures<'_>) -> Markup {
    let all = figures.0.get("volumes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let more = all.len().saturating_sub(VOLUMES_MAX);
    html! {
        h2 { "Volumes" }
        div.wide { table {
            thead { tr {
                th { "Volume" } th { "Mode" } th.n { "Read hits" }
                @for (name, ..) in COLUMNS { th.n { (name) } }
                th { "Failed requests" } th { "Backing" }
            } }
            tbody { @for (place, volume) in all.iter().take(VOLUMES_MAX).enumerate() {
                @let at = |path: &str| format!("/volumes/{place}/{path}");
                @let number = |path: &str| figures.number(&at(path));
                @let text = |key: &str| text_of(volume[key].as_str().unwrap_or("–").as_bytes());
                tr {
                    td { (text("name")) }
                    td { (text("mode")) }
                    td.n { (share(number("blocks/read_hit"), number("blocks/read"))) }
                    @for (_, path, unit) in COLUMNS { td.n { (figures.show(&at(path), unit)) } }
                    td { (failed(figures, &at)) }
                    td { (text("backing")) }
                }
            } }
        } }
        @if all.is_empty() { p.soft { "No volume is exported." } }
        @if more > 0 { p.soft { (more) " more in " a href="/stats" { "/stats" } "." } }
        p.soft { "Read hits are shares of the blocks read, without requests that went around the \
            cache. Counts begin with the opening of the cache." }
    }
}

fn failed(figures: Figures<'_>, at: &dyn Fn(&str) -> String) -> Markup {
    let met: Vec<_> = FAILED.iter().filter(|(_, path)| figures.number(&at(path)) > 0.0).collect();
    html! {
        @if met.is_empty() { "none" }
        @for (place, (name, path)) in met.iter().enumerate() {
            @if place > 0 { ", " }
            (figures.show(&at(path), Unit::Count)) " " (name)
        }
    }
}

/// Where reads are answered: name, path since the start, path of the latest second.
const ANSWERED: [(&str, &str, &str); 4] = [
    ("cache", "/total/requests/read_hits", "/second/read_hits"),
    ("cache and backing", "/total/requests/read_partial_misses", "/second/read_partial_misses"),
    ("backing", "/total/requests/read_full_misses", "/second/read_full_misses"),
    (
        "backing, around the cache",
        "/total/requests/pass_through_reads",
        "/second/pass_through_reads",
    ),
];

/// Where reads are answered.
pub(super) fn answered(figures: Figures<'_>) -> Markup {
    html! {
        (Answered { calls: "Reads", by: &ANSWERED }.shown(figures))
        p.soft { (figures.show("/total/requests/coalesced", Unit::Count)) " reads were answered by \
            another read of the same blocks." }
    }
}

/// What fills the cache.
pub(super) fn cache(figures: Figures<'_>) -> Markup {
    const ROWS: [Row; 6] = [
        ("segments", "/cache/segments", Unit::Count, "of the log"),
        ("segments free", "/cache/segments_free", Unit::Count, "empty ones among them"),
        ("reclaim freed", "/cache/segments_reclaimed", Unit::Count, "segments"),
        ("reclaim copied", "/cache/moved_bytes", Unit::Bytes, "moved forward"),
        ("entries evicted", "/cache/evicted", Unit::Count, "to make room for others"),
        ("put into the cache", "/total/blocks/insertions", Unit::Blocks, ""),
    ];
    let (clean, dirty) = ("/total/usage/clean", "/total/usage/dirty");
    let logged = figures.number("/total/usage/logged");
    let superseded = (logged - figures.number(dirty)).max(0.0);
    let room = figures.number("/cache/capacity_bytes");
    let bytes = |blocks: f64| blocks * BLOCK_BYTES;
    let of_room = |blocks: f64| share(bytes(blocks), room);
    let parts = [
        ("clean", bytes(figures.number(clean))),
        ("dirty", bytes(figures.number(dirty))),
        ("superseded", bytes(superseded)),
    ];
    html! {
        h2 { "The cache" }
        (bar(&parts, room))
        table {
            thead { tr { th { "Blocks" } th.n { "Size" } th.n { "Of the room" } } }
            tbody {
                @for (place, (path, name)) in [(clean, "clean"), (dirty, "dirty")]
                    .into_iter().enumerate() {
                    tr {
                        td { (mark(place)) (name) }
                        td.n { (figures.show(path, Unit::Blocks)) }
                        td.n { (of_room(figures.number(path))) }
                    }
                }
                tr {
                    td { (mark(2)) "superseded" }
                    td.n { (shown(superseded, Unit::Blocks)) }
                    td.n { (of_room(superseded)) }
                }
            }
        }
        p.soft {
            "The backing has clean blocks, and still lacks dirty ones. Of superseded ones a later \
             copy is in the log. The room is " (figures.show("/cache/capacity_bytes", Unit::Bytes))
            "; heads of blocks and what reclaim has not freed yet need some of it, too."
        }
        (rows(figures, &ROWS))
    }
}

/// What is written, and where to.
pub(super) fn writing(figures: Figures<'_>) -> Markup {
    const ROWS: [Row; 9] = [
        ("written by clients", "/total/blocks/from_clients", Unit::Blocks, "whole blocks"),
        ("written to backings", "/total/blocks/to_backing", Unit::Blocks, ""),
        ("of these written back", "/total/blocks/cleaned", Unit::Blocks, "dirty before"),
        ("writing back now", "/second/written_back_bytes", Unit::ByteRate, "the last second"),
        ("still dirty", "/total/usage/dirty", Unit::Blocks, "to be written back"),
        ("log entries", "/total/usage/log_entries", Unit::Count, ""),
        ("writes to backings", "/total/backing_requests/writes", Unit::Count, "requests"),
        ("flushes of backings", "/total/backing_requests/flushes", Unit::Count, "requests"),
        ("flushes of clients", "/total/requests/flushes", Unit::Count, "requests"),
    ];
    html! { h2 { "Writing and writing back" } (rows(figures, &ROWS)) }
}

/// Who is connected, and what went wrong with them.
pub(super) fn clients(figures: Figures<'_>) -> Markup {
    const ROWS: [Row; 8] = [
        ("connected", "/server/connections", Unit::Count, "now"),
        ("accepted", "/server/accepted", Unit::Count, "since the start"),
        ("refused", "/server/refused", Unit::Count, "there were too many"),
        ("handshakes", "/server/handshakes", Unit::Count, "that came to their end"),
        ("broke the protocol", "/server/protocol_errors", Unit::Count, "clients"),
        ("answered with an error", "/server/request_errors", Unit::Count, "requests"),
        ("received", "/server/received_bytes", Unit::Bytes, "from clients"),
        ("sent", "/server/sent_bytes", Unit::Bytes, "to clients"),
    ];
    html! { h2 { "Connections" } (rows(figures, &ROWS)) }
}

/// What clients ask for.
pub(super) fn commands(figures: Figures<'_>) -> Markup {
    let all = figures.0.pointer("/server/requests").and_then(Value::as_object);
    let asked: Vec<&String> = all
        .into_iter()
        .flatten()
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(name, _)| name)
        .collect();
    let latency = |key: &str| figures.show(&format!("/server/latency_us/{key}"), Unit::Latency);
    html! {
        h2 { "Commands since the start" }
        table {
            thead { tr { th { "Command" } th.n { "Requests" } th.n { "Bytes named" } } }
            tbody { @for name in &asked {
                @let bytes = format!("/server/asked_bytes/{name}");
                tr {
                    td { (name.replace('_', " ")) }
                    td.n { (figures.show(&format!("/server/requests/{name}"), Unit::Count)) }
                    td.n { @if figures.0.pointer(&bytes).is_some() {
                        (figures.show(&bytes, Unit::Bytes))
                    } @else { "–" } }
                }
            } }
        }
        @if asked.is_empty() { p.soft { "No request came yet." } }
        p.soft {
            "All of them took p50 " (latency("p50")) ", p99 " (latency("p99")) ", p99.9 "
            (latency("p999")) ", at most " (latency("max")) "."
        }
    }
}

/// Memory by use.
pub(super) fn memory(figures: Figures<'_>) -> Markup {
    const ROWS: [Row; 3] = [
        ("index of the cache", "/cache/index_bytes", Unit::Bytes, ""),
        ("requests of clients", "/server/held_bytes", Unit::Bytes, "under way"),
        ("the whole process", "/memory/resident_bytes", Unit::Bytes, "resident"),
    ];
    html! { h2 { "Memory" } (rows(figures, &ROWS)) }
}

/// What the page is of.
pub(super) fn about(figures: Figures<'_>) -> Markup {
    html! {
        "Entresol " (figures.text("/version")) ", up for "
        (seconds(figures.number("/uptime_seconds") as u64)) ", cache "
        code { (text_of(figures.text("/cache/device").as_bytes())) }
    }
}
