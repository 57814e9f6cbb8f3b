//! Options as people write them: a name and a value in text, sizes in bytes.

use std::fmt::Display;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use entresol_device::Selection;
use entresol_tier::{
    Admission, Compression, Durability, EncryptionKey, Error, ErrorKind, OpenMode, Reclaim,
    WriteMode,
};

use crate::buffers::BUFFER_DIRECTORY;
use crate::hosted::options::HostedOptions;

/// Bytes that go to one device of a new stripe before the next.
const STRIPE_UNIT_BYTES: u64 = 1 << 20;

impl HostedOptions {
    /// Sets the option called `name`, as `value` says.
    ///
    /// # Errors
    /// There is no such option, or its value is not valid. The sentence says what was expected and
    /// found; whoever calls says which option in the words of its own callers.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let store = &mut self.tiered.store;
        match name {
            "devices" => self.devices = value.to_owned(),
            "instance" => self.instance = number(value)?,
            "selection" => {
                let stripe = Selection::Stripe { unit_bytes: STRIPE_UNIT_BYTES };
                let known = [("search", Selection::SearchPath), ("stripe", stripe)];
                self.selection = choice(value, &known)?;
            }
            "capacity" => {
                self.capacity_bytes = Some(number(value)?);
                store.capacity_bytes = self.capacity_bytes;
            }
            "memory" => self.tiered.memory_bytes = number(value)?,
            "cache" => self.tiered.cache_bytes = Some(number(value)?),
            "journal" => store.journal_bytes = number(value)?,
            "tables-waiting" => self.tree.waiting_bytes_max = number(value)?,
            "tables-filter-bits" => self.tree.absent_filter_bits = number(value)?,
            "shards" => store.shards = number(value)?,
            "segment" => store.segment_bytes = number(value)?,
            "durability" => store.durability = value.parse()?,
            "write-mode" => {
                let known = [("through", WriteMode::Through), ("behind", WriteMode::Behind)];
                store.write_mode = choice(value, &known)?;
            }
            "reclaim" => {
                let known = [("store", Reclaim::Compact), ("cache", Reclaim::Evict)];
                store.reclaim = choice(value, &known)?;
            }
            "compression" => store.compression = compression(value)?,
            "mode" => store.mode = mode(value)?,
            "encryption-key" => store.encryption = Some(encryption_key(value)?),
            "write-budget" => {
                self.tiered.admission = match number(value)? {
                    0 => Admission::Always,
                    budget => Admission::WriteBudget(budget),
                };
            }
            _ => return Err(wrong("the name of an option", &"an unknown one")),
        }
        Ok(())
    }

    /// Says where the write buffers are that outlive the process: those of this opening, if the
    /// durability asks for some, and those of a former one that was killed, whose durability may
    /// have been another. Called when all else is set.
    ///
    /// # Errors
    /// The durability asks for them, and the directory is not there.
    pub fn place_buffers(&mut self, named: Option<PathBuf>) -> Result<(), Error> {
        let store = &mut self.tiered.store;
        let directory = named.unwrap_or_else(|| Path::new(BUFFER_DIRECTORY).to_path_buf());
        if !directory.is_dir() {
            if !matches!(store.durability, Durability::Process | Durability::Periodic(_)) {
                return Ok(());
            }
            let expected = "a directory in memory for the write buffers that outlive the process";
            return Err(wrong(expected, &format!("{}, which is none", directory.display())));
        }
        store.buffer_directory = Some(directory);
        Ok(())
    }
}

fn compression(value: &str) -> Result<Compression, Error> {
    let known =
        [("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
    choice(value, &known)
}

fn mode(value: &str) -> Result<OpenMode, Error> {
    let known = [
        ("open", OpenMode::OpenOrCreate),
        ("overwrite", OpenMode::OpenOrOverwrite),
        ("reformat", OpenMode::Reformat),
        ("read-only", OpenMode::ReadOnly),
    ];
    choice(value, &known)
}

fn number<T: FromStr<Err = ParseIntError>>(value: &str) -> Result<T, Error> {
    value.parse().map_err(|error| wrong("a number", &format!("`{value}`: {error}")))
}

fn choice<T: Copy>(value: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(known, _)| *known == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        wrong(&names.join(" or "), &format!("`{value}`"))
    })
}

fn encryption_key(value: &str) -> Result<EncryptionKey, Error> {
    let mut key = [0; 32];
    let digits = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits {
        // The text itself may be a secret.
        let found = format!("{} bytes of something else", value.len());
        return Err(wrong("64 hexadecimal digits", &found));
    }
    for (place, byte) in key.iter_mut().enumerate() {
        let digits = value.get(2 * place..2 * place + 2).unwrap_or("00");
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    Ok(EncryptionKey(key))
}

fn wrong(expected: &str, found: &dyn Display) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("expected {expected}, found {found}"))
}
