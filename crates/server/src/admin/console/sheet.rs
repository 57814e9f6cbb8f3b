//! The page around everything: head, state, sections.

use entresol_net::Standing;
use maud::{DOCTYPE, Markup, html};

use super::figures::{Figures, about, answered, commands, memory, spaces, tiles, writing};
use super::people::{clients, slow};
use super::problems::{Ground, find, shown_all};
use super::segments::map;
use super::trends::charts;
use crate::admin::stats;
use crate::history::{History, Span};
use crate::shared::Shared;

/// The whole page.
pub(super) fn page(shared: &Shared, standing: Standing, span: Span) -> String {
    let link = |name: &str, of: Span, target: &str| {
        html! { a href=(target) aria-current=[(span == of).then_some("page")] { (name) } }
    };
    framed(&html! {
        header {
            h1 { "Entresol" }
            nav {
                (link("10 minutes", Span::Minutes, "/"))
                (link("1 day", Span::Day, "/?span=day"))
                @if standing == Standing::Known { button #sign-out type="button" { "Sign out" } }
            }
        }
        p #stale role="alert" hidden { }
        noscript { p.soft { "Without scripts the page stays as it is: load it again for newer \
            figures." } }
        main #now { (now(shared, standing, span)) }
        @if standing == Standing::Known { (key_form(shared.spaces())) }
        footer.soft {
            a href="/stats" { "/stats" } " has all figures as JSON, " a href="/metrics" {
            "/metrics" } " as OpenMetrics, " a href="/health" { "/health" } " the state."
        }
    })
}

/// What changes: the state, figures and charts of now.
pub(super) fn now(shared: &Shared, standing: Standing, span: Span) -> Markup {
    let all = stats::all(shared);
    let figures = Figures(&all);
    let samples = shared.history.as_ref().map(|history: &History| history.samples(span));
    let up = shared.started.elapsed().as_secs_f64();
    html! {
        (shown_all(&find(figures, &Ground::of(shared))))
        p.soft { (about(figures)) }
        (tiles(figures))
        (charts(&samples.unwrap_or_default(), span, up))
        div.cards {
            section.card { (answered(figures)) }
            section.card { (memory(figures)) }
            section.card { (map(shared, figures)) }
            section.card { (writing(figures)) }
            section.card { (spaces(figures)) }
            @if standing == Standing::Anybody { section.card { (closed()) } }
        }
        section.card { (commands(figures)) }
        @if standing == Standing::Known {
            section.card { (slow(shared)) }
            section.card { (clients(shared)) }
        }
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

/// The page of who shows no token.
pub(super) fn threshold() -> String {
    framed(&html! {
        header { h1 { "Entresol" } }
        main { section.card.door {
            h2 { "Sign in" }
            p { "The option " code { "admin-token" } " of this server names a file. The word in \
                its first line opens the console." }
            form #sign-in {
                // Browsers keep passwords by the name of a user.
                input type="text" autocomplete="username" value="entresol" hidden;
                label for="token" { "Token" }
                // Without a name it is part of no address, whatever becomes of the script.
                input #token type="password" autocomplete="current-password" required autofocus;
                button type="submit" { "Sign in" }
                p #refused.wrong role="alert" hidden { "This is not the token: copy the first line \
                    of the file that " code { "admin-token" } " names." }
            }
            p.soft { "The browser keeps it in a cookie until it is closed. Programs send "
                code { "Authorization: Bearer TOKEN" } "." }
            noscript { p.wrong { "The form needs scripts of this server." } }
        } }
    })
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

fn framed(body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Entresol" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/console/style.css";
                script src="/console/script.js" defer { }
            }
            body { (body) }
        }
    };
    page.into_string()
}
