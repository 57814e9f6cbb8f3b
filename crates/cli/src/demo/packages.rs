//! Real records for the demo: Debian's package index, one entry a package and version.

use std::process::{Command, Stdio};

use crate::holder::Item;

/// The records and where they came from.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// One entry each; the key is `name=version`, the value the record's text.
    pub(super) items: Vec<Item>,
    /// Their source, for people.
    pub(super) source: String,
}

/// The machine's package index; what is installed where the index is empty; nothing elsewhere.
pub(super) fn packages() -> Packages {
    const INSTALLED: &str = "/var/lib/dpkg/status";
    let output = Command::new("apt-cache").arg("dumpavail").stderr(Stdio::null()).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let items = parse(&text);
    if !items.is_empty() {
        return Packages { items, source: "apt-cache dumpavail".into() };
    }
    let text = std::fs::read(INSTALLED).unwrap_or_default();
    let items = parse(&String::from_utf8_lossy(&text));
    let source = match items.is_empty() {
        true => "no package index on this machine".to_owned(),
        false => format!("{INSTALLED} (apt-cache has no package lists; apt-get update gets them)"),
    };
    Packages { items, source }
}

/// Splits an index into records: paragraphs of `Field: text` lines, continued by lines that begin
/// with a space. Paragraphs without a package or a version are left out.
fn parse(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.trim_matches('\n');
        let field = |name: &str| {
            paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let (Some(package), Some(version)) = (field("Package"), field("Version")) else {
            continue;
        };
        items.push(Item {
            key: format!("{}={}", package.trim(), version.trim()).into_bytes(),
            value: paragraph.as_bytes().to_vec(),
            ..Item::default()
        });
    }
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items.dedup_by(|a, b| a.key == b.key);
    items
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn paragraphs_become_entries_keyed_by_name_and_version() {
        let text = "Package: zlib1g\nVersion: 1:1.2.13\nDescription: compression\n more text\n\n\
                    Package: bash\nStatus: ok\nVersion: 5.2-1\n\n\n\
                    Package: nothing\n\nVersion: 3\n\n\
                    Package: bash\nVersion: 5.2-1\nAgain: yes\n";
        let items = parse(text);
        let keys: Vec<_> = items.iter().map(|i| String::from_utf8_lossy(&i.key)).collect();
        assert_eq!(keys, ["bash=5.2-1", "zlib1g=1:1.2.13"]);
        assert!(items[1].value.ends_with(b" more text"));
        assert!(parse("").is_empty());
        assert!(parse("garbage without colons\n\n\n\n:").is_empty());
    }
}
