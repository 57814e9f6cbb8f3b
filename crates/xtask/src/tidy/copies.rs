//! Rule `copies`: tests draw their numbers from the crate that owns `Random`, and one function says
//! how bytes become digits, how digits become bytes, how long a time is, and how large a size.
//! `crates/xtask/ratchets.txt` has the copies that are left, by crate.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::ratchets::{self, Count};
use crate::tidy::tree::Tree;

const RULE: &str = "copies";

/// How a definition begins, and the crate that has the one that all others take.
const HOMES: &[(&[&str], &str)] = &[
    (&["struct", "Random"], "random"),
    (&["struct", "SplitMix"], "random"),
    (&["fn", "hex", "(", "bytes"], "cli"),
    (&["fn", "from_hex", "("], "cli"),
    (&["fn", "parse_duration", "("], "server"),
    (&["fn", "parse_size", "("], "server"),
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, tokens) in tree.rust() {
        let Some(name) = file.crate_name() else { continue };
        for (pattern, home) in HOMES {
            let copies = tokens.matches(pattern).filter(|_| name != *home);
            let place = |line| format!("`{}` at {}:{line}", pattern[1], file.path);
            places.entry(name).or_default().extend(copies.map(|token| place(token.line)));
        }
    }
    let counts = places.into_iter().map(|(name, places)| {
        let message = format!("defined once more: {}", places.join(", "));
        Count { of: name.to_string(), count: places.len(), message }
    });
    ratchets::compare(tree, RULE, counts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_beside_the_one_that_all_take_are_found() {
        let random = "pub struct Random(u64);";
        let check = |path: &str, text: &str| find(&Tree::of(&[(path, text)])).len();
        assert_eq!(check("crates/random/src/xoshiro.rs", random), 0);
        assert_eq!(check("crates/flash/tests/a.rs", random), 1);
        assert_eq!(check("crates/flash/src/a.rs", "#[cfg(test)] mod tests { struct Random; }"), 1);
        assert_eq!(check("crates/cli/src/units.rs", "fn hex(bytes: &[u8]) {}"), 0);
        assert_eq!(check("crates/heap/src/a.rs", "fn hex(bytes: &[u8]) {}"), 1);
        assert_eq!(check("crates/wire/src/a.rs", "fn hex(digit: u8) -> u8 { 0 }"), 0);
        assert_eq!(check("crates/flash/src/a.rs", "fn f() { Random::new(1); hex(2); }"), 0);
    }
}
