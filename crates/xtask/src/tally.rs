//! Counts of tests, summed over the suites that one `cargo test` runs.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Adds the counts of one line of output, if it closes a suite
    /// (`test result: ok. 3 passed; 0 failed; 1 ignored; …`).
    pub(crate) fn watch(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        let Some((_, counts)) = counts.split_once(". ") else { return };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_summed_and_other_lines_ignored() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; done",
            "test named_test_result ... ok",
            "test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out",
        ] {
            tally.watch(line);
        }
        assert_eq!(tally, Tally { passed: 4, failed: 2, skipped: 1 });
        assert_eq!(tally.to_string(), "4 passed, 2 failed, 1 skipped");
        assert_eq!(Tally::default().to_string(), "0 passed, 0 failed");
    }
}
