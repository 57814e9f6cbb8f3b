//! The page of the console: state, sections, and what only who shows the token is shown.

use entresol_host::FIGURES_WAIT;
use entresol_net::Standing;
use entresol_page::store::{answered, writing};
use entresol_page::{
    CELLS, Cell, Charts, Figures, Sheet, Span, addresses, segments, sign_out, state,
};
use entresol_tier::SegmentGroup;
use maud::{Markup, html};

use super::certificates::certificates;
use super::figures::{about, commands, memory, spaces, tiles};
use super::people::{clients, slow};
use super::problems::{Ground, find};
use super::trends::{MEASURED, TRENDS};
use crate::admin::stats;
use crate::history::History;
use crate::shared::Shared;

/// What the page is of.
pub(super) const TITLE: &str = "Entresol";

/// The whole page.
pub(super) fn page(shared: &Shared, standing: Standing, span: Span) -> String {
    let (beside, below) = match standing {
        Standing::Known => (sign_out(), key_form(shared.spaces())),
        Standing::Anybody => (html! {}, html! {}),
    };
    let now = now(shared, standing, span);
    Sheet { title: TITLE, part: "", span, beside, now, below, foot: addresses() }.page()
}

/// What changes: the state, figures and charts of now.
pub(super) fn now(shared: &Shared, standing: Standing, span: Span) -> Markup {
    let all = stats::all(shared);
    let figures = Figures(&all);
    let samples = shared.history.as_ref().map(|history: &History| history.samples(span));
    let samples = samples.unwrap_or_default();
    let up = shared.started.elapsed().as_secs_f64();
    let charts = Charts { trends: &TRENDS, samples: &samples, span, now: up, measured: MEASURED };
    html! {
        (state(&find(figures, &Ground::of(shared)), "Reads and writes go on."))
        p.soft { (about(figures)) }
        (tiles(figures))
        (charts.shown())
        div.cards {
            section.card { (answered(figures)) }
            section.card { (memory(figures)) }
            section.card { (map(shared, figures)) }
            section.card { (writing(figures, "put by clients")) }
            @if standing == Standing::Anybody { section.card { (closed()) } }
        }
        section.card { (spaces(figures)) }
        @if let Some(certificates) = certificates(shared) { section.card { (certificates) } }
        section.card { (commands(figures)) }
        @if standing == Standing::Known {
            section.card { (slow(shared)) }
            section.card { (clients(shared)) }
        }
    }
}

/// The map of the segments.
fn map(shared: &Shared, figures: Figures<'_>) -> Markup {
    let map = shared.tier.store().segment_map(CELLS, FIGURES_WAIT);
    let cells: Option<Vec<Cell>> = map.map(|map| map.groups.iter().map(cell).collect());
    segments(figures, cells.as_deref())
}

fn cell(group: &SegmentGroup) -> Cell {
    Cell {
        segments: group.segments,
        free: group.free,
        damaged: group.damaged,
        used_bytes: group.used_bytes,
        live_bytes: group.live_bytes,
        sealed: group.sealed,
        age_writes: group.age_writes,
    }
}

/// What stands in place of what only who shows the token is shown.
fn closed() -> Markup {
    html! {
        h2 { "Clients, slow log, keys" }
        p {
            "These have bytes of entries, so they are shown to who signs in. Set "
            code { "admin-token" } " to a file with a word in its first line ("
            code { "openssl rand -hex 32" } " prints one), restart the server, and sign in here \
             with that word."
        }
    }
}

fn key_form(spaces: u16) -> Markup {
    html! {
        section.card.look {
            h2 { "Look at a key" }
            form #look {
                label for="space" { "Database" }
                @let last = spaces.saturating_sub(1);
                input #space type="number" min="0" max=(last) value="0" required;
                label for="key" { "Key" }
                input #key type="text" autocomplete="off" spellcheck="false" required;
                button type="submit" { "Look" }
            }
            p.soft { "It reads only, and counts as a get. " code { "\\xNN" } " is a byte, "
                code { "\\x5c" } " a backslash." }
            div #found aria-live="polite" { }
        }
    }
}
