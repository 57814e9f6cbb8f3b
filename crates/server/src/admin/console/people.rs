//! Who is connected, and which commands took long. Both have bytes that clients chose, so only who
//! shows the token sees them.

use std::sync::atomic::Ordering;

use entresol_host::now;
use entresol_page::{Unit, seconds, shown, text_of};
use maud::{Markup, html};

use crate::client::Facts;
use crate::command::table::SPECS;
use crate::lock::lock;
use crate::shared::Shared;

const CLIENTS_MAX: usize = 50;
const SLOW_MAX: usize = 12;

/// The clients, those first that were active last.
pub(super) fn clients(shared: &Shared) -> Markup {
    let now_ms = now().0;
    let active = |facts: &Facts| facts.active_ms.load(Ordering::Relaxed);
    let mut all = shared.clients.list();
    all.sort_by_key(|facts| std::cmp::Reverse(active(facts)));
    let more = all.len().saturating_sub(CLIENTS_MAX);
    html! {
        h2 { "Clients" }
        div.wide { table {
            thead { tr {
                th { "Address" } th { "Name" } th { "User" } th.n { "Database" }
                th { "Last command" } th.n { "Idle" } th.n { "Connected" } th.n { "Memory" }
            } }
            tbody { @for facts in all.iter().take(CLIENTS_MAX) {
                @let last = SPECS.get(usize::from(facts.last_command.load(Ordering::Relaxed)));
                @let buffered = facts.buffered_bytes.load(Ordering::Relaxed);
                @let since = |ms: u64| seconds(now_ms.saturating_sub(ms) / 1000);
                tr {
                    td { (text_of(facts.address.as_bytes())) }
                    td { (text_of(lock(&facts.name).as_bytes())) }
                    td { (text_of(lock(&facts.user).as_bytes())) }
                    td.n { (facts.space.load(Ordering::Relaxed)) }
                    td { (last.map_or("–", |spec| spec.name)) }
                    td.n { (since(active(facts))) }
                    td.n { (since(facts.connected_ms)) }
                    td.n { (shown(buffered as f64, Unit::Bytes)) }
                }
            } }
        } }
        @if all.is_empty() { p.soft { "Nobody is connected." } }
        @if more > 0 { p.soft { (more) " more; " code { "CLIENT LIST" } " has all." } }
    }
}

/// The slow log, the latest command first.
pub(super) fn slow(shared: &Shared) -> Markup {
    let (threshold, kept) = {
        let config = lock(&shared.config);
        (config.slow_threshold_us(), config.slow_entries_max())
    };
    let now_seconds = now().0 / 1000;
    let slow = lock(&shared.slow).entries.iter().take(SLOW_MAX).cloned().collect::<Vec<_>>();
    html! {
        h2 { "Slow log" }
        div.wide { table {
            thead { tr {
                th.n { "Ago" } th.n { "Took" } th { "Command" } th { "Client" } th { "Name" }
            } }
            tbody { @for one in &slow {
                @let arguments = one.arguments.iter().map(|argument| text_of(argument));
                tr {
                    td.n { (seconds(now_seconds.saturating_sub(one.at_seconds))) }
                    td.n { (shown(one.microseconds as f64, Unit::Latency)) }
                    td { code { (arguments.collect::<Vec<_>>().join(" ")) } }
                    td { (text_of(one.address.as_bytes())) }
                    td { (text_of(one.name.as_bytes())) }
                }
            } }
        } }
        @if slow.is_empty() { p.soft { "No command took long." } }
        p.soft { @match threshold {
            Some(us) => {
                "Commands of " (shown(us as f64, Unit::Latency)) " or more are kept ("
                code { "slowlog-log-slower-than" } "), " (kept) " at most."
            }
            None => { "No command is kept: " code { "slowlog-log-slower-than" } " is negative." }
        } }
    }
}
