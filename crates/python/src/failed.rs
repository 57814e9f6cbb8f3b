//! Failures of the engine as exceptions of the package.

use entresol_host::Failure;
use entresol_tier::{Error, ErrorKind};
use pyo3::PyErr;

/// Exceptions are written in Python, since several are of a class of the language, too.
mod exceptions {
    pyo3::import_exception!(entresol._errors, Error);
    pyo3::import_exception!(entresol._errors, FullError);
    pyo3::import_exception!(entresol._errors, BusyError);
    pyo3::import_exception!(entresol._errors, ClosedError);
    pyo3::import_exception!(entresol._errors, PoisonedError);
    pyo3::import_exception!(entresol._errors, CorruptError);
    pyo3::import_exception!(entresol._errors, InvalidError);
    pyo3::import_exception!(entresol._errors, IncompatibleError);
    pyo3::import_exception!(entresol._errors, WrongKeyError);
    pyo3::import_exception!(entresol._errors, DeviceError);
    pyo3::import_exception!(entresol._errors, RefusedError);
}

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    cause: Cause,
    sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Somebody closed the store.
    Closed,
    /// The store says so.
    Store(ErrorKind),
    /// A condition of a batch does not hold.
    Refused,
    /// The system, a fork or a defect.
    Other,
}

impl Failed {
    pub(crate) fn closed(path: &str) -> Failed {
        let sentence = format!("{path}: the store was closed; open it again");
        Failed { cause: Cause::Closed, sentence }
    }

    /// Of an argument, option or use that is not valid.
    pub(crate) fn invalid(sentence: String) -> Failed {
        Failed { cause: Cause::Store(ErrorKind::InvalidInput), sentence }
    }

    pub(crate) fn corrupt(sentence: String) -> Failed {
        Failed { cause: Cause::Store(ErrorKind::Corrupt), sentence }
    }

    pub(crate) fn refused(sentence: String) -> Failed {
        Failed { cause: Cause::Refused, sentence }
    }

    pub(crate) fn other(sentence: String) -> Failed {
        Failed { cause: Cause::Other, sentence }
    }

    /// Whether the store says that it refuses everything but reads.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.cause == Cause::Store(ErrorKind::Poisoned)
    }

    /// Whether its sentence says where.
    pub(crate) fn names(&self, path: &str) -> bool {
        self.sentence.contains(path)
    }

    /// The same, with whatever its sentence is about before it.
    pub(crate) fn about(self, what: &str) -> Failed {
        Failed { sentence: format!("{what}: {}", self.sentence), ..self }
    }

    /// The same, with what there is to do about it.
    pub(crate) fn with_advice(self, advice: &str) -> Failed {
        Failed { sentence: format!("{}: {advice}", self.sentence), ..self }
    }
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Failed {
        let cause = match failure {
            Failure::Store(error) => Cause::Store(error.kind()),
            _ => Cause::Other,
        };
        Failed { cause, sentence: failure.to_string() }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        Failed::from(&failure)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { cause: Cause::Store(error.kind()), sentence: error.to_string() }
    }
}

impl From<Failed> for PyErr {
    fn from(Failed { cause, sentence }: Failed) -> PyErr {
        match cause {
            Cause::Closed => exceptions::ClosedError::new_err(sentence),
            Cause::Refused => exceptions::RefusedError::new_err(sentence),
            Cause::Other => exceptions::Error::new_err(sentence),
            Cause::Store(kind) => match kind {
                ErrorKind::Full => exceptions::FullError::new_err(sentence),
                ErrorKind::Busy => exceptions::BusyError::new_err(sentence),
                ErrorKind::Poisoned => exceptions::PoisonedError::new_err(sentence),
                ErrorKind::Corrupt => exceptions::CorruptError::new_err(sentence),
                ErrorKind::InvalidInput => exceptions::InvalidError::new_err(sentence),
                ErrorKind::Incompatible => exceptions::IncompatibleError::new_err(sentence),
                ErrorKind::WrongKey => exceptions::WrongKeyError::new_err(sentence),
                _ => exceptions::DeviceError::new_err(sentence),
            },
        }
    }
}
