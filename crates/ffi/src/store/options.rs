//! The options of a store as a caller writes them: lines of `name=value`, sizes in bytes.

use std::path::PathBuf;

use entresol_host::HostedOptions;
use entresol_tier::Error;

use crate::text::Failure;

/// Reads options.
pub(super) fn parse(text: &[u8]) -> Result<HostedOptions, Failure> {
    let text = std::str::from_utf8(text).map_err(|error| wrong("text", "UTF-8", &error))?;
    let mut options = HostedOptions::new("");
    let mut buffers = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (name, value) =
            line.split_once('=').ok_or_else(|| wrong(line, "a line NAME=VALUE", &"no `=`"))?;
        if name == "buffer-directory" {
            buffers = Some(PathBuf::from(value));
        } else {
            options.set(name, value).map_err(|error| refused_option(name, &error))?;
        }
    }
    if options.devices.is_empty() {
        return Err(wrong("devices", "a path, or several with commas between", &"nothing"));
    }
    let placed = options.place_buffers(buffers);
    placed.map_err(|error| refused_option("buffer-directory", &error))?;
    Ok(options)
}

/// What is said of a store that cannot be opened.
pub(super) fn refused(failure: &entresol_host::Failure) -> Failure {
    let mut said = Failure::from_host(failure);
    if let entresol_host::Failure::Store(error) = failure
        && error.is_forceable()
    {
        said.sentence.push_str(": the mode `reformat` does");
    }
    said
}

fn wrong(name: &str, expected: &str, found: &dyn std::fmt::Display) -> Failure {
    Failure { kind: 2, sentence: format!("option `{name}`: expected {expected}, found {found}") }
}

fn refused_option(name: &str, error: &Error) -> Failure {
    Failure { kind: 2, sentence: format!("option `{name}`: {error}") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use entresol_tier::{Compression, Durability, OpenMode, Reclaim};

    use super::*;

    /// A store that was killed at another level lost what stood in its buffers alone.
    #[test]
    fn buffers_of_a_killed_store_are_looked_for_whatever_the_durability() {
        for level in ["memory", "process", "flushed", "periodic:7", "synced"] {
            let options = parse(format!("devices=a\ndurability={level}").as_bytes()).unwrap();
            let directory = options.tiered.store.buffer_directory;
            assert_eq!(directory.as_deref(), Some(Path::new("/dev/shm")), "{level}");
        }
    }

    #[test]
    fn options_are_read_and_others_name_what_is_wrong() {
        let text = [
            "devices=/tmp/a,/tmp/b",
            "selection=stripe",
            "capacity=1048576",
            "memory=99",
            "durability=periodic:7",
            "reclaim=cache",
            "compression=zstd",
            "shards=3",
            "journal=4194304",
            "tables-waiting=77",
            "tables-filter-bits=10",
            "mode=reformat",
        ]
        .join("\n");
        let options = parse(text.as_bytes()).unwrap();
        assert_eq!(options.devices, "/tmp/a,/tmp/b");
        assert_eq!(options.capacity_bytes, Some(1 << 20));
        assert_eq!(options.tiered.memory_bytes, 99);
        assert_eq!(options.tree.waiting_bytes_max, 77);
        assert_eq!(options.tree.absent_filter_bits, 10);
        let store = options.tiered.store;
        assert_eq!(store.journal_bytes, 4 << 20);
        assert_eq!((store.shards, store.mode), (3, OpenMode::Reformat));
        assert_eq!((store.reclaim, store.compression), (Reclaim::Evict, Compression::Zstd));
        assert_eq!(store.durability, Durability::Periodic(7.try_into().unwrap()));
        assert_eq!(store.buffer_directory.as_deref(), Some(Path::new("/dev/shm")));
        for (line, said) in [
            ("", "`devices`: expected a path"),
            ("devices", "expected a line NAME=VALUE"),
            ("capacity=1GB", "`capacity`: expected a number, found `1GB`"),
            ("reclaim=x", "`reclaim`: expected store or cache, found `x`"),
            ("durability=all", "`durability`: expected memory"),
            ("colour=red", "`colour`: expected the name of an option"),
            ("encryption-key=beef", "64 hexadecimal digits, found 4 bytes"),
        ] {
            let failure = parse(line.as_bytes()).unwrap_err();
            assert_eq!(failure.kind, 2, "{line}");
            assert!(failure.sentence.contains(said), "{line}: {}", failure.sentence);
        }
    }
}
