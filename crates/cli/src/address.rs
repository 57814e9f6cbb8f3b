//! Where a server listens, who asks there, and in which database:
//! `redis://USER:PASSWORD@HOST:PORT/DATABASE`, over TLS `rediss://…`, or `unix:PATH`.
//!
//! Invariant: a password leaves by [`Address::login`] only; messages, `Debug` and the refusal of a
//! command line never show it.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use clap::builder::TypedValueParser;

use crate::failure::{Failure, Outcome};

/// Where a server listens, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The way there.
    pub(crate) way: Way,
    /// The database that the address names, a space of the server.
    pub(crate) database: Option<u16>,
    user: Option<String>,
    password: Option<Secret>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// `redis://HOST:PORT`
    Tcp(String),
    /// `rediss://HOST:PORT`, with the file of the authorities that its certificate comes from.
    Tls(String, Option<PathBuf>),
    /// `unix:PATH`
    Unix(PathBuf),
}

/// How a server lets somebody in, beside what the address says.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AccessArgs {
    /// File with the password for --target, in its first line
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File with the authorities (PEM) that the certificate of a rediss:// --target comes from
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl AccessArgs {
    /// Refuses them where no server is named.
    pub(crate) fn demand_none(&self) -> Outcome<()> {
        let given = [("--password-file", &self.password_file), ("--tls-ca", &self.tls_ca)];
        match given.iter().find(|(_, file)| file.is_some()) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::CannotRun(format!(
                "{option} goes with --target redis://USER@HOST:PORT"
            ))),
        }
    }
}

/// Bytes that nobody is shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(Vec<u8>);

/// What is written of an address that cannot be.
const EXPECTED: &str = "redis://HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DATABASE (rediss:// for \
                        TLS) or unix:PATH";
const PORT: u16 = 6379;
/// Longest password.
const PASSWORD_BYTES_MAX: u64 = 4096;

impl Address {
    /// A TCP port where nobody has to say who asks.
    pub(crate) fn tcp(host: impl Into<String>) -> Address {
        Address { way: Way::Tcp(host.into()), database: None, user: None, password: None }
    }

    /// The arguments of `AUTH`; `None` if nobody has to say who asks.
    pub(crate) fn login(&self) -> Option<Vec<&[u8]>> {
        let password = self.password.as_ref()?;
        Some(self.user.iter().map(String::as_bytes).chain([password.0.as_slice()]).collect())
    }

