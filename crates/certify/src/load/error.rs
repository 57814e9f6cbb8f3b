//! Why a load cannot be issued.

use std::fmt;

/// A load's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a load cannot begin. The sentence says what, where, expected, found, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A target cannot be opened.
    Open {
        /// As configured.
        device: String,
        /// The system's error number.
        errno: i32,
    },
    /// A target does not tell its size, or is smaller than a block.
    Size {
        /// As configured.
        device: String,
    },
    /// A target cannot be read at any size from 512 to 4096 bytes.
    Unreadable {
        /// As configured.
        device: String,
    },
    /// A target is in use, or holds what belongs to somebody else.
    Refused(String),
    /// The plan cannot be carried out.
    Plan(String),
    /// The system refuses a thread, memory or a ring.
    System(String),
}

impl Error {
    /// The line that ACT prints, where it has one for this.
    pub fn compat_line(&self) -> String {
        match self {
            Error::Open { device, errno } => {
                format!("ERROR: open device {device} errno {errno} '{}'", errno_text(*errno))
            }
            Error::Size { device } => format!("ERROR: {device} ioctl to discover size"),
            Error::Unreadable { device } => {
                format!("ERROR: {device} read failed at all sizes from 512 to 4096 bytes")
            }
            Error::Refused(sentence) | Error::Plan(sentence) | Error::System(sentence) => {
                format!("ERROR: {sentence}")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Open { device, errno } => write!(
                f,
                "{device}: cannot be opened for reading and writing: {} (error {errno}); check the \
                 name with `lsblk`, and the permissions",
                errno_text(*errno)
            ),
            Error::Size { device } => write!(
                f,
                "{device}: expected a block device or a file with room for at least one large \
                 block; its size cannot be told or is smaller"
            ),
            Error::Unreadable { device } => {
                write!(f, "{device}: reads of 512, 1024, 2048 and 4096 bytes at offset 0 all fail")
            }
            Error::Refused(sentence) | Error::Plan(sentence) | Error::System(sentence) => {
                f.write_str(sentence)
            }
        }
    }
}

impl std::error::Error for Error {}

/// The system's words for an error number, which ACT prints.
pub fn errno_text(errno: i32) -> String {
    let mut text = std::io::Error::from_raw_os_error(errno).to_string();
    if let Some(end) = text.rfind(" (os error ") {
        text.truncate(end);
    }
    text
}
