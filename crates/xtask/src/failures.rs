//! Which tests failed, and where: said again at the end, since the output of one step is longer
//! than what people, or a page that keeps only the end of it, look at.

use std::fmt;

use crate::planted;

/// Lines that are said again, of one step.
const LINES_MAX: usize = 24;

/// The lines of a step's output that name a failed test or say where it failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    lines: Vec<String>,
    left_out: usize,
    /// The next line is what a panic said.
    panicked: bool,
}

impl Failures {
    /// Takes a line of Cargo's or Maven's output, if it tells of a failure.
    pub(crate) fn watch(&mut self, line: &str) {
        let said = std::mem::take(&mut self.panicked);
        self.panicked = line.starts_with("thread '") && line.contains("panicked at");
        if !(said || self.panicked || names_a_failure(line)) {
            return;
        }
        if self.lines.len() < LINES_MAX {
            self.lines.push(line.trim_end().to_string());
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "  {line}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "  and {} lines more", self.left_out)?;
        }
        Ok(())
    }
}

/// Maven marks the tests, and lists below them, indented, what each of them said.
fn names_a_failure(line: &str) -> bool {
    (line.starts_with("test ") && line.ends_with(" ... FAILED"))
        || line.contains("<<< FAILURE!")
        || line.contains("<<< ERROR!")
        || line.strip_prefix("[ERROR]   ").is_some_and(|rest| !rest.trim().is_empty())
        || line.contains("COMPILATION ERROR")
        || line.starts_with(planted::NOT_CAUGHT)
        || line.starts_with(planted::UNSOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_and_what_they_said_are_kept_and_nothing_else() {
        let mut failures = Failures::default();
        for line in [
            "test one ... ok",
            "test two ... FAILED",
            "thread 'two' (12) panicked at src/lib.rs:3:5:",
            "left: 1, right: 2",
            "note: run with `RUST_BACKTRACE=1`",
            "caught      canary   cargo test",
            "NOT CAUGHT  parent-trusted   cargo test",
            "[ERROR] ",
            "[ERROR] Tests run: 5, Failures: 1 <<< FAILURE! -- in io.entresol.ATest",
            "[ERROR]   ATest.two:12 expected [1] but found [2]",
            "[ERROR] Re-run Maven using the -X switch",
        ] {
            failures.watch(line);
        }
        assert_eq!(
            failures.to_string().lines().map(str::trim).collect::<Vec<_>>(),
            [
                "test two ... FAILED",
                "thread 'two' (12) panicked at src/lib.rs:3:5:",
                "left: 1, right: 2",
                "NOT CAUGHT  parent-trusted   cargo test",
                "[ERROR] Tests run: 5, Failures: 1 <<< FAILURE! -- in io.entresol.ATest",
                "[ERROR]   ATest.two:12 expected [1] but found [2]",
            ]
        );
    }

    #[test]
    fn so_many_failures_that_nobody_reads_them_are_counted() {
        let mut failures = Failures::default();
        for _ in 0..LINES_MAX + 3 {
            failures.watch("test two ... FAILED");
        }
        assert_eq!(failures.to_string().lines().count(), LINES_MAX + 1);
        assert!(failures.to_string().ends_with("and 3 lines more\n"));
        assert!(Failures::default().is_empty());
    }
}
