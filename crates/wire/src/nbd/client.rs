//! The client's side of the handshake.
//!
//! ```text
//! Greeting ──step──▶ Await(STARTTLS) ──ack──▶ Encrypting ──secured──▶ Await(…)
//!     │                    │ refused                                    │
//!     └────────────────────┴──▶ EXTENDED_HEADERS, STRUCTURED_REPLY, SET_META_CONTEXT, GO or LIST
//!                               each in its turn, as wished ──▶ Ended
//! ```
//! A server that does not know `GO` is asked by `EXPORT_NAME`, which cannot say why it refuses.

use super::error::{Error, ErrorKind};
use super::fields::{Fields, Put};
use super::numbers::{
    BlockSizes, EXPORT_NAME_ZEROES, ExportFlags, FIXED_NEWSTYLE, GREETING_MAGIC, NO_ZEROES,
    OLDSTYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, Refusal, STRING_BYTES_MAX, information,
    option, option_reply,
};
use super::reply::ReplyStyle;
use super::{Agreement, Security};

/// What a client wishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// What the connection is for.
    pub goal: ClientGoal,
    /// Whether it shall be encrypted.
    pub tls: TlsWish,
    /// The best style to try; servers that do not know it are asked for the next simpler one.
    pub style: ReplyStyle,
    /// Metadata contexts to ask for; those that the server has will be in the agreement.
    pub contexts: Vec<String>,
}

impl ClientOptions {
    /// The usual wishes for the export `name`: extended headers, no TLS, no contexts.
    pub fn export(name: impl Into<String>) -> ClientOptions {
        ClientOptions {
            goal: ClientGoal::Export(name.into()),
            tls: TlsWish::Never,
            style: ReplyStyle::Extended,
            contexts: Vec::new(),
        }
    }
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientGoal {
    /// Using the export of this name; the empty name is the server's default.
    Export(String),
    /// Learning which exports there are.
    List,
}

/// Whether a connection shall be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsWish {
    /// It is not.
    Never,
    /// It is, if the server can.
    IfOffered,
    /// It is, or it ends.
    Required,
}

/// An export that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedExport {
    /// Its name.
    pub name: String,
    /// What the server says of it; may be empty.
    pub description: String,
}

/// What a client's step led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStep {
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
    /// The caller begins TLS, then calls [`ClientHandshake::secured`]. What follows the consumed
    /// bytes belongs to TLS.
    StartTls {
        /// Bytes from the begin of the input.
        consumed: usize,
    },
    /// Requests may be sent.
    Ready {
        /// Bytes from the begin of the input; replies follow them.
        consumed: usize,
        /// What was agreed on.
        agreement: Agreement,
    },
    /// The exports there are. What was appended to the output says goodbye.
    Listed {
        /// Bytes from the begin of the input.
        consumed: usize,
        /// The exports.
        exports: Vec<ListedExport>,
    },
}

/// The client's side of a handshake.
#[derive(Debug)]
pub struct ClientHandshake {
    options: ClientOptions,
    state: State,
    server_flags: u16,
    security: Security,
    style: ReplyStyle,
    contexts: Vec<(u32, String)>,
    told: Told,
    exports: Vec<ListedExport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    /// A reply to this option is awaited.
    Await(u32),
    Encrypting,
    Ended,
}

/// What the server has told of the export.
#[derive(Debug, Default)]
struct Told {
    export: Option<(u64, ExportFlags)>,
    name: Option<String>,
    sizes: BlockSizes,
}

/// Longest answer to an option that is taken, in bytes.
const REPLY_BYTES_MAX: usize = 64 << 10;
/// Most exports of a list.
const EXPORTS_MAX: usize = 65_536;
/// Bytes of an option's answer before its data.
const REPLY_HEAD_BYTES: usize = 20;

impl ClientHandshake {
    /// A handshake that has not begun: the server speaks first.
    pub fn new(options: ClientOptions) -> ClientHandshake {
        ClientHandshake {
            options,
            state: State::Greeting,
            server_flags: 0,
            security: Security::Plain,
            style: ReplyStyle::Simple,
            contexts: Vec::new(),
            told: Told::default(),
            exports: Vec::new(),
        }
    }

    /// Looks at what the server has sent and appends what is to be sent back.
    ///
    /// # Errors
    /// The server refuses what the client cannot do without, or does not speak the protocol. The
    /// caller closes the connection.
    pub fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<ClientStep, Error> {
        match self.state {
            State::Greeting => self.greet(input, out),
            State::Await(option::EXPORT_NAME) => self.take_named_export(input),
            State::Await(asked) => self.take_reply(asked, input, out),
            State::Encrypting | State::Ended => {
                Ok(ClientStep::Incomplete { needed: input.len() + 1 })
            }
        }
    }

