//! What can go wrong in the engine: a kind, and a sentence that says what, where, expected, found.

use std::fmt;

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed engine operation.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
    forceable: bool,
    needed_bytes: Option<u64>,
    source: Option<entresol_device::Error>,
}

/// The kinds of engine errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No room: writes are refused until something is removed or expires. Reads and removes go on.
    Full,
    /// A limit of work in flight was reached; finish some and try again.
    Busy,
    /// A write or sync failed; everything but reads is refused until the store is reopened.
    Poisoned,
    /// A record's or segment's bytes are not what was written.
    Corrupt,
    /// The device failed a read.
    Io,
    /// A key, value or option outside its limits.
    InvalidInput,
    /// The medium holds something else, or a format this version does not read.
    Incompatible,
    /// The encryption key is missing or is not the one the store was made with.
    WrongKey,
    /// The device is in use, foreign or absent.
    Device,
}

impl Error {
    /// An error of `kind`; `detail` says what, where, expected and found.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error { kind, detail: detail.into(), forceable: false, needed_bytes: None, source: None }
    }

    /// Of a memory cap that does not hold what there is: at least `needed_bytes` would.
    pub fn too_small(detail: impl Into<String>, needed_bytes: u64) -> Error {
        let needed_bytes = Some(needed_bytes);
        Error { needed_bytes, ..Error::new(ErrorKind::InvalidInput, detail) }
    }

    /// The same, where a store may be made over what is there.
    pub(crate) fn unless_forced(kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error { forceable: true, ..Error::new(kind, detail) }
    }

    /// Of a write to a store that was closed.
    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Poisoned, "the store was closed; open it again")
    }

    /// Of a memory cap that was too small, how much is needed, bytes: of the index's share as the
    /// store tells it, of the whole cap as the tier does.
    pub fn needed_bytes(&self) -> Option<u64> {
        self.needed_bytes
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether [`crate::OpenMode::OpenOrOverwrite`] on a device that is opened by force passes over
    /// it. Its sentence says so.
    pub fn is_forceable(&self) -> bool {
        self.forceable
    }
}

impl From<entresol_device::Error> for Error {
    fn from(source: entresol_device::Error) -> Error {
        let kind = match source.kind() {
            entresol_device::ErrorKind::Io => ErrorKind::Io,
            entresol_device::ErrorKind::Busy => ErrorKind::Busy,
            entresol_device::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            _ => ErrorKind::Device,
        };
        let forceable = source.is_forceable();
        Error {
            kind,
            detail: source.to_string(),
            forceable,
            needed_bytes: None,
            source: Some(source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
