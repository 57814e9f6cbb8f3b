//! The page around everything.

use maud::{DOCTYPE, Markup, html};

use crate::history::Span;

/// A page whose figures become new by themselves.
#[derive(Debug)]
pub struct Sheet<'a> {
    /// What it is of: its title and its heading.
    pub title: &'a str,
    /// Which part of it is shown, as a query such as `cache=prices`; empty where it is whole.
    pub part: &'a str,
    /// How far its charts go back.
    pub span: Span,
    /// What stands beside the links to spans.
    pub beside: Markup,
    /// What becomes new: what `/console/now` answers with.
    pub now: Markup,
    /// What stays.
    pub below: Markup,
    /// Where else there are figures.
    pub foot: Markup,
}

impl Sheet<'_> {
    /// The whole page.
    pub fn page(&self) -> String {
        let link = |name: &str, of: Span, span: &str| {
            let is_here = self.span == of;
            let query: Vec<&str> =
                [self.part, span].into_iter().filter(|one| !one.is_empty()).collect();
            let start = if query.is_empty() { "/" } else { "/?" };
            let target = format!("{start}{}", query.join("&"));
            html! { a href=(target) aria-current=[is_here.then_some("page")] { (name) } }
        };
        let body = html! {
            header {
                h1 { (self.title) }
                nav {
                    (link("10 minutes", Span::Minutes, ""))
                    (link("1 day", Span::Day, "span=day"))
                    (self.beside)
                }
            }
            p #stale role="alert" hidden { }
            noscript { p.soft { "Without scripts the page stays as it is: load it again for newer \
                figures." } }
            main #now { (self.now) }
            (self.below)
            footer.soft { (self.foot) }
        };
        framed(self.title, &body)
    }
}

/// Where servers have their figures for programs.
pub fn addresses() -> Markup {
    html! {
        a href="/stats" { "/stats" } " has all figures as JSON, "
        a href="/metrics" { "/metrics" } " as OpenMetrics, "
        a href="/health" { "/health" } " the state."
    }
}

/// What signs out whoever has signed in.
pub fn sign_out() -> Markup {
    html! { button #sign-out type="button" { "Sign out" } }
}

/// The page of who shows no token: a form for the one in the file that `option` names.
pub fn threshold(title: &str, option: &str) -> String {
    let body = html! {
        header { h1 { (title) } }
        main { section.card.door {
            h2 { "Sign in" }
            p { "The option " code { (option) } " of this server names a file. The word in \
                its first line opens the console." }
            form #sign-in {
                // Browsers keep passwords by the name of a user.
                input type="text" autocomplete="username" value="entresol" hidden;
                label for="token" { "Token" }
                // Without a name it is part of no address, whatever becomes of the script.
                input #token type="password" autocomplete="current-password" required autofocus;
                button type="submit" { "Sign in" }
                p #refused.wrong role="alert" hidden { "This is not the token: copy the first line \
                    of the file that " code { (option) } " names." }
            }
            p.soft { "The browser keeps it in a cookie until it is closed. Programs send "
                code { "Authorization: Bearer TOKEN" } "." }
            noscript { p.wrong { "The form needs scripts of this server." } }
        } }
    };
    framed(title, &body)
}

fn framed(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/console/style.css";
                script src="/console/script.js" defer { }
            }
            body { (body) }
        }
    };
    page.into_string()
}
