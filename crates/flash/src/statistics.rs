//! What the engine counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::types::SpaceId;

/// Counters of one shard, monotonic since the store was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShardCounters {
    pub gets_memory: u64,
    pub gets_flash: u64,
    pub gets_missed: u64,
    pub puts: u64,
    pub removes: u64,
    pub touches: u64,
    pub overwrites: u64,
    pub collisions_get: u64,
    pub collisions_put: u64,
    pub expired: u64,
    pub evicted: u64,
    pub user_bytes: u64,
    pub moved_bytes: u64,
    pub segments_reclaimed: u64,
    pub reclaims_by_writers: u64,
    pub steps_by_writers: u64,
    pub notes_settled: u64,
    pub key_sizes: Sizes,
    pub value_sizes: Sizes,
}

impl ShardCounters {
    pub(crate) fn count_put(&mut self, key: usize, value: usize) {
        self.puts += 1;
        self.user_bytes += (key + value) as u64;
        self.key_sizes.record(key as u64);
        self.value_sizes.record(value as u64);
    }
}

/// A log-linear histogram of sizes with exact moments: 16 steps an octave.
#[derive(Debug, Clone)]
pub struct Sizes {
    buckets: Vec<Bucket>,
    /// How many.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Sum of the sizes.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

/// Sizes that a histogram does not tell apart.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    count: u64,
    sum: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        let buckets = vec![Bucket::default(); SIZE_BUCKETS];
        Sizes { buckets, count: 0, min: u64::MAX, max: 0, sum: 0.0, squares: 0.0 }
    }
}

/// 4 octaves of single steps, then 16 steps an octave up to 2^32.
const SIZE_BUCKETS: usize = 16 * 29 + 32;

impl Sizes {
    /// Counts one size.
    pub fn record(&mut self, size: u64) {
        let bucket = &mut self.buckets[bucket_of(size).min(SIZE_BUCKETS - 1)];
        bucket.count += 1;
        bucket.sum += size;
        self.count += 1;
        self.min = self.min.min(size);
        self.max = self.max.max(size);
        self.sum += size as f64;
        self.squares += (size as f64) * (size as f64);
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Sizes) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.count += theirs.count;
            mine.sum += theirs.sum;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The smallest size that at least `percent` of all do not exceed, to 1/16.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (self.count as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        for (place, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.count;
            if seen >= wanted.max(1) {
                return bucket_start(place).clamp(self.min.min(self.max), self.max);
            }
        }
        self.max
    }

    /// Geometric mean of size + 1, less 1, from the means of the buckets: too large by less than a
    /// thousandth, for the sizes of a bucket differ by no more than a sixteenth.
    pub fn geometric_mean(&self) -> f64 {
        let used = self.buckets.iter().filter(|bucket| bucket.count > 0);
        let logarithms = used.map(|bucket| {
            let count = bucket.count as f64;
            count * (bucket.sum as f64 / count).ln_1p()
        });
        let sum: f64 = logarithms.sum();
        if self.count == 0 { 0.0 } else { (sum / self.count as f64).exp_m1() }
    }
}

/// The bucket of a number: small ones have one each, others 16 an octave.
pub(crate) fn bucket_of(size: u64) -> usize {
    if size < 32 {
        return size as usize;
    }
    let octave = 63 - size.leading_zeros();
    (32 + (octave - 5) * 16 + ((size >> (octave - 4)) & 15) as u32) as usize
}

fn bucket_start(bucket: usize) -> u64 {
    if bucket < 32 {
        return bucket as u64;
    }
    let octave = (bucket - 32) / 16 + 5;
    let step = (bucket - 32) % 16;
    (16 + step as u64) << (octave - 4)
}

/// How a store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opened {
    /// It was made.
    #[default]
    Made,
    /// From the checkpoint of a clean stop.
    Checkpoint,
    /// From its segments, after a crash.
    Recovered,
    /// From its segments, because the checkpoint that its root names does not verify.
    DamagedCheckpoint,
}

impl Opened {
    /// Whether all sequences that were ever used are known.
    pub(crate) fn is_clean(self) -> bool {
        matches!(self, Opened::Made | Opened::Checkpoint)
    }
}

/// What became of the write buffers that a former process left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FormerBuffers {
    /// None were expected.
    #[default]
    None,
    /// What stood in them was taken in.
    Taken,
    /// What stood in them was taken in; the store is no longer where they say that it is, so they
    /// stay.
    Moved {
        /// Their file.
        buffers: PathBuf,
    },
    /// They are not there, though the store was not closed and the machine did not reboot.
    Missing,
    /// They are of the store that this one is a copy of.
    OfAnother {
        /// Their file.
        buffers: PathBuf,
        /// A file of that store.
        store: PathBuf,
    },
    /// They are of this store in another state: it was put back to an earlier one.
    OfAnotherTime {
        /// Their file.
        buffers: PathBuf,
    },
}

