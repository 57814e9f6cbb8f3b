//! The rules for a device, and the slices of a run that must keep them.

use std::fmt;

/// What a device must keep to. [`Rules::default`] is what the makers of ACT ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Shares of slow operations; at least one.
    pub bounds: Vec<Bound>,
    /// Each slice of so many seconds must keep to the bounds by itself.
    pub slice_seconds: u32,
    /// How far the rate may fall short of what was due, %.
    pub shortfall_percent: f64,
}

/// In each slice less than `percent` of the operations take `threshold_ns` or longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Percent.
    pub percent: f64,
    /// Nanoseconds.
    pub threshold_ns: u64,
}

/// Why a text is no list of bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    /// The part that is wrong.
    pub found: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// How a run of known length is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slicing {
    /// Length of each slice, in seconds; the last one may be shorter.
    pub seconds: u32,
    /// How many slices there are.
    pub count: u32,
    /// The run was shorter than a slice of the rules, so its slices are shorter than those.
    pub scaled: bool,
}

const BOUNDS_MAX: usize = 16;
const SCALED_SLICES: u32 = 6;
const SCALED_SECONDS_MIN: u32 = 10;

impl Rules {
    /// Bounds as people write them, in percent and milliseconds: `5/1 1/8 0.1/64`.
    pub fn bounds_of(text: &str) -> Result<Vec<Bound>, RulesError> {
        let parts = text.split([' ', '\t', ',', ';']).filter(|part| !part.is_empty());
        let bounds = parts.map(Bound::parse).collect::<Result<Vec<_>, _>>()?;
        let refuse = |problem| Err(RulesError { found: text.to_owned(), problem });
        match bounds.len() {
            0 => refuse("no bound in it"),
            n if n > BOUNDS_MAX => refuse("more than 16 bounds"),
            _ => Ok(bounds),
        }
    }

    /// The bounds as people write them.
    pub fn bounds_text(&self) -> String {
        let texts: Vec<String> = self
            .bounds
            .iter()
            .map(|bound| format!("{}/{}", bound.percent, bound.threshold_ms()))
            .collect();
        texts.join(" ")
    }

    /// How a run of `seconds`, reported every `interval_seconds`, is cut. One shorter than a slice
    /// is cut into up to six of ten seconds or more, so that a short test is no softer than a long
    /// one.
    pub fn slicing(&self, seconds: u32, interval_seconds: u32) -> Slicing {
        let interval = interval_seconds.max(1);
        let scaled = seconds < self.slice_seconds;
        let wanted = if scaled {
            let count = (seconds / SCALED_SECONDS_MIN).clamp(1, SCALED_SLICES);
            seconds.div_ceil(count)
        } else {
            self.slice_seconds
        };
        let length = wanted.max(1).div_ceil(interval).saturating_mul(interval);
        Slicing { seconds: length, count: seconds.div_ceil(length).max(1), scaled }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        let bound = |percent, ms: u64| Bound { percent, threshold_ns: ms * 1_000_000 };
        Rules {
            bounds: vec![bound(5.0, 1), bound(1.0, 8), bound(0.1, 64)],
            slice_seconds: 3600,
            shortfall_percent: 1.0,
        }
    }
}

impl Bound {
    /// The threshold in milliseconds.
    pub fn threshold_ms(&self) -> f64 {
        self.threshold_ns as f64 / 1e6
    }

    fn parse(part: &str) -> Result<Bound, RulesError> {
        let refuse = |problem| RulesError { found: part.to_owned(), problem };
        let (percent, ms) =
            part.split_once('/').ok_or_else(|| refuse("expected PERCENT/MILLISECONDS"))?;
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let percent = number(percent)
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .ok_or_else(|| refuse("the percentage must be above 0 and at most 100"))?;
        let ms = number(ms)
            .filter(|ms| (0.001..=3_600_000.0).contains(ms))
            .ok_or_else(|| refuse("the time must be between 0.001 and 3600000 milliseconds"))?;
        Ok(Bound { percent, threshold_ns: (ms * 1e6).round() as u64 })
    }
}

impl Slicing {
    /// When slice `number` (1 is the first) of a run of `seconds` begins and ends.
    pub fn span(&self, number: u32, seconds: u32) -> (f64, f64) {
        let start = u64::from(number - 1) * u64::from(self.seconds);
        let end = (start + u64::from(self.seconds)).min(u64::from(seconds));
        (start as f64, end.max(start) as f64)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "less than {} % at {} ms or more", self.percent, self.threshold_ms())
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rules `{}`: {}; expected pairs such as `5/1 1/8 0.1/64`: in each slice less than 5 % \
             of the operations take 1 ms or longer, and so on",
            self.found, self.problem
        )
    }
}

impl std::error::Error for RulesError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_back_as_they_were_written() {
        let rules = Rules::default();
        assert_eq!(rules.bounds_text(), "5/1 1/8 0.1/64");
        assert_eq!(Rules::bounds_of("5/1, 1/8\t0.1/64"), Ok(rules.bounds));
        assert_eq!(Rules::bounds_of("2.5/0.128").unwrap()[0].threshold_ns, 128_000);
    }

    #[test]
    fn what_is_no_bound_is_refused_and_quoted() {
        for text in
            ["", "  ", "5", "5/", "/1", "0/1", "101/1", "-5/1", "5/0", "nan/1", "5/inf", "5/x"]
        {
            let error = Rules::bounds_of(text).expect_err(text);
            assert!(error.to_string().contains("`5/1 1/8 0.1/64`"), "{error}");
        }
        assert!(Rules::bounds_of(&"5/1 ".repeat(17)).is_err());
    }

    #[test]
    fn slices_cover_a_run_and_are_whole_intervals() {
        let rules = Rules::default();
        for (seconds, interval, length, count, scaled) in [
            (86_400, 1, 3600, 24, false),
            (3600, 1, 3600, 1, false),
            (5400, 1, 3600, 2, false),
            (3599, 1, 600, 6, true),
            (60, 1, 10, 6, true),
            (30, 1, 10, 3, true),
            (9, 1, 9, 1, true),
            (3, 2, 4, 1, true),
            (86_400, 7, 3605, 24, false),
            (1, 1, 1, 1, true),
            (0, 0, 1, 1, true),
            (u32::MAX, u32::MAX, u32::MAX, 1, false),
        ] {
            let slicing = rules.slicing(seconds, interval);
            assert_eq!(slicing, Slicing { seconds: length, count, scaled }, "{seconds} {interval}");
            assert_eq!(slicing.span(count, seconds).1, f64::from(seconds));
        }
    }
}
