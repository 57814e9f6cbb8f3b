//! What can go wrong with a volume: a kind, and a sentence that says what, where, expected, found.

use std::fmt;

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on a cache or a volume. Cheap to clone: many requests may share one.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    detail: std::sync::Arc<str>,
    forceable: bool,
}

/// The kinds of errors of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is none this volume takes: a range past its end, a wrong alignment.
    InvalidInput,
    /// The request writes past the end of the volume, or there is no room.
    NoSpace,
    /// The backing or the cache failed the request.
    Io,
    /// The volume or its backing may only be read.
    ReadOnly,
    /// The backing cannot do this, or not as fast as was asked.
    Unsupported,
    /// The volume is being closed.
    Closing,
    /// There is no such volume, or one of this name is there already.
    Name,
    /// The cache holds something else, or belongs to another backing than the one given.
    Incompatible,
    /// The cache or the backing is used by another process, or absent.
    Unavailable,
}

impl Error {
    /// An error of `kind`; `detail` says what, where, expected and found.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error { kind, detail: detail.into().into(), forceable: false }
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether opening the cache or the backing by force passes over it. Its sentence says so.
    pub fn is_forceable(&self) -> bool {
        self.forceable
    }
}

impl From<entresol_flash::Error> for Error {
    fn from(source: entresol_flash::Error) -> Error {
        use entresol_flash::ErrorKind as Flash;
        let kind = match source.kind() {
            Flash::Full => ErrorKind::NoSpace,
            Flash::InvalidInput => ErrorKind::InvalidInput,
            Flash::Incompatible | Flash::WrongKey => ErrorKind::Incompatible,
            Flash::Device => ErrorKind::Unavailable,
            _ => ErrorKind::Io,
        };
        Error { forceable: source.is_forceable(), ..Error::new(kind, source.to_string()) }
    }
}

impl From<entresol_device::Error> for Error {
    fn from(source: entresol_device::Error) -> Error {
        let kind = match source.kind() {
            entresol_device::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            entresol_device::ErrorKind::Io => ErrorKind::Io,
            entresol_device::ErrorKind::Full => ErrorKind::NoSpace,
            _ => ErrorKind::Unavailable,
        };
        Error { forceable: source.is_forceable(), ..Error::new(kind, source.to_string()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Error {}
