//! Rule `format`: who changes a home of bytes changes the document about them, too; and in the
//! engine no bytes are encoded but there.
//!
//! The document carries a digest of each home; a change of the code alone is a finding that says
//! which digest to write down once the document is true again. Comments and tests encode nothing,
//! so they do not count.

use crate::tidy::Finding;
use crate::tidy::tree::{File, Tree};

/// Each home of bytes, and its document. A folder, which ends in `/`, stands for all in it.
const FORMATS: &[(&str, &str)] = &[
    ("crates/flash/src/format.rs", "docs/internals/data-file.md"),
    ("crates/flash/src/format/", "docs/internals/data-file.md"),
    // Checkpoints hold the words of the index as they are.
    ("crates/flash/src/index/slot.rs", "docs/internals/data-file.md"),
    ("crates/flash/src/index/mapping.rs", "docs/internals/data-file.md"),
    ("crates/backup/src/format/", "docs/internals/backup-format.md"),
    ("crates/tree/src/format.rs", "docs/internals/tree-format.md"),
    ("crates/tree/src/format/", "docs/internals/tree-format.md"),
    ("crates/volume/src/meta.rs", "docs/internals/volume-format.md"),
    ("crates/heap/src/format.rs", "docs/internals/heap-format.md"),
    ("crates/heap/src/encryption/format.rs", "docs/internals/heap-format.md"),
    ("crates/heap/src/allocator/span.rs", "docs/internals/heap-format.md"),
    ("crates/heap/src/collections/anchor.rs", "docs/internals/heap-collections.md"),
    ("crates/heap/src/collections/radix/node.rs", "docs/internals/heap-collections.md"),
];

/// Sources that encode bytes in their homes only.
const ENGINE: &str = "crates/flash/src/";
/// How bytes are encoded, or read.
const ENCODING: [&str; 4] = ["to_le_bytes", "from_le_bytes", "to_be_bytes", "from_be_bytes"];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (home, document) in FORMATS {
        let mut sources: Vec<&File> =
            tree.files.iter().filter(|file| is_in(&file.path, home)).collect();
        if sources.is_empty() {
            continue;
        }
        sources.sort_unstable_by_key(|file| &file.path);
        let line = format!("Digest of `{home}`: `{:016x}`", digest(&sources));
        if !tree.file(document).is_some_and(|document| document.text.contains(&line)) {
            let message = format!("make the document true, then write into it: {line}");
            findings.push(Finding::new("format", document, 1, message));
        }
    }
    for file in tree.files.iter().filter(|file| file.path.starts_with(ENGINE) && !is_home(file)) {
        for (line, text) in code(&file.text) {
            if let Some(word) = ENCODING.iter().find(|word| text.contains(**word)) {
                let message = format!("`{word}` outside of the homes of bytes: give it a home");
                findings.push(Finding::new("format", &file.path, line, message));
            }
        }
    }
    findings
}

fn is_in(path: &str, home: &str) -> bool {
    path == home || home.ends_with('/') && path.starts_with(home)
}

fn is_home(file: &File) -> bool {
    file.is_test() || FORMATS.iter().any(|(home, _)| is_in(&file.path, home))
}

/// The lines that are neither comments nor of the tests at the end, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//") && !line.trim().is_empty())
}

/// FNV-1a, 64 bits: it guards against forgetting, not against anyone.
fn digest(sources: &[&File]) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let lines = sources.iter().flat_map(|file| code(&file.text).map(|(_, line)| line));
    lines.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(text: &str) -> u64 {
        digest(&[&Tree::of(&[("crates/heap/src/a.rs", text)]).files[0]])
    }

    #[test]
    fn a_changed_format_with_an_unchanged_document_is_found() {
        let source = "const RECORD_BYTES: u64 = 48;";
        for (home, page) in FORMATS {
            let path = if home.ends_with('/') { format!("{home}a.rs") } else { home.to_string() };
            let document = format!("Digest of `{home}`: `{:016x}`\n", digest_of(source));
            assert!(find(&Tree::of(&[(&path, source), (page, &document)])).is_empty());
            assert_eq!(find(&Tree::of(&[(&path, "changed"), (page, &document)])).len(), 1);
            assert_eq!(find(&Tree::of(&[(&path, source)])).len(), 1);
            let reworded = format!("// Other words.\n{source}\n#[cfg(test)]\nmod tests {{}}\n");
            assert!(find(&Tree::of(&[(&path, &reworded), (page, &document)])).is_empty());
        }
    }

    #[test]
    fn bytes_that_the_engine_encodes_outside_of_their_homes_are_found() {
        let source = "fn a() { 7u32.to_le_bytes(); }\n#[cfg(test)]\nfn b() { 7u32.to_le_bytes(); }";
        for (path, count) in [("crates/flash/src/log.rs", 1), ("crates/tier/src/tiered.rs", 0)] {
            assert_eq!(find(&Tree::of(&[(path, source)])).len(), count, "{path}");
        }
    }

    #[test]
    fn the_digest_is_the_published_function() {
        assert_eq!(digest_of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest_of("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
