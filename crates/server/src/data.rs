//! Opening the store that a configuration names.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use entresol_device::{
    Device, DeviceList, FileDevice, FileOptions, Force, Growth, IoEngine, MadeFiles, Progress,
    Selection, boot_identity, machine_memory_bytes, on_all_processors, uring_refusal,
};
use entresol_tier::{
    Admission, Compression, Durability, EncryptionKey, Error, OpenMode, Reclaim, SCRATCH_BYTES,
    StoreOptions, Tiered, TieredOptions, Timestamp, WriteMode,
};
use tracing::{info, warn};

use crate::config::{Config, ConfigError};
use crate::error::ServeError;
use crate::shared::random_seed;
use crate::stale_buffers::{leftover_buffers, said_of};

/// The file in a data directory that is the device.
const DEVICE_FILE: &str = "entresol.data";
/// Most that a new file takes where nobody says how much, bytes.
const DEFAULT_CAPACITY_MAX: u64 = 8 << 30;
/// Bytes that go to one device of a new stripe before the next.
const STRIPE_UNIT_BYTES: u64 = 1 << 20;
/// Sizes of new files are multiples of this, bytes.
const CAPACITY_UNIT: u64 = 8 << 20;
/// A cap from which on values of the largest size pass.
const LARGEST_VALUE_MEMORY: u64 = 512 << 20;
/// Buffers that one of 64 MiB takes, which grow by an eighth.
const LARGEST_VALUE_BUFFERS: u64 = 80 << 20;

/// Part of the memory cap that clients' buffers may take: an eighth, 4 MiB to 512 MiB; from the
/// default cap on enough for a value of the largest size.
pub(crate) fn client_memory_bytes(memory: u64) -> u64 {
    let least = if memory < LARGEST_VALUE_MEMORY { 4 << 20 } else { LARGEST_VALUE_BUFFERS };
    (memory / 8).clamp(least, 512 << 20)
}

/// Part of the memory cap for code, stacks and queues, beside what the tier sets apart: what a
/// server that has only started takes.
const PROCESS_MEMORY: u64 = 8 << 20;

/// What a memory cap leaves for index, buffers and cache.
fn data_memory_bytes(memory: u64) -> u64 {
    memory.saturating_sub(client_memory_bytes(memory) + PROCESS_MEMORY)
}

/// Refuses a memory cap that the store does not fit into, and names one that it does.
fn demand_room(config: &Config, options: &TieredOptions) -> Result<(), ConfigError> {
    let (memory, least) = (config.memory_bytes(), options.least_memory_bytes());
    if data_memory_bytes(memory) >= least {
        return Ok(());
    }
    let enough = (memory >> 20..).find(|mib| data_memory_bytes(mib << 20) >= least);
    let detail = format!(
        "{memory} bytes; at least {}MiB needed for {} shards, whose write buffers take most of it; \
         raise it, or make the store with fewer `shards`",
        enough.unwrap_or_default(),
        options.store.shards
    );
    Err(wrong("memory", &detail))
}

/// Opens the store that `config` names, or makes it.
///
/// # Errors
/// No store is named, its device cannot be used, or what is on it cannot be opened.
pub(crate) fn open(config: &Config, now: Timestamp) -> Result<Arc<Tiered>, ServeError> {
    demand_buffers(config)?;
    demand_memory(config, machine_memory_bytes())?;
    demand_no_vain_budget(config)?;
    let mut options = tiered_options(config, config.read_encryption_key()?);
    let files = MadeFiles::default();
    if !config.has_device() {
        demand_room(config, &options)?;
    }
    let device = config.open_device(&files)?;
    options.fit(&*device);
    demand_room(config, &options).inspect_err(|_| files.remove())?;
    let shards = options.store.shards;
    let opened = Tiered::open(device, options, now)
        .inspect_err(|_| files.remove())
        .map_err(|error| whole_memory(config, error))?;
    config.refused_io().iter().for_each(|said| warn!("{said}"));
    config.vain_shards(shards).iter().for_each(|said| warn!("{said}"));
    opened.store().superblock_damage().iter().for_each(|damage| warn!("{damage}"));
    opened.store().former_buffers().notice().iter().for_each(|notice| warn!("{notice}"));
    if let Some(directory) = config.buffer_directory() {
        let said = said_of(&leftover_buffers(&directory), &directory);
        said.iter().for_each(|said| info!("{said}"));
    }
    Ok(opened)
}

/// What the tier says of a cap that is too small for the index, as it is told of all memory.
fn whole_memory(config: &Config, error: Error) -> ServeError {
    let Some(needed) = error.needed_bytes() else { return error.into() };
    let memory = config.memory_bytes();
    let enough = (memory >> 20..).find(|mib| data_memory_bytes(mib << 20) >= needed);
    let detail = format!(
        "{memory} bytes; at least {}MiB needed for the index of the entries that the store holds; \
         raise it",
        enough.unwrap_or_default()
    );
    wrong("memory", &detail).into()
}

