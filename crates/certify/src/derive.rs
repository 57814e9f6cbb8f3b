//! From the configured load to the issued load: rates of small and large transfers.
//!
//! The formulas are ACT 6's, except that `commit-to-device` is as in 6.3 and that the options of
//! the sizing paper, which no ACT has, follow its published figures. ACT calculates with unsigned
//! 32-bit integers that wrap around. [`Storage::derive_compat`] does so too; [`Storage::derive`]
//! refuses rates that do not fit.

mod explain;
mod paper;

use std::fmt;

use crate::config::{EngineKind, Index, Storage};

pub use explain::Step;

/// What a storage configuration amounts to. Rates are per second, all devices together.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageRates {
    /// Bytes of the smallest record written, rounded up to 16.
    pub stored_bytes_min: u32,
    /// Bytes of the largest record written, rounded up to 16.
    pub stored_bytes_max: u32,
    /// Mean of the records written, bytes.
    pub stored_bytes_mean: f64,
    /// Mean of the records read, bytes.
    pub read_bytes_mean: f64,
    /// Records that fit into a large block.
    pub records_per_block: u32,
    /// Large blocks written for one block's worth of new records.
    pub amplification: f64,
    /// Record reads, those of updates included.
    pub internal_reads: u32,
    /// Record writes; 0 without `commit-to-device`.
    pub internal_writes: u32,
    /// Records that callers write, those of replicas included; what fills large blocks.
    pub record_writes: f64,
    /// Reads of large blocks.
    pub large_reads: f64,
    /// Writes of large blocks.
    pub large_writes: f64,
    /// How the rates come about.
    pub steps: Vec<Step>,
}

/// What an index configuration amounts to. Rates are per second, all devices together.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRates {
    /// Reads of 4 KiB by the service threads.
    pub service_reads: u32,
    /// Reads, and as many writes, of 4 KiB by the cache threads.
    pub cache_reads_and_writes: u64,
    /// How the rates come about.
    pub steps: Vec<Step>,
}

/// Why there are no rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeriveError {
    /// Neither reads nor writes are asked for.
    NoRequests,
    /// Less than one request a second for each thread.
    LoadTooSmall,
    /// A rate that ACT would wrap around.
    TooLarge(&'static str),
    /// A large block does not hold one record.
    RecordExceedsBlock,
    /// The options of the paper contradict each other; how, in words.
    Paper(String),
}

/// What happens beyond 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Wrapping,
    Checked,
}

impl DeriveError {
    /// What ACT says; `None`: it goes on.
    pub fn compat_text(&self) -> Option<&'static str> {
        match self {
            DeriveError::NoRequests => {
                Some("read-reqs-per-sec and write-reqs-per-sec can't both be zero")
            }
            DeriveError::LoadTooSmall => Some("load config too small"),
            _ => None,
        }
    }
}

impl Storage {
    /// The rates, or why there are none.
    ///
    /// # Errors
    /// See [`DeriveError`].
    pub fn derive(&self) -> Result<StorageRates, DeriveError> {
        let rates = if self.sizes_from_histograms() {
            paper::derive(self)?
        } else {
            self.plain(Arithmetic::Checked)?
        };
        let threads = match self.test.engine {
            EngineKind::Psync => self.service_threads,
            EngineKind::Uring => 0,
        };
        refuse_small(rates.internal_reads, rates.internal_writes, threads)?;
        if rates.large_writes.is_finite() && rates.large_reads.is_finite() {
            Ok(rates)
        } else {
            Err(DeriveError::RecordExceedsBlock)
        }
    }

    /// The rates as ACT 6 works them out, infinite and undefined ones included.
    ///
    /// # Errors
    /// [`DeriveError::NoRequests`] or [`DeriveError::LoadTooSmall`].
    pub fn derive_compat(&self) -> Result<StorageRates, DeriveError> {
        let rates = self.plain(Arithmetic::Wrapping)?;
        refuse_small(rates.internal_reads, rates.internal_writes, self.service_threads)?;
        Ok(rates)
    }

    fn plain(&self, arithmetic: Arithmetic) -> Result<StorageRates, DeriveError> {
        let none = arithmetic.come_to_nothing(self.read_reqs_per_sec, self.write_reqs_per_sec);
        if none && self.large_block_ops_per_sec == 0 {
            return Err(DeriveError::NoRequests);
        }
        let update_reads = arithmetic.times(self.write_reqs_per_sec, self.update_pct) / 100;
        let internal_reads =
            arithmetic.plus(self.read_reqs_per_sec, update_reads as u32, "record reads")?;
        let writes = arithmetic.writes(self.replication_factor, self.write_reqs_per_sec)?;
        let stored_bytes_min = round_up_16(self.record_bytes);
        let stored_bytes_max = match self.record_bytes_range_max {
            0 => stored_bytes_min,
            most => round_up_16(most),
        };
        let mean = (stored_bytes_min + stored_bytes_max) / 2;
        let block = self.large_block_bytes();
        let records_per_block = block.checked_div(mean).unwrap_or(0);
        let base = f64::from(writes) / f64::from(records_per_block);
        let amplification = 100.0 / f64::from(100 - self.defrag_lwm_pct);
        let mut large_reads = base * amplification;
        let mut large_writes = large_reads;
        if self.commit_to_device {
            large_writes = base * (amplification - 1.0);
        }
        if self.large_block_ops_per_sec != 0 {
            large_reads = f64::from(self.large_block_ops_per_sec);
            large_writes = large_reads;
        }
        let asked = large_reads;
        large_reads *= paper::read_factor(self)?;
        large_writes *= f64::from(self.paper.lbw_req_offset) / 100.0;
        if self.no_defrag_reads {
            large_reads = 0.0;
        }
        let mut rates = StorageRates {
            stored_bytes_min,
            stored_bytes_max,
            stored_bytes_mean: f64::from(mean),
            read_bytes_mean: f64::from(mean),
            records_per_block,
            amplification,
            internal_reads,
            internal_writes: if self.commit_to_device { writes } else { 0 },
            record_writes: f64::from(writes),
            large_reads,
            large_writes,
            steps: Vec::new(),
        };
        rates.steps = explain::storage(self, &rates, writes, asked);
        Ok(rates)
    }
}

