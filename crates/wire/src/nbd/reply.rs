//! Replies of the transmission phase: written by servers, their heads read by clients.

use super::error::{Error, ErrorKind};
use super::fields::{Fields, Put};
use super::numbers::{
    CHUNK_DONE, EXTENDED_REPLY_MAGIC, ErrorCode, SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX,
    STRUCTURED_REPLY_MAGIC, chunk_type,
};

/// How requests and replies are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyStyle {
    /// Compact requests, simple replies.
    #[default]
    Simple,
    /// Compact requests, replies in chunks.
    Structured,
    /// Requests and chunks with lengths of 64 bits.
    Extended,
}

/// What a reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTo {
    /// The request's cookie.
    pub cookie: u64,
    /// The request's offset.
    pub offset: u64,
}

/// Writes a server's replies in the style that was agreed on. Each call ends the reply, except
/// those that say otherwise.
#[derive(Debug, Clone, Copy)]
pub struct ReplyEncoder {
    style: ReplyStyle,
}

/// Longest extent that a compact descriptor tells of: a multiple of every block size.
const COMPACT_EXTENT_MAX: u64 = (u32::MAX as u64) & !0xffff;

impl ReplyEncoder {
    /// An encoder of replies in `style`.
    pub fn new(style: ReplyStyle) -> ReplyEncoder {
        ReplyEncoder { style }
    }

    /// Success without a payload.
    pub fn done(self, to: ReplyTo, out: &mut Vec<u8>) {
        match self.style {
            ReplyStyle::Simple => simple(to, 0, out),
            _ => self.chunk(to, (chunk_type::NONE, CHUNK_DONE), 0, out),
        }
    }

    /// Failure. `message` is for people and is cut at [`STRING_BYTES_MAX`] bytes; simple replies
    /// have no room for it.
    pub fn error(self, to: ReplyTo, code: ErrorCode, message: &str, out: &mut Vec<u8>) {
        if self.style == ReplyStyle::Simple {
            return simple(to, code.number(), out);
        }
        let mut end = message.len().min(STRING_BYTES_MAX);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        let message = message.get(..end).unwrap_or_default();
        let length = 6 + message.len() as u32;
        self.chunk(to, (chunk_type::ERROR, CHUNK_DONE), length, out);
        out.put_u32(code.number());
        out.put_u16(message.len() as u16);
        out.extend_from_slice(message.as_bytes());
    }

    /// What precedes the bytes that a read found: the caller appends exactly `length`, more than 0,
    /// unless the read asked for none.
    pub fn data(self, to: ReplyTo, length: u32, out: &mut Vec<u8>) {
        match self.style {
            ReplyStyle::Simple => simple(to, 0, out),
            _ if length == 0 => self.done(to, out),
            _ => {
                let payload = length.saturating_add(8);
                self.chunk(to, (chunk_type::OFFSET_DATA, CHUNK_DONE), payload, out);
                out.put_u64(to.offset);
            }
        }
    }

    /// A read found `length` zeros, more than 0. Not for simple replies, which have no such word.
    pub fn hole(self, to: ReplyTo, length: u32, out: &mut Vec<u8>) {
        self.chunk(to, (chunk_type::OFFSET_HOLE, CHUNK_DONE), 12, out);
        out.put_u64(to.offset);
        out.put_u32(length);
    }

    /// How a range stands in `context`: runs of a length and flags, at least one. Does not end the
    /// reply: [`ReplyEncoder::done`] does, after the last context. Not for simple replies.
    pub fn status(self, to: ReplyTo, context: u32, runs: &[(u64, u32)], out: &mut Vec<u8>) {
        if self.style == ReplyStyle::Extended {
            let length = 8 + 16 * runs.len() as u32;
            self.chunk(to, (chunk_type::BLOCK_STATUS_EXTENDED, 0), length, out);
            out.put_u32(context);
            out.put_u32(runs.len() as u32);
            for (length, flags) in runs {
                out.put_u64(*length);
                out.put_u64(u64::from(*flags));
            }
            return;
        }
        // What follows an extent that was cut would lie at the wrong place.
        let fit = runs.iter().take_while(|(length, _)| *length <= COMPACT_EXTENT_MAX).count();
        let count = runs.len().min(fit + 1);
        self.chunk(to, (chunk_type::BLOCK_STATUS, 0), 4 + 8 * count as u32, out);
        out.put_u32(context);
        for (length, flags) in runs.iter().take(count) {
            out.put_u32((*length).min(COMPACT_EXTENT_MAX) as u32);
            out.put_u32(*flags);
        }
    }