/// How `config` has the store opened, or made.
fn tiered_options(config: &Config, encryption: Option<EncryptionKey>) -> TieredOptions {
    let store = StoreOptions {
        capacity_bytes: config.capacity(),
        mode: match config.forces() {
            true => OpenMode::OpenOrOverwrite,
            false => OpenMode::OpenOrCreate,
        },
        shards: config.shards(),
        segment_bytes: config.segment_bytes(),
        durability: config.durability(),
        write_mode: match config.choice("write-mode") {
            "behind" => WriteMode::Behind,
            _ => WriteMode::Through,
        },
        reclaim: match config.choice("reclaim") {
            "cache" => Reclaim::Evict,
            _ => Reclaim::Compact,
        },
        compression: match config.choice("compression") {
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::None,
        },
        encryption,
        buffer_directory: config.buffer_directory(),
        boot: boot_identity(),
        parallel: on_all_processors,
        // There are no clients yet.
        scratch_bytes_max: SCRATCH_BYTES + client_memory_bytes(config.memory_bytes()) / 2,
        // Whoever could tell the hashes could choose keys that lie together.
        seed: random_seed(),
        ..StoreOptions::default()
    };
    let admission = match config.write_budget() {
        0 => Admission::Always,
        budget => Admission::WriteBudget(budget),
    };
    let memory_bytes = data_memory_bytes(config.memory_bytes());
    TieredOptions { store, memory_bytes, cache_bytes: None, admission }
}

/// What a configuration names on the medium.
impl Config {
    /// Opens the device that `dir` or `devices` names. A file that is not there is made, and noted.
    ///
    /// # Errors
    /// Nothing is named, or the device cannot be used.
    pub fn open_device(&self, made: &MadeFiles) -> Result<Arc<dyn Device>, ServeError> {
        self.device(Some(made))
    }

    /// As [`Config::open_device`], of one that is there: nothing is written.
    ///
    /// # Errors
    /// Nothing is named, or the device cannot be used.
    pub fn open_device_that_is_there(&self) -> Result<Arc<dyn Device>, ServeError> {
        self.device(None)
    }

    fn device(&self, makes: Option<&MadeFiles>) -> Result<Arc<dyn Device>, ServeError> {
        match (self.dir(), self.devices()) {
            (Some(dir), "") => open_directory(self, &dir, makes),
            (None, list) if !list.is_empty() => open_list(self, list, makes),
            (Some(_), _) => Err(wrong("devices", "either `dir` or `devices`, not both").into()),
            (None, _) => {
                let detail = "nothing names the data; give `dir`, for example `--dir ./data`";
                Err(wrong("dir", detail).into())
            }
        }
    }

    /// What is to be said of a system that forbids the way in which devices are to be used.
    fn refused_io(&self) -> Option<String> {
        let refusal = uring_refusal().filter(|_| self.choice("io") != "blocking")?;
        Some(format!(
            "io_uring: {refusal}; devices are read and written by blocking calls instead, which \
             takes more time and processor. A container's filter of system calls forbids it, or \
             the sysctl kernel.io_uring_disabled; `io` = `blocking` says that this is meant"
        ))
    }

    /// Whether something is at one of the paths that are named.
    fn has_device(&self) -> bool {
        let list = DeviceList::parse(self.devices(), self.instance());
        let own = self.dir().map(|dir| dir.join(DEVICE_FILE));
        list.iter().flat_map(DeviceList::paths).chain(own.as_deref()).any(Path::exists)
    }

    /// Reads the file that `encryption-key` names; `None` if it names none.
    ///
    /// # Errors
    /// The file cannot be read or holds no key.
    pub fn read_encryption_key(&self) -> Result<Option<EncryptionKey>, ConfigError> {
        self.encryption_key().map(|path| read_key(&path)).transpose()
    }
}

/// `makes` notes what is made; none: nothing is.
fn file_options(config: &Config, makes: Option<&MadeFiles>) -> FileOptions {
    FileOptions {
        makes: makes.is_some(),
        made: makes.cloned(),
        capacity_bytes: config.capacity(),
        growth: Growth::ToCapacity,
        force: if config.forces() { Force::Yes } else { Force::No },
        io: match config.choice("io") {
            "uring" => IoEngine::Uring,
            "inline" => IoEngine::Inline,
            "blocking" => IoEngine::Blocking,
            _ => IoEngine::Auto,
        },
        ..FileOptions::default()
    }
}

