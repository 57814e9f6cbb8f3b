//! Numbers that may only fall: `crates/xtask/ratchets.txt` has what a rule allows a crate, and why.
//! More is a finding; so is less, until the list says so.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

pub(crate) const LIST: &str = "crates/xtask/ratchets.txt";

/// What a rule counted in one crate.
#[derive(Debug)]
pub(crate) struct Count {
    /// The crate.
    pub(crate) of: String,
    pub(crate) count: usize,
    pub(crate) message: String,
}

/// One line of the list.
struct Allowed<'a> {
    line: usize,
    of: &'a str,
    count: usize,
}

/// Compares the counts of one rule with what the list allows.
pub(crate) fn compare(tree: &Tree, rule: &'static str, counts: Vec<Count>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed = read(tree, rule, &mut findings);
    for Count { of, count, message } in &counts {
        let most = allowed.iter().find(|allowed| allowed.of == of).map_or(0, |found| found.count);
        if *count > most {
            let message = format!("{message}; {most} allowed");
            findings.push(Finding::new(rule, &format!("crates/{of}"), 1, message));
        }
    }
    for Allowed { line, of, count } in &allowed {
        let found = counts.iter().find(|found| found.of == *of).map_or(0, |found| found.count);
        if found < *count {
            let message = format!("{of} is allowed {count} and has {found}: write down {found}");
            findings.push(Finding::new(rule, LIST, *line, message));
        }
    }
    findings
}

fn read<'a>(tree: &'a Tree, rule: &'static str, findings: &mut Vec<Finding>) -> Vec<Allowed<'a>> {
    let mut allowed = Vec::new();
    let Some(list) = tree.file(LIST) else { return allowed };
    for (line, text) in list.lines() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let [of_rule, of, count, reason] = cells.as_slice() else {
            let message = "expected `rule | crate | number | reason`";
            findings.push(Finding::new(rule, LIST, line, message));
            continue;
        };
        match count.parse() {
            _ if *of_rule != rule => {}
            Ok(count) if !reason.is_empty() => allowed.push(Allowed { line, of, count }),
            Ok(_) => findings.push(Finding::new(rule, LIST, line, "no reason is given")),
            Err(_) => findings.push(Finding::new(rule, LIST, line, "no number is given")),
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(list: &str, count: usize) -> Vec<String> {
        let counts = vec![Count { of: "x".to_string(), count, message: format!("{count} seen") }];
        let findings = compare(&Tree::of(&[(LIST, list)]), "circles", counts);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn more_than_allowed_and_less_than_allowed_are_both_found() {
        let list = "# about\n\ntuples | x | 9 | other\ncircles | x | 2 | a reason\n";
        assert_eq!(messages(list, 2), [""; 0]);
        assert_eq!(messages(list, 3), ["3 seen; 2 allowed"]);
        assert_eq!(messages(list, 1), ["x is allowed 2 and has 1: write down 1"]);
        assert_eq!(messages("", 1), ["1 seen; 0 allowed"]);
        assert_eq!(messages("circles | gone | 2 | a reason", 0).len(), 1);
    }

    #[test]
    fn a_line_without_number_or_reason_is_found() {
        assert_eq!(messages("circles | x | 2 |", 0), ["no reason is given"]);
        assert_eq!(messages("circles | x | two | a reason", 0), ["no number is given"]);
        assert_eq!(messages("circles, x, 2", 0).len(), 1);
    }
}
