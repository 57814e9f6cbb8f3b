//! The way that a request of the HTTP interface comes.

use crate::stream::Stream;

/// What is known of the connection that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// Anybody reads it.
    Plain,
    /// It is by TLS.
    Encrypted,
    /// It is by TLS, from somebody with a certificate of the authority.
    Certified,
}

impl Channel {
    /// The way that what `stream` has read came.
    pub(super) fn of(stream: &Stream) -> Channel {
        if stream.has_shown_certificate() {
            Channel::Certified
        } else if stream.speaks_tls() {
            Channel::Encrypted
        } else {
            Channel::Plain
        }
    }
}
