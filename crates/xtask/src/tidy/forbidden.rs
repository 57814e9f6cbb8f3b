//! Rule `forbidden`: the repository speaks of itself only: no path of one person's machine and no
//! host of a package registry, which every place that builds it sets for itself.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// In two halves, so that this table does not find itself.
const FORBIDDEN: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("crates", ".io"),
    ("pypi", ".org"),
    ("maven", ".org"),
    ("maven.apache", ".org"),
    ("npm", "js"),
    ("debian", ".org"),
    ("proxy.golang", ".org"),
];

/// Written by cargo, which puts the registry's name into it.
const GENERATED: &str = "Cargo.lock";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.path.ends_with(GENERATED)) {
        for (line, text) in file.lines() {
            for (first, second) in FORBIDDEN {
                let word = format!("{first}{second}");
                if text.contains(&word) {
                    let message = format!("`{word}` belongs to one place or one registry");
                    findings.push(Finding::new("forbidden", &file.path, line, message));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_machines_and_hosts_of_registries_are_found() {
        let check = |text: &str| find(&Tree::of(&[("docs/a.md", text)])).len();
        assert_eq!(check(&["see /wo", "rk/main"].concat()), 1);
        assert_eq!(check(&["from https://static.crates", ".io"].concat()), 1);
        assert_eq!(check("a network/with a path"), 0);
    }
}
