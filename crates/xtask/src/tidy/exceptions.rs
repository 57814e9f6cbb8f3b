//! The exceptions to the rules, each with its reason.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const LIST: &str = "crates/xtask/exceptions.txt";

/// Removes findings that an exception excuses; adds one for each exception that excuses nothing.
pub(crate) fn apply(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(list) = tree.file(LIST) else { return };
    let mut broken = Vec::new();
    for (line, text) in list.lines() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let [rule, path, words, reason] = cells.as_slice() else {
            let message = "expected `rule | path | words in the message | reason`";
            broken.push(Finding::new("exceptions", LIST, line, message));
            continue;
        };
        let before = findings.len();
        findings.retain(|finding| {
            !(finding.rule == *rule
                && is_within(&finding.path, path)
                && finding.message.contains(words))
        });
        if reason.is_empty() {
            broken.push(Finding::new("exceptions", LIST, line, "no reason is given"));
        } else if findings.len() == before {
            let message = format!("excuses nothing any more: `{}`", text.trim());
            broken.push(Finding::new("exceptions", LIST, line, message));
        }
    }
    findings.extend(broken);
}

/// Whether `path` is `place`, or lies in the folder `place/`.
fn is_within(path: &str, place: &str) -> bool {
    path == place || (place.ends_with('/') && path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(list: &str) -> Vec<&'static str> {
        let mut findings = vec![Finding::new("words", "crates/a/src/b.rs", 3, "`gc` is retired")];
        apply(&Tree::of(&[(LIST, list)]), &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn an_exception_excuses_what_it_names_and_nothing_else() {
        assert_eq!(applied("# about\n"), ["words"]);
        assert_eq!(
            applied("words | crates/a/src/b.rs | `gc` | its name in a file we read\n"),
            [""; 0]
        );
        assert_eq!(applied("words | crates/a/ | `gc` | a reason\n"), [""; 0]);
        assert_eq!(
            applied("words | crates/a/src/c.rs | `gc` | a reason\n"),
            ["words", "exceptions"]
        );
        assert_eq!(applied("words | crates/a/src/b.rs | `gc` |\n"), ["exceptions"]);
        assert_eq!(applied("words, crates/a/src/b.rs\n"), ["words", "exceptions"]);
    }
}
