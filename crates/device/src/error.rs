//! What can go wrong on a device: a kind, where, and what was expected and found.

use std::fmt;

/// A device's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed device operation. Says what (kind), where (device and offset) and why (detail, source).
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
    source: Option<std::io::Error>,
}

/// The kinds of device errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The medium or the system refused a read, a write or a sync.
    Io,
    /// A range, an alignment or an option that the device cannot take.
    InvalidInput,
    /// More requests than the queue's depth; reap first.
    Busy,
    /// Another process, or this one, has the device open.
    InUse,
    /// The device is mounted, or carries a file system, a partition table or another's signature,
    /// or is a file with contents of its own.
    Foreign,
    /// The path does not exist or cannot be opened.
    NotFound,
    /// The medium has no room left.
    Full,
}

impl Error {
    /// An error of `kind`; `detail` names device, offset, expected and found.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error { kind, detail: detail.into(), source: None }
    }

    /// An operating-system error while doing `detail`.
    pub fn io(detail: impl Into<String>, source: std::io::Error) -> Error {
        Error { kind: ErrorKind::Io, detail: detail.into(), source: Some(source) }
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether [`crate::Force::Yes`] passes over it. Its sentence says so.
    pub fn is_forceable(&self) -> bool {
        self.kind == ErrorKind::Foreign
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
