//! How a store is opened: every choice that two people could want differently, with its limits.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::types::Durability;

/// Limits of the bytes of a segment.
pub(crate) const SEGMENT_BYTES_MIN: u32 = 64 << 10;
pub(crate) const SEGMENT_BYTES_MAX: u32 = 8 << 20;

/// What happens to live records of a segment that must be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaim {
    /// Copied forward: a store loses no entry; when full it refuses writes.
    Compact,
    /// Let go, except pinned and recently read ones: a cache, which may lose any entry.
    Evict,
}

/// How values are compressed before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// LZ4 block format: fast, modest.
    Lz4,
    /// Zstandard level 1: slower, smaller.
    Zstd,
}

/// A 256-bit key for encryption at rest (AES-256-GCM per record).
#[derive(Clone)]
pub struct EncryptionKey(pub [u8; 32]);

impl EncryptionKey {
    /// The key in the contents of a file: 32 bytes, or 64 hexadecimal digits.
    pub fn parse(bytes: &[u8]) -> Result<EncryptionKey> {
        if let Ok(key) = <[u8; 32]>::try_from(bytes) {
            return Ok(EncryptionKey(key));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let detail = format!(
                "expected 32 bytes or 64 hexadecimal digits, found {} bytes of something else; \
                 `head -c 32 /dev/urandom > FILE` makes a key",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let mut key = [0; 32];
        for (place, byte) in key.iter_mut().enumerate() {
            let digits = text.get(2 * place..2 * place + 2).unwrap_or("00");
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        Ok(EncryptionKey(key))
    }
}

impl std::fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

/// What to do with what the device holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Open the store that is there; make one where there is none, nor remains of one.
    OpenOrCreate,
    /// Open the store that is there; where there is none, make one over whatever is there: remains
    /// of a store whose root is lost or damaged, too.
    OpenOrOverwrite,
    /// Make a new store over whatever is there.
    Reformat,
    /// Open the store that is there, for reading only: nothing is written.
    ReadOnly,
}

/// Options of a store or cache. `StoreOptions::default()` suits tests and small stores.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Bytes of the device to use, from its beginning, at most what there is. A store that is there
    /// grows to so many; none shrinks. `None`: a new store takes all of the device, another keeps
    /// what it has.
    pub capacity_bytes: Option<u64>,
    /// What to do with what the device holds.
    pub mode: OpenMode,
    /// Shards, 1 to 64: a lock, an index and a log each. Fixed when the store is made.
    pub shards: u16,
    /// Bytes of a segment, the unit of writing and reclaim: a power of two, 64 KiB to 8 MiB. Fixed
    /// when the store is made.
    pub segment_bytes: u32,
    /// What an acknowledged write survives, unless the operation says otherwise.
    pub durability: Durability,
    /// Whether callers wait for `durability` or are answered at once.
    pub write_mode: WriteMode,
    /// What happens to live records when a segment is freed.
    pub reclaim: Reclaim,
    /// Compression of values written from now on.
    pub compression: Compression,
    /// Encryption at rest; fixed when the store is made.
    pub encryption: Option<EncryptionKey>,
    /// Directory of the write buffers that outlive the process; used by `Durability::Process` and
    /// `Periodic`. Normally `/dev/shm`. `None`: buffers are lost with the process.
    pub buffer_directory: Option<PathBuf>,
    /// Write buffers of each shard, at least 6. More keep more recent records readable in memory.
    pub buffers_per_shard: u16,
    /// Most bytes the index may use; past it new keys are refused with `Full`, and a store that
    /// holds more is not opened.
    pub index_bytes_max: u64,
    /// Most bytes that a recovery may use at once beside what the index leaves of its share; some
    /// 2 MiB a shard it takes in any case.
    pub scratch_bytes_max: u64,
    /// Live share of the capacity, percent, from which writers of a store are slowed: each put that
    /// needs a segment reclaims one first.
    pub slow_mark_percent: u8,
    /// Live share of the capacity, percent, from which writers of a store are refused.
    pub full_mark_percent: u8,
    /// Identifies the boot of the machine; 0: unknown. Recovery trusts completed writes if the
    /// machine did not reboot since, and checks every record not proven durable if it did.
    pub boot: u128,
    /// Bytes of the device kept for the journal, over all its lanes; 0: there is none. Each lane
    /// has two segments at least, which entries do without. A cache has no journal.
    pub journal_bytes: u64,
    /// How the jobs of an open, one for each shard, are run.
    pub parallel: Parallel,
    /// Mixed into the hash seed of a store that is made.
    pub seed: u64,
    /// Leading bits of a key's hash that the index gets to see; all 64, but for tests of
    /// collisions.
    #[doc(hidden)]
    pub index_hash_bits: u32,
}

/// A piece of work that may run on any thread.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs every job, in any order and on any threads, and returns when all have ended. The engine
/// starts no threads: whoever has some lends them so.
pub type Parallel = for<'a> fn(Vec<Job<'a>>);

/// Runs the jobs on the calling thread.
pub fn one_after_another(jobs: Vec<Job<'_>>) {
    jobs.into_iter().for_each(|job| job());
}

/// When the caller of a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMode {
    /// Once the durability asked for is reached.
    #[default]
    Through,
    /// At once; the durability asked for is reached soon after.
    Behind,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            capacity_bytes: None,
            mode: OpenMode::OpenOrCreate,
            shards: 2,
            segment_bytes: 1 << 20,
            durability: Durability::Process,
            write_mode: WriteMode::Through,
            reclaim: Reclaim::Compact,
            compression: Compression::None,
            encryption: None,
            buffer_directory: None,
            buffers_per_shard: 8,
            index_bytes_max: u64::MAX,
            scratch_bytes_max: u64::MAX,
            slow_mark_percent: 90,
            full_mark_percent: 95,
            boot: 0,
            journal_bytes: 0,
            parallel: one_after_another,
            seed: 0,
            index_hash_bits: 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_or_64_hexadecimal_digits_and_nothing_else() {
        let key = [0x5e; 32];
        assert_eq!(EncryptionKey::parse(&key).unwrap().0, key);
        let digits = "5E".repeat(32);
        for text in [digits.clone(), format!(" {digits}\n")] {
            assert_eq!(EncryptionKey::parse(text.as_bytes()).unwrap().0, key);
        }
        for wrong in [&b""[..], &digits.as_bytes()[1..], "5g".repeat(32).as_bytes(), &[7; 33]] {
            let refused = EncryptionKey::parse(wrong).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            assert!(refused.to_string().contains(&format!("{} bytes", wrong.len())), "{refused}");
        }
    }
}