fn open_directory(
    config: &Config,
    dir: &Path,
    makes: Option<&MadeFiles>,
) -> Result<Arc<dyn Device>, ServeError> {
    let shown = dir.display();
    if dir.exists() && !dir.is_dir() {
        let detail = format!(
            "expected a directory, found that {shown} is none; a file or a block \
                              device is named by `devices`"
        );
        return Err(wrong("dir", &detail).into());
    }
    let made = if makes.is_some() { fs::create_dir_all(dir) } else { Ok(()) };
    made.map_err(|error| {
        let detail = format!(
            "{shown} cannot be made: {error}; name a directory that this user may \
                              write"
        );
        wrong("dir", &detail)
    })?;
    let path = dir.join(DEVICE_FILE);
    let mut options = file_options(config, makes);
    if makes.is_some() && !path.exists() && options.capacity_bytes.is_none() {
        options.capacity_bytes = Some(default_capacity(dir)?);
    }
    Ok(Arc::new(FileDevice::open_with_progress(&path, &options, &mut progress())?))
}

/// Opens a list of devices: the first that exists, or a stripe over all.
fn open_list(
    config: &Config,
    list: &str,
    makes: Option<&MadeFiles>,
) -> Result<Arc<dyn Device>, ServeError> {
    let selection = match config.choice("selection") {
        "stripe" => Selection::Stripe { unit_bytes: STRIPE_UNIT_BYTES },
        _ => Selection::SearchPath,
    };
    let list = DeviceList::parse(list, config.instance())?;
    Ok(list.open(selection, &file_options(config, makes), &mut progress())?)
}

/// Refuses a directory of write buffers that is not there, where they are needed.
fn demand_buffers(config: &Config) -> Result<(), ConfigError> {
    let needed = matches!(config.durability(), Durability::Process | Durability::Periodic(_));
    let path = config.buffer_directory();
    if !needed || path.as_ref().is_some_and(|path| path.is_dir()) {
        return Ok(());
    }
    // Without one, what was acknowledged would be lost with the process.
    let found = path.map_or("nothing".to_owned(), |path| format!("none at {}", path.display()));
    let detail = format!(
        "expected a directory in memory for the write buffers that outlive the process, found \
         {found}; name one, or choose the durability `flushed` or `synced`"
    );
    Err(wrong("buffer-directory", &detail))
}

/// Refuses a cap that a process which may use `total` bytes could not keep; where the system does
/// not tell, whoever gave the cap knows better.
fn demand_memory(config: &Config, total: Option<u64>) -> Result<(), ConfigError> {
    let Some(total) = total.filter(|total| config.memory_bytes() > *total) else {
        return Ok(());
    };
    let (wanted, total) = (config.choice("memory"), total >> 20);
    let detail = format!(
        "expected no more than this machine has, or its control group leaves it, {total}MiB, found \
         `{wanted}`"
    );
    Err(wrong("memory", &detail))
}

/// Refuses a write budget of a store, which could keep it only by refusing writes.
fn demand_no_vain_budget(config: &Config) -> Result<(), ConfigError> {
    if config.write_budget() == 0 || config.choice("reclaim") == "cache" {
        return Ok(());
    }
    let detail = format!(
        "expected 0 with `reclaim` = `store`, found `{}`; a store takes every entry and can keep \
         no budget: choose `reclaim` = `cache`, which may leave entries out, or leave \
         `write-budget` at 0",
        config.choice("write-budget")
    );
    Err(wrong("write-budget", &detail))
}

/// Half of the free space around `dir`, at most 8 GiB.
fn default_capacity(dir: &Path) -> Result<u64, ConfigError> {
    let free = entresol_device::free_bytes(dir)
        .ok_or_else(|| wrong("capacity", "the free space cannot be told; give `capacity`"))?;
    let capacity = (free / 2).min(DEFAULT_CAPACITY_MAX) / CAPACITY_UNIT * CAPACITY_UNIT;
    if capacity == 0 {
        let detail = format!("there is no room in {}: {free} bytes are free", dir.display());
        return Err(wrong("capacity", &detail));
    }
    Ok(capacity)
}

/// Tells people how large a file is that is made, and how far that is: at its beginning, and ten
/// times more.
fn progress() -> impl FnMut(Progress) {
    let mut shown = None;
    move |Progress { done_bytes, total_bytes }: Progress| {
        let tenths = done_bytes * 10 / total_bytes.max(1);
        if shown.is_none_or(|shown| tenths > shown) {
            shown = Some(tenths);
            let mib = total_bytes >> 20;
            info!("making the data file: {} % of {mib} MiB", tenths * 10);
        }
    }
}

/// Reads an encryption key: 32 bytes, or 64 hexadecimal digits.
fn read_key(path: &PathBuf) -> Result<EncryptionKey, ConfigError> {
    let shown = path.display();
    let bytes = fs::read(path)
        .map_err(|error| wrong("encryption-key", &format!("{shown} cannot be read: {error}")))?;
    EncryptionKey::parse(&bytes).map_err(|error| {
        let detail = format!("{shown}: {error}");
        wrong("encryption-key", &detail)
    })
}

