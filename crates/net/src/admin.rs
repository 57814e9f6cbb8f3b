//! Pages over HTTP, for the people who run a server and their tools.
//!
//! One thread serves at most 64 clients, so what it holds is bounded: a request has at most 8 KiB,
//! a client has five seconds to send it and five to take the answer. What there is to see is the
//! [`Site`]'s; who may see it, and whether by TLS, the [`AdminAccess`]'.

mod access;
mod asked;
mod channel;
mod token;
mod visitors;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::error::SettingError;
pub use access::AdminAccess;
pub use asked::{Asked, Standing};
use channel::Channel;
pub use token::Token;
use visitors::{Door, Visitors};

/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// The status that says which methods there are (RFC 9110, 15.5.6).
const NOT_ALLOWED: &str = "405 Method Not Allowed";
/// The status of who shows no token, or another one (RFC 9110, 15.5.2).
const NOBODY: &str = "401 Unauthorized";
/// The status of who shows no certificate where one is asked for, and can show none any more on the
/// same connection (RFC 9110, 15.5.4).
const UNCERTIFIED: &str = "403 Forbidden";
/// Where a browser shows the token once, and gets a cookie for it.
const SIGN_IN: &str = "/console/sign-in";
/// Where the browser gives that cookie back.
const SIGN_OUT: &str = "/console/sign-out";
/// What a page may do: use style and script of this server, and ask it. Nothing else, and nobody
/// frames it.
const PAGE_HEADERS: &str = "Content-Security-Policy: default-src 'none'; style-src 'self'; \
    script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n";

/// The HTTP interface, listening.
#[derive(Debug)]
pub struct Admin {
    door: Door,
    address: SocketAddr,
    access: Arc<AdminAccess>,
}

/// What the HTTP interface shows.
pub trait Site: Sync {
    /// Whether the server is about to stop.
    fn is_stopping(&self) -> bool;

    /// The answer to what is asked for; `None` if there is no such thing.
    fn page(&self, asked: &Asked<'_>) -> Option<Answer>;

    /// What whoever shows no token gets at `path` instead of a refusal: how to show one.
    fn threshold(&self, _path: &str) -> Option<Answer> {
        None
    }
}

/// An answer to a request.
pub struct Answer {
    status: &'static str,
    content_type: &'static str,
    /// Further header lines.
    headers: String,
    body: String,
    /// Whether the body is sent, and not only told of.
    whole: bool,
}

impl Admin {
    /// Listens on `port` of the address `bind`, for whom `access` lets in.
    ///
    /// # Errors
    /// `bind` is no address, or one that cannot be listened on.
    pub fn open(bind: &str, port: u16, access: Arc<AdminAccess>) -> Result<Admin, SettingError> {
        let ip = bind.parse::<IpAddr>().map_err(|_| {
            let detail = format!(
                "expected an address of this machine such as 127.0.0.1, or 0.0.0.0 for all of \
                 them, found `{bind}`"
            );
            SettingError::new("admin-bind", detail)
        })?;
        let listen = || -> io::Result<Admin> {
            let door = Door::open(SocketAddr::new(ip, port))?;
            let address = door.address()?;
            Ok(Admin { door, address, access: Arc::clone(&access) })
        };
        listen().map_err(|error| {
            SettingError::cannot_listen("admin-port", &format!("{ip}:{port}"), &error)
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the server stops.
    ///
    /// # Errors
    /// The system does not let it wait. A client's trouble is its own.
    pub fn serve(self, site: &dyn Site) -> io::Result<()> {
        Visitors::new(self.door, &self.access, site).serve()
    }
}

/// The answer to `request`; `None` if it is not complete.
fn answer(
    request: &[u8],
    channel: Channel,
    access: &AdminAccess,
    site: &dyn Site,
) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) => return Some(plain("431 Request Header Fields Too Large")),
        Err(_) => return Some(plain("400 Bad Request")),
    }
    let whole = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some(plain(NOT_ALLOWED)),
    };
    let (path, query) = path_of(parsed.path.unwrap_or_default());
    let is_open = path == "/health" || path.starts_with("/health/");
    let token = access.token();
    let shown = token.as_ref().filter(|token| token.is_shown_by(parsed.headers, channel));
    let answer = match shown {
        _ if access.refuses(channel) && !is_open => plain(UNCERTIFIED),
        None if token.is_some() && !is_open => {
            site.threshold(path).unwrap_or_else(|| plain(NOBODY))
        }
        Some(token) if path == SIGN_IN => signed(&token.cookie(parsed.headers, channel)),
        Some(_) if path == SIGN_OUT => signed(&token::no_cookie(parsed.headers, channel)),
        _ => {
            let standing = if shown.is_some() { Standing::Known } else { Standing::Anybody };
            let asked = Asked { path, query, standing };
            site.page(&asked).unwrap_or_else(|| plain("404 Not Found"))
        }
    };
    Some(Answer { whole, ..answer })
}

