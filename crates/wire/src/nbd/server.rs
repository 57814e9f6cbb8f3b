//! The server's side of the handshake.
//!
//! ```text
//! Flags ──client's flags──▶ Options ──GO, EXPORT_NAME──▶ Ended
//!                            │  ▲  │
//!           data too long ───┤  │  └──STARTTLS──▶ Encrypting ──secured──▶ Options, all forgotten
//!                            ▼  │
//!                          Skipping
//! ```

use super::error::{Error, ErrorKind};
use super::fields::{Fields, Put};
use super::numbers::{
    BlockSizes, EXPORT_NAME_ZEROES, ExportFlags, FIXED_NEWSTYLE, GREETING_MAGIC, NO_ZEROES,
    OPTION_MAGIC, OPTION_REPLY_MAGIC, Refusal, information, option, option_reply,
};
use super::reply::ReplyStyle;
use super::{Agreement, Security};

/// What a server has to offer at the moment.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The exports. If there is exactly one, it is the default too.
    pub exports: &'a [Export],
    /// Metadata contexts of every export.
    pub contexts: &'a [&'a str],
    /// What TLS is to clients.
    pub tls: TlsRule,
    /// Whether new clients are welcome.
    pub availability: Availability,
}

/// An export, as clients are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
    /// Its size.
    pub bytes: u64,
    /// What it can. [`ExportFlags::DF`] and [`ExportFlags::BLOCK_STATUS_PAYLOAD`] are added where
    /// a client's style allows them.
    pub flags: ExportFlags,
    /// Sizes of requests.
    pub sizes: BlockSizes,
}

/// What TLS is to clients of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsRule {
    /// There is none.
    Off,
    /// Those that ask for it get it.
    Offered,
    /// Nothing is done for a client until it is encrypted.
    Required,
}

/// Whether new clients are welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// They are.
    Serving,
    /// The server is about to stop.
    Stopping,
}

/// What a server's step led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStep {
    /// The next step needs at least so many bytes of input.
    Incomplete {
        /// Bytes from the begin of the input.
        needed: usize,
    },
    /// So many bytes of input are done with.
    Continue {
        /// Bytes from the begin of the input.
        consumed: usize,
    },
    /// The caller sends the output, begins TLS, then calls [`ServerHandshake::secured`]. What
    /// follows the consumed bytes belongs to TLS.
    StartTls {
        /// Bytes from the begin of the input.
        consumed: usize,
    },
    /// Requests follow.
    Ready {
        /// Bytes from the begin of the input.
        consumed: usize,
        /// What was agreed on.
        agreement: Agreement,
    },
    /// The caller sends the output and closes the connection.
    End,
}

/// The server's side of a handshake.
#[derive(Debug)]
pub struct ServerHandshake {
    state: State,
    client_flags: u16,
    security: Security,
    style: ReplyStyle,
    /// Contexts that were chosen, and the export they were chosen for.
    chosen: Option<(String, Vec<(u32, String)>)>,
    options: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Flags,
    Options,
    Skipping(u64),
    Encrypting,
    Ended,
}

/// Longest data of an option that are looked at; longer ones are refused.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Most options of one handshake: a client that asks for more does nothing useful.
const OPTIONS_MAX: u32 = 4096;
/// Most queries of contexts in one option.
const QUERIES_MAX: u32 = 256;
/// Bytes of an option before its data.
const OPTION_HEAD_BYTES: usize = 16;
const AGREED_ALREADY: &str = "it is agreed on already";

/// An answer to an option: what kind of error, and a sentence for people.
type Refused = (Refusal, String);

impl ServerHandshake {
    /// Begins a handshake: appends the greeting.
    pub fn begin(out: &mut Vec<u8>) -> ServerHandshake {
        out.put_u64(GREETING_MAGIC);
        out.put_u64(OPTION_MAGIC);
        out.put_u16(FIXED_NEWSTYLE | NO_ZEROES);
        ServerHandshake {
            state: State::Flags,
            client_flags: 0,
            security: Security::Plain,
            style: ReplyStyle::Simple,
            chosen: None,
            options: 0,
        }
    }

