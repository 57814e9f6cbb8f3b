//! Failures of a command, with their exit statuses.

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
    /// It could not run unless it is forced, which the sentence says. Exit status 2.
    Refused(String),
    /// It said why itself; this is the exit status that goes with it.
    Told(u8),
}

impl Failure {
    /// The exit status that tells scripts which of the two it was.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::CannotRun(_) | Failure::Refused(_) => 2,
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

    /// The same, of a command that cannot be forced: `step` can.
    pub(crate) fn forced_by(self, step: &str) -> Failure {
        match self {
            Failure::Refused(sentence) => Failure::CannotRun(format!("{sentence}: {step}")),
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
            Failure::Failed(sentence)
            | Failure::CannotRun(sentence)
            | Failure::Refused(sentence) => f.write_str(sentence),
            Failure::Told(status) => write!(f, "exit status {status}"),
        }
    }
}

/// What is said of errors that a command may be forced to pass over.
macro_rules! from_errors {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                match error.is_forceable() {
                    true => Failure::Refused(error.to_string()),
                    false => Failure::CannotRun(error.to_string()),
                }
            }
        }
    )*};
}

from_errors!(
    entresol_tier::Error,
    entresol_device::Error,
    entresol_volume::Error,
    entresol_server::ServeError,
);

#[cfg(test)]
mod tests {
    use entresol_device::{Error, ErrorKind};

    use super::*;

    /// It was whoever had the word in its sentence, as in the name of a file.
    #[test]
    fn only_what_force_passes_over_names_the_command_that_can_be_forced() {
        let said = |kind| {
            let error = Error::new(kind, "/tmp/task force one: cannot be used; force it");
            Failure::from(error).forced_by("another does").to_string()
        };
        assert!(said(ErrorKind::Foreign).ends_with("force it: another does"));
        assert!(said(ErrorKind::InUse).ends_with("force it"));
    }
}
