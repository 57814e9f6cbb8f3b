//! Errors in a peer's bytes, and refusals of a server: the field, expected and found.

use std::fmt;

use super::numbers::Refusal;

/// Why a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    field: &'static str,
    detail: String,
}

/// The kinds of errors of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The peer does not speak this protocol.
    Foreign,
    /// A field holds what it must not.
    Malformed,
    /// A length is larger than what is accepted.
    TooLong,
    /// The server refuses an option that the client cannot do without.
    Refused(Refusal),
    /// The server ended the negotiation or lacks what the client demands.
    Unsupported,
}

impl Error {
    /// An error of `kind` in `field`; `detail` says what was expected and found.
    pub fn new(kind: ErrorKind, field: &'static str, detail: impl Into<String>) -> Error {
        Error { kind, field, detail: detail.into() }
    }

    /// A field that holds what it must not.
    pub(crate) fn malformed(field: &'static str, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, field, detail)
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Which field of the protocol it is about.
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NBD {}: {}", self.field, self.detail)
    }
}

impl std::error::Error for Error {}
