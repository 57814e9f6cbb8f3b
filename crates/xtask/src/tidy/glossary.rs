//! Rule `glossary`: one word, one meaning: no word has two rows.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const GLOSSARY: &str = "docs/reference/glossary.md";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    let Some(file) = tree.file(GLOSSARY) else { return findings };
    for (line, text) in file.lines() {
        for word in words(text) {
            match first.get(word) {
                Some(other) => {
                    let message = format!("`{word}` has a meaning in line {other} already");
                    findings.push(Finding::new("glossary", GLOSSARY, line, message));
                }
                None => {
                    first.insert(word, line);
                }
            }
        }
    }
    findings
}

/// The words that a row of the glossary explains.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let cell = line.strip_prefix("| **").and_then(|rest| rest.split("**").next());
    cell.into_iter().flat_map(|cell| cell.split(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_two_meanings_is_found() {
        let text = "| **put, get** | a | |\n| **slot** | b | |\n| **block, get** | c | |\n";
        let found = find(&Tree::of(&[(GLOSSARY, text)]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].message.contains("`get`")), (3, true));
    }
}
