//! Rule `summary`: the book has every document once, and nothing that is not there.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::markdown;
use crate::tidy::tree::Tree;

/// The book's table of contents.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Folders whose documents are pages of the book, all of them.
const FOLDERS: &[&str] = &["docs/"];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.file(SUMMARY) else { return Vec::new() };
    let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (line, text) in summary.lines() {
        for target in markdown::targets(text) {
            lines.entry(markdown::resolved(SUMMARY, target)).or_default().push(line);
        }
    }
    let mut findings = Vec::new();
    for (page, lines) in &lines {
        if let [_, second, ..] = lines.as_slice() {
            let message = format!("`{page}` is in the book twice");
            findings.push(Finding::new("summary", SUMMARY, *second, message));
        }
    }
    for file in &tree.files {
        let in_book = FOLDERS.iter().any(|folder| file.path.starts_with(folder));
        if in_book && file.path.ends_with(".md") && file.path != SUMMARY {
            if !lines.contains_key(&file.path) {
                let message = format!("no line of {SUMMARY} names it; add one in its section");
                findings.push(Finding::new("summary", &file.path, 1, message));
            }
        } else if !in_book
            && let Some([first, ..]) = lines.get(&file.path).map(Vec::as_slice)
            && !file.path.ends_with(".md")
        {
            let message = format!("`{}` is no document", file.path);
            findings.push(Finding::new("summary", SUMMARY, *first, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_missing_or_twice_in_the_book_are_found() {
        let summary = "- [A](guides/a.md)\n- [B](../B.md)\n- [B](../B.md)\n- [C](../c.rs)\n";
        let tree = Tree::of(&[
            (SUMMARY, summary),
            ("docs/guides/a.md", "x"),
            ("docs/guides/b.md", "x"),
            ("B.md", "x"),
            ("OTHER.md", "x"),
            ("c.rs", "//! x"),
        ]);
        let found: Vec<_> = find(&tree).into_iter().map(|f| (f.path, f.line)).collect();
        let expected = [(SUMMARY, 3), ("docs/guides/b.md", 1), (SUMMARY, 4)];
        assert_eq!(found.len(), 3);
        assert!(expected.iter().all(|(path, line)| found.contains(&((*path).into(), *line))));
    }
}
