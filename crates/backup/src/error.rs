//! What goes wrong with backups, in sentences for people.

use std::fmt;

/// The result of work on backups.
pub type Result<T> = std::result::Result<T, Error>;

/// What a failure comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server gave the copy up.
    GivenUp,
    /// Bytes of the repository are not what they were.
    Damaged,
    /// Somebody else works on the repository.
    Busy,
    /// What is to be made exists, or what is asked for does not.
    Refused,
    /// The place of the repository, the server or a file failed.
    Failed,
}

/// A failure: its kind, and a sentence that says what, where, expected and found.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
}

impl Error {
    /// A failure of `kind`.
    pub fn new(kind: ErrorKind, sentence: impl Into<String>) -> Error {
        Error { kind, sentence: sentence.into() }
    }

    /// What it comes to.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn damaged(sentence: impl Into<String>) -> Error {
        Error::new(ErrorKind::Damaged, sentence)
    }

    pub(crate) fn failed(what: impl fmt::Display, error: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Failed, format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}
