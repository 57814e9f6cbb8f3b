//! The options of a store as a caller writes them: lines of `name=value`, sizes in bytes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use entresol_device::Selection;
use entresol_host::{BUFFER_DIRECTORY, HostedOptions};
use entresol_tier::{
    Admission, Compression, Durability, EncryptionKey, OpenMode, Reclaim, StoreOptions, WriteMode,
};

use crate::text::Failure;

/// Bytes that go to one device of a new stripe before the next.
const STRIPE_UNIT_BYTES: u64 = 1 << 20;

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
            set(&mut options, name, value)?;
        }
    }
    if options.devices.is_empty() {
        return Err(wrong("devices", "a path, or several with commas between", &"nothing"));
    }
    place_buffers(&mut options.tiered.store, buffers)?;
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

fn set(options: &mut HostedOptions, name: &str, value: &str) -> Result<(), Failure> {
    let store = &mut options.tiered.store;
    match name {
        "devices" => options.devices = value.to_string(),
        "instance" => options.instance = number(name, value)?,
        "selection" => {
            let stripe = Selection::Stripe { unit_bytes: STRIPE_UNIT_BYTES };
            let known = [("search", Selection::SearchPath), ("stripe", stripe)];
            options.selection = choice(name, value, &known)?;
        }
        "capacity" => {
            options.capacity_bytes = Some(number(name, value)?);
            store.capacity_bytes = options.capacity_bytes;
        }
        "memory" => options.tiered.memory_bytes = number(name, value)?,
        "cache" => options.tiered.cache_bytes = Some(number(name, value)?),
        "journal" => store.journal_bytes = number(name, value)?,
        "tables-waiting" => options.tree.waiting_bytes_max = number(name, value)?,
        "tables-filter-bits" => options.tree.absent_filter_bits = number(name, value)?,
        "shards" => store.shards = number(name, value)?,
        "segment" => store.segment_bytes = number(name, value)?,
        "durability" => store.durability = durability(name, value)?,
        "write-mode" => {
            let known = [("through", WriteMode::Through), ("behind", WriteMode::Behind)];
            store.write_mode = choice(name, value, &known)?;
        }
        "reclaim" => {
            let known = [("store", Reclaim::Compact), ("cache", Reclaim::Evict)];
            store.reclaim = choice(name, value, &known)?;
        }
        "compression" => {
            let known = [
                ("none", Compression::None),
                ("lz4", Compression::Lz4),
                ("zstd", Compression::Zstd),
            ];
            store.compression = choice(name, value, &known)?;
        }
        "mode" => {
            let known = [
                ("open", OpenMode::OpenOrCreate),
                ("overwrite", OpenMode::OpenOrOverwrite),
                ("reformat", OpenMode::Reformat),
                ("read-only", OpenMode::ReadOnly),
            ];
            store.mode = choice(name, value, &known)?;
        }
        "encryption-key" => store.encryption = Some(encryption_key(name, value)?),
        "write-budget" => {
            options.tiered.admission = match number(name, value)? {
                0 => Admission::Always,
                budget => Admission::WriteBudget(budget),
            };
        }
        _ => return Err(wrong(name, "the name of an option", &"an unknown one")),
    }
    Ok(())
}

/// Says where the write buffers are that outlive the process: those of this opening, if the
/// durability asks for some, and those of a former one that was killed, whose durability may have
/// been another.
fn place_buffers(store: &mut StoreOptions, named: Option<PathBuf>) -> Result<(), Failure> {
    let directory = named.unwrap_or_else(|| Path::new(BUFFER_DIRECTORY).to_path_buf());
    if !directory.is_dir() {
        if !matches!(store.durability, Durability::Process | Durability::Periodic(_)) {
            return Ok(());
        }
        let expected = "a directory in memory for the write buffers that outlive the process";
        let found = format!("{}, which is none", directory.display());
        return Err(wrong("buffer-directory", expected, &found));
    }
    store.buffer_directory = Some(directory);
    Ok(())
}

fn number<T: FromStr<Err = std::num::ParseIntError>>(
    name: &str,
    value: &str,
) -> Result<T, Failure> {
    value.parse().map_err(|error| wrong(name, "a number", &format!("`{value}`: {error}")))
}

fn durability(name: &str, value: &str) -> Result<Durability, Failure> {
    let level: Result<Durability, entresol_tier::Error> = value.parse();
    level.map_err(|error| Failure { kind: 2, sentence: format!("option `{name}`: {error}") })
}

fn choice<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    let found = known.iter().find(|(known, _)| *known == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        wrong(name, &names.join(" or "), &format!("`{value}`"))
    })
}

fn encryption_key(name: &str, value: &str) -> Result<EncryptionKey, Failure> {
    let mut key = [0; 32];
    let digits = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits {
        // The text itself may be a secret.
        let found = format!("{} bytes of something else", value.len());
        return Err(wrong(name, "64 hexadecimal digits", &found));
    }
    for (place, byte) in key.iter_mut().enumerate() {
        let digits = value.get(2 * place..2 * place + 2).unwrap_or("00");
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    Ok(EncryptionKey(key))
}

fn wrong(name: &str, expected: &str, found: &dyn std::fmt::Display) -> Failure {
    Failure { kind: 2, sentence: format!("option `{name}`: expected {expected}, found {found}") }
}

#[cfg(test)]
mod tests {
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