    fn chunk(self, to: ReplyTo, (kind, flags): (u16, u16), length: u32, out: &mut Vec<u8>) {
        let is_extended = self.style == ReplyStyle::Extended;
        out.put_u32(if is_extended { EXTENDED_REPLY_MAGIC } else { STRUCTURED_REPLY_MAGIC });
        out.put_u16(flags);
        out.put_u16(kind);
        out.put_u64(to.cookie);
        if is_extended {
            out.put_u64(to.offset);
            out.put_u64(u64::from(length));
        } else {
            out.put_u32(length);
        }
    }
}

fn simple(to: ReplyTo, error: u32, out: &mut Vec<u8>) {
    out.put_u32(SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(to.cookie);
}

/// The head of a reply, as a client reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyHeader {
    /// A whole reply. After a success, the bytes that a read asked for follow.
    Simple {
        /// The cookie of its request.
        cookie: u64,
        /// Why it failed.
        error: Option<ErrorCode>,
    },
    /// A piece of a reply; `length` bytes follow, which [`super::Chunk::decode`] understands.
    Chunk {
        /// The cookie of its request.
        cookie: u64,
        /// The offset of its request, which extended chunks repeat.
        offset: Option<u64>,
        /// Its type.
        kind: u16,
        /// Whether it ends the reply.
        is_last: bool,
        /// Bytes that follow.
        length: u32,
    },
}

impl ReplyHeader {
    /// The head at the begin of `bytes` and how many bytes it takes; `None` if it is not complete.
    /// A chunk's payload may have `payload_max` bytes and the few that frame them.
    ///
    /// # Errors
    /// It does not begin as a reply of `style` does, or announces too much.
    pub fn decode(
        bytes: &[u8],
        style: ReplyStyle,
        payload_max: u32,
    ) -> Result<Option<(ReplyHeader, usize)>, Error> {
        let mut fields = Fields::new(bytes);
        let Ok(magic) = fields.u32("reply magic") else {
            return Ok(None);
        };
        let size = match (magic, style) {
            (SIMPLE_REPLY_MAGIC, ReplyStyle::Simple | ReplyStyle::Structured) => 16,
            (STRUCTURED_REPLY_MAGIC, ReplyStyle::Structured) => 20,
            (EXTENDED_REPLY_MAGIC, ReplyStyle::Extended) => 32,
            _ => {
                let detail = format!("expected that of a {style:?} reply, found {magic:#010x}");
                return Err(Error::malformed("reply magic", detail));
            }
        };
        if bytes.len() < size {
            return Ok(None);
        }
        let header = if magic == SIMPLE_REPLY_MAGIC {
            let error = fields.u32("error of a reply")?;
            let error = (error != 0).then(|| ErrorCode::from_number(error));
            ReplyHeader::Simple { cookie: fields.u64("cookie of a reply")?, error }
        } else {
            chunk(fields, magic, payload_max)?
        };
        Ok(Some((header, size)))
    }

    /// The cookie of its request.
    pub fn cookie(&self) -> u64 {
        match self {
            ReplyHeader::Simple { cookie, .. } | ReplyHeader::Chunk { cookie, .. } => *cookie,
        }
    }
}

fn chunk(mut fields: Fields<'_>, magic: u32, payload_max: u32) -> Result<ReplyHeader, Error> {
    /// Most bytes that frame a chunk's payload: offset, error, length of a message, and it.
    const FRAME_BYTES_MAX: u64 = 16 + STRING_BYTES_MAX as u64;
    let flags = fields.u16("flags of a chunk")?;
    let kind = fields.u16("type of a chunk")?;
    let cookie = fields.u64("cookie of a chunk")?;
    let (offset, length) = if magic == EXTENDED_REPLY_MAGIC {
        (Some(fields.u64("offset of a chunk")?), fields.u64("length of a chunk")?)
    } else {
        (None, u64::from(fields.u32("length of a chunk")?))
    };
    let most = u64::from(payload_max) + FRAME_BYTES_MAX;
    let length = u32::try_from(length).ok().filter(|length| u64::from(*length) <= most);
    let Some(length) = length else {
        let detail = format!("expected at most {most} bytes, found more");
        return Err(Error::new(ErrorKind::TooLong, "length of a chunk", detail));
    };
    let is_last = flags & CHUNK_DONE != 0;
    if kind == chunk_type::NONE && !is_last {
        let detail = "expected the last of its reply, found that more shall follow";
        return Err(Error::malformed("flags of an empty chunk", detail));
    }
    Ok(ReplyHeader::Chunk { cookie, offset, kind, is_last, length })
}
