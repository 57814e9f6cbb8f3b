//! Settings of sockets that cannot be.

use std::fmt;
use std::io::{self, ErrorKind};

/// A setting of a socket that cannot be: says which, what was expected and what was found. Where
/// it was given is known to whoever took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    place: Option<String>,
    key: String,
    detail: String,
}

impl SettingError {
    /// The setting `key` cannot be, because of `detail`.
    pub fn new(key: impl Into<String>, detail: String) -> SettingError {
        SettingError { place: None, key: key.into(), detail }
    }

    /// What stands at `place` cannot be; it was set by no key.
    pub(crate) fn at(place: String, detail: String) -> SettingError {
        SettingError { place: Some(place), key: String::new(), detail }
    }

    /// A socket of the setting `key` cannot listen on `what`, with what to do about it.
    pub(crate) fn cannot_listen(key: &str, what: &str, error: &io::Error) -> SettingError {
        let next = match (error.kind(), key) {
            // A socket that nobody listens on was removed before.
            (ErrorKind::AddrInUse, "unix") => "; what is there is no socket: choose another path",
            (ErrorKind::AddrInUse, _) => {
                "; another process has it (`ss -ltnp` names it): choose another port, or 0 for any \
                 free one"
            }
            (ErrorKind::NotFound, "unix") => "; make its directory first",
            (ErrorKind::PermissionDenied, "port") => {
                "; ports below 1024 need privileges: choose another"
            }
            (ErrorKind::AddrNotAvailable, _) => "; `bind` takes addresses of this machine",
            _ => "",
        };
        SettingError::new(key, format!("cannot listen on {what}: {error}{next}"))
    }

    /// Where it was given, if that is no matter of a key.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// The key that is wrong; empty where none is.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What was expected, and what was found.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.detail),
            None => write!(f, "key `{}`: {}", self.key, self.detail),
        }
    }
}

impl std::error::Error for SettingError {}
