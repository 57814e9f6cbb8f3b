//! What can go wrong in a heap: a kind, and a sentence that says what, where, expected, found.

use std::fmt;
use std::io;

/// The heap's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed heap operation.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
    source: Option<io::Error>,
}

/// The kinds of heap errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No room for an allocation, in the heap or in the file system. The transaction goes on.
    Full,
    /// Another transaction changes the same collection, and waiting for it could be for ever. Abort
    /// this one, or let that one end, and try again.
    Busy,
    /// Another transaction changes the same collection, and did not end while this one waited. Try
    /// again.
    Held,
    /// A write or sync failed; every commit is refused until the heap is reopened.
    Poisoned,
    /// A write or sync failed, as of `Poisoned`, once a transaction's record was in the log: this
    /// process goes on to see it as committed. Whether it is there is known once the heap is
    /// reopened.
    Unsettled,
    /// The heap was closed; every commit is refused.
    Closed,
    /// The medium does not hold what was written.
    Corrupt,
    /// The medium failed a read, write or sync.
    Io,
    /// An offset, size or option outside its limits.
    InvalidInput,
    /// A handle of no live allocation: never allocated, or freed.
    NotLive,
    /// The file holds something else, a heap of another kind, or a format this version does not
    /// read.
    Incompatible,
    /// The key is missing, is not the one that the heap was made with, or was given for a heap that
    /// is not encrypted. Nothing is known to be damaged.
    WrongKey,
    /// The file is in use.
    InUse,
    /// There is no such file.
    NotFound,
    /// There is such a file already.
    Exists,
    /// The heap was opened for reading only.
    ReadOnly,
}

impl Error {
    /// An error of `kind`; `detail` says what, where, expected and found.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error { kind, detail: detail.into(), source: None }
    }

    /// A failed system call; `what` names the file and the call.
    pub fn io(what: impl Into<String>, source: io::Error) -> Error {
        let kind = match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM) => ErrorKind::Full,
            Some(libc::ENOENT | libc::ENOTDIR) => ErrorKind::NotFound,
            Some(libc::EEXIST) => ErrorKind::Exists,
            _ => ErrorKind::Io,
        };
        Error { kind, detail: what.into(), source: Some(source) }
    }

    /// A sync that failed; `what` names the file and the call. Never `Full`, whatever the system
    /// says: bytes that were taken before are lost.
    pub(crate) fn sync(what: impl Into<String>, source: io::Error) -> Error {
        Error { kind: ErrorKind::Io, detail: what.into(), source: Some(source) }
    }

    /// The same as of a transaction whose record is in the log.
    pub(crate) fn unsettled(self) -> Error {
        let detail = format!(
            "the transaction may be committed or not, as it turns out once the heap is reopened, \
             and is seen as committed until then: {}",
            self.detail
        );
        Error { kind: ErrorKind::Unsettled, detail, source: self.source }
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
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
        self.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