impl Index {
    /// The rates, or why there are none.
    ///
    /// # Errors
    /// See [`DeriveError`].
    pub fn derive(&self) -> Result<IndexRates, DeriveError> {
        let threads = match self.test.engine {
            EngineKind::Psync => self.service_threads,
            EngineKind::Uring => 0,
        };
        self.rates(Arithmetic::Checked, threads)
    }

    /// The rates as ACT 6 works them out.
    ///
    /// # Errors
    /// [`DeriveError::NoRequests`] or [`DeriveError::LoadTooSmall`].
    pub fn derive_compat(&self) -> Result<IndexRates, DeriveError> {
        self.rates(Arithmetic::Wrapping, self.service_threads)
    }

    fn rates(&self, arithmetic: Arithmetic, threads: u32) -> Result<IndexRates, DeriveError> {
        if arithmetic.come_to_nothing(self.read_reqs_per_sec, self.write_reqs_per_sec) {
            return Err(DeriveError::NoRequests);
        }
        let writes = arithmetic.writes(self.replication_factor, self.write_reqs_per_sec)?;
        let service_reads = arithmetic.plus(self.read_reqs_per_sec, writes, "service reads")?;
        if threads != 0 && service_reads / threads == 0 {
            return Err(DeriveError::LoadTooSmall);
        }
        let amplification = 100.0 / f64::from(100 - self.defrag_lwm_pct);
        let cache_reads_and_writes = (f64::from(writes) * amplification) as u64;
        let steps = explain::index(self, writes, service_reads, cache_reads_and_writes);
        Ok(IndexRates { service_reads, cache_reads_and_writes, steps })
    }
}

impl StorageRates {
    /// The rates of `factor` times the load. What is issued at all stays so at the smallest factor.
    pub fn times(&self, factor: f64) -> StorageRates {
        StorageRates {
            internal_reads: scaled(self.internal_reads, factor),
            internal_writes: scaled(self.internal_writes, factor),
            record_writes: self.record_writes * factor,
            large_reads: self.large_reads * factor,
            large_writes: self.large_writes * factor,
            ..self.clone()
        }
    }
}

impl IndexRates {
    /// The rates of `factor` times the load. What is issued at all stays so at the smallest factor.
    pub fn times(&self, factor: f64) -> IndexRates {
        let pages = self.cache_reads_and_writes;
        let least = u64::from(pages > 0);
        IndexRates {
            service_reads: scaled(self.service_reads, factor),
            cache_reads_and_writes: ((pages as f64 * factor).round() as u64).max(least),
            ..self.clone()
        }
    }
}

fn scaled(rate: u32, factor: f64) -> u32 {
    ((f64::from(rate) * factor).round() as u32).max(u32::from(rate > 0))
}

impl Arithmetic {
    fn times(self, a: u32, b: u32) -> u64 {
        let exact = u64::from(a) * u64::from(b);
        match self {
            Arithmetic::Wrapping => exact & u64::from(u32::MAX),
            Arithmetic::Checked => exact,
        }
    }

    fn plus(self, a: u32, b: u32, what: &'static str) -> Result<u32, DeriveError> {
        match self {
            Arithmetic::Wrapping => Ok(a.wrapping_add(b)),
            Arithmetic::Checked => a.checked_add(b).ok_or(DeriveError::TooLarge(what)),
        }
    }

    /// Whether there are no requests, which ACT asks of their sum.
    fn come_to_nothing(self, reads: u32, writes: u32) -> bool {
        match self {
            Arithmetic::Wrapping => reads.wrapping_add(writes) == 0,
            Arithmetic::Checked => reads == 0 && writes == 0,
        }
    }

    /// Writes with those of the replicas.
    fn writes(self, factor: u32, writes: u32) -> Result<u32, DeriveError> {
        let error = DeriveError::TooLarge("writes with replicas");
        u32::try_from(self.times(factor, writes)).map_err(|_| error)
    }
}

impl fmt::Display for DeriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeriveError::NoRequests => f.write_str(
                "read-reqs-per-sec and write-reqs-per-sec can't both be zero; set one of them",
            ),
            DeriveError::LoadTooSmall => f.write_str(
                "there is less than one request a second for each of the service-threads; ask for \
                 more requests, or for fewer threads",
            ),
            DeriveError::TooLarge(what) => write!(
                f,
                "the rate of {what} exceeds 4294967295 a second; lower the requests, the \
                 replication factor or the share of updates"
            ),
            DeriveError::RecordExceedsBlock => f.write_str(
                "a large block does not hold one record of mean size, so no rate of large blocks \
                 follows; raise large-block-op-kbytes or lower the record's size",
            ),
            DeriveError::Paper(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for DeriveError {}

fn refuse_small(reads: u32, writes: u32, threads: u32) -> Result<(), DeriveError> {
    let requests = reads.wrapping_add(writes);
    if requests != 0 && threads != 0 && requests / threads == 0 {
        return Err(DeriveError::LoadTooSmall);
    }
    Ok(())
}

fn round_up_16(bytes: u32) -> u32 {
    bytes.next_multiple_of(16)
}
