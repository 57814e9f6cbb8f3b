//! Each store of this node, in a row and at length.

use entresol_page::store::{self, Memory};
use entresol_page::{
    CELLS, Cell, Charts, Figures, Row, Span, Unit, latency_tiles, rows, segments, share, text_of,
    tile,
};
use maud::{Markup, html};
use serde_json::Value;

use super::look::said;
use super::nodes::state;
use super::problems;
use super::samples::Samples;
use super::trends::TRENDS;

/// Uses of the memory cap.
const USES: Memory<'_> = Memory(&[
    ("index", "/store/index_bytes"),
    ("write buffers", "/store/buffer_bytes"),
    ("cache", "/store/cache_bytes"),
    ("other", "/store/other_bytes"),
]);
/// Numbers of a cell of the map.
const CELL_NUMBERS: usize = 7;

/// The charts of a look: how far back, and from when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) span: Span,
    /// Seconds since the start.
    pub(super) now: f64,
}

/// A row for each store of this node.
pub(super) fn table(all: &[Value], span: Span) -> Markup {
    html! {
        h2 { "Stores of this node" }
        div.wide { table {
            thead { tr {
                th { "Cache" } th { "State" } th { "Template" } th.n { "Full" } th.n { "Live" }
                th.n { "Capacity" } th.n { "Entries" } th.n { "Reads" } th.n { "Writes" }
                th.n { "Reads found" } th.n { "Memory cap used" }
            } }
            tbody { @for one in all {
                tr data-store=(name(one)) {
                    td { a href=(address(one, span)) { code { (name(one)) } } }
                    td { (state(one)) }
                    (row(one))
                }
            } }
        } }
        @if all.is_empty() { p.none { "No cache of this node is on flash." } }
    }
}

fn row(one: &Value) -> Markup {
    let figures = Figures(one);
    let shown = |path: &str, unit| html! { td.n { (figures.show(path, unit)) } };
    html! {
        td { (said(&one["template"])) }
        @if one["store"].is_object() {
            td.n { (store::full(figures)) }
            (shown("/store/flash_live_bytes", Unit::Bytes))
            (shown("/store/capacity_bytes", Unit::Bytes))
            (shown("/store/entries", Unit::Count))
            (shown("/second/reads", Unit::Rate))
            (shown("/second/writes", Unit::Rate))
            td.n { (found(figures)) }
            td.n { (share(USES.bytes(figures), figures.number("/memory/cap_bytes"))) }
        } @else {
            td.soft colspan="8" { }
        }
    }
}

/// Everything that there is to say of a store.
pub(super) fn section(samples: &Samples, one: &Value, time: Time) -> Markup {
    let figures = Figures(one);
    let Time { span, now } = time;
    let samples = samples.samples(one, span);
    let charts = Charts { trends: &TRENDS, samples: &samples, span, now, measured: "" };
    html! {
        section.store data-store=(name(one)) {
            h2.title { "Cache " code { (name(one)) } }
            @for problem in problems::of(one) { p { span.wrong { (problem.what) } } }
            @if let (Some(_), Some(device)) = (one["template"].as_str(), one["device"].as_str()) {
                p.soft {
                    (said(&one["template"])) ", on " code { (text_of(device.as_bytes())) }
                }
            }
            @if one["store"].is_object() {
                (tiles(figures))
                (charts.drawings())
                div.cards {
                    section.card { (store::answered(figures)) }
                    section.card { (USES.shown(figures)) (cap(figures)) }
                    section.card { (segments(figures, cells(one).as_deref())) }
                    section.card { (store::writing(figures, "put by the cache")) }
                    section.card { (above(one)) }
                }
            }
        }
    }
}

fn tiles(figures: Figures<'_>) -> Markup {
    let show = |path: &str, unit| figures.show(path, unit);
    html! {
        ul.tiles {
            (store::full_tile(figures))
            (USES.tile(figures))
            (tile("Calls of the cache", &show("/second/calls", Unit::Rate), &html! {
                "reads " (show("/second/reads", Unit::Rate))
                ", writes " (show("/second/writes", Unit::Rate))
            }))
            (latency_tiles(figures, ["Reads of the store take", "Writes of the store take"]))
            (tile("Reads found", &html! { (found(figures)) }, &html! {
                (show("/cache/hits", Unit::Count)) " of " (show("/cache/reads", Unit::Count))
            }))
            (store::entries_tile(figures))
            (store::amplification_tile(figures))
        }
    }
}

/// Which part of the cache's reads found an entry.
fn found(figures: Figures<'_>) -> String {
    share(figures.number("/cache/hits"), figures.number("/cache/reads"))
}

fn cap(figures: Figures<'_>) -> Markup {
    html! { p.soft {
        "The cap is " (figures.show("/memory/cap_bytes", Unit::Bytes)) " (" code { "memory" }
        " of the store), outside of Java's heap."
    } }
}

/// What Infinispan counts above the store.
fn above(one: &Value) -> Markup {
    const ROWS: [Row; 9] = [
        ("reads", "/cache/reads", Unit::Count, "on this node, of other nodes' entries, too"),
        ("reads that found", "/cache/hits", Unit::Count, "in Java's heap, the store, a node"),
        ("reads that did not", "/cache/misses", Unit::Count, ""),
        ("writes", "/cache/writes", Unit::Count, ""),
        ("removals", "/cache/removes", Unit::Count, "of entries that were there"),
        ("entries in Java's heap", "/cache/in_heap", Unit::Count, "now"),
        ("left Java's heap for others", "/cache/evictions", Unit::Count, "they stay on flash"),
        ("a read takes", "/cache/read_us", Unit::Latency, "mean since the start"),
        ("a write takes", "/cache/write_us", Unit::Latency, "mean since the start"),
    ];
    html! {
        h2 { "Infinispan's cache above" }
        @if one["cache"].is_object() { (rows(Figures(one), &ROWS)) } @else {
            p.none { "The statistics of this cache are off." }
        }
    }
}

/// The cells of the map; `None` if the store waits for its device.
fn cells(one: &Value) -> Option<Vec<Cell>> {
    let all = one["segments"].as_array()?;
    Some(all.iter().take(2 * CELLS).map(cell).collect())
}

fn cell(numbers: &Value) -> Cell {
    let mut all = [0; CELL_NUMBERS];
    for (place, number) in all.iter_mut().zip(numbers.as_array().into_iter().flatten()) {
        *place = number.as_u64().unwrap_or_default();
    }
    let [segments, free, damaged, used_bytes, live_bytes, sealed, age_writes] = all;
    Cell { segments, free, damaged, used_bytes, live_bytes, sealed, age_writes }
}

/// Where the page of one store is.
fn address(one: &Value, span: Span) -> String {
    let span = if span == Span::Day { "&span=day" } else { "" };
    format!("/?{}{span}", query(one["name"].as_str().unwrap_or_default()))
}

/// What names one store in an address.
pub(super) fn query(name: &str) -> String {
    let byte = |byte: u8| match byte {
        plain if plain.is_ascii_alphanumeric() || b"-_.".contains(&plain) => {
            char::from(plain).to_string()
        }
        other => format!("%{other:02X}"),
    };
    format!("cache={}", name.bytes().map(byte).collect::<String>())
}

fn name(one: &Value) -> String {
    said(&one["name"])
}
