//! A test target that takes its seed from `ENTRESOL_SEED`: built once, run with one seed after
//! another, each failure printed with the line that replays it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::invocation::Invocation;

/// The variable from which a seeded test reads its seed.
pub(crate) const SEED: &str = "ENTRESOL_SEED";

/// An integration test, `crates/*/tests/TEST.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) package: &'static str,
    pub(crate) test: &'static str,
}

/// A target that was built.
#[derive(Debug)]
pub(crate) struct Built {
    target: Target,
    executable: String,
}

impl Target {
    /// What `cargo` is to run: this target in the profile that keeps assertions on.
    pub(crate) fn invocation(self) -> Invocation {
        let Target { package, test } = self;
        Invocation::cargo(&format!("test --quiet --profile checked -p {package} --test {test}"))
    }

    /// Builds it and finds its executable.
    pub(crate) fn build(self) -> Result<Built, String> {
        let invocation = self.invocation().with_argument("--no-run");
        let messages = invocation.with_argument("--message-format=json").read()?;
        let executable = messages.lines().filter_map(executable_in).next_back();
        match executable {
            Some(executable) => Ok(Built { target: self, executable }),
            None => Err(format!("cargo built no executable for {self:?}")),
        }
    }
}

impl Built {
    /// Runs it with `seed`, or with the seeds it holds itself. Prints nothing unless it fails.
    pub(crate) fn run(&self, seed: Option<u64>) -> Result<bool, String> {
        let mut invocation = Invocation::new(&self.executable);
        let mut replay = self.target.invocation();
        if let Some(seed) = seed {
            invocation = invocation.with_variable(SEED, seed.to_string());
            replay = replay.with_variable(SEED, seed.to_string());
        }
        let ending = invocation.run_quietly()?;
        if !ending.passed {
            println!("{}\nreplay with: {replay}", ending.output.trim_end());
        }
        Ok(ending.passed)
    }

    /// Runs it with `first` and the seeds after it until `duration` is over; at least one seed.
    pub(crate) fn run_for(&self, first: u64, duration: Duration) -> Result<bool, String> {
        let start = Instant::now();
        for seed in first.. {
            if !self.run(Some(seed))? {
                return Ok(false);
            }
            if start.elapsed() >= duration {
                println!(
                    "{} of {}: {} seeds",
                    self.target.test,
                    self.target.package,
                    seed - first + 1
                );
                break;
            }
        }
        Ok(true)
    }
}

/// The executable that a message of cargo's tells of.
pub(crate) fn executable_in(message: &str) -> Option<String> {
    let message: Value = serde_json::from_str(message).ok()?;
    message.get("executable")?.as_str().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_cargo_messages() {
        assert_eq!(executable_in(r#"{"reason":"x","executable":"/a/b"}"#), Some("/a/b".into()));
        assert_eq!(executable_in(r#"{"reason":"x","executable":null}"#), None);
        assert_eq!(executable_in("Compiling"), None);
    }
}
