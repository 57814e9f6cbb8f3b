//! The sizes of the three units: the used part of each, and the enlarged sizes that the generator
//! works with when units are small.

use std::fmt;

use super::request::Asu;

/// Sizes in blocks. Data and user store are equal; the log is two ninths of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    store_blocks: u64,
    log_blocks: u64,
    multiplier: u64,
}

/// Why sizes do not fit the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutError {
    /// Data or user store has fewer blocks than the workload has places for.
    StoreTooSmall {
        /// The smaller of the two, blocks.
        found: u64,
    },
    /// Data or user store has more blocks than a position can name.
    StoreTooLarge {
        /// The smaller of the two, blocks.
        found: u64,
    },
    /// The log is less than two ninths of a store.
    LogTooSmall {
        /// Blocks needed.
        expected: u64,
        /// Blocks there.
        found: u64,
    },
}

/// Below this the generator enlarges a store: 80 MiB.
const GENERATED_BLOCKS_MIN: u64 = 20_480;
/// The smallest store whose log has room for the longest request anywhere in it: 1 MiB.
const STORE_BLOCKS_MIN: u64 = 256;
const STORE_BLOCKS_MAX: u64 = u32::MAX as u64;

impl Layout {
    /// Cuts the blocks that are there, by [`Asu::index`], to those that are used.
    pub fn new(found: [u64; 3]) -> Result<Layout, LayoutError> {
        let store_blocks = found[0].min(found[1]);
        if store_blocks < STORE_BLOCKS_MIN {
            return Err(LayoutError::StoreTooSmall { found: store_blocks });
        }
        if store_blocks > STORE_BLOCKS_MAX {
            return Err(LayoutError::StoreTooLarge { found: store_blocks });
        }
        let log_blocks = 2 * store_blocks / 9;
        if found[2] < log_blocks {
            return Err(LayoutError::LogTooSmall { expected: log_blocks, found: found[2] });
        }
        Ok(Layout { store_blocks, log_blocks, multiplier: multiplier(store_blocks) })
    }

    /// Blocks of `asu` that requests fall on.
    pub fn blocks(&self, asu: Asu) -> u64 {
        match asu {
            Asu::Data | Asu::User => self.store_blocks,
            Asu::Log => self.log_blocks,
        }
    }

    /// What positions of the generator are divided by; 1 for the log.
    pub(super) fn multiplier(&self, asu: Asu) -> u64 {
        match asu {
            Asu::Data | Asu::User => self.multiplier,
            Asu::Log => 1,
        }
    }

    /// Blocks that the generator works with.
    pub(super) fn generated_blocks(&self, asu: Asu) -> u64 {
        self.blocks(asu) * self.multiplier(asu)
    }
}

/// Grows by ten sizes at a time, then by one, until a store is large enough.
fn multiplier(blocks: u64) -> u64 {
    let (mut multiplier, mut total) = (1, blocks);
    while total * 10 < GENERATED_BLOCKS_MIN {
        total += 10 * blocks;
        multiplier += 10;
    }
    while total < GENERATED_BLOCKS_MIN {
        total += blocks;
        multiplier += 1;
    }
    multiplier
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::StoreTooSmall { found } => write!(
                f,
                "ASU1 and ASU2 need {STORE_BLOCKS_MIN} blocks of 4 KiB each; the smaller has \
                 {found}: give larger ones"
            ),
            LayoutError::StoreTooLarge { found } => write!(
                f,
                "ASU1 and ASU2 may have {STORE_BLOCKS_MAX} blocks of 4 KiB each; the smaller has \
                 {found}: give smaller ones"
            ),
            LayoutError::LogTooSmall { expected, found } => write!(
                f,
                "ASU3 size is too small: {} KB.\nIt must be bigger than 1/9 of 2*ASU1,\nor {} KB \
                 for this configuration",
                found * 4,
                expected * 4
            ),
        }
    }
}

impl std::error::Error for LayoutError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_cut_to_the_smaller_and_the_log_to_two_ninths() {
        let layout = Layout::new([11_520, 12_000, 5_000]).unwrap();
        assert_eq!(Asu::ALL.map(|asu| layout.blocks(asu)), [11_520, 11_520, 2_560]);
        assert_eq!(Asu::ALL.map(|asu| layout.generated_blocks(asu)), [23_040, 23_040, 2_560]);
    }

    #[test]
    fn small_stores_are_enlarged_past_the_minimum_and_large_ones_not() {
        for blocks in [256, 1_000, 2_047, 2_048, 20_479, 20_480, 230_400] {
            let times = multiplier(blocks);
            assert!(times * blocks >= GENERATED_BLOCKS_MIN, "{blocks} {times}");
            assert!(times == 1 || blocks < GENERATED_BLOCKS_MIN, "{blocks} {times}");
        }
    }

    #[test]
    fn a_short_log_is_refused_with_the_size_it_needs() {
        let error = Layout::new([11_520, 11_520, 2_559]).unwrap_err();
        assert!(error.to_string().contains("10240 KB"), "{error}");
    }
}
