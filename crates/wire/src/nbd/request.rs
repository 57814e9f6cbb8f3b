//! Requests of the transmission phase.

use super::error::{Error, ErrorKind};
use super::fields::{Fields, Put};
use super::numbers::{Command, CommandFlags, EXTENDED_REQUEST_MAGIC, REQUEST_MAGIC};
use super::reply::ReplyStyle;

/// The head of a request; a payload may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Its flags.
    pub flags: CommandFlags,
    /// The number of its command, which may be none that [`Command`] knows.
    pub command: u16,
    /// The client's number of it, given back with each reply.
    pub cookie: u64,
    /// Where the range begins.
    pub offset: u64,
    /// The length of the range, or of the payload.
    pub length: u64,
}

impl Request {
    /// A request without flags.
    pub fn new(command: Command, cookie: u64, offset: u64, length: u64) -> Request {
        let command = command.number();
        Request { flags: CommandFlags::NONE, command, cookie, offset, length }
    }

    /// The same request with `flags` besides its own.
    pub fn with_flags(self, flags: CommandFlags) -> Request {
        Request { flags: self.flags.with(flags), ..self }
    }

    /// Bytes of a head in `style`.
    pub fn head_bytes(style: ReplyStyle) -> usize {
        match style {
            ReplyStyle::Simple | ReplyStyle::Structured => 28,
            ReplyStyle::Extended => 32,
        }
    }

    /// Bytes that follow the head in `style`, whatever the command is.
    pub fn payload_bytes(&self, style: ReplyStyle) -> u64 {
        let follows = match style {
            ReplyStyle::Simple | ReplyStyle::Structured => self.command == Command::Write.number(),
            ReplyStyle::Extended => self.flags.contains(CommandFlags::PAYLOAD_LENGTH),
        };
        if follows { self.length } else { 0 }
    }

    /// Appends the head in `style`; the caller appends the payload of a write. In extended style
    /// [`CommandFlags::PAYLOAD_LENGTH`] is added to writes.
    ///
    /// # Errors
    /// The length needs extended headers.
    pub fn encode(&self, style: ReplyStyle, out: &mut Vec<u8>) -> Result<(), Error> {
        let is_write = self.command == Command::Write.number();
        let (magic, flags) = match style {
            ReplyStyle::Extended if is_write => {
                (EXTENDED_REQUEST_MAGIC, self.flags.with(CommandFlags::PAYLOAD_LENGTH))
            }
            ReplyStyle::Extended => (EXTENDED_REQUEST_MAGIC, self.flags),
            ReplyStyle::Simple | ReplyStyle::Structured => (REQUEST_MAGIC, self.flags),
        };
        let compact = u32::try_from(self.length);
        if style != ReplyStyle::Extended && compact.is_err() {
            let detail = format!(
                "expected less than 4 GiB, as no extended headers are agreed on, found {}",
                self.length
            );
            return Err(Error::new(ErrorKind::TooLong, "length of a request", detail));
        }
        out.put_u32(magic);
        out.put_u16(flags.0);
        out.put_u16(self.command);
        out.put_u64(self.cookie);
        out.put_u64(self.offset);
        match (style, compact) {
            (ReplyStyle::Simple | ReplyStyle::Structured, Ok(length)) => out.put_u32(length),
            _ => out.put_u64(self.length),
        }
        Ok(())
    }

    /// The head at the begin of `bytes`; `None` until [`Request::head_bytes`] are there.
    ///
    /// # Errors
    /// It does not begin as a request does: the stream cannot be followed any more.
    pub fn decode(bytes: &[u8], style: ReplyStyle) -> Result<Option<Request>, Error> {
        let Some((head, _)) = bytes.split_at_checked(Request::head_bytes(style)) else {
            return Ok(None);
        };
        let mut fields = Fields::new(head);
        let expected = match style {
            ReplyStyle::Simple | ReplyStyle::Structured => REQUEST_MAGIC,
            ReplyStyle::Extended => EXTENDED_REQUEST_MAGIC,
        };
        let found = fields.u32("request magic")?;
        if found != expected {
            let detail = format!("expected {expected:#010x}, found {found:#010x}");
            return Err(Error::malformed("request magic", detail));
        }
        Ok(Some(Request {
            flags: CommandFlags(fields.u16("flags of a request")?),
            command: fields.u16("command")?,
            cookie: fields.u64("cookie of a request")?,
            offset: fields.u64("offset of a request")?,
            length: match style {
                ReplyStyle::Extended => fields.u64("length of a request")?,
                _ => u64::from(fields.u32("length of a request")?),
            },
        }))
    }
}

/// The payload of a [`Command::BlockStatus`] that asks for some of the contexts only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusFilter {
    /// The length of the range.
    pub length: u64,
    /// Numbers of the contexts.
    pub contexts: Vec<u32>,
}

impl StatusFilter {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.length);
        for context in &self.contexts {
            out.put_u32(*context);
        }
    }

    /// The filter that `payload` is.
    ///
    /// # Errors
    /// The payload's length is none that a filter has.
    pub fn decode(payload: &[u8]) -> Result<StatusFilter, Error> {
        let mut fields = Fields::new(payload);
        let length = fields.u64("effect length of a block status")?;
        let rest = fields.rest();
        if rest.is_empty() || !rest.len().is_multiple_of(4) {
            let detail = format!(
                "expected 8 bytes and then 4 for each context, at least one, found {}",
                payload.len()
            );
            return Err(Error::malformed("contexts of a block status", detail));
        }
        let mut fields = Fields::new(rest);
        let contexts: Result<_, _> =
            (0..rest.len() / 4).map(|_| fields.u32("context of a block status")).collect();
        Ok(StatusFilter { length, contexts: contexts? })
    }
}
