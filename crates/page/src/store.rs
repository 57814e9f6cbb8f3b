//! The figures of one store as tiles, tables and problems, for every page that shows a store.
//!
//! The object that such a page is made of has the store's figures under `store`, its memory under
//! `memory`, and the rates of the latest second under `second`.

use maud::{Markup, html};

use crate::figures::{Answered, Figures, Row, bar, mark, rows, tile};
use crate::problems::{Grade, Problem};
use crate::words::{Unit, share, shown};

const LIVE: &str = "/store/flash_live_bytes";
const ROOM: &str = "/store/capacity_bytes";
const CAP: &str = "/memory/cap_bytes";
const DAMAGED: &str = "/store/damaged";
/// From which live share on a store that evicts nothing is about to be full.
const NEARLY_FULL: f64 = 0.85;

/// How much of the device is live.
pub fn full_tile(figures: Figures<'_>) -> Markup {
    tile(
        "Device full",
        &html! { (full(figures)) },
        &html! {
            (figures.show(LIVE, Unit::Bytes)) " live of " (figures.show(ROOM, Unit::Bytes))
        },
    )
}

/// The part of the device that is live, in percent.
pub fn full(figures: Figures<'_>) -> String {
    share(figures.number(LIVE), figures.number(ROOM))
}

/// The entries.
pub fn entries_tile(figures: Figures<'_>) -> Markup {
    tile("Entries", &figures.show("/store/entries", Unit::Count), &html! { "on flash" })
}

/// How many bytes are written for each one that is put.
pub fn amplification_tile(figures: Figures<'_>) -> Markup {
    let value = figures.show("/store/write_amplification", Unit::Factor);
    tile("Write amplification", &value, &html! { "device bytes for each byte put" })
}

/// What a memory cap is used for: each use with the path of its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a>(pub &'a [(&'a str, &'a str)]);

impl Memory<'_> {
    /// The bytes of all uses.
    pub fn bytes(self, figures: Figures<'_>) -> f64 {
        self.0.iter().map(|(_, path)| figures.number(path)).sum()
    }

    /// How much of the cap is used.
    pub fn tile(self, figures: Figures<'_>) -> Markup {
        let used = share(self.bytes(figures), figures.number(CAP));
        let beside = html! { "of " (figures.show(CAP, Unit::Bytes)) };
        tile("Memory cap used", &html! { (used) }, &beside)
    }

    /// The cap by use.
    pub fn shown(self, figures: Figures<'_>) -> Markup {
        let cap = figures.number(CAP);
        let parts: Vec<_> =
            self.0.iter().map(|(name, path)| (*name, figures.number(path))).collect();
        let free = (cap - self.bytes(figures)).max(0.0);
        html! {
            h2 { "Memory by use" }
            (bar(&parts, cap))
            table {
                thead { tr { th { "Use" } th.n { "Size" } th.n { "Of the cap" } } }
                tbody {
                    @for (place, (name, path)) in self.0.iter().enumerate() {
                        tr {
                            td { (mark(place)) (name) }
                            td.n { (figures.show(path, Unit::Bytes)) }
                            td.n { (share(figures.number(path), cap)) }
                        }
                    }
                    tr {
                        td { "free below the cap" }
                        td.n { (shown(free, Unit::Bytes)) }
                        td.n { (share(free, cap)) }
                    }
                }
            }
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

/// Where gets are answered.
pub fn answered(figures: Figures<'_>) -> Markup {
    html! {
        (Answered { calls: "Gets", by: &ANSWERED }.shown(figures))
        p.soft { (figures.show("/store/gets", Unit::Count)) " gets since the start." }
    }
}

/// What is written, and what reclaim does. `whose` says who puts.
pub fn writing(figures: Figures<'_>, whose: &'static str) -> Markup {
    let all: [Row; 11] = [
        (whose, "/store/user_written_bytes", Unit::Bytes, "keys and values"),
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
    html! { h2 { "Writing and reclaim" } (rows(figures, &all)) }
}

/// That records were met that do not verify, if some were.
pub fn damaged(figures: Figures<'_>, next: &str) -> Option<Problem> {
    let count = shown(figures.number(DAMAGED), Unit::Count);
    let what = format!("Damaged records were met {count} times.");
    let problem = Problem { grade: Grade::Warning, what, next: next.to_owned() };
    (figures.number(DAMAGED) > 0.0).then_some(problem)
}

/// That a store which evicts nothing is about to be full, if it is.
pub fn nearly_full(figures: Figures<'_>, next: &str) -> Option<Problem> {
    let what = format!("The device is nearly full: {} of it is live.", full(figures));
    let problem = Problem { grade: Grade::Warning, what, next: next.to_owned() };
    (figures.number(LIVE) > NEARLY_FULL * figures.number(ROOM)).then_some(problem)
}
