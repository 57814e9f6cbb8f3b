//! The word that opens the HTTP interface.

use std::fmt;
use std::path::Path;

use httparse::Header;

use super::channel::Channel;
use crate::error::SettingError;

/// Shortest one, bytes: nobody guesses it.
const BYTES_MIN: usize = 16;
const BEARER: &[u8] = b"Bearer ";

/// What whoever asks for figures shows as `Authorization: Bearer TOKEN` (RFC 6750), or a browser by
/// the cookie that it got for that.
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

    /// Whether a request with these headers shows it, itself or by its cookie.
    pub(super) fn is_shown_by(&self, headers: &[Header<'_>], channel: Channel) -> bool {
        let bearer = values(headers, "authorization").next().and_then(|value| {
            let (scheme, shown) = value.split_at_checked(BEARER.len())?;
            scheme.eq_ignore_ascii_case(BEARER).then_some(shown)
        });
        let name = cookie_name(headers, channel);
        let cookies = values(headers, "cookie").flat_map(|value| value.split(|byte| *byte == b';'));
        let mut kept = cookies.filter_map(|cookie| {
            let value = cookie.trim_ascii().strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=")
        });
        bearer.is_some_and(|shown| self.is(shown)) || kept.any(|shown| self.is(shown))
    }

    /// What a browser that shows it is to keep until it is closed. Scripts do not see it, and it is
    /// sent with no request that another site causes.
    pub(super) fn cookie(&self, headers: &[Header<'_>], channel: Channel) -> String {
        let word = String::from_utf8_lossy(&self.0);
        format!("{}={word}; {}", cookie_name(headers, channel), cookie_rules(channel))
    }

    /// How long that takes does not tell how much of it is right.
    fn is(&self, shown: &[u8]) -> bool {
        let differences =
            shown.iter().zip(&self.0).fold(0, |all, (one, other)| all | (one ^ other));
        shown.len() == self.0.len() && differences == 0
    }
}

/// What a browser is told to forget the word by.
pub(super) fn no_cookie(headers: &[Header<'_>], channel: Channel) -> String {
    format!("{}=; Max-Age=0; {}", cookie_name(headers, channel), cookie_rules(channel))
}

/// Where and how a browser shows its cookie: in plain no more, if it got it by TLS.
fn cookie_rules(channel: Channel) -> &'static str {
    match channel {
        Channel::Plain => "Path=/; HttpOnly; SameSite=Strict",
        Channel::Encrypted | Channel::Certified => "Path=/; HttpOnly; SameSite=Strict; Secure",
    }
}

/// Browsers keep the cookies of all ports of a host together: each has a name of its own.
fn cookie_name(headers: &[Header<'_>], channel: Channel) -> String {
    let host = values(headers, "host").next().and_then(|host| std::str::from_utf8(host).ok());
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    let unnamed = if channel == Channel::Plain { 80 } else { 443 };
    format!("entresol-token-{}", port.unwrap_or(unnamed))
}

fn values<'h>(headers: &'h [Header<'_>], name: &str) -> impl Iterator<Item = &'h [u8]> {
    headers.iter().filter(move |one| one.name.eq_ignore_ascii_case(name)).map(|one| one.value)
}

/// Nobody is shown the word.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_opens_the_port_that_gave_it_out_and_no_other() {
        let token = Token(b"0123456789abcdef".to_vec());
        let host = |host: &'static [u8]| Header { name: "Host", value: host };
        let given = token.cookie(&[host(b"[::1]:6380")], Channel::Plain);
        assert_eq!(
            given,
            "entresol-token-6380=0123456789abcdef; Path=/; HttpOnly; SameSite=Strict"
        );
        let shown = |host_name: &'static [u8], cookie: &str| {
            let cookie = Header { name: "cookie", value: cookie.as_bytes() };
            token.is_shown_by(&[host(host_name), cookie], Channel::Plain)
        };
        let kept = given.split(';').next().unwrap();
        assert!(shown(b"x:6380", kept) && shown(b"x:6380", &format!("a=b; {kept};c=d")));
        assert!(!shown(b"x:6381", kept) && !shown(b"x", kept));
        assert!(!shown(b"x:6380", "entresol-token-6380=0123456789abcde"));
        assert!(!shown(b"x:6380", "entresol-token-6380") && !shown(b"x:6380", ""));
    }

    #[test]
    fn a_cookie_that_came_by_tls_is_shown_by_tls_alone() {
        let token = Token(b"0123456789abcdef".to_vec());
        let host = [Header { name: "Host", value: b"x" }];
        for channel in [Channel::Encrypted, Channel::Certified] {
            let given = token.cookie(&host, channel);
            assert!(given.starts_with("entresol-token-443=0123456789abcdef; "), "{given}");
            assert!(given.ends_with("; Secure"), "{given}");
            assert!(no_cookie(&host, channel).ends_with("; Secure"));
        }
    }
}
