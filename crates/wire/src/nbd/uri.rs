//! NBD URIs: `nbd://host:port/export`, `nbd+unix:///export?socket=PATH`, and both with TLS.
//!
//! Source of the format: `doc/uri.md` of the NBD project; the parameters `tls-certificates` and
//! `tls-psk-file` are those of libnbd.

use std::fmt;

use super::error::{Error, ErrorKind};
use super::numbers::PORT;

/// Where an export is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// How its server is reached.
    pub transport: Transport,
    /// The export's name; empty for the server's default.
    pub export: String,
    /// Whether the connection must be encrypted (`nbds`, `nbds+unix`).
    pub encrypted: bool,
    /// The user that some kinds of TLS authenticate.
    pub user: Option<String>,
    /// `tls-type`: `x509`, `psk` or `anon`.
    pub tls_type: Option<String>,
    /// `tls-hostname`: the name that the server's certificate is to have.
    pub tls_hostname: Option<String>,
    /// `tls-verify-peer`: whether the server's certificate is verified.
    pub tls_verify_peer: Option<bool>,
    /// `tls-certificates`: a directory with `ca-cert.pem`, `client-cert.pem`, `client-key.pem`.
    pub tls_certificates: Option<String>,
    /// `tls-psk-file`: a file of shared keys.
    pub tls_psk_file: Option<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// A name or an address; IPv6 without brackets.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A Unix socket. A path that begins with a NUL is a name of the abstract namespace.
    Unix {
        /// Its path.
        path: String,
    },
}

impl Uri {
    /// Whether `text` begins as an NBD URI does.
    pub fn is_likely(text: &str) -> bool {
        SCHEMES
            .iter()
            .any(|(scheme, ..)| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(':')))
    }

    /// The URI that `text` spells.
    ///
    /// # Errors
    /// A part of it is none that an NBD URI has; the error names the part.
    pub fn parse(text: &str) -> Result<Uri, Error> {
        let split = text.split_once("://");
        let scheme = split.and_then(|(scheme, rest)| {
            let known = SCHEMES.iter().find(|(known, ..)| *known == scheme);
            known.map(|(_, encrypted, unix)| (*encrypted, *unix, rest))
        });
        let Some((encrypted, unix, rest)) = scheme else {
            let detail =
                format!("expected nbd://, nbds://, nbd+unix:// or nbds+unix://, found '{text}'");
            return Err(malformed("scheme of the URI", detail));
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match hierarchy.find('/') {
            Some(at) => hierarchy.split_at(at),
            None => (hierarchy, ""),
        };
        let export = path.strip_prefix('/').unwrap_or(path);
        let mut uri = Uri {
            transport: Transport::Unix { path: String::new() },
            export: decode(export, "export of the URI")?,
            encrypted,
            user: None,
            tls_type: None,
            tls_hostname: None,
            tls_verify_peer: None,
            tls_certificates: None,
            tls_psk_file: None,
        };
        if uri.export.contains('\0') {
            let detail = "expected a name without NUL, found one with it";
            return Err(malformed("export of the URI", detail.to_owned()));
        }
        let socket = uri.take_query(query)?;
        uri.transport = match (unix, socket) {
            (false, None) => uri.take_authority(authority)?,
            (true, Some(path)) if authority.is_empty() => Transport::Unix { path },
            (true, Some(_)) => {
                let detail = format!("expected none beside a Unix socket, found '{authority}'");
                return Err(malformed("host of the URI", detail));
            }
            (true, None) => {
                let detail = "expected ?socket=PATH, found none".to_owned();
                return Err(malformed("socket of the URI", detail));
            }
            (false, Some(_)) => {
                let detail = "expected none beside a host (nbd+unix has one), found one";
                return Err(malformed("socket of the URI", detail.to_owned()));
            }
        };
        Ok(uri)
    }

    /// Whether both name one export, as far as their addresses tell: a server may have several.
    pub fn is_same_export(&self, other: &Uri) -> bool {
        self.transport == other.transport && self.export == other.export
    }

    /// The same place without what authenticates: the user and the files of keys.
    pub fn without_credentials(&self) -> Uri {
        Uri { user: None, tls_certificates: None, tls_psk_file: None, ..self.clone() }
    }

    fn take_authority(&mut self, authority: &str) -> Result<Transport, Error> {
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        self.user = user.map(|user| decode(user, "user of the URI")).transpose()?;
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let Some((address, after)) = rest.split_once(']') else {
                    let detail = format!("expected an address in [ ], found '{place}'");
                    return Err(malformed("host of the URI", detail));
                };
                (address, after.strip_prefix(':').or(after.is_empty().then_some("")))
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, Some("")),
            },
        };
        let port = match port {
            Some("") => Some(PORT),
            Some(port) => port.parse().ok(),
            None => None,
        };
        let Some(port) = port else {
            let detail = format!("expected a number up to 65535, found '{place}'");
            return Err(malformed("port of the URI", detail));
        };
        let host = decode(host, "host of the URI")?;
        // As peers do: no host is this machine.
        let host = if host.is_empty() { "localhost".to_owned() } else { host };
        Ok(Transport::Tcp { host, port })
    }

    /// Takes all parameters; returns the socket.
    fn take_query(&mut self, query: &str) -> Result<Option<String>, Error> {
        let mut socket = None;
        for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, "parameter of the URI")?;
            let value = decode(value, "parameter of the URI")?;
            match name.as_str() {
                "socket" if value.is_empty() || value.chars().skip(1).any(|sign| sign == '\0') => {
                    let detail = format!("expected a path, found '{value}'");
                    return Err(malformed("socket of the URI", detail));
                }
                "socket" => socket = Some(value),
                "tls-type" if matches!(value.as_str(), "x509" | "psk" | "anon") => {
                    self.tls_type = Some(value);
                }
                "tls-hostname" => self.tls_hostname = Some(value),
                "tls-verify-peer" if matches!(value.as_str(), "0" | "1") => {
                    self.tls_verify_peer = Some(value == "1");
                }
                "tls-certificates" => self.tls_certificates = Some(value),
                "tls-psk-file" => self.tls_psk_file = Some(value),
                "tls-type" | "tls-verify-peer" => {
                    let detail = format!(
                        "expected tls-type=x509, psk or anon, tls-verify-peer=0 or 1, \
                         found '{pair}'"
                    );
                    return Err(malformed("parameter of the URI", detail));
                }
                // Other clients' experiments.
                other if other.starts_with("x-") => {}
                other => {
                    let detail = format!(
                        "expected socket, tls-type, tls-hostname, tls-verify-peer, \
                         tls-certificates or tls-psk-file, found '{other}'"
                    );
                    return Err(malformed("parameter of the URI", detail));
                }
            }
        }
        Ok(socket)
    }
}

