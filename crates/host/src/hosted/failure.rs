//! Why a hosted store does not do what it was asked for.

use std::any::Any;
use std::fmt;

use entresol_tier::{Error, ErrorKind};

/// What a store, the system or a defect stands in the way of.
#[derive(Debug)]
pub enum Failure {
    /// The store refuses or has failed.
    Store(Error),
    /// The system refuses something.
    System {
        /// What was wanted of it.
        wanted: String,
        /// What it said.
        source: std::io::Error,
    },
    /// A panic, with its sentence.
    Defect(String),
}

impl Failure {
    /// What a panic becomes.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Failure {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no sentence");
        Failure::Defect(said.to_owned())
    }

    pub(crate) fn system(wanted: &str, source: std::io::Error) -> Failure {
        Failure::System { wanted: wanted.to_owned(), source }
    }

    /// That of whatever comes after the end.
    pub(crate) fn closed() -> Failure {
        Failure::Store(ended())
    }
}

/// What the store itself would say after its end.
pub(super) fn ended() -> Error {
    Error::new(ErrorKind::Poisoned, "the store was closed; open it again")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::System { wanted, source } => write!(f, "{wanted}: {source}"),
            Failure::Defect(said) => write!(f, "a defect of the store: {said}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Store(error) => error.source(),
            Failure::System { source, .. } => Some(source),
            Failure::Defect(_) => None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Store(error)
    }
}
