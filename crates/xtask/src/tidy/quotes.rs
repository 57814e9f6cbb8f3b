//! Rule `quotes`: code that a document quotes is the code that the tests compile.
//!
//! `<!-- quote PATH#NAME -->` before a fence names the lines of a source between `ANCHOR: NAME` and
//! `ANCHOR_END: NAME`. What is quoted nowhere needs no such marks.

use crate::tidy::Finding;
use crate::tidy::markdown::{self, Fence};
use crate::tidy::tree::{File, Tree};

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut quoted: Vec<(&str, &str)> = Vec::new();
    for document in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for fence in markdown::fences(&document.text) {
            let Some((path, name)) = quotation(fence.before) else { continue };
            quoted.push((path, name));
            if let Err(message) = compare(tree, &fence) {
                findings.push(Finding::new("quotes", &document.path, fence.line, message));
            }
        }
    }
    for file in tree.files.iter().filter(|file| is_source(file)) {
        for (line, text) in file.lines() {
            let Some(name) = text.trim().strip_prefix("// ANCHOR: ") else { continue };
            if !quoted.contains(&(file.path.as_str(), name)) {
                let message = format!("no document quotes `{name}`");
                findings.push(Finding::new("quotes", &file.path, line, message));
            }
        }
    }
    findings
}

fn is_source(file: &File) -> bool {
    file.path.ends_with(".rs") || file.path.ends_with(".java")
}

/// Path and name in `<!-- quote PATH#NAME -->`.
fn quotation(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix("<!-- quote ")?.strip_suffix(" -->")?.split_once('#')
}

fn compare(tree: &Tree, fence: &Fence<'_>) -> Result<(), String> {
    let Some((path, name)) = quotation(fence.before) else { return Ok(()) };
    let file = tree.file(path).ok_or_else(|| format!("`{path}` does not exist"))?;
    let lines = marked(&file.text, name)
        .ok_or_else(|| format!("`{path}` has no lines between the marks of `{name}`"))?;
    if lines == fence.code {
        return Ok(());
    }
    let first = lines.iter().zip(&fence.code).position(|(there, here)| there != here);
    let number = first.unwrap_or_else(|| lines.len().min(fence.code.len())) + 1;
    Err(format!("line {number} of the quotation differs from `{name}` in `{path}`"))
}

/// Lines between the marks, without the blanks that all of them begin with.
fn marked<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let is = |line: &str, word: &str| line.trim() == format!("// {word}: {name}");
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| is(line, "ANCHOR"))? + 1;
    let end = lines.iter().position(|line| is(line, "ANCHOR_END"))?;
    let lines = lines.get(start..end).filter(|lines| !lines.is_empty())?;
    let blanks = |line: &&&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.is_empty()).map(|line| blanks(&line)).min()?;
    Some(lines.iter().map(|line| line.get(common..).unwrap_or_default()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn a() {\n    // ANCHOR: body\n    if x {\n\n        y();\n    }\n    \
                          // ANCHOR_END: body\n}\n";

    fn messages(source: &str, code: &str) -> Vec<String> {
        let document = format!("<!-- quote crates/flash/src/a.rs#body -->\n```rust\n{code}\n```\n");
        let tree = Tree::of(&[("README.md", &document), ("crates/flash/src/a.rs", source)]);
        find(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_quotation_that_differs_from_its_source_is_found() {
        assert_eq!(messages(SOURCE, "if x {\n\n    y();\n}").len(), 0);
        let differs = "line 3 of the quotation differs from `body` in `crates/flash/src/a.rs`";
        assert_eq!(messages(SOURCE, "if x {\n\n    z();\n}"), [differs]);
        assert_eq!(messages(SOURCE, "if x {\n\n"), [differs]);
        assert!(messages("fn a() {}", "x")[0].contains("no lines between the marks"));
    }

    #[test]
    fn marked_lines_that_nobody_quotes_are_found() {
        let tree = Tree::of(&[("crates/flash/src/a.rs", SOURCE)]);
        let found = find(&tree);
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}