/// Schemes: their name, whether they demand TLS, whether they reach a Unix socket.
const SCHEMES: [(&str, bool, bool); 4] = [
    ("nbd", false, false),
    ("nbds", true, false),
    ("nbd+unix", false, true),
    ("nbds+unix", true, true),
];

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_unix = matches!(self.transport, Transport::Unix { .. });
        let mut schemes = SCHEMES.iter();
        let scheme = schemes.find(|(_, tls, unix)| *tls == self.encrypted && *unix == is_unix);
        f.write_str(scheme.map_or("nbd", |(scheme, ..)| scheme))?;
        f.write_str("://")?;
        if let Transport::Tcp { host, port } = &self.transport {
            if let Some(user) = &self.user {
                write!(f, "{}@", encode(user, ""))?;
            }
            match host.contains(':') {
                true => write!(f, "[{}]", encode(host, ":"))?,
                false => f.write_str(&encode(host, ""))?,
            }
            if *port != PORT {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", encode(&self.export, "/:@"))?;
        let mut separator = '?';
        let mut parameter = |name: &str, value: &str| {
            let before = std::mem::replace(&mut separator, '&');
            write!(f, "{before}{name}={}", encode(value, "/"))
        };
        if let Transport::Unix { path } = &self.transport {
            parameter("socket", path)?;
        }
        let verify = self.tls_verify_peer.map(|verify| u8::from(verify).to_string());
        let texts = [
            ("tls-type", &self.tls_type),
            ("tls-hostname", &self.tls_hostname),
            ("tls-verify-peer", &verify),
            ("tls-certificates", &self.tls_certificates),
            ("tls-psk-file", &self.tls_psk_file),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                parameter(name, value)?;
            }
        }
        Ok(())
    }
}

/// Undoes the percent-encoding of `text`.
fn decode(text: &str, field: &'static str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => {
                let detail = format!("expected two digits of 0-9 and A-F after %, found '{text}'");
                return Err(malformed(field, detail));
            }
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| malformed(field, format!("expected UTF-8, found '{text}'")))
}

/// Percent-encodes all but the letters, digits and signs that may stand anywhere, and `allowed`.
fn encode(text: &str, allowed: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || allowed.as_bytes().contains(&byte);
        match plain {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn malformed(field: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::Malformed, field, detail)
}
