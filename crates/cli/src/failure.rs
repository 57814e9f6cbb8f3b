//! How a command ends when it doesn't succeed, and with which exit status.

use std::fmt;

/// What a shell reports of a program that wrote to a pipe nobody reads: 128 and SIGPIPE.
pub(crate) const NOBODY_READS: u8 = 141;

/// The result of a command.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Why a command did not succeed. The sentence says what, where, and what to do next.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ran, and what it tested did not hold. Exit status 1.
    Failed(String),
    /// It could not run. Exit status 2.
    CannotRun(String),
    /// It said why itself; this is the exit status that goes with it.
    Told(u8),
}

impl Failure {
    /// The exit status that tells scripts which of the two it was.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::CannotRun(_) => 2,
            Failure::Told(status) => *status,
        }
    }

    /// A command whose output cannot be written; without a word where nobody reads it any more.
    pub(crate) fn not_written(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Told(NOBODY_READS),
            _ => Failure::doing("cannot write", error),
        }
    }

    /// The same, of a command that cannot be forced: `step` can, if the sentence asks for that.
    pub(crate) fn forced_by(self, step: &str) -> Failure {
        match self {
            Failure::CannotRun(sentence) if sentence.contains("force ") => {
                Failure::CannotRun(format!("{sentence}: {step}"))
            }
            other => other,
        }
    }

    /// A command that could not run, because of `error` while doing `what`.
    pub(crate) fn doing(what: impl fmt::Display, error: impl fmt::Display) -> Failure {
        Failure::CannotRun(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(sentence) | Failure::CannotRun(sentence) => f.write_str(sentence),
            Failure::Told(status) => write!(f, "exit status {status}"),
        }
    }
}

impl From<entresol_tier::Error> for Failure {
    fn from(error: entresol_tier::Error) -> Failure {
        Failure::CannotRun(error.to_string())
    }
}

impl From<entresol_device::Error> for Failure {
    fn from(error: entresol_device::Error) -> Failure {
        Failure::CannotRun(error.to_string())
    }
}
