//! Runs steps one after another and says for each: its name, how long it took, and how to repeat
//! it.

use std::time::{Duration, Instant};

use crate::Verdict;
use crate::failures::Failures;
use crate::invocation::Invocation;
use crate::tally::Tally;

/// Steps run so far. A step that fails does not stop those after it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
    tally: Tally,
    /// With the step's name.
    failures: Vec<(String, Failures)>,
}

#[derive(Debug)]
struct Line {
    name: String,
    passed: bool,
    duration: Duration,
    repeat: String,
}

impl Report {
    /// Runs a command; its output is passed on, and tests in it are counted.
    pub(crate) fn run(&mut self, name: &str, invocation: &Invocation) -> Result<bool, String> {
        let mut tally = Tally::default();
        let mut failures = Failures::default();
        let passed = self.perform(name, &invocation.to_string(), &mut || {
            invocation.run_watched(&mut |line| {
                tally.watch(line);
                failures.watch(line);
            })
        })?;
        self.tally += tally;
        if !passed && !failures.is_empty() {
            print!("{failures}");
            self.failures.push((name.to_string(), failures));
        }
        Ok(passed)
    }

    /// Does `work`, which returns whether it passed; `repeat` is the line that does it again.
    pub(crate) fn perform(
        &mut self,
        name: &str,
        repeat: &str,
        work: &mut dyn FnMut() -> Result<bool, String>,
    ) -> Result<bool, String> {
        println!("── {name}: {repeat}");
        let start = Instant::now();
        let passed = work()?;
        let duration = start.elapsed();
        let word = if passed { "passed" } else { "FAILED" };
        println!("── {name}: {word} in {:.1} s", duration.as_secs_f64());
        let line = Line { name: name.into(), passed, duration, repeat: repeat.into() };
        self.lines.push(line);
        Ok(passed)
    }

    /// Prints the summary; where tests ran, its last line is `N passed, N failed`.
    pub(crate) fn close(self) -> Verdict {
        println!();
        for line in &self.lines {
            let word = if line.passed { "passed" } else { "FAILED" };
            let seconds = line.duration.as_secs_f64();
            println!("{word}  {seconds:>7.1} s  {:<12} {}", line.name, line.repeat);
        }
        let failed: Vec<&str> =
            self.lines.iter().filter(|line| !line.passed).map(|line| line.name.as_str()).collect();
        if !failed.is_empty() {
            println!("failed steps: {}", failed.join(", "));
        }
        for (name, failures) in &self.failures {
            print!("\n{name}:\n{failures}");
        }
        if self.tally != Tally::default() {
            println!("\n{}", self.tally);
        }
        if failed.is_empty() && self.tally.failed == 0 { Verdict::Passed } else { Verdict::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_report_and_the_rest_still_runs() {
        let mut report = Report::default();
        let mut ran = 0;
        for passes in [true, false, true] {
            let outcome = report.perform("step", "true", &mut || {
                ran += 1;
                Ok(passes)
            });
            assert_eq!(outcome, Ok(passes));
        }
        assert_eq!(ran, 3);
        assert_eq!(report.close(), Verdict::Failed);
        assert_eq!(Report::default().close(), Verdict::Passed);
    }

    #[test]
    fn a_failed_test_fails_the_report_whatever_the_exit_status_says() {
        let mut report = Report::default();
        let line = "test result: FAILED. 1 passed; 1 failed; 0 ignored";
        let invocation = Invocation::new("echo").with_argument(line);
        assert_eq!(report.run("tests", &invocation), Ok(true));
        assert_eq!(report.close(), Verdict::Failed);
    }
}