fn wrong(key: &str, detail: &str) -> ConfigError {
    ConfigError::new("configuration", key, detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(dir: &Path, shards: &str, memory: &str) -> Config {
        let mut config = Config::on_machine_with(Some(8 << 30));
        let dir = dir.display().to_string();
        for (key, value) in [
            ("dir", dir.as_str()),
            ("capacity", "160MiB"),
            ("durability", "memory"),
            ("shards", shards),
            ("memory", memory),
        ] {
            config.set(key, value).unwrap();
        }
        config
    }

    /// The cap was held against the shards that were asked for, which a store that is there does
    /// not have; and what was said to be enough was not.
    #[test]
    fn a_cap_is_held_against_the_shards_of_the_store_that_is_there() {
        let dir = std::env::temp_dir().join(format!("entresol-shards-{}", std::process::id()));
        let open_with =
            |shards, memory: &str| open(&configured(&dir, shards, memory), Timestamp(1_000));
        let refused = open_with("8", "40MiB").unwrap_err().to_string();
        let enough = refused.split("at least ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(!dir.join(DEVICE_FILE).exists(), "{refused}");
        open_with("8", enough).unwrap().close(Timestamp(1_000)).unwrap();
        let refused = open_with("2", "40MiB").unwrap_err().to_string();
        assert!(refused.contains(&format!("at least {enough} needed for 8 shards")), "{refused}");
        assert!(dir.join(DEVICE_FILE).exists());
        fs::remove_dir_all(&dir).unwrap();
        open_with("2", "40MiB").unwrap().close(Timestamp(1_000)).unwrap();
        open_with("8", "40MiB").unwrap().close(Timestamp(1_000)).unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }

    /// It was refused, with the advice to ask for less.
    #[test]
    fn a_store_on_a_stripe_grows_to_a_larger_capacity() {
        let dir = std::env::temp_dir().join(format!("entresol-grows-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let devices = ["a", "b"].map(|name| dir.join(name).display().to_string()).join(",");
        let opened_with = |capacity| {
            let mut config = Config::on_machine_with(Some(8 << 30));
            for (key, value) in [
                ("devices", &*devices),
                ("selection", "stripe"),
                ("capacity", capacity),
                ("durability", "memory"),
                ("shards", "2"),
                ("memory", "40MiB"),
            ] {
                config.set(key, value).unwrap();
            }
            let store = open(&config, Timestamp(1_000)).unwrap();
            let bytes = store.store().statistics().capacity_bytes;
            store.close(Timestamp(1_000)).unwrap();
            bytes
        };
        let first = opened_with("64MiB");
        let second = opened_with("128MiB");
        assert!(second >= first + (60 << 20), "{second} bytes after {first}");
        assert_eq!(opened_with("0"), second);
        assert_eq!(opened_with("128MiB"), second);
        fs::remove_dir_all(&dir).unwrap();
    }

    /// A machine with less memory than the default could not serve without being told how much.
    #[test]
    fn a_cap_of_more_than_the_machine_has_is_refused_where_somebody_gave_it() {
        const SMALL: u64 = 300 << 20;
        let mut config = Config::on_machine_with(Some(SMALL));
        assert_eq!(config.memory_bytes(), SMALL / 4 * 3);
        demand_memory(&config, Some(SMALL)).unwrap();
        config.set("memory", "301MiB").unwrap();
        let refused = demand_memory(&config, Some(SMALL)).unwrap_err().to_string();
        assert!(refused.contains("300MiB, found `301MiB`"), "{refused}");
        for plenty in [Some(u64::MAX), None] {
            assert_eq!(Config::on_machine_with(plenty).memory_bytes(), 512 << 20);
            demand_memory(&config, plenty).unwrap();
        }
    }

    /// A store wrote all that it was given, and nobody said that the budget was not kept.
    #[test]
    fn a_write_budget_of_a_store_is_refused_before_a_file_is_made() {
        let dir = std::env::temp_dir().join(format!("entresol-budget-{}", std::process::id()));
        let mut config = Config::default();
        for (key, value) in [("dir", dir.to_str().unwrap()), ("buffer-directory", "/tmp")] {
            config.set(key, value).unwrap();
        }
        config.set("write-budget", "20MB").unwrap();
        let refused = open(&config, Timestamp(0)).unwrap_err().to_string();
        assert!(refused.contains("key `write-budget`"), "{refused}");
        assert!(refused.contains("`reclaim` = `store`, found `20MB`"), "{refused}");
        assert!(!dir.exists());
        config.set("reclaim", "cache").unwrap();
        demand_no_vain_budget(&config).unwrap();
        config.set("reclaim", "store").unwrap();
        config.set("write-budget", "0").unwrap();
        demand_no_vain_budget(&config).unwrap();
    }
}
