//! The stores of all nodes.

use entresol_page::{Figures, Grade, Unit, store, text_of};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::look::{said, stores};
use super::problems;

/// Rows of the table.
const ROWS_MAX: usize = 500;

/// A row for each store of each node.
pub(super) fn nodes(look: &Value) -> Markup {
    let all = look["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let none = json!({});
    let rows: Vec<(&Value, &Value)> = all
        .iter()
        .flat_map(|node| {
            let of_it = stores(node);
            let stores = if of_it.is_empty() { std::slice::from_ref(&none) } else { of_it };
            stores.iter().map(move |store| (node, store))
        })
        .collect();
    html! {
        h2 { "Nodes" }
        div.wide { table {
            thead { tr {
                th { "Node" } th { "Cache" } th { "State" } th.n { "Entries" } th.n { "Full" }
                th.n { "Live" } th.n { "Capacity" }
            } }
            tbody { @for (node, store) in rows.iter().take(ROWS_MAX) {
                tr data-node=(said(&node["node"])) data-store=(said(&store["name"])) {
                    td { (linked(node, look)) }
                    (row(node, store))
                }
            } }
        } }
        @if rows.len() > ROWS_MAX { p.soft { (rows.len() - ROWS_MAX) " more rows." } }
        p.soft { "Entries of a node are those that it keeps, copies of other nodes' included." }
    }
}

fn row(node: &Value, store: &Value) -> Markup {
    let figures = Figures(store);
    let shown = |path: &str, unit| html! { td.n { (figures.show(path, unit)) } };
    html! {
        @if let Some(failed) = node["failed"].as_str() {
            td { } td { "no answer: " (text_of(failed.as_bytes())) } td.soft colspan="4" { }
        } @else if store["name"].is_null() {
            td { } td { "no store on flash" } td.soft colspan="4" { }
        } @else {
            td { code { (said(&store["name"])) } }
            td { (state(store)) }
            @if store["store"].is_object() {
                (shown("/store/entries", Unit::Count))
                td.n { (store::full(figures)) }
                (shown("/store/flash_live_bytes", Unit::Bytes))
                (shown("/store/capacity_bytes", Unit::Bytes))
            } @else {
                td.soft colspan="4" { }
            }
        }
    }
}

/// In a word; the sentences stand above.
pub(super) fn state(store: &Value) -> Markup {
    let worst = problems::of(store).first().map(|problem| problem.grade);
    html! {
        @match worst {
            None => "healthy",
            Some(_) if store["withdrew"].is_string() => span.wrong { "withdrew" },
            Some(Grade::Failure) => span.wrong { "failing" },
            Some(Grade::Warning) => span.wrong { "look at this" },
        }
    }
}

/// The name of a node, which leads to its page.
fn linked(node: &Value, look: &Value) -> Markup {
    let name = said(&node["node"]);
    html! {
        @match node["page"].as_str() {
            _ if node["node"] == look["node"] => b { (name) },
            // Without a scheme: the page there is served in the same way as this one.
            Some(place) if is_place(place) => a href={ "//" (place) "/" } { (name) },
            _ => (name),
        }
    }
}

/// Whether it is the name or address of a host, and a port: no address of anything else.
fn is_place(place: &str) -> bool {
    place.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]%_".contains(&byte))
}