    /// Looks at what the client has sent and appends what is to be sent back.
    ///
    /// # Errors
    /// The client does not speak the protocol. The caller closes the connection.
    pub fn step(
        &mut self,
        input: &[u8],
        offer: Offer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, Error> {
        match self.state {
            State::Flags => self.take_flags(input),
            State::Options => self.take_option(input, offer, out),
            State::Skipping(left) => Ok(self.skip(input, left)),
            State::Encrypting | State::Ended => {
                Ok(ServerStep::Incomplete { needed: input.len() + 1 })
            }
        }
    }

    /// TLS stands: what was agreed on before is forgotten.
    pub fn secured(&mut self) {
        self.security = Security::Encrypted;
        self.style = ReplyStyle::Simple;
        self.chosen = None;
        self.state = State::Options;
    }

    fn take_flags(&mut self, input: &[u8]) -> Result<ServerStep, Error> {
        let mut fields = Fields::new(input);
        let Ok(flags) = fields.u32("client flags") else {
            return Ok(ServerStep::Incomplete { needed: 4 });
        };
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        if flags & !known != 0 {
            let detail = format!("expected bits 0 and 1 at most, found {flags:#x}");
            return Err(Error::malformed("client flags", detail));
        }
        self.client_flags = flags as u16;
        self.state = State::Options;
        Ok(ServerStep::Continue { consumed: 4 })
    }

    fn take_option(
        &mut self,
        input: &[u8],
        offer: Offer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, Error> {
        let Some((head, rest)) = input.split_at_checked(OPTION_HEAD_BYTES) else {
            return Ok(ServerStep::Incomplete { needed: OPTION_HEAD_BYTES });
        };
        let mut fields = Fields::new(head);
        let magic = fields.u64("option magic")?;
        if magic != OPTION_MAGIC {
            let detail = format!("expected {OPTION_MAGIC:#x}, found {magic:#x}");
            return Err(Error::malformed("option magic", detail));
        }
        let asked = fields.u32("option")?;
        let length = fields.u32("length of an option")?;
        if length > OPTION_BYTES_MAX {
            self.count_option()?;
            let message = format!("expected at most {OPTION_BYTES_MAX} bytes, found {length}");
            if asked == option::EXPORT_NAME {
                return Err(Error::new(ErrorKind::TooLong, "name of an export", message));
            }
            refuse(asked, &(Refusal::TooBig, message), out);
            self.state = State::Skipping(u64::from(length));
            return Ok(ServerStep::Continue { consumed: OPTION_HEAD_BYTES });
        }
        let consumed = OPTION_HEAD_BYTES + length as usize;
        let Some((data, _)) = rest.split_at_checked(length as usize) else {
            return Ok(ServerStep::Incomplete { needed: consumed });
        };
        self.count_option()?;
        Ok(self.answer(asked, data, offer, out).with_consumed(consumed))
    }

    fn count_option(&mut self) -> Result<(), Error> {
        self.options += 1;
        if self.options > OPTIONS_MAX {
            let detail = format!("expected at most {OPTIONS_MAX} in a handshake, found more");
            return Err(Error::new(ErrorKind::TooLong, "options", detail));
        }
        Ok(())
    }

    fn skip(&mut self, input: &[u8], left: u64) -> ServerStep {
        let consumed = left.min(input.len() as u64);
        if consumed == 0 {
            return ServerStep::Incomplete { needed: 1 };
        }
        let left = left - consumed;
        self.state = if left == 0 { State::Options } else { State::Skipping(left) };
        ServerStep::Continue { consumed: consumed as usize }
    }

    /// Answers the option `asked`.
    fn answer(&mut self, asked: u32, data: &[u8], offer: Offer<'_>, out: &mut Vec<u8>) -> Answer {
        let answered = match asked {
            option::ABORT => {
                acknowledge(asked, out);
                self.state = State::Ended;
                return Answer::End;
            }
            option::EXPORT_NAME => return self.enter_by_name(data, offer, out),
            _ if offer.availability == Availability::Stopping => {
                Err((Refusal::Shutdown, "the server is about to stop".to_owned()))
            }
            option::STARTTLS => self.start_tls(data, offer),
            _ if self.is_too_plain(offer) => {
                let detail = "this server does nothing without TLS; begin with STARTTLS";
                Err((Refusal::TlsRequired, detail.to_owned()))
            }
            option::LIST => list(data, offer, out),
            option::INFO | option::GO => return self.inform(asked, data, offer, out),
            option::STRUCTURED_REPLY => self.structure(data),
            option::EXTENDED_HEADERS => self.extend(data),
            option::LIST_META_CONTEXT => self.list_contexts(data, offer, out),
            option::SET_META_CONTEXT => self.choose_contexts(data, offer, out),
            other => Err((Refusal::Unsupported, format!("this server knows no option {other}"))),
        };
        match answered {
            Ok(()) => acknowledge(asked, out),
            Err(refused) => {
                refuse(asked, &refused, out);
                return Answer::Continue;
            }
        }
        match asked {
            option::STARTTLS => {
                self.state = State::Encrypting;
                Answer::StartTls
            }
            _ => Answer::Continue,
        }
    }

    fn is_too_plain(&self, offer: Offer<'_>) -> bool {
        offer.tls == TlsRule::Required && self.security == Security::Plain
    }

    fn start_tls(&self, data: &[u8], offer: Offer<'_>) -> Result<(), Refused> {
        no_data(data)?;
        let is_fixed = self.client_flags & FIXED_NEWSTYLE != 0;
        match (offer.tls, self.security) {
            (TlsRule::Off, _) => {
                Err((Refusal::Policy, "this server has no certificate for TLS".to_owned()))
            }
            (_, Security::Encrypted) => Err((Refusal::Invalid, "TLS is in use already".to_owned())),
            (_, Security::Plain) if !is_fixed => {
                let detail = "expected a client that said it knows fixed newstyle";
                Err((Refusal::Invalid, detail.to_owned()))
            }
            (_, Security::Plain) => Ok(()),
        }
    }

    fn structure(&mut self, data: &[u8]) -> Result<(), Refused> {
        no_data(data)?;
        if self.style == ReplyStyle::Extended {
            let detail = "extended headers are agreed on already, and are more";
            return Err((Refusal::ExtendedHeadersRequired, detail.to_owned()));
        }
        match std::mem::replace(&mut self.style, ReplyStyle::Structured) {
            ReplyStyle::Structured => Err((Refusal::Invalid, AGREED_ALREADY.to_owned())),
            _ => Ok(()),
        }
    }

    fn extend(&mut self, data: &[u8]) -> Result<(), Refused> {
        no_data(data)?;
        match std::mem::replace(&mut self.style, ReplyStyle::Extended) {
            ReplyStyle::Extended => Err((Refusal::Invalid, AGREED_ALREADY.to_owned())),
            _ => Ok(()),
        }
    }

    /// `EXPORT_NAME`: the one option that cannot be refused in words.
    fn enter_by_name(&mut self, data: &[u8], offer: Offer<'_>, out: &mut Vec<u8>) -> Answer {
        self.state = State::Ended;
        let name = std::str::from_utf8(data).ok();
        let export = name.and_then(|name| find(name, offer).ok());
        let is_welcome = offer.availability == Availability::Serving
            && !self.is_too_plain(offer)
            && self.style != ReplyStyle::Extended;
        match export.filter(|_| is_welcome) {
            None => Answer::End,
            Some(export) => {
                let agreement = self.agreement(export);
                out.put_u64(export.bytes);
                out.put_u16(agreement.flags.0);
                if self.client_flags & NO_ZEROES == 0 {
                    out.resize(out.len() + EXPORT_NAME_ZEROES, 0);
                }
                Answer::Ready(agreement)
            }
        }
    }

    /// `INFO` and `GO`.
    fn inform(&mut self, asked: u32, data: &[u8], offer: Offer<'_>, out: &mut Vec<u8>) -> Answer {
        let question = Question::decode(data).map_err(|e| (Refusal::Invalid, e.to_string()));
        let found = question
            .and_then(|question| find(question.name, offer).map(|export| (question, export)));
        let (question, export) = match found {
            Ok(found) => found,
            Err(refused) => {
                refuse(asked, &refused, out);
                return Answer::Continue;
            }
        };
        let agreement = self.agreement(export);
        let mut told = Vec::new();
        told.put_u16(information::EXPORT);
        told.put_u64(export.bytes);
        told.put_u16(agreement.flags.0);
        reply(asked, option_reply::INFO, &told, out);
        let texts =
            [(information::NAME, &export.name), (information::DESCRIPTION, &export.description)];
        for (kind, text) in texts {
            if question.wants(kind) {
                told.clear();
                told.put_u16(kind);
                told.extend_from_slice(text.as_bytes());
                reply(asked, option_reply::INFO, &told, out);
            }
        }
        told.clear();
        told.put_u16(information::BLOCK_SIZE);
        told.put_u32(export.sizes.minimum);
        told.put_u32(export.sizes.preferred);
        told.put_u32(export.sizes.payload_max);
        reply(asked, option_reply::INFO, &told, out);
        acknowledge(asked, out);
        if asked == option::INFO {
            return Answer::Continue;
        }
        self.state = State::Ended;
        Answer::Ready(agreement)
    }

    /// What a client that enters `export` now would agree on.
    fn agreement(&self, export: &Export) -> Agreement {
        let contexts = match &self.chosen {
            Some((name, contexts)) if *name == export.name => contexts.clone(),
            _ => Vec::new(),
        };
        let mut flags = export.flags.with(ExportFlags::HAS_FLAGS);
        if self.style != ReplyStyle::Simple {
            flags = flags.with(ExportFlags::DF);
        }
        if self.style == ReplyStyle::Extended && !contexts.is_empty() {
            flags = flags.with(ExportFlags::BLOCK_STATUS_PAYLOAD);
        }
        Agreement {
            name: export.name.clone(),
            bytes: export.bytes,
            flags,
            sizes: export.sizes,
            style: self.style,
            contexts,
            security: self.security,
        }
    }

    fn list_contexts(
        &self,
        data: &[u8],
        offer: Offer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let queries = Queries::decode(data)?;
        find(queries.name, offer)?;
        for context in offer.contexts {
            let namespace = context.split_inclusive(':').next().unwrap_or_default();
            let is_asked = |query: &&str| *query == *context || *query == namespace;
            if queries.queries.is_empty() || queries.queries.iter().any(is_asked) {
                put_context(option::LIST_META_CONTEXT, 0, context, out);
            }
        }
        Ok(())
    }

    fn choose_contexts(
        &mut self,
        data: &[u8],
        offer: Offer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        self.chosen = None;
        if self.style == ReplyStyle::Simple {
            let detail = "expected structured replies or extended headers to be agreed on first";
            return Err((Refusal::Invalid, detail.to_owned()));
        }
        let queries = Queries::decode(data)?;
        let export = find(queries.name, offer)?;
        let mut chosen = Vec::new();
        for (number, context) in (1..).zip(offer.contexts) {
            if queries.queries.contains(context) {
                put_context(option::SET_META_CONTEXT, number, context, out);
                chosen.push((number, (*context).to_owned()));
            }
        }
        self.chosen = Some((export.name.clone(), chosen));
        Ok(())
    }
}

/// A step whose consumed bytes are not known yet.
enum Answer {
    Continue,
    StartTls,
    Ready(Agreement),
    End,
}

impl Answer {
    fn with_consumed(self, consumed: usize) -> ServerStep {
        match self {
            Answer::Continue => ServerStep::Continue { consumed },
            Answer::StartTls => ServerStep::StartTls { consumed },
            Answer::Ready(agreement) => ServerStep::Ready { consumed, agreement },
            Answer::End => ServerStep::End,
        }
    }
}

/// The data of `INFO` and `GO`.
struct Question<'a> {
    name: &'a str,
    kinds: &'a [u8],
}

impl<'a> Question<'a> {
    fn decode(data: &'a [u8]) -> Result<Question<'a>, Error> {
        let mut fields = Fields::new(data);
        let length = fields.u32("length of an export's name")? as usize;
        let name = fields.text(length, "name of an export")?;
        let count = fields.u16("number of information requests")?;
        let kinds = fields.bytes(usize::from(count) * 2, "information requests")?;
        fields.end("information requests")?;
        Ok(Question { name, kinds })
    }

    fn wants(&self, kind: u16) -> bool {
        let (kinds, _) = self.kinds.as_chunks::<2>();
        kinds.iter().any(|found| u16::from_be_bytes(*found) == kind)
    }
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
struct Queries<'a> {
    name: &'a str,
    queries: Vec<&'a str>,
}

impl<'a> Queries<'a> {
    fn decode(data: &'a [u8]) -> Result<Queries<'a>, Refused> {
        let mut fields = Fields::new(data);
        let invalid = |error: Error| (Refusal::Invalid, error.to_string());
        let length = fields.u32("length of an export's name").map_err(invalid)? as usize;
        let name = fields.text(length, "name of an export").map_err(invalid)?;
        let count = fields.u32("number of queries").map_err(invalid)?;
        if count > QUERIES_MAX {
            let detail = format!("expected at most {QUERIES_MAX} queries, found {count}");
            return Err((Refusal::TooBig, detail));
        }
        let mut queries = Vec::new();
        for _ in 0..count {
            let length = fields.u32("length of a query").map_err(invalid)? as usize;
            let query = fields.text(length, "query").map_err(invalid)?;
            if !query.contains(':') {
                let detail = format!("expected a query such as base:allocation, found '{query}'");
                return Err((Refusal::Invalid, detail));
            }
            queries.push(query);
        }
        fields.end("queries").map_err(invalid)?;
        Ok(Queries { name, queries })
    }
}

/// `LIST`.
fn list(data: &[u8], offer: Offer<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    no_data(data)?;
    for export in offer.exports {
        let mut entry = Vec::new();
        entry.put_u32(export.name.len() as u32);
        entry.extend_from_slice(export.name.as_bytes());
        entry.extend_from_slice(export.description.as_bytes());
        reply(option::LIST, option_reply::SERVER, &entry, out);
    }
    Ok(())
}

/// The export called `name`; by the empty name the only one there is.
fn find<'a>(name: &str, offer: Offer<'a>) -> Result<&'a Export, Refused> {
    const NAMES_SHOWN: usize = 20;
    let exact = offer.exports.iter().find(|export| export.name == name);
    let default = match offer.exports {
        [only] if name.is_empty() => Some(only),
        _ => None,
    };
    exact.or(default).ok_or_else(|| {
        let asked = if name.is_empty() { "no default export" } else { "no export of this name" };
        let names: Vec<&str> =
            offer.exports.iter().take(NAMES_SHOWN).map(|export| export.name.as_str()).collect();
        let more = if offer.exports.len() > NAMES_SHOWN { ", …" } else { "" };
        let mut message = match names.is_empty() {
            true => format!("there is {asked}, and no other"),
            false => format!("there is {asked}; there are: {}{more}", names.join(", ")),
        };
        while message.len() > super::STRING_BYTES_MAX {
            message.pop();
        }
        (Refusal::Unknown, message)
    })
}

fn no_data(data: &[u8]) -> Result<(), Refused> {
    match data.len() {
        0 => Ok(()),
        length => Err((
            Refusal::Invalid,
            format!("expected an option without data, found {length} bytes"),
        )),
    }
}

fn put_context(asked: u32, number: u32, name: &str, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    data.put_u32(number);
    data.extend_from_slice(name.as_bytes());
    reply(asked, option_reply::META_CONTEXT, &data, out);
}

fn acknowledge(asked: u32, out: &mut Vec<u8>) {
    reply(asked, option_reply::ACK, &[], out);
}

fn refuse(asked: u32, (refusal, message): &Refused, out: &mut Vec<u8>) {
    reply(asked, refusal.number(), message.as_bytes(), out);
}

fn reply(asked: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) {
    out.put_u64(OPTION_REPLY_MAGIC);
    out.put_u32(asked);
    out.put_u32(kind);
    out.put_u32(data.len() as u32);
    out.extend_from_slice(data);
}
