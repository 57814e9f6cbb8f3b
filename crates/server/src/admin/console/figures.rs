//! Figures of `/stats` as tiles and tables.

use entresol_page::{
    Answered, Figures, Row, Unit, bar, call_tiles, mark, rows, seconds, share, shown, tile,
};
use maud::{Markup, html};
use serde_json::Value;

/// Commands that are listed: those called most.
const COMMANDS_MAX: usize = 20;

/// What is looked for first.
pub(super) fn tiles(figures: Figures<'_>) -> Markup {
    let (live, room) = ("/store/flash_live_bytes", "/store/capacity_bytes");
    let full = share(figures.number(live), figures.number(room));
    let (used, cap) = (memory_bytes(figures), figures.number("/memory/cap_bytes"));
    let show = |path: &str, unit| figures.show(path, unit);
    html! {
        ul.tiles {
            (tile("Device full", &html! { (full) }, &html! {
                (show(live, Unit::Bytes)) " live of " (show(room, Unit::Bytes))
            }))
            (tile("Memory cap used", &html! { (share(used, cap)) }, &html! {
                "of " (show("/memory/cap_bytes", Unit::Bytes))
            }))
            (call_tiles(figures, "Commands", "/second/commands"))
            (tile("Entries", &show("/store/entries", Unit::Count), &html! { "on flash" }))
            (tile("Clients", &show("/clients/connected", Unit::Count), &html! {
                (show("/clients/refused", Unit::Count)) " refused since the start"
            }))
            (tile("Write amplification", &show("/store/write_amplification", Unit::Factor), &html! {
                "device bytes for each byte put"
            }))
        }
    }
}

/// Uses of the memory cap: name, path.
const USES: [(&str, &str); 5] = [
    ("index", "/memory/index_bytes"),
    ("write buffers", "/memory/write_buffer_bytes"),
    ("cache", "/memory/cache_bytes"),
    ("clients", "/memory/client_buffer_bytes"),
    ("other", "/memory/other_bytes"),
];

fn memory_bytes(figures: Figures<'_>) -> f64 {
    USES.iter().map(|(_, path)| figures.number(path)).sum()
}

/// The memory cap by use.
pub(super) fn memory(figures: Figures<'_>) -> Markup {
    let cap = figures.number("/memory/cap_bytes");
    let parts = USES.map(|(name, path)| (name, figures.number(path)));
    html! {
        h2 { "Memory by use" }
        (bar(&parts, cap))
        table {
            thead { tr { th { "Use" } th.n { "Size" } th.n { "Of the cap" } } }
            tbody {
                @for (place, (name, path)) in USES.iter().enumerate() {
                    tr {
                        td { (mark(place)) (name) }
                        td.n { (figures.show(path, Unit::Bytes)) }
                        td.n { (share(figures.number(path), cap)) }
                    }
                }
                tr { td { "free below the cap" } td.n {
                    (shown((cap - memory_bytes(figures)).max(0.0), Unit::Bytes))
                } td.n { (share((cap - memory_bytes(figures)).max(0.0), cap)) } }
            }
        }
        p.soft {
            "The cap is " (figures.show("/memory/cap_bytes", Unit::Bytes))
            " (" code { "memory" } "). The process has "
            (figures.show("/memory/resident_bytes", Unit::Bytes)) " resident."
        }
    }
}

/// Where gets are answered: name, path since the start, path of the latest second.
const ANSWERED: [(&str, &str, &str); 4] = [
    ("memory cache", "/store/memory_hits", "/second/memory_hits"),
    ("write buffer", "/store/buffer_hits", "/second/buffer_hits"),
    ("device", "/store/flash_hits", "/second/flash_hits"),
    ("no such entry", "/store/misses", "/second/misses"),
];

/// Where reads are answered.
pub(super) fn answered(figures: Figures<'_>) -> Markup {
    html! {
        (Answered { calls: "Gets", by: &ANSWERED }.shown(figures))
        p.soft { (figures.show("/store/gets", Unit::Count)) " gets since the start." }
    }
}