/// The answer that hands a cookie out or takes it back.
fn signed(cookie: &str) -> Answer {
    let headers = format!("Set-Cookie: {cookie}\r\n");
    Answer { headers, ..plain("200 OK") }
}

/// The path of a target, which may be a whole address (RFC 9112, 3.2.2), and its query.
fn path_of(target: &str) -> (&str, &str) {
    let after = |scheme: &str| {
        let start = target.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &target[scheme.len()..])
    };
    let path = match after("http://").or_else(|| after("https://")) {
        // The first of these ends the host (RFC 3986, 3.2): a query may hold slashes, too.
        Some(address) => match address.find(['/', '?']) {
            Some(start) if address[start..].starts_with('?') => {
                return ("/", &address[start + 1..]);
            }
            start => start.map_or("/", |start| &address[start..]),
        },
        None => target,
    };
    path.split_once('?').unwrap_or((path, ""))
}

impl Answer {
    /// JSON text.
    pub fn json(status: &'static str, body: String) -> Answer {
        Answer::of(status, "application/json", body)
    }

    /// A page for browsers.
    pub fn html(body: String) -> Answer {
        let page = Answer::of("200 OK", "text/html; charset=utf-8", body);
        Answer { headers: PAGE_HEADERS.to_owned(), ..page }
    }

    /// A page for browsers that show no token, or another one.
    pub fn html_for_nobody(body: String) -> Answer {
        Answer { status: NOBODY, ..Answer::html(body) }
    }

    /// A style sheet.
    pub fn style(body: &str) -> Answer {
        Answer::of("200 OK", "text/css; charset=utf-8", body.to_owned())
    }

    /// A script.
    pub fn script(body: &str) -> Answer {
        Answer::of("200 OK", "text/javascript; charset=utf-8", body.to_owned())
    }

    /// That the process lives: who asks so would end one that does not answer.
    pub fn live() -> Answer {
        Answer::json("200 OK", "{\"status\":\"live\"}\n".to_owned())
    }

    /// Metrics as text, by OpenMetrics 1.0.
    pub fn metrics(body: String) -> Answer {
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        Answer::of("200 OK", content_type, body)
    }

    fn of(status: &'static str, content_type: &'static str, body: String) -> Answer {
        Answer { status, content_type, headers: String::new(), body, whole: true }
    }

    /// The bytes of the response.
    fn encode(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}{}\r\n",
            self.status,
            self.content_type,
            self.body.len(),
            match self.status {
                NOT_ALLOWED => "Allow: GET, HEAD\r\n",
                NOBODY => "WWW-Authenticate: Bearer\r\n",
                _ => "",
            },
            self.headers,
        );
        let body = if self.whole { self.body.as_bytes() } else { &[] };
        [head.as_bytes(), body].concat()
    }
}

fn plain(status: &'static str) -> Answer {
    Answer::of(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host without a path was passed over, and the query behind it taken for the path.
    #[test]
    fn the_path_of_an_address_begins_behind_its_host_and_ends_before_its_query() {
        for (target, expected) in [
            ("/stats", ("/stats", "")),
            ("/?span=day", ("/", "span=day")),
            ("http://host:1/stats?a=/b?c", ("/stats", "a=/b?c")),
            ("HTTP://host", ("/", "")),
            ("http://health?/health", ("/", "/health")),
        ] {
            assert_eq!(path_of(target), expected, "{target}");
        }
    }
}
