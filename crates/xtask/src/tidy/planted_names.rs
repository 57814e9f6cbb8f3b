//! Rule `planted`: every bug of `cargo x planted` stands in a source, every one that stands in a
//! source is in its table, and the tests that the table names are there.

use std::collections::BTreeSet;

use crate::planted;
use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const TABLE: &str = "crates/xtask/src/planted/bugs.rs";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = find_among(tree, &planted::names().collect());
    findings.extend(planted::tests().filter_map(|(start, test)| find_absent(tree, &start, test)));
    findings
}

/// A finding where no file whose path begins with `start` has a test of that name.
fn find_absent(tree: &Tree, start: &str, test: &str) -> Option<Finding> {
    let is_there = tree.rust().any(|(file, tokens)| {
        let rest = file.path.strip_prefix(start);
        rest.is_some_and(|rest| rest.starts_with(['/', '.']))
            && tokens.tests().iter().any(|(name, _)| *name == test)
    });
    let message = format!("no test `{test}` is in {start}");
    (!is_there).then(|| Finding::new("planted", TABLE, 1, message))
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

    #[test]
    fn a_bug_whose_test_is_gone_is_found() {
        let test = "#[test] fn a_property_holds() {}";
        let tree = Tree::of(&[
            ("crates/flash/tests/store/a.rs", test),
            ("crates/flash/tests/trust.rs", test),
            ("crates/flash/tests/store_of_others.rs", "#[test] fn another_holds() {}"),
        ]);
        let is_found = |start, test| find_absent(&tree, start, test).is_some();
        assert!(!is_found("crates/flash/tests/store", "a_property_holds"));
        assert!(!is_found("crates/flash/tests/trust", "a_property_holds"));
        assert!(is_found("crates/flash/tests/store", "another_holds"));
    }
}