/// What is written, and what reclaim does.
pub(super) fn writing(figures: Figures<'_>) -> Markup {
    const ROWS: [Row; 11] = [
        ("put by clients", "/store/user_written_bytes", Unit::Bytes, "keys and values"),
        ("written to the device", "/store/device_written_bytes", Unit::Bytes, "the opening, too"),
        ("write amplification", "/store/write_amplification", Unit::Factor, "without the opening"),
        ("read from the device", "/store/device_read_bytes", Unit::Bytes, ""),
        ("device reads", "/store/device_reads", Unit::Count, "requests"),
        ("device writes", "/store/device_writes", Unit::Count, "requests"),
        ("device syncs", "/store/device_syncs", Unit::Count, "durable writes included"),
        ("reclaim copied", "/store/reclaim_moved_bytes", Unit::Bytes, "live records moved forward"),
        ("reclaim freed", "/store/reclaim_segments", Unit::Count, "segments"),
        ("writers waited for reclaim", "/store/reclaims_by_writers", Unit::Count, "times"),
        ("writers did reclaim", "/store/steps_by_writers", Unit::Count, "steps"),
    ];
    html! { h2 { "Writing and reclaim" } (rows(figures, &ROWS)) }
}

/// Tables of the store.
pub(super) fn spaces(figures: Figures<'_>) -> Markup {
    let spaces = figures.0.get("spaces").and_then(Value::as_object).into_iter().flatten();
    html! {
        h2 { "Tables" }
        div.wide { table {
            thead { tr {
                th { "Table" } th.n { "Entries" } th.n { "On flash, about" } th.n { "Strings" }
                th.n { "Hashes" } th.n { "With an end" } th.n { "Key" } th.n { "Value" }
                th { "Reached by" }
            } }
            tbody { @for (number, space) in spaces {
                @let is_database = space["is_database"] == true;
                @let at = |key: &str| format!("/spaces/{number}/{key}");
                @let read = figures.number(&at("sample/entries"));
                @let part = |key: &str| share(figures.number(&at(&format!("sample/{key}"))), read);
                @let bytes = |key: &str| html! {
                    @if read > 0.0 { (figures.show(&at(key), Unit::Bytes)) } @else { "–" }
                };
                tr {
                    td { @if is_database { "database " } @else { "space " } (number) }
                    td.n { (figures.show(&at("entries"), Unit::Count)) }
                    td.n { (bytes("estimated_bytes")) }
                    @for key in ["strings", "hashes", "ending"] {
                        td.n { @if is_database || key == "ending" { (part(key)) } @else { "–" } }
                    }
                    td.n { (bytes("sample/key_bytes_mean")) }
                    td.n { (bytes("sample/value_bytes_mean")) }
                    td { @if is_database { code { "SELECT " (number) } } @else {
                        "programs that embed the engine"
                    } }
                }
            } }
        } }
        p.soft { "Entries are counted. The rest is what about 768 entries at random places have, \
            read when somebody looks and once a minute at most; key and value are means." }
        p.soft { "Databases are hash tables. Ordered tables and the spaces that their pages are in \
            belong to programs; " code { "entresol store tables" } " names them." }
    }
}

/// What clients call, the most called first.
pub(super) fn commands(figures: Figures<'_>) -> Markup {
    let all = figures.0.get("commands").and_then(Value::as_object).into_iter().flatten();
    let mut called: Vec<(&String, u64)> =
        all.map(|(name, one)| (name, one["calls"].as_u64().unwrap_or_default())).collect();
    called.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let more = called.len().saturating_sub(COMMANDS_MAX);
    html! {
        h2 { "Commands since the start" }
        div.wide { table {
            thead { tr {
                th { "Command" } th.n { "Calls" } th.n { "Failed" } th.n { "Refused" }
                th.n { "p50" } th.n { "p99" } th.n { "p99.9" } th.n { "max" }
            } }
            tbody { @for (name, _) in called.iter().take(COMMANDS_MAX) {
                @let at = |path: &str| format!("/commands/{name}/{path}");
                @let show = |path: &str, unit| figures.show(&at(path), unit);
                tr {
                    td { (name) }
                    td.n { (show("calls", Unit::Count)) }
                    td.n { (show("failed", Unit::Count)) }
                    td.n { (show("rejected", Unit::Count)) }
                    @for percentile in ["p50", "p99", "p999", "max"] {
                        td.n { (show(&format!("latency_us/{percentile}"), Unit::Latency)) }
                    }
                }
            } }
        } }
        @if called.is_empty() { p.soft { "No command came yet." } }
        @if more > 0 { p.soft { (more) " more in " a href="/stats" { "/stats" } "." } }
    }
}

/// What the page is of.
pub(super) fn about(figures: Figures<'_>) -> Markup {
    html! {
        "Entresol " (figures.text("/version")) ", up for "
        (seconds(figures.number("/uptime_seconds") as u64)) ", "
        (figures.show("/threads", Unit::Count)) " threads"
    }
}
