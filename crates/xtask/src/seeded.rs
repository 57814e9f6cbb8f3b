//! A test target that takes its seed from `ENTRESOL_SEED`: built once, run with one seed after
//! another, each failure printed with the line that replays it.
//!
//! What runs for long is built to be fast. What runs for seconds takes the build that the tests
//! have, since building another takes longer than it saves.

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

/// How targets are built; assertions and overflow checks are on in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    /// The profile `checked`: a build of its own, optimised.
    Optimised,
    /// As `cargo test --workspace` builds them, which may have done so before.
    AsTests,
}

/// A target that was built.
#[derive(Debug)]
pub(crate) struct Built {
    target: Target,
    speed: Speed,
    executable: String,
}

impl Speed {
    fn options(self) -> &'static str {
        match self {
            Speed::Optimised => "--profile checked",
            Speed::AsTests => "--profile test",
        }
    }
}

impl Target {
    /// What `cargo` is to run.
    pub(crate) fn invocation(self, speed: Speed) -> Invocation {
        let (Target { package, test }, options) = (self, speed.options());
        Invocation::cargo(&format!("test --quiet {options} -p {package} --test {test}"))
    }

    /// Builds it and finds its executable.
    pub(crate) fn build(self, speed: Speed) -> Result<Built, String> {
        let invocation = match speed {
            Speed::Optimised => self.invocation(speed),
            // Features of crates from outside are those that the whole workspace asks for.
            Speed::AsTests => {
                Invocation::cargo("test --quiet --workspace --test").with_argument(self.test)
            }
        };
        let executable = self.built_by(&invocation)?;
        Ok(Built { target: self, speed, executable })
    }

    /// Lets `cargo test` build what `invocation` names, and finds the executable of this target.
    fn built_by(self, invocation: &Invocation) -> Result<String, String> {
        let invocation = invocation.clone().with_argument("--no-run");
        let messages = invocation.with_argument("--message-format=json").read()?;
        self.executable_among(&messages)
    }

    /// The executable of this target, of which one of cargo's messages tells.
    pub(crate) fn executable_among(self, messages: &str) -> Result<String, String> {
        let package = format!("#{}@", self.package);
        let is_it = |message: &&str| {
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            message["package_id"].as_str().is_some_and(|id| id.contains(&package))
                && message["target"]["name"] == self.test
                && message["target"]["kind"][0] == "test"
        };
        let executable = messages.lines().filter(is_it).filter_map(executable_in).next_back();
        executable.ok_or_else(|| format!("cargo built no executable for {self:?}"))
    }
}

impl Built {
    /// Runs it with `seed`, or with the seeds it holds itself. Prints nothing unless it fails.
    pub(crate) fn run(&self, seed: Option<u64>) -> Result<bool, String> {
        self.run_with(seed, &[])
    }

    /// As [`Built::run`], with variables that the test takes besides.
    pub(crate) fn run_with(
        &self,
        seed: Option<u64>,
        variables: &[(&str, String)],
    ) -> Result<bool, String> {
        let mut invocation = Invocation::new(&self.executable);
        let mut replay = self.target.invocation(self.speed);
        let seed = seed.map(|seed| (SEED, seed.to_string()));
        for (name, value) in seed.iter().chain(variables) {
            invocation = invocation.with_variable(name, value);
            replay = replay.with_variable(name, value);
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

    #[test]
    fn targets_of_one_name_are_told_apart_by_their_packages() {
        let message = |package: &str, kind: &str| {
            format!(
                r#"{{"package_id":"path+file:///a/{package}#entresol-{package}@0.1.0",
                "target":{{"name":"crash","kind":["{kind}"]}},"executable":"/{package}/{kind}"}}"#
            )
            .replace('\n', " ")
        };
        let all = [message("flash", "test"), message("heap", "bin"), message("heap", "test")];
        let target = Target { package: "entresol-heap", test: "crash" };
        assert_eq!(target.executable_among(&all.join("\n")), Ok("/heap/test".to_string()));
        assert!(target.executable_among(&all[0]).is_err());
    }
}
