//! Rule `dependencies`: the crates from outside are exactly those that
//! `docs/decisions/dependencies.md` gives a reason for.

use std::collections::BTreeSet;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const DOCUMENT: &str = "docs/decisions/dependencies.md";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let used: BTreeSet<&str> = tree
        .packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.local)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let listed: Vec<(usize, &str)> = match tree.file(DOCUMENT) {
        Some(file) => {
            file.lines().filter_map(|(line, text)| Some((line, row_name(text)?))).collect()
        }
        None => Vec::new(),
    };
    let mut findings = Vec::new();
    for name in &used {
        if !listed.iter().any(|(_, row)| row == name) {
            let message = format!("`{name}` is used and has no row");
            findings.push(Finding::new("dependencies", DOCUMENT, 1, message));
        }
    }
    for (line, row) in &listed {
        if !used.contains(row) {
            let message = format!("`{row}` has a row and nothing uses it");
            findings.push(Finding::new("dependencies", DOCUMENT, *line, message));
        }
    }
    findings
}

/// The crate that a row of the table is about: its first cell, in backticks.
fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{Dependency, Package, Purpose};

    #[test]
    fn unlisted_and_unused_crates_are_found() {
        let document = "| crate | replaces |\n| --- | --- |\n| `libc` | x |\n| `gone` | y |\n";
        let mut tree = Tree::of(&[(DOCUMENT, document)]);
        let outside = |name: &str| Dependency {
            name: name.to_string(),
            purpose: Purpose::Product,
            local: false,
        };
        let dependencies = vec![outside("libc"), outside("new")];
        tree.packages.push(Package { name: "entresol-device".into(), dependencies });
        let messages: Vec<String> = find(&tree).into_iter().map(|f| f.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].contains("`new`") && messages[1].contains("`gone`"));
    }
}
