//! The word that opens the HTTP interface.

use std::fmt;
use std::path::Path;

use crate::error::SettingError;

/// Shortest one, bytes: nobody guesses it.
const BYTES_MIN: usize = 16;

/// What whoever asks for figures shows as `Authorization: Bearer TOKEN` (RFC 6750).
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// The word in the first line of the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or the word is short or no such word.
    pub fn read(path: &Path) -> Result<Token, SettingError> {
        let wrong = |detail| SettingError::new("admin-token", detail);
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(format!("{shown} cannot be read: {error}")))?;
        let word = text.lines().next().unwrap_or_default().trim();
        // What a header can have (RFC 6750, 2.1).
        let is_taken = word.len() >= BYTES_MIN
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
        match is_taken {
            true => Ok(Token(word.as_bytes().to_vec())),
            false => Err(wrong(format!(
                "expected in {shown} a line of {BYTES_MIN} or more letters and digits (`openssl \
                 rand -hex 32` prints one), found {} bytes",
                word.len()
            ))),
        }
    }

    /// Whether a request with these headers shows it. How long that takes does not tell how much of
    /// it is right.
    pub(super) fn is_shown_by(&self, headers: &[httparse::Header<'_>]) -> bool {
        let header = headers.iter().find(|one| one.name.eq_ignore_ascii_case("authorization"));
        let Some((scheme, shown)) = header.and_then(|one| one.value.split_at_checked(7)) else {
            return false;
        };
        let differences =
            shown.iter().zip(&self.0).fold(0, |all, (one, other)| all | (one ^ other));
        scheme.eq_ignore_ascii_case(b"bearer ") && shown.len() == self.0.len() && differences == 0
    }
}

/// Nobody is shown the word.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
