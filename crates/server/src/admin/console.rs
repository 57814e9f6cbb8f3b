//! The console: what a person looks for at one look, as a page of our own.
//!
//! Every figure on it is one of `/stats`, whose object the page is made of. What the page shows in
//! time comes from [`crate::history`]. Who shows the token is shown clients, slow commands and a
//! look at a key, too: these have bytes of entries. Nothing is fetched from elsewhere, and no page
//! has a script or a style within it.

mod certificates;
mod figures;
mod key;
mod people;
mod problems;
mod sheet;
mod trends;

use entresol_net::{Answer, Asked, Standing};
use entresol_page::{SCRIPT, STYLE, Span};

use crate::shared::Shared;

/// What is asked for of the console; `None` if it has no such thing.
pub(super) fn answer(shared: &Shared, asked: &Asked<'_>) -> Option<Answer> {
    let span = Span::named(asked.value("span").as_deref());
    match asked.path {
        "/" => Some(Answer::html(sheet::page(shared, asked.standing, span))),
        "/console/now" => {
            Some(Answer::html(sheet::now(shared, asked.standing, span).into_string()))
        }
        "/console/key" if asked.standing == Standing::Known => {
            Some(Answer::html(key::look(shared, asked).into_string()))
        }
        path => part(path),
    }
}

/// What whoever shows no token is shown.
pub(super) fn threshold(path: &str) -> Option<Answer> {
    match path {
        "/" => Some(Answer::html_for_nobody(entresol_page::threshold(sheet::TITLE, "admin-token"))),
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
