//! What keeps strangers from the figures of the HTTP interface.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::Token;
use super::channel::Channel;
use crate::error::SettingError;
use crate::tls::{Tls, TlsFiles};

/// What whoever asks for figures has to show, and the TLS that it is shown by, from files that can
/// be read again while the server runs. What is below `/health` is open to all. Thread-safe.
#[derive(Debug)]
pub struct AdminAccess {
    token_file: Option<PathBuf>,
    /// Leaf: nothing is done while it is held but to copy what it holds.
    token: RwLock<Option<Arc<Token>>>,
    tls: Option<Tls>,
}

impl AdminAccess {
    /// Access by the token in `token_file`, and by TLS as `tls` says; without either, in plain and
    /// for all.
    ///
    /// # Errors
    /// As of [`Token::read`] and of [`Tls::open`].
    pub fn open(
        token_file: Option<PathBuf>,
        tls: Option<TlsFiles>,
    ) -> Result<AdminAccess, SettingError> {
        let token = token_file.as_deref().map(Token::read).transpose()?;
        let tls = tls.map(Tls::open).transpose()?;
        Ok(AdminAccess { token_file, token: RwLock::new(token.map(Arc::new)), tls })
    }

    /// Whether whoever asks for figures has to show something.
    pub fn is_closed(&self) -> bool {
        self.token_file.is_some() || self.wants_certificates()
    }

    /// How connections speak TLS; `None`: they speak none.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Reads the token again, for requests to come; `None` without a file.
    ///
    /// # Errors
    /// As of [`Token::read`]; then all stays as it was.
    pub fn reload_token(&self) -> Option<Result<(), SettingError>> {
        let file = self.token_file.as_deref()?;
        Some(Token::read(file).map(|token| {
            *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(token));
        }))
    }

    /// What whoever asks has to show; `None`: no token.
    pub(super) fn token(&self) -> Option<Arc<Token>> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether who came by `channel` lacks the certificate that is asked for.
    pub(super) fn refuses(&self, channel: Channel) -> bool {
        self.wants_certificates() && channel != Channel::Certified
    }

    fn wants_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::asks_for_certificates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_cannot_be_used_leaves_the_one_before() {
        let name = format!("entresol-token-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("0123456789abcdef\n");
        let access = AdminAccess::open(Some(file.clone()), None).unwrap();
        let first = access.token().unwrap();
        write("short\n");
        let refused = access.reload_token().unwrap().unwrap_err().to_string();
        assert!(refused.contains("`admin-token`"), "{refused}");
        assert!(access.token().unwrap() == first);
        write("fedcba9876543210\n");
        access.reload_token().unwrap().unwrap();
        assert!(access.token().unwrap() != first);
        std::fs::remove_file(&file).unwrap();
        assert!(AdminAccess::open(None, None).unwrap().reload_token().is_none());
    }
}
