//! Places and lengths of transfers on a target.
//!
//! A [`Shape`] is configured and knows no device; on a target it becomes a [`Placement`], which
//! chooses offsets and lengths from random numbers. No choice reaches past the last whole block.

use std::fmt;

use entresol_workload::Random;

/// Sizes and places of one stream of transfers.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Records, at any multiple of the granule: the target's smallest transfer, or more.
    Records {
        /// Bytes of a record as it is stored.
        sizes: Sizes,
        /// The granule is at least this, bytes.
        granule_bytes_min: u32,
    },
    /// Records that begin at any multiple of 16 bytes; what is transferred are all granules that
    /// they touch.
    Straddling {
        /// Bytes of a record as it is stored.
        sizes: Sizes,
    },
    /// Blocks, at any multiple of their size.
    Blocks {
        /// Bytes.
        bytes: u32,
    },
    /// Blocks one after the other from the beginning, and again.
    InRow {
        /// Bytes.
        bytes: u32,
    },
}

/// Sizes of records, bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All granule counts from the one for `min` to the one for `max` alike.
    Between {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// Each with a share of all, in %; they add up to about 100.
    Weighted(Vec<(f64, u32)>),
}

/// A shape on one target.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    granule: u64,
    span: u64,
    choice: Choice,
}

#[derive(Debug, Clone)]
enum Choice {
    Even { granules_min: u64, kinds: u64, starts: u64 },
    Weighted(Vec<(f64, u64)>),
    Straddling(Sizes),
    Blocks,
    InRow { next: u64 },
}

/// Bytes that a straddling record's start is a multiple of.
const RECORD_ALIGNMENT: u64 = 16;

impl Shape {
    /// The longest transfer on a target whose smallest one is `granule` bytes.
    pub fn bytes_max(&self, granule: u32) -> u64 {
        match self {
            Shape::Records { sizes, granule_bytes_min } => {
                let granule = u64::from(granule.max(*granule_bytes_min));
                u64::from(sizes.max()).next_multiple_of(granule)
            }
            Shape::Straddling { sizes } => {
                u64::from(sizes.max()).next_multiple_of(u64::from(granule)) + u64::from(granule)
            }
            Shape::Blocks { bytes } | Shape::InRow { bytes } => u64::from(*bytes),
        }
    }

    /// On a target of `span` usable bytes with a smallest transfer of `granule`; `None` if it has
    /// no room for one transfer.
    pub(crate) fn on(&self, granule: u32, span: u64) -> Option<Placement> {
        let longest = self.bytes_max(granule);
        if longest == 0 || span < longest {
            return None;
        }
        let fine = u64::from(granule);
        if let Shape::Blocks { bytes } | Shape::InRow { bytes } = self
            && !u64::from(*bytes).is_multiple_of(fine)
        {
            return None;
        }
        let (granule, choice) = match self {
            Shape::Records { sizes: Sizes::Between { min, max }, granule_bytes_min } => {
                let granule = fine.max(u64::from(*granule_bytes_min));
                let least = u64::from(*min).div_ceil(granule);
                let most = u64::from(*max).div_ceil(granule);
                let starts = (span / granule).checked_sub(most)? + 1;
                (granule, Choice::Even { granules_min: least, kinds: most - least + 1, starts })
            }
            Shape::Records { sizes: Sizes::Weighted(shares), granule_bytes_min } => {
                let granule = fine.max(u64::from(*granule_bytes_min));
                (granule, Choice::Weighted(cumulated(shares, granule)))
            }
            Shape::Straddling { sizes } => (fine, Choice::Straddling(sizes.clone())),
            Shape::Blocks { bytes } => (u64::from(*bytes), Choice::Blocks),
            Shape::InRow { bytes } => (u64::from(*bytes), Choice::InRow { next: 0 }),
        };
        Some(Placement { granule, span, choice })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Records { sizes, .. } | Shape::Straddling { sizes } => {
                write!(f, "a record of {} bytes", sizes.max())
            }
            Shape::Blocks { bytes } | Shape::InRow { bytes } => {
                write!(f, "a block of {bytes} bytes")
            }
        }
    }
}

impl Placement {
    /// Offset and length of the next transfer, bytes.
    pub(crate) fn choose(&mut self, random: &mut Random) -> (u64, usize) {
        let (granule, span) = (self.granule, self.span);
        let (offset, length) = match &mut self.choice {
            Choice::Even { granules_min, kinds, starts } => {
                let offset = random.below(*starts) * granule;
                (offset, (*granules_min + random.below(*kinds)) * granule)
            }
            Choice::Weighted(shares) => {
                let length = pick(shares, random);
                (random.below((span - length) / granule + 1) * granule, length)
            }
            Choice::Straddling(sizes) => {
                let record = sizes.choose(random);
                let start = random.below((span - record) / RECORD_ALIGNMENT + 1) * RECORD_ALIGNMENT;
                let first = start / granule * granule;
                (first, (start + record).next_multiple_of(granule) - first)
            }
            Choice::Blocks => (random.below(span / granule) * granule, granule),
            Choice::InRow { next } => {
                let offset = *next;
                *next = if offset + 2 * granule > span { 0 } else { offset + granule };
                (offset, granule)
            }
        };
        (offset, length as usize)
    }
}

