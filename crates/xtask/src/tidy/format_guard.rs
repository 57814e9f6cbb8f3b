//! Rule `format`: who changes the home of the bytes changes the document about them, too.
//!
//! The document carries a digest of the source; a change of the source alone is a finding that says
//! which digest to write down once the document is true again.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Each home of bytes, and its document.
const FORMATS: &[(&str, &str)] = &[
    ("crates/flash/src/format.rs", "docs/internals/data-file.md"),
    ("crates/heap/src/format.rs", "docs/internals/heap-format.md"),
    ("crates/heap/src/encryption/format.rs", "docs/internals/heap-format.md"),
];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (home, document) in FORMATS {
        let Some(source) = tree.file(home) else { continue };
        let line = format!("Digest of `{home}`: `{:016x}`", digest(&source.text));
        if !tree.file(document).is_some_and(|document| document.text.contains(&line)) {
            let message = format!("make the document true, then write into it: {line}");
            findings.push(Finding::new("format", document, 1, message));
        }
    }
    findings
}

/// FNV-1a, 64 bits: it guards against forgetting, not against anyone.
fn digest(text: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_format_with_an_unchanged_document_is_found() {
        let source = "const RECORD_BYTES: u64 = 48;";
        for (home, page) in FORMATS {
            let document = format!("Digest of `{home}`: `{:016x}`\n", digest(source));
            assert!(find(&Tree::of(&[(home, source), (page, &document)])).is_empty());
            assert_eq!(find(&Tree::of(&[(home, "changed"), (page, &document)])).len(), 1);
            assert_eq!(find(&Tree::of(&[(home, source)])).len(), 1);
        }
    }

    #[test]
    fn the_digest_is_the_published_function() {
        assert_eq!(digest(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