    /// TLS stands: goes on with what is to be asked over it.
    pub fn secured(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.security = Security::Encrypted;
        self.ask(self.after(option::STARTTLS), out)
    }

    fn greet(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<ClientStep, Error> {
        const GREETING_BYTES: usize = 18;
        let Some((greeting, _)) = input.split_at_checked(GREETING_BYTES) else {
            return Ok(ClientStep::Incomplete { needed: GREETING_BYTES });
        };
        let mut fields = Fields::new(greeting);
        let magic = fields.u64("greeting")?;
        if magic != GREETING_MAGIC {
            let detail = format!(
                "expected an NBD server, which says {GREETING_MAGIC:#x}, found {magic:#x}; is \
                 another service on this address?"
            );
            return Err(Error::new(ErrorKind::Foreign, "greeting", detail));
        }
        let magic = fields.u64("newstyle magic")?;
        if magic != OPTION_MAGIC {
            let found = if magic == OLDSTYLE_MAGIC { "the oldstyle one" } else { "another one" };
            let detail = format!("expected the newstyle handshake, found {found}");
            return Err(Error::new(ErrorKind::Foreign, "newstyle magic", detail));
        }
        self.server_flags = fields.u16("handshake flags")?;
        out.put_u32(u32::from(self.server_flags & (FIXED_NEWSTYLE | NO_ZEROES)));
        let is_fixed = self.server_flags & FIXED_NEWSTYLE != 0;
        let next = match (is_fixed, self.options.tls, &self.options.goal) {
            (true, TlsWish::Never, _) => self.after(option::STARTTLS),
            (true, TlsWish::IfOffered | TlsWish::Required, _) => option::STARTTLS,
            (false, TlsWish::Never | TlsWish::IfOffered, ClientGoal::Export(_)) => {
                option::EXPORT_NAME
            }
            (false, ..) => {
                let detail = "expected fixed newstyle, as TLS or a list is asked for, found not";
                return Err(Error::new(ErrorKind::Unsupported, "handshake flags", detail));
            }
        };
        self.ask(next, out)?;
        Ok(ClientStep::Continue { consumed: GREETING_BYTES })
    }

    /// The option that comes after `done`, as far as the client wishes for it.
    fn after(&self, done: u32) -> u32 {
        let wanted = |asked| match asked {
            option::EXTENDED_HEADERS => self.options.style == ReplyStyle::Extended,
            option::STRUCTURED_REPLY => {
                self.options.style != ReplyStyle::Simple && self.style != ReplyStyle::Extended
            }
            option::SET_META_CONTEXT => {
                !self.options.contexts.is_empty() && self.style != ReplyStyle::Simple
            }
            _ => true,
        };
        const ORDER: [u32; 5] = [
            option::STARTTLS,
            option::EXTENDED_HEADERS,
            option::STRUCTURED_REPLY,
            option::SET_META_CONTEXT,
            option::GO,
        ];
        if self.options.goal == ClientGoal::List {
            return option::LIST;
        }
        let rest = ORDER.into_iter().skip_while(|asked| *asked != done).skip(1);
        rest.into_iter().find(|asked| wanted(*asked)).unwrap_or(option::GO)
    }

    /// Appends the option `asked` and awaits its answer.
    fn ask(&mut self, asked: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let name = match &self.options.goal {
            ClientGoal::Export(name) => name.as_str(),
            ClientGoal::List => "",
        };
        let queries = self.options.contexts.iter().map(String::as_str);
        if let Some(text) = queries.chain([name]).find(|text| text.len() > STRING_BYTES_MAX) {
            let detail = format!("expected at most {STRING_BYTES_MAX} bytes, found {}", text.len());
            return Err(Error::new(ErrorKind::TooLong, "name", detail));
        }
        let mut data = Vec::new();
        match asked {
            option::EXPORT_NAME => data.extend_from_slice(name.as_bytes()),
            option::GO => {
                data.put_u32(name.len() as u32);
                data.extend_from_slice(name.as_bytes());
                let wanted = [information::BLOCK_SIZE, information::NAME];
                data.put_u16(wanted.len() as u16);
                wanted.into_iter().for_each(|kind| data.put_u16(kind));
            }
            option::SET_META_CONTEXT => {
                data.put_u32(name.len() as u32);
                data.extend_from_slice(name.as_bytes());
                data.put_u32(self.options.contexts.len() as u32);
                for query in &self.options.contexts {
                    data.put_u32(query.len() as u32);
                    data.extend_from_slice(query.as_bytes());
                }
            }
            _ => {}
        }
        out.put_u64(OPTION_MAGIC);
        out.put_u32(asked);
        out.put_u32(data.len() as u32);
        out.extend_from_slice(&data);
        self.state = State::Await(asked);
        Ok(())
    }

    /// The answer to `EXPORT_NAME`, which has a shape of its own.
    fn take_named_export(&mut self, input: &[u8]) -> Result<ClientStep, Error> {
        let zeroes = if self.server_flags & NO_ZEROES != 0 { 0 } else { EXPORT_NAME_ZEROES };
        let Some((answer, _)) = input.split_at_checked(10 + zeroes) else {
            return Ok(ClientStep::Incomplete { needed: 10 + zeroes });
        };
        let mut fields = Fields::new(answer);
        let bytes = fields.u64("size of the export")?;
        self.told.export = Some((bytes, ExportFlags(fields.u16("transmission flags")?)));
        self.agree(answer.len())
    }

    /// An answer to the option `asked`.
    fn take_reply(
        &mut self,
        asked: u32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ClientStep, Error> {
        let Some((head, rest)) = input.split_at_checked(REPLY_HEAD_BYTES) else {
            return Ok(ClientStep::Incomplete { needed: REPLY_HEAD_BYTES });
        };
        let mut fields = Fields::new(head);
        let magic = fields.u64("magic of an option's answer")?;
        if magic != OPTION_REPLY_MAGIC {
            let detail = format!("expected {OPTION_REPLY_MAGIC:#x}, found {magic:#x}");
            return Err(Error::malformed("magic of an option's answer", detail));
        }
        let answered = fields.u32("option of an answer")?;
        if answered != asked {
            let detail = format!("expected {asked}, which was asked, found {answered}");
            return Err(Error::malformed("option of an answer", detail));
        }
        let kind = fields.u32("type of an answer")?;
        let length = fields.u32("length of an answer")? as usize;
        if length > REPLY_BYTES_MAX {
            let detail = format!("expected at most {REPLY_BYTES_MAX} bytes, found {length}");
            return Err(Error::new(ErrorKind::TooLong, "length of an answer", detail));
        }
        let Some((data, _)) = rest.split_at_checked(length) else {
            return Ok(ClientStep::Incomplete { needed: REPLY_HEAD_BYTES + length });
        };
        let consumed = REPLY_HEAD_BYTES + length;
        match (kind, asked) {
            (option_reply::ACK, _) => self.acknowledged(asked, consumed, out),
            (option_reply::INFO, option::GO) => {
                self.take_information(data)?;
                Ok(ClientStep::Continue { consumed })
            }
            (option_reply::META_CONTEXT, option::SET_META_CONTEXT) => {
                self.take_context(data)?;
                Ok(ClientStep::Continue { consumed })
            }
            (option_reply::SERVER, option::LIST) => {
                self.take_export(data)?;
                Ok(ClientStep::Continue { consumed })
            }
            (number, _) if number & option_reply::ERROR != 0 => {
                let refusal = Refusal::from_number(number);
                self.refused(asked, refusal, data, out)?;
                Ok(ClientStep::Continue { consumed })
            }
            _ => {
                let detail = format!("expected one that option {asked} has, found {kind}");
                Err(Error::malformed("type of an answer", detail))
            }
        }
    }

    fn acknowledged(
        &mut self,
        asked: u32,
        consumed: usize,
        out: &mut Vec<u8>,
    ) -> Result<ClientStep, Error> {
        match asked {
            option::STARTTLS => {
                self.state = State::Encrypting;
                return Ok(ClientStep::StartTls { consumed });
            }
            option::GO => return self.agree(consumed),
            option::LIST => {
                self.ask(option::ABORT, out)?;
                self.state = State::Ended;
                let exports = std::mem::take(&mut self.exports);
                return Ok(ClientStep::Listed { consumed, exports });
            }
            option::EXTENDED_HEADERS => self.style = ReplyStyle::Extended,
            option::STRUCTURED_REPLY => self.style = ReplyStyle::Structured,
            _ => {}
        }
        self.ask(self.after(asked), out)?;
        Ok(ClientStep::Continue { consumed })
    }

    /// The server refuses `asked`: goes on without it, where the client can.
    fn refused(
        &mut self,
        asked: u32,
        refusal: Refusal,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let is_final = matches!(refusal, Refusal::Shutdown | Refusal::TlsRequired);
        match asked {
            option::STARTTLS if self.options.tls == TlsWish::IfOffered && !is_final => {
                self.ask(self.after(asked), out)
            }
            option::EXTENDED_HEADERS | option::STRUCTURED_REPLY if !is_final => {
                self.ask(self.after(asked), out)
            }
            option::SET_META_CONTEXT if !is_final => {
                self.contexts.clear();
                self.ask(self.after(asked), out)
            }
            option::GO if refusal == Refusal::Unsupported && self.style != ReplyStyle::Extended => {
                self.ask(option::EXPORT_NAME, out)
            }
            _ => {
                let what = match asked {
                    option::STARTTLS => "TLS",
                    option::GO => "the export",
                    option::LIST => "the list of exports",
                    _ => "an option",
                };
                let message = String::from_utf8_lossy(message);
                let detail = match message.is_empty() {
                    true => format!("the server refuses {what}: {refusal:?}"),
                    false => format!("the server refuses {what}: {refusal:?}: {message}"),
                };
                Err(Error::new(ErrorKind::Refused(refusal), "option", detail))
            }
        }
    }

    fn take_information(&mut self, data: &[u8]) -> Result<(), Error> {
        let mut fields = Fields::new(data);
        match fields.u16("type of information")? {
            information::EXPORT => {
                let bytes = fields.u64("size of the export")?;
                let flags = ExportFlags(fields.u16("transmission flags")?);
                fields.end("information of the export")?;
                self.told.export = Some((bytes, flags));
            }
            information::NAME => {
                let length = fields.rest().len();
                self.told.name = Some(fields.text(length, "name of the export")?.to_owned());
            }
            information::BLOCK_SIZE => {
                let sizes = BlockSizes {
                    minimum: fields.u32("minimum block size")?,
                    preferred: fields.u32("preferred block size")?,
                    payload_max: fields.u32("maximum payload size")?,
                };
                fields.end("information of block sizes")?;
                let is_sound = sizes.minimum.is_power_of_two()
                    && sizes.minimum <= 64 << 10
                    && sizes.preferred.is_power_of_two()
                    && sizes.preferred >= sizes.minimum
                    && sizes.payload_max >= sizes.minimum;
                if !is_sound {
                    let detail = format!(
                        "expected powers of two, the minimum at most 65536 and the least, found \
                         {sizes:?}"
                    );
                    return Err(Error::malformed("block sizes", detail));
                }
                self.told.sizes = sizes;
            }
            // What a client does not know it ignores.
            _ => {}
        }
        Ok(())
    }

    fn take_context(&mut self, data: &[u8]) -> Result<(), Error> {
        let mut fields = Fields::new(data);
        let number = fields.u32("number of a context")?;
        let length = fields.rest().len();
        let name = fields.text(length, "name of a context")?;
        let is_known = self.contexts.iter().any(|(known, other)| *known == number || other == name);
        if is_known || !self.options.contexts.iter().any(|asked| asked == name) {
            let detail = format!("expected each that was asked for once, found '{name}'");
            return Err(Error::malformed("name of a context", detail));
        }
        self.contexts.push((number, name.to_owned()));
        Ok(())
    }

    fn take_export(&mut self, data: &[u8]) -> Result<(), Error> {
        if self.exports.len() >= EXPORTS_MAX {
            let detail = format!("expected at most {EXPORTS_MAX} exports, found more");
            return Err(Error::new(ErrorKind::TooLong, "list of exports", detail));
        }
        let mut fields = Fields::new(data);
        let length = fields.u32("length of an export's name")? as usize;
        let name = fields.text(length, "name of an export")?.to_owned();
        let description = String::from_utf8_lossy(fields.rest()).into_owned();
        self.exports.push(ListedExport { name, description });
        Ok(())
    }

    fn agree(&mut self, consumed: usize) -> Result<ClientStep, Error> {
        let Some((bytes, flags)) = self.told.export else {
            let detail = "expected the export's size and flags, found none of both";
            return Err(Error::malformed("information of the export", detail));
        };
        if !flags.contains(ExportFlags::HAS_FLAGS) {
            let detail = format!("expected bit 0 set, found {:#06x}", flags.0);
            return Err(Error::malformed("transmission flags", detail));
        }
        self.state = State::Ended;
        let asked = match &self.options.goal {
            ClientGoal::Export(name) => name.clone(),
            ClientGoal::List => String::new(),
        };
        let agreement = Agreement {
            name: self.told.name.take().unwrap_or(asked),
            bytes,
            flags,
            sizes: self.told.sizes,
            style: self.style,
            contexts: std::mem::take(&mut self.contexts),
            security: self.security,
        };
        Ok(ClientStep::Ready { consumed, agreement })
    }
}