impl Sizes {
    /// The largest, bytes.
    pub fn max(&self) -> u32 {
        match self {
            Sizes::Between { max, .. } => *max,
            Sizes::Weighted(shares) => {
                shares.iter().map(|&(_, bytes)| bytes).max().unwrap_or_default()
            }
        }
    }

    /// A size, bytes.
    pub(crate) fn choose(&self, random: &mut Random) -> u64 {
        match self {
            Sizes::Between { min, max } => u64::from(*min) + random.below(u64::from(max - min) + 1),
            Sizes::Weighted(shares) => {
                let shares = cumulated(shares, 1);
                pick(&shares, random)
            }
        }
    }
}

/// Shares added up, with sizes rounded up to `granule`.
fn cumulated(shares: &[(f64, u32)], granule: u64) -> Vec<(f64, u64)> {
    let mut sum = 0.0;
    let add = |&(share, bytes): &(f64, u32)| {
        sum += share;
        (sum, u64::from(bytes).max(1).next_multiple_of(granule))
    };
    shares.iter().map(add).collect()
}

fn pick(shares: &[(f64, u64)], random: &mut Random) -> u64 {
    let total = shares.last().map_or(0.0, |&(sum, _)| sum);
    let at = random.fraction() * total;
    let found = shares.iter().find(|&&(sum, _)| at < sum).or(shares.last());
    found.map_or(1, |&(_, bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(shape: &Shape, granule: u32, span: u64) -> Vec<(u64, usize)> {
        let mut placement = shape.on(granule, span).expect("it has room");
        let mut random = Random::new(7);
        (0..20_000).map(|_| placement.choose(&mut random)).collect()
    }

    #[test]
    fn choices_stay_inside_on_granules_and_reach_both_ends() {
        let sizes = Sizes::Between { min: 1536, max: 4000 };
        let span = 64 * 4096;
        let records = Shape::Records { sizes: sizes.clone(), granule_bytes_min: 0 };
        let weighted = Shape::Records {
            sizes: Sizes::Weighted(vec![(30.0, 512), (70.0, 9000)]),
            granule_bytes_min: 0,
        };
        let shapes = [
            (records, 512),
            (weighted, 512),
            (Shape::Straddling { sizes }, 512),
            (Shape::Blocks { bytes: 8192 }, 8192),
            (Shape::InRow { bytes: 8192 }, 8192),
        ];
        for (shape, granule) in shapes {
            let all = chosen(&shape, 512, span);
            for &(offset, length) in &all {
                assert_eq!((offset % granule, length as u64 % granule), (0, 0), "{shape:?}");
                assert!(offset + length as u64 <= span && length > 0, "{shape:?}");
            }
            assert!(all.iter().any(|&(offset, _)| offset == 0), "{shape:?}");
            let end = all.iter().map(|&(offset, length)| offset + length as u64).max();
            assert_eq!(end, Some(span), "{shape:?}");
        }
    }

    #[test]
    fn sizes_come_in_their_shares() {
        let even =
            Shape::Records { sizes: Sizes::Between { min: 1000, max: 2048 }, granule_bytes_min: 0 };
        let share = |shape: &Shape, wanted: usize| {
            let all = chosen(shape, 512, 1 << 20);
            all.iter().filter(|&&(_, length)| length == wanted).count() as f64 / all.len() as f64
        };
        for length in [1024, 1536, 2048] {
            assert!((share(&even, length) - 1.0 / 3.0).abs() < 0.02, "{length}");
        }
        let sizes = Sizes::Weighted(vec![(14.22, 512), (85.78, 1024)]);
        let weighted = Shape::Records { sizes, granule_bytes_min: 0 };
        assert!((share(&weighted, 512) - 0.1422).abs() < 0.02);
    }

    #[test]
    fn straddling_records_transfer_what_the_database_would() {
        // A record of 1536 bytes at any multiple of 16 touches 2032 bytes of sectors on average,
        // or 5616 of pages.
        let shape = Shape::Straddling { sizes: Sizes::Between { min: 1536, max: 1536 } };
        for (granule, mean) in [(512, 2032.0), (4096, 5616.0)] {
            let all = chosen(&shape, granule, 1 << 30);
            let sum: usize = all.iter().map(|&(_, length)| length).sum();
            let found = sum as f64 / all.len() as f64;
            assert!((found - mean).abs() < 30.0, "{found} for {mean}");
        }
    }

    #[test]
    fn targets_without_room_for_one_transfer_take_no_shape() {
        assert!(Shape::Blocks { bytes: 131_072 }.on(512, 131_071).is_none());
        assert!(Shape::Blocks { bytes: 1024 }.on(4096, 131_072).is_none(), "part of a sector");
        assert!(Shape::Blocks { bytes: 0 }.on(512, 131_071).is_none());
        let sizes = Sizes::Between { min: 1, max: 8 << 20 };
        assert!(Shape::Records { sizes, granule_bytes_min: 4096 }.on(512, 4 << 20).is_none());
    }
}
