//! Rule `documents`: a document names no file and no heading that is not there, and keeps to its
//! length.

use crate::tidy::Finding;
use crate::tidy::markdown;
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
    ("README.md", 150),
    ("ARCHITECTURE.md", 300),
    ("STYLE.md", 250),
    ("CONTRIBUTING.md", 150),
    ("CHANGELOG.md", 60),
    ("docs/decisions/dependencies.md", 150),
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
        findings.extend(missing_headings(tree, file));
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
    for target in markdown::targets(text) {
        let target = target.split('#').next().unwrap_or_default();
        if markdown::is_ours(target) {
            paths.push(markdown::resolved(&file.path, target));
        }
    }
    paths
}

/// Links to headings of documents that have none of this name.
fn missing_headings(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in markdown::prose(&file.text) {
        for (target, anchor) in markdown::targets(text).filter_map(|t| t.split_once('#')) {
            let path = match target {
                "" => file.path.clone(),
                target => markdown::resolved(&file.path, target),
            };
            let Some(document) = tree.file(&path).filter(|file| file.path.ends_with(".md")) else {
                continue;
            };
            if !markdown::anchors(&document.text).iter().any(|name| name == anchor) {
                let message = format!("`{path}` has no heading `#{anchor}`");
                findings.push(Finding::new("documents", &file.path, line, message));
            }
        }
    }
    findings
}

/// Whether `path` names one file, and not a pattern or a command.
fn is_plain(path: &str) -> bool {
    path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
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
    fn links_to_absent_headings_are_found() {
        assert_eq!(messages("# Top\n## How it is\n[a](#how-it-is) [b](a.md#top)").len(), 0);
        let gone = "`docs/guides/a.md` has no heading `#gone`";
        assert_eq!(messages("# Top\n[a](#gone)"), [gone]);
        assert_eq!(messages("# Top\n[a](a.md#gone)"), [gone]);
    }

    #[test]
    fn long_documents_are_found() {
        let text = "line\n".repeat(61);
        let tree = Tree::of(&[("docs/decisions/0001-x.md", &text), ("docs/guides/a.md", &text)]);
        assert_eq!(find(&tree).len(), 1);
    }
}
