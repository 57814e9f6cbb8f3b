//! The console of volumes: what a person looks for at one look, as a page of our own.
//!
//! Every figure on it is one of `/stats`, whose object the page is made of. It has names of volumes
//! and of devices and counts, and no bytes of anybody's blocks.

mod figures;
mod problems;
mod trends;

use std::time::Duration;

use entresol_host::now as clock;
use entresol_net::{Answer, Asked, Standing};
use entresol_page::{Charts, Figures, SCRIPT, STYLE, Sheet, Span, addresses, sign_out, state};
use maud::{Markup, html};
use serde_json::Value;

use crate::history::Sample;
use figures::{about, answered, cache, clients, commands, memory, tiles, volumes, writing};
use trends::{MEASURED, TRENDS};

const TITLE: &str = "Entresol volumes";

/// What the page shows.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The object of `/stats`.
    pub(crate) stats: Value,
    /// What charts show, the oldest first.
    pub(crate) samples: Vec<Sample>,
    /// Time since the start.
    pub(crate) uptime: Duration,
    /// How old the figures are, if they should be newer.
    pub(crate) late: Option<Duration>,
}

/// What is asked for of the console, which has a `look` at most; `None` if it has no such thing.
pub(crate) fn answer(asked: &Asked<'_>, look: impl FnOnce(Span) -> Seen) -> Option<Answer> {
    let span = Span::named(asked.value("span").as_deref());
    match asked.path {
        "/" => {
            let beside = match asked.standing {
                Standing::Known => sign_out(),
                Standing::Anybody => html! {},
            };
            let now = now(&look(span), span);
            let (below, foot) = (html! {}, addresses());
            let sheet = Sheet { title: TITLE, part: "", span, beside, now, below, foot };
            Some(Answer::html(sheet.page()))
        }
        "/console/now" => Some(Answer::html(now(&look(span), span).into_string())),
        path => part(path),
    }
}

/// What whoever shows no token is shown.
pub(crate) fn threshold(path: &str) -> Option<Answer> {
    match path {
        "/" => Some(Answer::html_for_nobody(entresol_page::threshold(TITLE, "--admin-token"))),
        path => part(path),
    }
}

fn part(path: &str) -> Option<Answer> {
    match path {
        "/console/style.css" => Some(Answer::style(STYLE)),
        "/console/script.js" => Some(Answer::script(SCRIPT)),
        _ => None,
    }
}

/// What changes: the state, figures and charts of now.
fn now(seen: &Seen, span: Span) -> Markup {
    let (figures, samples) = (Figures(&seen.stats), &seen.samples);
    let now = seen.uptime.as_secs_f64();
    let charts = Charts { trends: &TRENDS, samples, span, now, measured: MEASURED };
    html! {
        (state(&problems::find(figures, seen.late, clock().0 / 1000), "Reads and writes go on."))
        p.soft { (about(figures)) }
        (tiles(figures))
        (charts.shown())
        section.card { (volumes(figures)) }
        div.cards {
            section.card { (answered(figures)) }
            section.card { (cache(figures)) }
            section.card { (writing(figures)) }
            section.card { (clients(figures)) }
            section.card { (commands(figures)) }
            section.card { (memory(figures)) }
        }
    }
}
