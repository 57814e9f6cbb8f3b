//! Why a record is not appended, where nothing has failed.

use crate::error::{Error, ErrorKind};

/// What a write comes to that may be refused.
pub(crate) type Attempt<T> = std::result::Result<T, Refusal>;

/// Why a write was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The device has all buffers, or has still to erase the segment that the record would go to:
    /// the write may be tried again once the device has answered.
    NeedsBuffer,
    /// Reclaim has to make room first.
    NeedsRoom,
    /// There is no place for it, and reclaim alone makes none.
    Full(Error),
    /// It failed, and would again.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

impl From<entresol_device::Error> for Refusal {
    fn from(error: entresol_device::Error) -> Refusal {
        Refusal::Failed(error.into())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::Full(error) | Refusal::Failed(error) => error,
            Refusal::NeedsBuffer => Error::new(ErrorKind::Busy, "the device has still to answer"),
            Refusal::NeedsRoom => {
                Error::new(ErrorKind::Busy, "the shard waits for reclaim to free segments")
            }
        }
    }
}
