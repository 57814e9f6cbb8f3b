//! Rule `documents`: a document names no file that is not there, and keeps to its length.

use crate::tidy::Finding;
use crate::tidy::tree::{File, Tree};

/// Folders whose paths are followed when a document writes one between backticks.
const FOLDERS: &[&str] = &[
    "crates/",
    "docs/",
    "scripts/",
    "packaging/",
    "benches-compare/",
    "conformance/",
    "fuzz/",
    "console/",
    "java/",
    ".ci/",
    ".cargo/",
];

/// Most lines, by path or by folder; the first that fits holds.
const LENGTHS: &[(&str, usize)] = &[
    ("README.md", 120),
    ("ARCHITECTURE.md", 300),
    ("STYLE.md", 250),
    ("CONTRIBUTING.md", 150),
    ("docs/decisions/dependencies.md", 120),
    ("docs/decisions/", 60),
    ("docs/internals/", 250),
    ("docs/concepts/", 250),
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in file.lines() {
            for path in named_paths(file, text) {
                if !tree.has(&path) {
                    let message = format!("`{path}` does not exist");
                    findings.push(Finding::new("documents", &file.path, line, message));
                }
            }
        }
        let lines = file.text.lines().count();
        let limit = LENGTHS.iter().find(|(start, _)| file.path.starts_with(start));
        if let Some((_, most)) = limit.filter(|(_, most)| lines > *most) {
            let message = format!("{lines} lines, most {most}");
            findings.push(Finding::new("documents", &file.path, 1, message));
        }
    }
    findings
}

/// Paths from the root that a line names: in backticks, and as targets of links.
fn named_paths(file: &File, text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for quoted in text.split('`').skip(1).step_by(2) {
        if FOLDERS.iter().any(|folder| quoted.starts_with(folder)) && is_plain(quoted) {
            paths.push(quoted.trim_end_matches('/').to_string());
        }
    }
    for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let target = target.split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains(':') {
            paths.push(resolved(&file.path, target));
        }
    }
    paths
}

/// Whether `path` names one file, and not a pattern or a command.
fn is_plain(path: &str) -> bool {
    path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
}

/// `target` as seen from the folder of `document`, from the root.
fn resolved(document: &str, target: &str) -> String {
    let mut folders: Vec<&str> = document.split('/').collect();
    folders.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                folders.pop();
            }
            part => folders.push(part),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let files = [("docs/guides/a.md", text), ("crates/flash/src/log.rs", "//! x")];
        find(&Tree::of(&files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn absent_files_are_found_in_backticks_and_links() {
        assert_eq!(messages("`crates/flash/src/log.rs` `crates/flash/` `crates/*/src`").len(), 0);
        assert_eq!(messages("`crates/flash/src/lag.rs`").len(), 1);
        assert_eq!(messages("[a](a.md) [log](../../crates/flash/src/log.rs#top)").len(), 0);
        assert_eq!(messages("[gone](../gone.md)"), ["`docs/gone.md` does not exist"]);
        assert_eq!(messages("[far](https://example.org/x)").len(), 0);
    }

    #[test]
    fn long_documents_are_found() {
        let text = "line\n".repeat(61);
        let tree = Tree::of(&[("docs/decisions/0001-x.md", &text), ("docs/guides/a.md", &text)]);
        assert_eq!(find(&tree).len(), 1);
    }
}
