//! Rule `reflow`: no line of a comment has one or two words where its sentence goes on below: such
//! a line is what an edit left that did not fill the paragraph anew.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::ratchets::{self, Count};
use crate::tidy::tree::{File, Tree};

const RULE: &str = "reflow";
const WORDS_MAX: usize = 2;
const COLUMNS_MAX: usize = 100;
/// How many places a finding names.
const NAMED_MAX: usize = 5;

/// Longest first.
const MARKS: &[&str] = &["//!", "///", "//"];

/// A line of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'a> {
    /// The indentation and the mark.
    start: &'a str,
    text: &'a str,
    columns: usize,
}

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, _) in tree.rust() {
        let home = file.crate_name().or_else(|| file.path.split('/').next()).unwrap_or_default();
        let lines = broken_lines(file).into_iter().map(|line| format!("{}:{line}", file.path));
        places.entry(home).or_default().extend(lines);
    }
    let counts = places.into_iter().map(|(home, places)| {
        let named = places[..places.len().min(NAMED_MAX)].join(", ");
        let message = format!("{} short lines inside of paragraphs: {named}", places.len());
        Count { of: home.to_string(), count: places.len(), message }
    });
    ratchets::compare(tree, RULE, counts.collect())
}

fn broken_lines(file: &File) -> Vec<usize> {
    let mut broken = Vec::new();
    let mut is_fenced = false;
    let mut before: Option<(usize, Line)> = None;
    for (number, text) in file.lines() {
        let Some(line) = Line::of(text) else {
            (before, is_fenced) = (None, false);
            continue;
        };
        if line.text.starts_with("```") {
            (before, is_fenced) = (None, !is_fenced);
            continue;
        }
        broken.extend(before.filter(|(_, short)| short.goes_on_in(line)).map(|(number, _)| number));
        before = (!is_fenced).then_some((number, line));
    }
    broken
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Line<'a>> {
        let body = line.trim_start();
        let mark = MARKS.iter().find(|mark| body.starts_with(**mark))?;
        let start = line.len() - body.len() + mark.len();
        let text = line[start..].strip_prefix(' ').unwrap_or(&line[start..]);
        Some(Line { start: &line[..start], text, columns: line.chars().count() })
    }

    /// Whether it is short and `next` has words that had room in it.
    fn goes_on_in(self, next: Line<'_>) -> bool {
        let words = self.text.split_whitespace().count();
        let first = next.text.split(' ').next().unwrap_or_default();
        self.start == next.start
            && (1..=WORDS_MAX).contains(&words)
            && is_prose(self.text)
            && is_prose(next.text)
            && !self.text.ends_with(['.', ':', '?', '!', ';', '>'])
            && self.columns + 1 + first.chars().count() <= COLUMNS_MAX
    }
}

/// Whether it is no item of a list, no row of a table, no heading and nothing drawn.
fn is_prose(text: &str) -> bool {
    let is_numbered = text.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    !text.is_empty() && !text.starts_with([' ', '-', '*', '|', '#', '<', '@']) && !is_numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> usize {
        find(&Tree::of(&[("crates/x/src/a.rs", text)])).len()
    }

    #[test]
    fn short_lines_whose_sentence_goes_on_are_found() {
        assert_eq!(
            check("//! A sentence that an edit broke here\n//! and\n//! that goes on.\n"),
            1
        );
        assert_eq!(check("fn f() {\n    // Two words\n    // and the rest of it.\n}\n"), 1);
        assert_eq!(check("/// A sentence of some words that a\n/// payload's\n/// end has.\n"), 1);
    }

    #[test]
    fn ends_of_sentences_lists_and_drawings_are_not() {
        assert_eq!(check("//! A sentence ends in a\n//! word.\n//! Another one begins.\n"), 0);
        assert_eq!(check("/// One:\n/// - a\n/// - b\n///\n/// End\n"), 0);
        assert_eq!(check("/// 1. One\n/// 2. Two\n"), 0);
        assert_eq!(check("// ```text\n// a b\n// c d\n// ```\n"), 0);
        assert_eq!(check("/// Open\n//\n// Another\nfn f() {}\n// Done\n"), 0);
        let long = format!("// See\n// {}\n", "x".repeat(95));
        assert_eq!(check(&long), 0);
    }
}
