//! Rule `planted`: every bug of `cargo x planted` stands in a source, and every one that stands in
//! a source is in its table.

use std::collections::BTreeSet;

use crate::planted;
use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const TABLE: &str = "crates/xtask/src/planted.rs";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    find_among(tree, &planted::names().collect())
}

fn find_among(tree: &Tree, table: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut standing = BTreeSet::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs") && !is_own(&file.path)) {
        for (line, text) in file.lines() {
            for name in text.split("planted!(\"").skip(1).filter_map(|rest| rest.split('"').next())
            {
                standing.insert(name);
                if !table.contains(name) {
                    let message = format!("`{name}` is not in the table of {TABLE}");
                    findings.push(Finding::new("planted", &file.path, line, message));
                }
            }
        }
    }
    for name in table.difference(&standing) {
        let message = format!("`{name}` stands in no source");
        findings.push(Finding::new("planted", TABLE, 1, message));
    }
    findings
}

/// The sources of this program talk about planted bugs without planting any.
fn is_own(path: &str) -> bool {
    path.starts_with("crates/xtask/src/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_absent_bugs_are_found() {
        let source = "if planted!(\"known\") {} if planted!(\"new\") {}";
        let tree = Tree::of(&[("crates/flash/src/a.rs", source)]);
        let messages: Vec<String> = find_among(&tree, &BTreeSet::from(["known", "absent"]))
            .into_iter()
            .map(|finding| finding.message)
            .collect();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains("`new`") && messages[1].contains("`absent`"));
    }
}
