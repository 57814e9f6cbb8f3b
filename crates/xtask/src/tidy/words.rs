//! Rule `words`: names that the glossary retired, and nouns that say nothing.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// A retired word as part of a name, and what the glossary calls the thing.
const RETIRED: &[(&str, &str)] = &[
    ("gc", "reclaim"),
    ("defrag", "compact"),
    ("seqno", "version or sequence"),
    ("lsn", "version or sequence"),
    ("wal", "log"),
    ("fsck", "verify"),
    ("scrub", "verify"),
    ("wblock", "segment"),
    ("vhandle", "location"),
    ("delete", "remove"),
    ("deleted", "removed"),
    ("backend", "device"),
    ("storage", "device or store"),
    ("disk", "device"),
    ("lun", "volume"),
    ("sanity", "what is checked"),
];

/// Ends of type names and names of modules that hide which noun is missing.
const EMPTY_NOUNS: &[&str] = &[
    "Manager",
    "Runner",
    "Helper",
    "Handler",
    "Impl",
    "Supervisor",
    "Util",
    "Utils",
    "Common",
    "Misc",
    "Base",
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, tokens) in tree.rust() {
        for (index, token) in tokens.list.iter().enumerate().filter(|(_, token)| token.is_word) {
            let mut add = |message| {
                findings.push(Finding::new("words", &file.path, token.line, message));
            };
            for part in parts(&token.text) {
                if let Some((word, instead)) = RETIRED.iter().find(|(word, _)| *word == part) {
                    add(format!("`{}`: `{word}` is retired; say {instead}", token.text));
                }
            }
            let before = index.checked_sub(1).map(|i| tokens.list[i].text.as_str());
            if matches!(before, Some("struct" | "enum" | "trait" | "type" | "mod"))
                && let Some(noun) = empty_noun(&token.text)
            {
                add(format!("`{}`: `{noun}` names no thing; which noun is missing?", token.text));
            }
        }
    }
    findings
}

fn empty_noun(name: &str) -> Option<&'static str> {
    let last = parts(name).pop()?;
    EMPTY_NOUNS.iter().find(|noun| noun.to_lowercase() == last).copied()
}

/// The words of a name, in lower case: `SegmentMap`, `segment_map` and `SEGMENT_MAP` have two.
fn parts(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let shouting = !name.chars().any(|c| c.is_lowercase());
    for character in name.chars() {
        let starts = character == '_' || (!shouting && character.is_uppercase());
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if character != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> usize {
        find(&Tree::of(&[("crates/flash/src/a.rs", text)])).len()
    }

    #[test]
    fn retired_words_are_found_in_every_spelling() {
        assert_eq!(check("fn run_gc() {}"), 1);
        assert_eq!(check("struct GcState;"), 1);
        assert_eq!(check("const GC_MAX: u8 = 1;"), 1);
        assert_eq!(check("fn gcd() {} // gc"), 0);
    }

    #[test]
    fn empty_nouns_are_found_where_something_is_named() {
        assert_eq!(check("struct SegmentManager;"), 1);
        assert_eq!(check("mod utils;"), 1);
        assert_eq!(check("fn f(handler: Row) {}"), 0);
    }
}