    /// The address with what `access` says of it. A command line can be read by everybody on the
    /// machine, a file by its owner alone.
    pub(crate) fn with_access(mut self, access: &AccessArgs) -> Outcome<Address> {
        match (&access.password_file, &self.password) {
            (Some(file), None) => self.password = Some(Secret::read(file)?),
            (Some(file), Some(_)) => {
                return Err(Failure::CannotRun(format!(
                    "{self} has a password, and --password-file {} names another; give one",
                    file.display()
                )));
            }
            (None, None) if self.user.is_some() => {
                return Err(Failure::CannotRun(format!(
                    "{self} names a user and no password; give --password-file FILE"
                )));
            }
            (None, _) => {}
        }
        if let Some(file) = &access.tls_ca {
            let Way::Tls(_, authorities) = &mut self.way else {
                let sentence = format!("{self} speaks no TLS; --tls-ca goes with rediss://");
                return Err(Failure::CannotRun(sentence));
            };
            *authorities = Some(file.clone());
        }
        Ok(self)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let (path, database) = path.split_once("?db=").unwrap_or((path, ""));
            let (way, database) = (Way::Unix(PathBuf::from(path)), database_of(database)?);
            return Ok(Address { way, database, user: None, password: None });
        }
        let wrong = || format!("expected {EXPECTED}, found '{}'", without_password(text));
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        // A password that was not encoded may have an @ in it, a host has none.
        let (who, host) = match rest.rsplit_once('@') {
            Some((who, host)) => (Some(who), host),
            None => (None, rest),
        };
        let (host, database) = host.split_once('/').unwrap_or((host, ""));
        if host.is_empty() || host.starts_with(':') {
            return Err(wrong());
        }
        let database = database_of(database)?;
        let (name, port) = match host.rfind(':') > host.rfind(']') {
            true => host.rsplit_once(':').unwrap_or((host, "")),
            false => (host, ""),
        };
        let host = format!("{name}:{}", port_of(port)?);
        let way = match scheme {
            "redis" => Way::Tcp(host),
            "rediss" => Way::Tls(host, None),
            _ => return Err(wrong()),
        };
        let (user, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((user, password)) => (decoded(user), decoded(password)),
            None => (Some(Vec::new()), Some(Vec::new())),
        };
        let user = user.and_then(|user| String::from_utf8(user).ok()).ok_or_else(wrong)?;
        let password = password.ok_or_else(wrong)?;
        Ok(Address {
            way,
            database,
            user: Some(user).filter(|user| !user.is_empty()),
            password: Some(Secret(password)).filter(|password| !password.0.is_empty()),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.iter().map(|user| format!("{user}@")).collect::<String>();
        let database = self.database.iter().map(|number| format!("/{number}")).collect::<String>();
        match &self.way {
            Way::Tcp(host) => write!(f, "redis://{user}{host}{database}"),
            Way::Tls(host, _) => write!(f, "rediss://{user}{host}{database}"),
            Way::Unix(path) => {
                write!(f, "unix:{}{}", path.display(), database.replace('/', "?db="))
            }
        }
    }
}

impl Secret {
    /// The first line of `file`.
    fn read(file: &Path) -> Outcome<Secret> {
        let wrong = |what: &dyn fmt::Display| {
            Failure::doing(format!("cannot read a password from {}", file.display()), what)
        };
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
        opened.take(PASSWORD_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.len() {
            0 => Err(wrong(&"its first line is empty")),
            length if length as u64 == PASSWORD_BYTES_MAX => {
                Err(wrong(&format!("its first line has {PASSWORD_BYTES_MAX} bytes or more")))
            }
            _ => Ok(Secret(line.to_vec())),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Parses an argument as the function does, and does not repeat it where that fails.
#[derive(Clone)]
pub(crate) struct Unshown<T>(pub(crate) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Unshown<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parsed = match value.to_str() {
            Some(text) => (self.0)(text),
            None => Err(format!("expected {EXPECTED}, found what is no text")),
        };
        parsed.map_err(|what| {
            let option = argument.map(|argument| format!("{argument}: ")).unwrap_or_default();
            let kind = clap::error::ErrorKind::ValueValidation;
            clap::Error::raw(kind, format!("{option}{what}\n")).with_cmd(command)
        })
    }
}

/// The port that an address names; the usual one where it says nothing.
fn port_of(text: &str) -> Result<u16, String> {
    match text {
        "" => Ok(PORT),
        // It may be a password whose @ is missing, and is not shown.
        number => number.parse().map_err(|_| {
            format!(
                "expected a port from 0 to 65535 after the host, as in {EXPECTED}, found what is \
                 none"
            )
        }),
    }
}

/// The database that an address names; none where it says nothing.
fn database_of(text: &str) -> Result<Option<u16>, String> {
    match text {
        "" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| format!("expected a database from 0 to 65535, found '{number}'")),
    }
}

/// The text without what may be a password.
fn without_password(text: &str) -> String {
    let Some((before, host)) = text.rsplit_once('@') else {
        return text.to_owned();
    };
    let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
    format!("{}…@{host}", scheme.unwrap_or_default())
}

/// The bytes that text stands for in which `%` and two digits stand for one.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(digits[0])? << 4 | digit(digits[1])?) as u8);
        rest = after;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_read_back_what_they_print() {
        assert_eq!(parsed("redis://127.0.0.1:7").to_string(), "redis://127.0.0.1:7");
        assert_eq!(parsed("redis://h"), Address::tcp("h:6379"));
        assert_eq!(parsed("redis://[::1]/"), Address::tcp("[::1]:6379"));
        assert_eq!(parsed("redis://[::1]:7"), Address::tcp("[::1]:7"));
        assert_eq!(parsed("redis://h:/1").to_string(), "redis://h:6379/1");
        assert_eq!(parsed("rediss://:s@h:7/2").to_string(), "rediss://h:7/2");
        assert_eq!(parsed("redis://h:7/").database, None);
        assert_eq!(parsed("redis://h:7/2").database, Some(2));
        assert_eq!(parsed("redis://ann:s@h/2").to_string(), "redis://ann@h:6379/2");
        let tls = parsed("rediss://ann@h");
        assert_eq!(tls.way, Way::Tls("h:6379".to_owned(), None));
        assert_eq!(tls.to_string(), "rediss://ann@h:6379");
        assert_eq!(parsed("unix:/a/b").way, Way::Unix(PathBuf::from("/a/b")));
        assert_eq!(parsed("unix:///a/b?db=3").to_string(), "unix:/a/b?db=3");
        for wrong in [
            "http://x",
            "redis://",
            "redis://:6379",
            "redis://h/x",
            "redis://h/1/2",
            "redis://h/65536",
            "redis://h:65536",
            "redis://h:many",
            "redis://u%4@h",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_asks_stands_in_the_address_and_no_message_shows_the_password() {
        for (text, login, shown) in [
            ("redis://:s3cret@h:1", vec![&b"s3cret"[..]], "redis://h:1"),
            ("redis://ann:s3cret@h", vec![b"ann", b"s3cret"], "redis://ann@h:6379"),
            ("redis://a%3An:s%40/s3cret@h", vec![b"a:n", b"s@/s3cret"], "redis://a:n@h:6379"),
            ("redis://ann:s@s3cret@h", vec![b"ann", b"s@s3cret"], "redis://ann@h:6379"),
        ] {
            let address = parsed(text);
            assert_eq!(address.login(), Some(login), "{text}");
            assert_eq!(address.to_string(), shown);
            let debug = format!("{address:?}");
            assert!(!debug.contains("s3cret") && !debug.contains("115, 51"), "{debug}");
            address.with_access(&AccessArgs::default()).unwrap();
        }
        assert_eq!(parsed("redis://h").login(), None);
        for wrong in
            ["redis://ann:s3cret@", "http://:s3cret@h", "ann:s3cret@h", "redis://a:s3cret%@h"]
        {
            let said = wrong.parse::<Address>().unwrap_err();
            assert!(said.contains("…@") && !said.contains("s3cret"), "{said}");
        }
        let no_host = "redis://ann:s3cret".parse::<Address>().unwrap_err();
        assert!(no_host.contains("a port") && !no_host.contains("s3cret"), "{no_host}");
    }

    #[test]
    fn the_password_of_a_file_is_its_first_line() {
        let file = std::env::temp_dir().join(format!("entresol-password-{}", std::process::id()));
        let access = AccessArgs { password_file: Some(file.clone()), ..AccessArgs::default() };
        let with = |text: &str, bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            parsed(text).with_access(&access).map_err(|error| error.to_string())
        };
        let ann = with("redis://ann@h", b"s3 cret\r\nmore\n").unwrap();
        assert_eq!(ann.login(), Some(vec![&b"ann"[..], b"s3 cret"]));
        assert_eq!(with("unix:/s", b"s3cret").unwrap().login(), Some(vec![&b"s3cret"[..]]));
        assert!(with("redis://h", b"\nx").unwrap_err().contains("first line is empty"));
        assert!(with("redis://h", &[b'x'; 5000]).unwrap_err().contains("4096 bytes or more"));
        let twice = with("redis://ann:s3cret@h", b"s4cret").unwrap_err();
        assert!(twice.starts_with("redis://ann@h:6379 has a password"), "{twice}");
        assert!(!twice.contains("s3cret") && !twice.contains("s4cret"), "{twice}");
        std::fs::remove_file(&file).unwrap();
        let none =
            parsed("redis://ann@h").with_access(&AccessArgs::default()).unwrap_err().to_string();
        assert!(none.contains("--password-file"), "{none}");
        let missing = parsed("redis://h").with_access(&access).unwrap_err().to_string();
        assert!(missing.contains("cannot read a password"), "{missing}");
    }
}
