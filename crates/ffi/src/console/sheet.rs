//! The page: the state, the stores of this node, all nodes.

use std::time::Duration;

use entresol_page::{Figures, Sheet, Span, seconds, state, text_of};
use maud::{Markup, html};
use serde_json::Value;

use super::look::{said, stores};
use super::nodes::nodes;
use super::problems;
use super::samples::Samples;
use super::stores::{Time, query, section, table};
use super::trends::POINTS;

/// Stores with entries that are shown at length, where none is chosen: more would be slow to draw
/// and to read.
const SECTIONS_MAX: usize = 4;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole page.
    Page,
    /// What becomes new of it.
    Now,
}

/// What there is to show at a moment.
#[derive(Debug)]
pub(super) struct Now<'a> {
    pub(super) look: Value,
    /// Time since the start.
    pub(super) at: Duration,
    pub(super) samples: &'a Samples,
}

impl Now<'_> {
    /// A part of the page of that title.
    pub(super) fn shown(mut self, title: &str, part: Part) -> String {
        let stores = self.look.get_mut("stores").and_then(Value::as_array_mut);
        for store in stores.into_iter().flatten() {
            let second = self.samples.latest(store).figures();
            if let Some(store) = store.as_object_mut() {
                store.insert("second".to_owned(), second);
            }
        }
        let span = Span::named(self.look["span"].as_str().map(str::as_bytes));
        let now = self.news(Time { span, now: self.at.as_secs_f64() });
        match part {
            Part::Now => now.into_string(),
            Part::Page => {
                let part = self.look["cache"].as_str().map(query).unwrap_or_default();
                let title = text_of(title.as_bytes());
                let (beside, below, foot) = (html! {}, html! {}, foot(&self.look));
                Sheet { title: &title, part: &part, span, beside, now, below, foot }.page()
            }
        }
    }

    /// What changes.
    fn news(&self, time: Time) -> Markup {
        let (look, all) = (&self.look, stores(&self.look));
        let chosen = look["cache"].as_str();
        let is_shown = |one: &&Value| match chosen {
            Some(name) => one["name"] == name,
            None => one["store"]["entries"] != 0,
        };
        let shown: Vec<&Value> = all.iter().filter(is_shown).collect();
        let most = if chosen.is_some() { 1 } else { SECTIONS_MAX };
        html! {
            (state(&problems::find(look), "All stores take writes and serve reads."))
            p.soft { (about(look, all.len())) }
            @if let Some(name) = chosen {
                p { a href="/" { "All stores" } @if shown.is_empty() {
                    ". No cache " code { (text_of(name.as_bytes())) } " of this node is on flash."
                } }
            } @else {
                section.card { (table(all, time.span)) }
                section.card { (nodes(look)) }
            }
            @for one in shown.iter().take(most) { (section(self.samples, one, time)) }
            @if shown.len() > most {
                p { "The first " (most) " stores are shown. Names in the table lead to each." }
            }
            p.soft { (POINTS) }
        }
    }
}

/// What the page is of.
fn about(look: &Value, stores: usize) -> Markup {
    let figures = Figures(look);
    let nodes = look["nodes"].as_array().map_or(0, Vec::len);
    html! {
        "Entresol " (env!("CARGO_PKG_VERSION")) ", node " b { (said(&look["node"])) }
        @if let Some(cluster) = look["cluster"].as_str() {
            " of cluster " (text_of(cluster.as_bytes())) " (" (nodes)
            @if nodes == 1 { " node)" } @else { " nodes)" }
        }
        ", up for " (seconds(figures.number("/uptime_seconds") as u64)) ", " (stores)
        @if stores == 1 { " store" } @else { " stores" } " on flash"
    }
}

/// Where else there are figures.
fn foot(look: &Value) -> Markup {
    html! { @if let Some(sentence) = look["foot"].as_str() { (text_of(sentence.as_bytes())) } }
}
