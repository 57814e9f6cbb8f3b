//! Runs steps one after another and says for each: its name, how long it took, and how to repeat
//! it. At the end it says how long all of them took.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Verdict;
use crate::failures::Failures;
use crate::invocation::Invocation;
use crate::tally::Tally;

const NAME_COLUMNS: usize = 12;

/// Steps run so far. A step that fails does not stop those after it.
#[derive(Debug)]
pub(crate) struct Report {
    start: Instant,
    lines: Vec<Line>,
    tally: Tally,
    /// With the step's name.
    failures: Vec<(String, Failures)>,
}

#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    passed: bool,
    duration: Duration,
    repeat: String,
}

impl Default for Report {
    fn default() -> Report {
        let (lines, tally, failures) = (Vec::new(), Tally::default(), Vec::new());
        Report { start: Instant::now(), lines, tally, failures }
    }
}

/// A task that is one check and takes no arguments.
pub(crate) fn alone(
    arguments: &[String],
    check: impl FnOnce(&mut Report) -> Result<(), String>,
) -> Result<Verdict, String> {
    if !arguments.is_empty() {
        return Err("it takes no arguments".to_string());
    }
    let mut report = Report::default();
    check(&mut report)?;
    Ok(report.close())
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

    /// Takes what another process said of its steps: its own report's lines, and its failures.
    pub(crate) fn adopt(&mut self, name: &str, output: &str) {
        self.lines.extend(output.lines().filter_map(Line::parse));
        let mut failures = Failures::default();
        let before_summary = output.lines().take_while(|line| Line::parse(line).is_none());
        before_summary.for_each(|line| failures.watch(line));
        if !failures.is_empty() {
            self.failures.push((name.to_string(), failures));
        }
    }

    /// Prints the summary; where tests ran, its last line is `N passed, N failed`.
    pub(crate) fn close(self) -> Verdict {
        println!();
        for line in &self.lines {
            println!("{line}");
        }
        println!("all steps   {:.1} s", self.start.elapsed().as_secs_f64());
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

impl Line {
    /// What the `Display` of [`Line`] wrote.
    fn parse(text: &str) -> Option<Line> {
        let (word, rest) = text.split_once("  ")?;
        let passed = match word {
            "passed" => true,
            "FAILED" => false,
            _ => return None,
        };
        let (seconds, rest) = rest.split_once(" s  ")?;
        let duration = Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()?;
        let name = rest.get(..NAME_COLUMNS)?.trim_end().to_string();
        let repeat = rest[NAME_COLUMNS..].trim_start().to_string();
        Some(Line { name, passed, duration, repeat })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { name, passed, duration, repeat } = self;
        let word = if *passed { "passed" } else { "FAILED" };
        write!(f, "{word}  {:>7.1} s  {name:<NAME_COLUMNS$} {repeat}", duration.as_secs_f64())
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
    fn steps_of_another_process_count_as_steps_of_this_one() {
        let line = Line {
            name: "java ffm".to_string(),
            passed: false,
            duration: Duration::from_millis(1_500),
            repeat: "mvn -f java/pom.xml".to_string(),
        };
        assert_eq!(Line::parse(&line.to_string()).as_ref(), Some(&line));
        assert_eq!(Line::parse("failed steps: java ffm"), None);
        let mut report = Report::default();
        report.adopt("java", &format!("[INFO] passed on\n\n{line}\n"));
        assert_eq!(report.lines, [line]);
        assert_eq!(report.close(), Verdict::Failed);
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
