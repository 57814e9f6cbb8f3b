//! Rule `circles`: files of a crate that need one another are read together, so there are few of
//! them. `crates/xtask/ratchets.txt` has the most files of a circle, by crate.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::modules::{Edge, Modules};
use crate::tidy::ratchets::{self, Count};
use crate::tidy::tree::Tree;

const RULE: &str = "circles";

/// Files each of which leads to each other.
#[derive(Debug, Default, PartialEq, Eq)]
struct Circle {
    files: Vec<String>,
    edges: Vec<Edge>,
}

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let counts = tree.crates().into_iter().map(|name| {
        let files = largest(Modules::of(tree, name).edges()).files;
        let message = format!("a circle of {} files; `cargo x tidy --circles` has it", files.len());
        Count { of: name.to_string(), count: files.len(), message }
    });
    ratchets::compare(tree, RULE, counts.collect())
}

/// The largest circle of each crate, with its edges.
pub(crate) fn list(tree: &Tree) -> String {
    let mut text = String::new();
    for name in tree.crates() {
        let circle = largest(Modules::of(tree, name).edges());
        if circle.files.is_empty() {
            continue;
        }
        text += &format!("{name}: {} files\n", circle.files.len());
        let folder = format!("crates/{name}/src/");
        for Edge { from, to, by } in &circle.edges {
            let (from, to) = (from.trim_start_matches(&folder), to.trim_start_matches(&folder));
            text += &format!("    {from} -> {to} by {by}\n");
        }
    }
    text
}

/// The largest set of files that all reach one another; empty where there is no circle.
fn largest(edges: Vec<Edge>) -> Circle {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in &edges {
        next.entry(&edge.from).or_default().push(&edge.to);
    }
    let reached: BTreeMap<&str, Vec<&str>> =
        next.keys().map(|start| (*start, reached_from(start, &next))).collect();
    let both = |one: &str, other: &str| {
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|r| r.contains(&to));
        reaches(one, other) && reaches(other, one)
    };
    let mut best: Vec<String> = Vec::new();
    for start in next.keys() {
        let circle = next.keys().filter(|other| both(start, other));
        let circle: Vec<String> = circle.map(|file| file.to_string()).collect();
        if circle.len() > best.len() {
            best = circle;
        }
    }
    let inside = |edge: &Edge| best.contains(&edge.from) && best.contains(&edge.to);
    let edges = edges.iter().filter(|edge| inside(edge)).cloned().collect();
    Circle { files: best, edges }
}

fn reached_from<'a>(start: &'a str, next: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<&'a str> {
    let mut reached = Vec::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for other in next.get(file).into_iter().flatten() {
            if !reached.contains(other) {
                reached.push(*other);
                open.push(*other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "crates/xtask/ratchets.txt";

    fn messages(list: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod a; mod b; mod c;"),
            ("crates/x/src/a.rs", "use crate::b::B; pub struct A;"),
            ("crates/x/src/b.rs", "use crate::c::C; pub struct B;"),
            ("crates/x/src/c.rs", "use crate::a::A; pub struct C;"),
            ("crates/x/src/d.rs", "use crate::a::A; use crate::b::B;"),
            (LIST, list),
        ]);
        find(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_circle_larger_than_allowed_is_found() {
        assert!(messages("")[0].contains("a circle of 3 files"));
        assert!(messages("circles | x | 2 | a reason")[0].contains("a circle of 3 files"));
        assert_eq!(messages("circles | x | 3 | a reason"), [""; 0]);
    }

    #[test]
    fn the_circle_is_listed_with_the_edges_that_close_it_and_no_others() {
        let tree = Tree::of(&[
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b.rs", "fn f() { crate::a::go(); crate::c::go(); }"),
            ("crates/x/src/c.rs", "pub fn go() {}"),
            ("crates/x/src/lib.rs", "mod a; mod b; mod c;"),
        ]);
        let expected =
            "x: 2 files\n    a.rs -> b.rs by crate::b::B\n    b.rs -> a.rs by crate::a::go\n";
        assert_eq!(list(&tree), expected);
    }
}
