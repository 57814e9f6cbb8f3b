//! Rule `licences`: every crate from outside that the product or its tests are built from may be
//! used under licences that `deny.toml` allows. It reads what cargo has on this machine already.
//! What is kept apart from the workspace (rivals, fuzzing) is shipped to nobody and not looked at.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

const DOCUMENT: &str = "deny.toml";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.file(DOCUMENT) else {
        return Vec::new();
    };
    let allowed = allowed(&document.text);
    let mut findings = Vec::new();
    for outside in &tree.outside {
        let (name, version) = (&outside.name, &outside.version);
        let message = match &outside.licence {
            Some(licence) if Expression::of(licence).allowed_by(&allowed) => continue,
            Some(licence) => format!(
                "`{name}` {version} is under `{licence}`, which the list does not allow; use \
                 another crate, or decide for the licence and list it"
            ),
            None => format!(
                "`{name}` {version} names no licence; use another crate, or ask its authors"
            ),
        };
        findings.push(Finding::new("licences", DOCUMENT, 1, message));
    }
    findings
}

/// The list called `allow` in the section `licenses`.
fn allowed(document: &str) -> Vec<&str> {
    let section = document.split("\n[").find(|section| section.starts_with("licenses]"));
    let list = section.and_then(|section| section.split_once("allow = [")?.1.split_once(']'));
    list.map_or("", |(list, _)| list).split('"').skip(1).step_by(2).collect()
}

/// An expression of licences as manifests have it (SPDX; `/` is the old way to write `OR`).
struct Expression<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Expression<'a> {
    fn of(text: &'a str) -> Expression<'a> {
        let mut words = Vec::new();
        for part in text.split_whitespace() {
            let mut rest = part;
            while let Some(sign) = rest.find(['(', ')', '/']) {
                words.extend(Some(&rest[..sign]).filter(|word| !word.is_empty()));
                words.push(&rest[sign..=sign]);
                rest = &rest[sign + 1..];
            }
            words.extend(Some(rest).filter(|word| !word.is_empty()));
        }
        Expression { words, at: 0 }
    }

    /// Whether it can be met with the licences of the list. What is not understood cannot.
    fn allowed_by(mut self, list: &[&str]) -> bool {
        let allowed = self.any(list);
        allowed && self.at == self.words.len()
    }

    fn any(&mut self, list: &[&str]) -> bool {
        let mut allowed = self.all(list);
        while self.take("OR") || self.take("/") {
            allowed |= self.all(list);
        }
        allowed
    }

    fn all(&mut self, list: &[&str]) -> bool {
        let mut allowed = self.one(list);
        while self.take("AND") {
            allowed &= self.one(list);
        }
        allowed
    }

    fn one(&mut self, list: &[&str]) -> bool {
        if self.take("(") {
            let allowed = self.any(list);
            return self.take(")") && allowed;
        }
        let Some(name) = self.next() else {
            return false;
        };
        match self.take("WITH") {
            true => self.next().is_some_and(|with| list.contains(&&*format!("{name} WITH {with}"))),
            false => list.contains(&name),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += usize::from(word.is_some());
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Outside;

    const LIST: &str = r#"[advisories]
yanked = "deny"

[licenses]
allow = [
    "MIT",
    "Apache-2.0 WITH LLVM-exception", "ISC",
]
[bans]
allow = ["x"]
"#;

    #[test]
    fn crates_under_other_licences_are_found_with_version_and_licence() {
        let outside = |name: &str, licence: Option<&str>| Outside {
            name: name.into(),
            version: "1.2.3".into(),
            licence: licence.map(str::to_owned),
        };
        let mut tree = Tree::of(&[(DOCUMENT, LIST)]);
        tree.outside = vec![
            outside("good", Some("MIT OR Apache-2.0")),
            outside("copyleft", Some("AGPL-3.0-only")),
            outside("silent", None),
        ];
        let messages: Vec<String> = find(&tree).into_iter().map(|f| f.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].starts_with("`copyleft` 1.2.3 is under `AGPL-3.0-only`,"));
        assert!(messages[1].starts_with("`silent` 1.2.3 names no licence"));
    }

    #[test]
    fn expressions_are_met_by_one_of_several_or_by_all_of_several() {
        let list = allowed(LIST);
        assert_eq!(list, ["MIT", "Apache-2.0 WITH LLVM-exception", "ISC"]);
        for (text, expected) in [
            ("MIT", true),
            ("Unlicense/MIT", true),
            ("GPL-2.0 OR MIT", true),
            ("GPL-2.0 AND MIT", false),
            ("MIT AND ISC", true),
            ("(MIT OR GPL-2.0) AND ISC", true),
            ("(MIT OR ISC) AND GPL-2.0", false),
            ("GPL-2.0 OR MIT AND ISC", true),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("MIT ISC", false),
            ("(MIT", false),
            ("OR MIT", false),
            ("", false),
        ] {
            assert_eq!(Expression::of(text).allowed_by(&list), expected, "{text}");
        }
    }
}
