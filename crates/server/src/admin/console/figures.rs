//! Figures of `/stats` as tiles and tables.

use entresol_page::store::{self, Memory};
use entresol_page::{Figures, Unit, call_tiles, seconds, share, tile};
use maud::{Markup, html};
use serde_json::Value;

/// Commands that are listed: those called most.
const COMMANDS_MAX: usize = 20;

/// What is looked for first.
pub(super) fn tiles(figures: Figures<'_>) -> Markup {
    html! {
        ul.tiles {
            (store::full_tile(figures))
            (USES.tile(figures))
            (call_tiles(figures, "Commands", "/second/commands"))
            (store::entries_tile(figures))
            (tile("Clients", &figures.show("/clients/connected", Unit::Count), &html! {
                (figures.show("/clients/refused", Unit::Count)) " refused since the start"
            }))
            (store::amplification_tile(figures))
        }
    }
}

/// Uses of the memory cap.
const USES: Memory<'_> = Memory(&[
    ("index", "/memory/index_bytes"),
    ("write buffers", "/memory/write_buffer_bytes"),
    ("cache", "/memory/cache_bytes"),
    ("clients", "/memory/client_buffer_bytes"),
    ("other", "/memory/other_bytes"),
]);

/// The memory cap by use.
pub(super) fn memory(figures: Figures<'_>) -> Markup {
    html! {
        (USES.shown(figures))
        p.soft {
            "The cap is " (figures.show("/memory/cap_bytes", Unit::Bytes))
            " (" code { "memory" } "). The process has "
            (figures.show("/memory/resident_bytes", Unit::Bytes)) " resident."
        }
    }
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
