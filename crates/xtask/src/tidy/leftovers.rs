//! Rule `leftovers`: nothing is left over in the tree: no notes to oneself, no debugging output, no
//! `#[allow]`. Rule `unsafe`: only the crates that map memory or are called from C hold unsafe code
//! (the comparison, a workspace of its own, binds its rivals by it).

use crate::tidy::Finding;
use crate::tidy::tree::{File, Tree};

/// Split, so that this table does not find itself.
const NOTES: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK")];
const MACROS: &[&str] = &["dbg", "todo", "unimplemented"];
const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint"];
/// Programs, which talk to people.
const PROGRAMS: &[&str] = &["cli", "xtask"];
/// Crates that map memory, or are called from C.
const UNSAFE: &[&str] = &["device", "ffi", "heap"];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        find_notes(file, &mut findings);
    }
    for (file, tokens) in tree.rust() {
        let mut add = |rule, line, message: String| {
            findings.push(Finding::new(rule, &file.path, line, message));
        };
        for name in MACROS {
            for token in tokens.matches(&[name, "!"]) {
                add("leftovers", token.line, format!("`{name}!`"));
            }
        }
        let is_program = file.crate_name().is_none_or(|name| PROGRAMS.contains(&name));
        let prints = file.is_test() || file.is_example() || is_program;
        for name in PRINTING.iter().filter(|_| !prints) {
            for token in tokens.matches(&[name, "!"]).filter(|token| !token.in_test) {
                add("leftovers", token.line, format!("`{name}!` in a library"));
            }
        }
        for pattern in [["#", "[", "allow"].as_slice(), &["#", "!", "[", "allow"]] {
            for token in tokens.matches(pattern) {
                let message = "`allow`: say `expect` and give the reason".to_string();
                add("leftovers", token.line, message);
            }
        }
        if file.crate_name().is_some_and(|name| !UNSAFE.contains(&name)) {
            for token in tokens.matches(&["unsafe"]) {
                add("unsafe", token.line, "`unsafe` outside the crates that may".to_string());
            }
        }
    }
    findings
}

fn find_notes(file: &File, findings: &mut Vec<Finding>) {
    for (line, text) in file.lines() {
        for (first, second) in NOTES {
            let note = format!("{first}{second}");
            let is_word = |word: &str| word == note;
            if text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_word) {
                findings.push(Finding::new("leftovers", &file.path, line, format!("`{note}`")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        find(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn notes_debugging_and_allowances_are_found() {
        let note = format!("// {}{}: later", "TO", "DO");
        assert_eq!(rules("crates/flash/src/a.rs", &note), ["leftovers"]);
        assert_eq!(rules("crates/flash/src/a.rs", "fn a() { dbg!(1); }"), ["leftovers"]);
        assert_eq!(rules("crates/flash/src/a.rs", "#[allow(x)] fn a() {}"), ["leftovers"]);
        assert_eq!(rules("crates/flash/src/a.rs", "#![allow(x)]"), ["leftovers"]);
    }

    #[test]
    fn libraries_do_not_print_but_programs_and_tests_may() {
        let printing = "fn a() { println!(); }";
        assert_eq!(rules("crates/server/src/a.rs", printing), ["leftovers"]);
        assert_eq!(rules("crates/cli/src/a.rs", printing), [""; 0]);
        assert_eq!(rules("crates/server/tests/a.rs", printing), [""; 0]);
    }

    #[test]
    fn unsafe_code_is_found_outside_the_crates_that_may() {
        let code = "fn a() { unsafe { b() } }";
        assert_eq!(rules("crates/flash/src/a.rs", code), ["unsafe"]);
        assert_eq!(rules("crates/device/src/a.rs", code), [""; 0]);
    }
}
