//! Sizes of objects as a histogram over powers of two, as servers print it.

use std::fmt;

/// How many objects are larger than each power of two.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeHistogram {
    /// Column `i`: % of objects of more than 2^i bytes; falling, the last one 0.
    pub percent_above: Vec<f64>,
}

/// Objects of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeShare {
    /// Bytes: the lower bound of the bucket, as the paper's figures ask for.
    pub bytes: f64,
    /// Share of the objects, 0 to 1.
    pub share: f64,
}

/// Columns beyond this would be sizes over 2 GiB.
const COLUMNS_MAX: usize = 32;

impl SizeHistogram {
    /// Reads percentages separated by commas or blanks.
    ///
    /// # Errors
    /// What is wrong with the list, in words.
    pub fn parse(text: &str) -> Result<SizeHistogram, String> {
        let mut percent_above = Vec::new();
        for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            let column = percent_above.len();
            let percent = match word.trim_end_matches('%').parse::<f64>() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => percent,
                _ => return Err(format!("column {column} is `{word}`, not 0 to 100 percent")),
            };
            if percent_above.last().is_some_and(|&last| percent > last) {
                return Err(format!(
                    "column {column} is {percent}, more than the one before; the share of objects \
                     above a size can only fall"
                ));
            }
            percent_above.push(percent);
        }
        SizeHistogram::of_columns(percent_above)
    }

    /// A histogram of columns known to fall.
    fn of_columns(percent_above: Vec<f64>) -> Result<SizeHistogram, String> {
        match percent_above.last() {
            None => Err("the list is empty".to_owned()),
            Some(&last) if last != 0.0 => Err(format!(
                "the last column is {last}; it must be 0, or larger objects are left out"
            )),
            Some(_) if percent_above.len() > COLUMNS_MAX => {
                Err(format!("{} columns; expected at most {COLUMNS_MAX}", percent_above.len()))
            }
            Some(_) => Ok(SizeHistogram { percent_above }),
        }
    }

    /// The histogram of `counts`, where bucket `i` holds sizes in (2^(i-1), 2^i], or `None` where
    /// nothing was counted.
    pub fn of_counts(counts: &[u64]) -> Option<SizeHistogram> {
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let last = counts.iter().rposition(|&count| count != 0)?;
        let mut above = total;
        let percent_above = counts[..=last]
            .iter()
            .map(|&count| {
                above -= u128::from(count);
                above as f64 * 100.0 / total as f64
            })
            .collect();
        Some(SizeHistogram { percent_above })
    }

    /// The sizes that occur, each as the lower bound of its bucket times `offset_pct` / 100.
    pub fn shares(&self, offset_pct: u32) -> Vec<SizeShare> {
        let mut before = 100.0;
        let mut shares = Vec::new();
        for (column, &above) in self.percent_above.iter().enumerate() {
            let lower_bound = if column == 0 { 1.0 } else { 2f64.powi(column as i32 - 1) };
            if before > above {
                shares.push(SizeShare {
                    bytes: lower_bound * f64::from(offset_pct) / 100.0,
                    share: (before - above) / 100.0,
                });
            }
            before = above;
        }
        shares
    }

    /// Mean of [`SizeHistogram::shares`], bytes.
    pub fn mean_bytes(&self, offset_pct: u32) -> f64 {
        self.shares(offset_pct).iter().map(|size| size.bytes * size.share).sum()
    }
}

impl fmt::Display for SizeHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (column, percent) in self.percent_above.iter().enumerate() {
            let comma = if column == 0 { "" } else { "," };
            write!(f, "{comma}{percent:.2}")?;
        }
        Ok(())
    }
}
