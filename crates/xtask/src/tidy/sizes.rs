//! Rule `sizes`: 600 lines a file without its tests, 100 columns, and a head of at most 25 lines
//! that says what the file owns. (Functions and arguments are clippy's.)

use crate::tidy::Finding;
use crate::tidy::tokens::Tokens;
use crate::tidy::tree::{File, Tree};

const LINES_MAX: usize = 600;
const COLUMNS_MAX: usize = 100;
const HEAD_LINES_MAX: usize = 25;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|(file, tokens)| find_in(file, tokens)).collect()
}

fn find_in(file: &File, tokens: &Tokens) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line, message| findings.push(Finding::new("sizes", &file.path, line, message));
    let lines = file.text.lines().count() - tokens.test_line_count();
    if lines > LINES_MAX && !file.is_test() {
        add(1, format!("{lines} lines without tests, most {LINES_MAX}: which noun is missing?"));
    }
    for (line, text) in file.lines() {
        let columns = text.chars().count();
        if columns > COLUMNS_MAX {
            add(line, format!("{columns} columns, most {COLUMNS_MAX}"));
        }
    }
    let head = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    if head == 0 {
        add(1, "no `//!` head that says what the file owns".to_string());
    } else if head > HEAD_LINES_MAX {
        add(1, format!("a head of {head} lines, most {HEAD_LINES_MAX}"));
    }
    if let Some(error) = &tokens.error {
        add(1, format!("cannot be read as Rust: {error}"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/flash/src/a.rs", text)]);
        find(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn long_files_are_found_and_their_tests_not_counted() {
        let long = format!("//! A.\n{}", "fn a() {}\n".repeat(600));
        assert_eq!(check(&long).len(), 1);
        let tested = "#[cfg(test)]\nmod tests {\n".to_string() + &"fn a() {}\n".repeat(600) + "}\n";
        assert_eq!(check(&format!("//! A.\n{tested}")), Vec::<String>::new());
    }

    #[test]
    fn long_lines_and_missing_or_long_heads_are_found() {
        assert!(check(&format!("//! A.\n//{}\n", "x".repeat(99)))[0].contains("101 columns"));
        assert!(check("fn a() {}\n")[0].contains("no `//!` head"));
        assert!(check(&"//! A.\n".repeat(26))[0].contains("26 lines"));
    }
}
