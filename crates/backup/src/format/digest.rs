//! SHA-256 of raw bytes, and hexadecimal digits.

use std::fmt;

use ring::digest::{SHA256, digest};

/// SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// Digits of a digest that stand in names.
const CHECK_DIGITS: usize = 16;

impl Digest {
    /// That of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut value = [0; 32];
        value.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Digest(value)
    }

    /// What [`Digest`] prints.
    pub(crate) fn parse(text: &str) -> Option<Digest> {
        Some(Digest(bytes_of(text)?.try_into().ok()?))
    }

    /// The part of it that stands in names.
    pub fn check(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(CHECK_DIGITS);
        digits
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digits_of(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Two digits for each byte, in lower case.
pub(crate) fn digits_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// What [`digits_of`] wrote; digits in upper case are none, so that bytes have one text only.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
