//! How a command ends when it doesn't succeed, and with which exit status.

use std::fmt;

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
