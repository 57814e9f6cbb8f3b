//! Why a command is refused: the text of an error reply, its code first.
//!
//! Texts are those of redis-server 7.0, byte for byte, because clients compare them.

use std::borrow::Cow;

use entresol_tier::{Error, ErrorKind};

/// The text of an error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(Cow<'static, str>);

impl Failure {
    pub(crate) const SYNTAX: Failure = Failure::fixed("ERR syntax error");
    pub(crate) const WRONG_TYPE: Failure =
        Failure::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const NOT_AN_INTEGER: Failure =
        Failure::fixed("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Failure = Failure::fixed("ERR value is not a valid float");
    pub(crate) const NO_SUCH_KEY: Failure = Failure::fixed("ERR no such key");
    pub(crate) const OVERFLOW: Failure =
        Failure::fixed("ERR increment or decrement would overflow");
    pub(crate) const NOT_FINITE: Failure =
        Failure::fixed("ERR increment would produce NaN or Infinity");
    pub(crate) const SPACE_RANGE: Failure = Failure::fixed("ERR DB index is out of range");
    pub(crate) const SAME_OBJECT: Failure =
        Failure::fixed("ERR source and destination objects are the same");
    pub(crate) const INVALID_CURSOR: Failure = Failure::fixed("ERR invalid cursor");
    pub(crate) const VALUE_TOO_LONG: Failure =
        Failure::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub(crate) const NO_AUTH: Failure = Failure::fixed("NOAUTH Authentication required.");
    pub(crate) const WRONG_PASSWORD: Failure =
        Failure::fixed("WRONGPASS invalid username-password pair or user is disabled.");
    pub(crate) const EXECUTION_ABORTED: Failure =
        Failure::fixed("EXECABORT Transaction discarded because of previous errors.");

    pub(crate) const NOT_IN_TRANSACTION: Failure =
        Failure::fixed("ERR Command not allowed inside a transaction");

    /// A failure whose text never changes.
    pub(crate) const fn fixed(text: &'static str) -> Failure {
        Failure(Cow::Borrowed(text))
    }

    /// A failure with values in its text.
    pub(crate) fn new(text: String) -> Failure {
        Failure(Cow::Owned(text))
    }

    /// Too few or too many arguments for `command`.
    pub(crate) fn arity(command: &str) -> Failure {
        Failure::new(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// An expiry that cannot be.
    pub(crate) fn expire_time(command: &str) -> Failure {
        Failure::new(format!("ERR invalid expire time in '{command}' command"))
    }

    /// A number that is none of those allowed.
    pub(crate) fn not_between(least: i64, most: i64) -> Failure {
        let text = format!("ERR value is out of range, value must between {least} and {most}");
        Failure::new(text)
    }

    /// An `EXEC` that is refused itself, for a reason of its own.
    pub(crate) fn execution_refused(reason: &Failure) -> Failure {
        let reason = reason.text();
        let reason = reason.strip_prefix("ERR ").unwrap_or(reason);
        Failure::new(format!("EXECABORT Transaction discarded because of: {reason}"))
    }

    /// The reply's text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Full => "OOM",
            ErrorKind::Busy => "BUSY",
            ErrorKind::Poisoned => "MISCONF",
            _ => "ERR",
        };
        Failure::new(format!("{code} {error}"))
    }
}
