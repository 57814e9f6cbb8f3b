//! A command that a step runs, and the one line with which a person repeats it.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A program with its arguments and the variables it is given; runs in the root of the tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocation {
    program: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) passed: bool,
    pub(crate) output: String,
}

impl Invocation {
    /// `line` is split at spaces; it holds no quoted words.
    pub(crate) fn new(line: &str) -> Invocation {
        let mut words = line.split_whitespace().map(str::to_string);
        let program = words.next().unwrap_or_default();
        Invocation { program, arguments: words.collect(), variables: Vec::new() }
    }

    /// Cargo as this program was started by, so that a nested call uses the same toolchain.
    pub(crate) fn cargo(line: &str) -> Invocation {
        Invocation::new(&format!("cargo {line}"))
    }

    pub(crate) fn with_variable(mut self, name: &str, value: impl Into<String>) -> Invocation {
        self.variables.push((name.to_string(), value.into()));
        self
    }

    pub(crate) fn with_argument(mut self, argument: impl Into<String>) -> Invocation {
        self.arguments.push(argument.into());
        self
    }

    /// Runs it with output passed on, line by line, to `watch` and to standard output.
    pub(crate) fn run_watched(&self, watch: &mut dyn FnMut(&str)) -> Result<bool, String> {
        let mut child =
            self.command().stdout(Stdio::piped()).spawn().map_err(|error| self.cannot(&error))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.map_err(|error| self.cannot(&error))?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                watch(&line);
            }
        }
        let status = child.wait().map_err(|error| self.cannot(&error))?;
        Ok(status.success())
    }

    /// Runs it and keeps what it prints, standard error included.
    pub(crate) fn run_quietly(&self) -> Result<Ending, String> {
        let output = self.command().output().map_err(|error| self.cannot(&error))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Ending { passed: output.status.success(), output: text })
    }

    /// As [`Invocation::run_quietly`], but ends it, and whatever it started, at the first line of
    /// which `is_enough` holds: it did not pass then.
    pub(crate) fn run_until(&self, is_enough: &dyn Fn(&str) -> bool) -> Result<Ending, String> {
        let mut merged = Invocation::new("sh -c").with_argument("exec \"$@\" 2>&1");
        merged.arguments.extend(["sh".to_string(), self.resolved()]);
        merged.arguments.extend_from_slice(&self.arguments);
        merged.variables.clone_from(&self.variables);
        let mut child = merged
            .command()
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| self.cannot(&error))?;
        let (mut output, mut was_enough) = (String::new(), false);
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.map_err(|error| self.cannot(&error))?;
                let line = String::from_utf8_lossy(&line);
                output.push_str(&line);
                output.push('\n');
                if !was_enough && is_enough(&line) {
                    was_enough = true;
                    let group = format!("-{}", child.id());
                    Invocation::new("kill -TERM --").with_argument(group).run_quietly()?;
                }
            }
        }
        let status = child.wait().map_err(|error| self.cannot(&error))?;
        Ok(Ending { passed: status.success() && !was_enough, output })
    }

    /// Runs it and returns its standard output; an error if it fails.
    pub(crate) fn read(&self) -> Result<String, String> {
        let output = self.command().output().map_err(|error| self.cannot(&error))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{self}` failed: {}", reason.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.resolved());
        command.args(&self.arguments).current_dir(crate::root()).stdin(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    fn resolved(&self) -> String {
        match self.program.as_str() {
            "cargo" => std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string()),
            other => other.to_string(),
        }
    }

    fn cannot(&self, error: &std::io::Error) -> String {
        format!("cannot run `{}`: {error}", self.program)
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&self.program)?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_line_can_be_pasted_into_a_shell() {
        let invocation = Invocation::cargo("test -p entresol-flash")
            .with_variable("RUSTFLAGS", "--cfg planted=\"a-b\"")
            .with_argument("it's");
        assert_eq!(
            invocation.to_string(),
            r#"RUSTFLAGS='--cfg planted="a-b"' cargo test -p entresol-flash 'it'\''s'"#
        );
    }

    #[test]
    fn failure_and_output_are_both_seen() {
        let ending = Invocation::new("sh -c").with_argument("echo seen; echo too >&2; exit 3");
        let ending = ending.run_quietly().unwrap();
        assert!(!ending.passed);
        assert_eq!(ending.output, "seen\ntoo\n");
        let mut lines = Vec::new();
        let passed = Invocation::new("echo a").run_watched(&mut |line| lines.push(line.into()));
        assert_eq!((passed, lines), (Ok(true), vec!["a".to_string()]));
        assert!(Invocation::new("no-such-program-anywhere").run_quietly().is_err());
    }

    #[test]
    fn what_has_said_enough_is_ended_with_all_that_it_started() {
        let endless = Invocation::new("sh -c").with_argument("echo one >&2; sh -c 'sleep 900'");
        let ending = endless.run_until(&|line| line == "one").unwrap();
        assert_eq!((ending.passed, ending.output.lines().next()), (false, Some("one")));
        let ending = Invocation::new("echo all").run_until(&|line| line == "more").unwrap();
        assert_eq!((ending.passed, ending.output.as_str()), (true, "all\n"));
    }
}
