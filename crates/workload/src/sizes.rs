//! How large the next value is.

use std::fmt;
use std::str::FromStr;

use entresol_random::Random;

/// Sizes of values, bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All alike.
    Fixed(u32),
    /// Alike between two bounds, both included.
    Uniform {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// Log-normal around a median, cut off at a most: many small, few large, as caches see.
    LogNormal {
        /// Half are smaller.
        median: u32,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// None is larger.
        max: u32,
    },
}

impl Sizes {
    /// The next size.
    pub fn next(&self, random: &mut Random) -> u32 {
        match *self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Uniform { min, max } => {
                min + random.below(u64::from(max.saturating_sub(min)) + 1) as u32
            }
            Sizes::LogNormal { median, sigma, max } => {
                let bytes = f64::from(median) * (sigma * normal(random)).exp();
                (bytes as u32).min(max)
            }
        }
    }

    /// The largest size that may come.
    pub fn max(&self) -> u32 {
        match *self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Uniform { max, .. } | Sizes::LogNormal { max, .. } => max,
        }
    }

    /// The mean size; of a log-normal one, before it is cut off.
    pub fn mean(&self) -> f64 {
        match *self {
            Sizes::Fixed(bytes) => f64::from(bytes),
            Sizes::Uniform { min, max } => (f64::from(min) + f64::from(max)) / 2.0,
            Sizes::LogNormal { median, sigma, max } => {
                (f64::from(median) * (sigma * sigma / 2.0).exp()).min(f64::from(max))
            }
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let wrong =
            || format!("expected BYTES, MIN-MAX or lognormal:MEDIAN:SIGMA:MAX, found '{text}'");
        if let Some(rest) = text.strip_prefix("lognormal:") {
            let parts: Vec<&str> = rest.split(':').collect();
            let [median, sigma, max] = parts.as_slice() else { return Err(wrong()) };
            let sigma = sigma.parse().ok().filter(|sigma: &f64| *sigma >= 0.0 && sigma.is_finite());
            return Ok(Sizes::LogNormal {
                median: median.parse().map_err(|_| wrong())?,
                sigma: sigma.ok_or_else(wrong)?,
                max: max.parse().map_err(|_| wrong())?,
            });
        }
        if let Some((min, max)) = text.split_once('-') {
            let min = min.parse().map_err(|_| wrong())?;
            let max = max.parse().map_err(|_| wrong())?;
            if min > max {
                return Err(wrong());
            }
            return Ok(Sizes::Uniform { min, max });
        }
        text.parse().map(Sizes::Fixed).map_err(|_| wrong())
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(bytes) => write!(f, "{bytes}"),
            Sizes::Uniform { min, max } => write!(f, "{min}-{max}"),
            Sizes::LogNormal { median, sigma, max } => {
                write!(f, "lognormal:{median}:{sigma}:{max}")
            }
        }
    }
}

/// A standard normal number (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.fraction()).cos()
}
