//! Why a server of volumes does not start or does not go on.

use std::fmt;
use std::io;

use entresol_net::SettingError;

/// Why a server of volumes does not start or does not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum NbdError {
    /// What it was told of its sockets cannot be.
    Setting(SettingError),
    /// The system refused something: what, and why.
    System(&'static str, io::Error),
}

impl fmt::Display for NbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NbdError::Setting(error) if error.place().is_some() => write!(f, "{error}"),
            NbdError::Setting(error) => write!(f, "volume serve: {error}"),
            NbdError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for NbdError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NbdError::Setting(error) => Some(error),
            NbdError::System(_, error) => Some(error),
        }
    }
}

impl From<SettingError> for NbdError {
    fn from(error: SettingError) -> NbdError {
        NbdError::Setting(error)
    }
}
