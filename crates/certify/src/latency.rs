//! Shares of transfers above each threshold, by slices of time: the table of ACT's analyser.
//!
//! ACT's analyser silently shows nonsense for a missing histogram, for counts torn apart by a
//! message, and for a log that ends early. This analysis reports them.

mod slices;
mod table;

pub use slices::{Analysis, AnalysisError, Column, Slice, analyse, slice_seconds};
pub use table::{LatencyTable, heading};

/// What to analyse, in the words of the analyser's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyOptions {
    /// Names of histograms, or how one name begins.
    pub histograms: Vec<String>,
    /// Seconds; rounded up to whole report intervals.
    pub slice_sec: i64,
    /// The first bucket shown: 2^start units.
    pub start_bucket: i64,
    /// How many are shown at most.
    pub buckets: i64,
    /// Each how many-th.
    pub every_nth: i64,
    /// Show rates besides?
    pub extra: Extra,
}

/// What is shown besides percentages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    None,
    /// Transfers a second.
    Rates,
}

impl Default for LatencyOptions {
    fn default() -> LatencyOptions {
        LatencyOptions {
            histograms: vec!["reads".to_owned()],
            slice_sec: 3600,
            start_bucket: 0,
            buckets: 7,
            every_nth: 1,
            extra: Extra::None,
        }
    }
}

/// Thresholds go up to 2^16 units.
const THRESHOLDS: i64 = 17;

impl LatencyOptions {
    /// Which thresholds are shown, as powers of two.
    ///
    /// # Errors
    /// What is wrong with an option, in the analyser's words.
    pub fn thresholds(&self) -> Result<Vec<u32>, String> {
        let above_0 = [
            ("slice", self.slice_sec),
            ("num_buckets", self.buckets),
            ("every_nth", self.every_nth),
        ];
        if self.slice_sec < 1 {
            return Err("slice must be more than 0".to_owned());
        }
        if !(0..THRESHOLDS).contains(&self.start_bucket) {
            return Err(format!("start_bucket must be non-negative and less than {THRESHOLDS}"));
        }
        if let Some((name, _)) = above_0.iter().find(|(_, value)| *value < 1) {
            return Err(format!("{name} must be more than 0"));
        }
        let every = usize::try_from(self.every_nth).unwrap_or(usize::MAX);
        let most = usize::try_from(self.buckets).unwrap_or(usize::MAX);
        let shown = (self.start_bucket..THRESHOLDS).step_by(every).take(most);
        Ok(shown.map(|threshold| threshold as u32).collect())
    }
}
