//! Why a server does not start or does not go on.

use std::fmt;

use crate::config::ConfigError;

/// Why a server does not start or does not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration cannot be.
    Config(ConfigError),
    /// The device cannot be used.
    Device(entresol_device::Error),
    /// The store cannot be opened or closed.
    Store(entresol_tier::Error),
    /// The system refused something: what, and why.
    System(&'static str, std::io::Error),
}

impl ServeError {
    /// Whether the configuration's `force` passes over it. Its sentence says so.
    pub fn is_forceable(&self) -> bool {
        match self {
            ServeError::Device(error) => error.is_forceable(),
            ServeError::Store(error) => error.is_forceable(),
            ServeError::Config(_) | ServeError::System(..) => false,
        }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Config(error) => write!(f, "{error}"),
            ServeError::Device(error) => write!(f, "the device cannot be used: {error}"),
            ServeError::Store(error) => write!(f, "the store cannot be used: {error}"),
            ServeError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::Config(error) => Some(error),
            ServeError::Device(error) => Some(error),
            ServeError::Store(error) => Some(error),
            ServeError::System(_, error) => Some(error),
        }
    }
}

impl From<ConfigError> for ServeError {
    fn from(error: ConfigError) -> ServeError {
        ServeError::Config(error)
    }
}

impl From<entresol_net::SettingError> for ServeError {
    fn from(error: entresol_net::SettingError) -> ServeError {
        ServeError::Config(error.into())
    }
}

impl From<entresol_device::Error> for ServeError {
    fn from(error: entresol_device::Error) -> ServeError {
        ServeError::Device(error)
    }
}

impl From<entresol_tier::Error> for ServeError {
    fn from(error: entresol_tier::Error) -> ServeError {
        ServeError::Store(error)
    }
}