impl FormerBuffers {
    /// What people should know of it, if anything.
    pub fn notice(&self) -> Option<String> {
        Some(match self {
            FormerBuffers::None | FormerBuffers::Taken => return None,
            FormerBuffers::Moved { buffers } => format!(
                "the store is no longer where its write buffers, {0}, say that it is; what they \
                 hold was taken in, and they stay: `rm {0}` frees the memory if no copy of the \
                 store is elsewhere",
                buffers.display()
            ),
            FormerBuffers::Missing => "the store was not stopped cleanly, and its write buffers \
                 are gone: what was acknowledged last and not synced may be missing; see that \
                 nobody removes `entresol-*.buffers` (as systemd's `RemoveIPC` does at a logout), \
                 or choose the durability `flushed` or `synced`"
                .into(),
            FormerBuffers::OfAnother { buffers, store } => format!(
                "this is a copy of the store at {}, which was not stopped cleanly when it was \
                 made: what only its write buffers, {}, hold is not in this copy; they are left to \
                 it. Stop a store cleanly before you copy it",
                store.display(),
                buffers.display()
            ),
            FormerBuffers::OfAnotherTime { buffers } => format!(
                "the store was put back to an earlier state: the write buffers {0} are of a later \
                 one and are left alone; `rm {0}` frees the memory if that state is not needed",
                buffers.display()
            ),
        })
    }
}

/// Figures of a store since it was opened; bytes unless said otherwise.
#[derive(Debug, Clone, Default)]
pub struct StoreStatistics {
    /// How the store was opened.
    pub opened: Opened,
    /// What became of the write buffers that a former process left.
    pub former_buffers: FormerBuffers,
    /// Times that write buffers were made again since somebody removed them.
    pub buffers_remade: u64,
    /// What is wrong with where the store's files or its write buffers are, if anything: it goes
    /// on, and people should know.
    pub ground: Option<String>,
    /// Gets answered from write buffers and recent segments.
    pub gets_memory: u64,
    /// Gets answered by a device read.
    pub gets_flash: u64,
    /// Gets of keys that have no entry.
    pub gets_missed: u64,
    /// Segments read ahead of gets that follow the log.
    pub segments_ahead: u64,
    /// Puts, touches included.
    pub puts: u64,
    /// Removes that found an entry.
    pub removes: u64,
    /// Touches.
    pub touches: u64,
    /// Puts over an existing entry.
    pub overwrites: u64,
    /// Records read on behalf of gets that had another key.
    pub collisions_get: u64,
    /// Overwrites found to be of another key.
    pub collisions_put: u64,
    /// Times that a get, a write or a scan met a record that does not verify.
    pub damaged: u64,
    /// Entries that expired.
    pub expired: u64,
    /// Entries evicted (caches).
    pub evicted: u64,
    /// Entries now.
    pub entries: u64,
    /// Entries now, by space.
    pub entries_of: BTreeMap<SpaceId, u64>,
    /// Device writes in flight now.
    pub pending_writes: u64,
    /// Segments.
    pub segments: u64,
    /// Segments free now.
    pub segments_free: u64,
    /// Bytes of the segments in use.
    pub allocated_bytes: u64,
    /// Bytes of live records, by the sizes that the index knows: by these a store is full.
    pub live_bytes: u64,
    /// About the bytes that live records take on the medium. The index knows sizes in steps, up to
    /// an eighth too large, so by them segments may hold more than they have room for.
    pub stored_live_bytes: u64,
    /// Bytes of all segments.
    pub capacity_bytes: u64,
    /// Key and value bytes put by callers.
    pub user_bytes: u64,
    /// Record bytes copied by reclaim.
    pub moved_bytes: u64,
    /// Segments reclaimed.
    pub segments_reclaimed: u64,
    /// Writes that found no room and had to wait until there was some.
    pub reclaims_by_writers: u64,
    /// Times a write decided a few records of a victim: `maintain` was not called, or not soon
    /// enough.
    pub steps_by_writers: u64,
    /// Memory of the index.
    pub index_bytes: u64,
    /// Memory of write buffers.
    pub buffer_bytes: u64,
    /// Memory of tables, notes and segments read ahead.
    pub other_bytes: u64,
    /// Overwrites not yet checked.
    pub notes: u64,
    /// Why the store refuses writes, if it does.
    pub poisoned: Option<String>,
    /// Sizes of keys put.
    pub key_sizes: Sizes,
    /// Sizes of values put.
    pub value_sizes: Sizes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometric_mean_of(sizes: impl Iterator<Item = u64> + Clone) -> (f64, f64) {
        let (mut one, mut other) = (Sizes::default(), Sizes::default());
        for size in sizes.clone() {
            let sizes = if size.is_multiple_of(3) { &mut one } else { &mut other };
            sizes.record(size);
        }
        one.merge(&other);
        let count = sizes.clone().count() as f64;
        let exact = (sizes.map(|size| (size as f64).ln_1p()).sum::<f64>() / count).exp_m1();
        (one.geometric_mean(), exact)
    }

    /// The least size of each bucket stood for all that were in it: of values of 2,500 bytes alone
    /// the geometric mean was 2,432.
    #[test]
    fn the_geometric_mean_of_sizes_is_theirs_to_a_thousandth() {
        for size in [0, 1, 31, 1700, 2500, 64 << 20] {
            let (mean, _) = geometric_mean_of(std::iter::repeat_n(size, 10));
            assert!((mean - size as f64).abs() <= size as f64 * 1e-9, "{mean} of {size}");
        }
        for step in [1, 7, 997, 65_537] {
            let (mean, exact) = geometric_mean_of((0..5000).map(|place| place * step));
            assert!((mean - exact).abs() <= exact * 1e-3, "{mean} instead of {exact}");
        }
    }
}
