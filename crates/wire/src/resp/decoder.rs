//! Commands out of bytes, however they were chunked.
//!
//! Invariants:
//! 1. Nothing is copied: arguments are ranges of the caller's bytes, except those of inline
//!    commands, whose quotes and escapes are undone into a buffer of the decoder's.
//! 2. The decoder looks at each byte once, whatever the chunking, because it remembers where it
//!    stopped.
//! 3. Every length a peer announces is checked against [`Limits`] before it is used.
//!
//! As redis-server does, the bytes that end a line are skipped, not compared.

use std::fmt;

/// The limits a peer is held to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest argument, bytes.
    pub bulk_bytes_max: usize,
    /// Most arguments of one command.
    pub arguments_max: usize,
    /// Longest inline command and longest line that announces a length, bytes.
    pub line_bytes_max: usize,
    /// Longest command with everything around it, bytes, and with eight more for each argument,
    /// which the list of them takes; below 4 GiB.
    pub request_bytes_max: usize,
}

impl Limits {
    /// What a peer may send before it has authenticated.
    pub const UNAUTHENTICATED: Limits = Limits {
        bulk_bytes_max: 16 << 10,
        arguments_max: 10,
        line_bytes_max: 64 << 10,
        request_bytes_max: 256 << 10,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_bytes_max: (64 << 20) + 1024,
            arguments_max: i32::MAX as usize,
            line_bytes_max: 64 << 10,
            request_bytes_max: 256 << 20,
        }
    }
}

/// What [`Decoder::decode`] found at the start of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// More bytes are needed: the input will have to be at least this long.
    Incomplete {
        /// Bytes from the start of the command.
        needed: usize,
    },
    /// A command without arguments, which has no reply.
    Empty {
        /// Bytes it took.
        consumed: usize,
    },
    /// A command; [`Decoder::arguments`] has it until the next call of `decode`.
    Command {
        /// Bytes it took.
        consumed: usize,
    },
}

/// Bytes that are no command. The connection cannot be understood from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    /// The line that announces the number of arguments does not end.
    CountTooLong,
    /// The number of arguments is no number or beyond the limit.
    InvalidCount,
    /// The number of arguments is beyond what an unauthenticated peer may send.
    UnauthenticatedCount,
    /// The line that announces a length does not end.
    LengthTooLong,
    /// A length was expected.
    ExpectedLength(u8),
    /// A length is no number or beyond the limit.
    InvalidLength,
    /// A length is beyond what an unauthenticated peer may send.
    UnauthenticatedLength,
    /// An inline command does not end.
    InlineTooLong,
    /// A quote of an inline command is not closed.
    UnbalancedQuotes,
    /// The whole command is beyond the limit.
    RequestTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            ProtocolError::CountTooLong => f.write_str("too big mbulk count string"),
            ProtocolError::InvalidCount => f.write_str("invalid multibulk length"),
            ProtocolError::UnauthenticatedCount => f.write_str("unauthenticated multibulk length"),
            ProtocolError::LengthTooLong => f.write_str("too big bulk count string"),
            ProtocolError::ExpectedLength(found) => {
                // An error is one line of text.
                let shown = match *found {
                    b'\r' | b'\n' => b' ',
                    found if found.is_ascii() => found,
                    _ => b'?',
                };
                write!(f, "expected '$', got '{}'", char::from(shown))
            }
            ProtocolError::InvalidLength => f.write_str("invalid bulk length"),
            ProtocolError::UnauthenticatedLength => f.write_str("unauthenticated bulk length"),
            ProtocolError::InlineTooLong => f.write_str("too big inline request"),
            ProtocolError::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            ProtocolError::RequestTooLong => f.write_str("too big request"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// A range of bytes: start and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

/// The arguments of one command, its name first.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// How many, the name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        let start = span.start as usize;
        self.bytes.get(start..start + span.length as usize)
    }

    /// The argument at `index`; empty if there is none.
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    /// All from `first` on.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let this = *self;
        (first.min(this.len())..this.len()).map(move |index| this.at(index))
    }

    /// The arguments from `first` on as arguments of their own.
    pub fn tail(&self, first: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(first..).unwrap_or_default() }
    }

    /// Bytes that a copy of them takes.
    pub fn kept_bytes(&self) -> usize {
        let bytes: usize = self.spans.iter().map(|span| span.length as usize).sum();
        bytes + size_of_val(self.spans)
    }
}

/// Arguments kept beyond the bytes they came in.
#[derive(Debug, Clone, Default)]
pub struct OwnedArguments {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArguments {
    /// A copy of `arguments`.
    pub fn copy(arguments: Arguments<'_>) -> OwnedArguments {
        let mut owned = OwnedArguments::default();
        owned.replace(arguments);
        owned
    }

    /// Becomes a copy of `arguments`, memory reused.
    pub fn replace(&mut self, arguments: Arguments<'_>) {
        self.bytes.clear();
        self.spans.clear();
        for argument in arguments.from(0) {
            let span = Span { start: self.bytes.len() as u32, length: argument.len() as u32 };
            self.bytes.extend_from_slice(argument);
            self.spans.push(span);
        }
    }

    /// Forgets the arguments; keeps the memory unless it is large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.bytes.shrink_to(4096);
        self.spans.shrink_to(64);
    }

    /// The arguments.
    pub fn view(&self) -> Arguments<'_> {
        Arguments { bytes: &self.bytes, spans: &self.spans }
    }
}

/// Decodes the commands of one connection. Not shared between connections.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    /// Bytes of the current command that were understood.
    at: usize,
    /// Bytes behind `at` that hold no end of line.
    searched: usize,
    spans: Vec<Span>,
    inline: Vec<u8>,
    is_inline: bool,
}

/// Where a decoder stands within a command.
///
/// ```text
/// Start --'*'--> Length --'$'--> Bytes --all read--> Length … --last--> Done --decode--> Start
///   \--anything else--> Inline --end of line--> Done
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Inline,
    Count,
    Length { left: usize },
    Bytes { left: usize, length: usize },
    Done,
}

impl Decoder {
    /// A decoder at the start of a command.
    pub fn new(limits: Limits) -> Decoder {
        Decoder {
            limits,
            state: State::Start,
            at: 0,
            searched: 0,
            spans: Vec::new(),
            inline: Vec::new(),
            is_inline: false,
        }
    }

    /// Holds the peer to other limits from the next command on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Forgets what was understood of the current command; the next call of [`Decoder::decode`]
    /// starts over.
    pub fn restart(&mut self) {
        self.state = State::Done;
    }

    /// Decodes one command from the start of `input`. After `Incomplete`, call again with the same
    /// bytes and more behind them; after the others, with what follows the consumed bytes.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        if self.state == State::Done {
            self.reset();
        }
        loop {
            match self.state {
                State::Start => match input.first() {
                    None => return Ok(Decoded::Incomplete { needed: 1 }),
                    Some(b'*') => self.state = State::Count,
                    Some(_) => self.state = State::Inline,
                },
                State::Inline => return self.decode_inline(input),
                State::Count => {
                    let Some(line) = self.line(input, ProtocolError::CountTooLong)? else {
                        return Ok(self.incomplete(input));
                    };
                    let count = self.count(line)?;
                    if count == 0 {
                        return Ok(self.finish());
                    }
                    self.state = State::Length { left: count };
                }
                State::Length { left } => {
                    let Some(line) = self.line(input, ProtocolError::LengthTooLong)? else {
                        return Ok(self.incomplete(input));
                    };
                    let length = self.length(line)?;
                    self.state = State::Bytes { left, length };
                }
                State::Bytes { left, length } => {
                    let end = self.at + length + 2;
                    let listed = (self.spans.len() + 1) * size_of::<Span>();
                    if end + listed > self.limits.request_bytes_max {
                        return Err(ProtocolError::RequestTooLong);
                    }
                    if input.len() < end {
                        return Ok(Decoded::Incomplete { needed: end });
                    }
                    self.spans.push(Span { start: self.at as u32, length: length as u32 });
                    self.at = end;
                    if left == 1 {
                        return Ok(self.finish());
                    }
                    self.state = State::Length { left: left - 1 };
                }
                State::Done => self.reset(),
            }
        }
    }

    /// The arguments of the command just decoded; `input` as it was given to [`Decoder::decode`].
    pub fn arguments<'a>(&'a self, input: &'a [u8]) -> Arguments<'a> {
        let bytes = if self.is_inline { &self.inline } else { input };
        Arguments { bytes, spans: &self.spans }
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.inline.capacity()
    }

    fn reset(&mut self) {
        self.state = State::Start;
        self.at = 0;
        self.searched = 0;
        self.spans.clear();
        self.spans.shrink_to(1024);
        self.inline.clear();
        self.is_inline = false;
    }

    fn finish(&mut self) -> Decoded {
        self.state = State::Done;
        if self.spans.is_empty() {
            Decoded::Empty { consumed: self.at }
        } else {
            Decoded::Command { consumed: self.at }
        }
    }

    fn incomplete(&self, input: &[u8]) -> Decoded {
        Decoded::Incomplete { needed: input.len() + 1 }
    }

    /// The line at `at`, its kind byte included and its end left out; `None` if it does not end
    /// yet.
    fn line<'i>(
        &mut self,
        input: &'i [u8],
        too_long: ProtocolError,
    ) -> Result<Option<&'i [u8]>, ProtocolError> {
        let rest = input.get(self.at..).unwrap_or_default();
        let unseen = rest.get(self.searched..).unwrap_or_default();
        let Some(length) = unseen.iter().position(|byte| *byte == b'\r') else {
            self.searched = rest.len();
            if rest.len() > self.limits.line_bytes_max {
                return Err(too_long);
            }
            return Ok(None);
        };
        let length = self.searched + length;
        if rest.len() < length + 2 {
            self.searched = length;
            return Ok(None);
        }
        self.at += length + 2;
        self.searched = 0;
        if self.at > self.limits.request_bytes_max {
            return Err(ProtocolError::RequestTooLong);
        }
        Ok(rest.get(..length))
    }

    fn count(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        let digits = line.get(1..).unwrap_or_default();
        let count = super::parse_integer(digits).ok_or(ProtocolError::InvalidCount)?;
        let Ok(count) = usize::try_from(count) else {
            return Ok(0);
        };
        if count > Limits::default().arguments_max.max(self.limits.arguments_max) {
            return Err(ProtocolError::InvalidCount);
        }
        if count > self.limits.arguments_max {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        Ok(count)
    }

    fn length(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        let digits = match line {
            [b'$', digits @ ..] => digits,
            [other, ..] => return Err(ProtocolError::ExpectedLength(*other)),
            [] => return Err(ProtocolError::ExpectedLength(b'\r')),
        };
        let length = super::parse_integer(digits)
            .and_then(|length| usize::try_from(length).ok())
            .ok_or(ProtocolError::InvalidLength)?;
        if length > Limits::default().bulk_bytes_max.max(self.limits.bulk_bytes_max) {
            return Err(ProtocolError::InvalidLength);
        }
        if length > self.limits.bulk_bytes_max {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        Ok(length)
    }

    fn decode_inline(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        let unseen = input.get(self.searched..).unwrap_or_default();
        let Some(length) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = input.len();
            if input.len() > self.limits.line_bytes_max {
                return Err(ProtocolError::InlineTooLong);
            }
            return Ok(self.incomplete(input));
        };
        let length = self.searched + length;
        if length > self.limits.line_bytes_max {
            return Err(ProtocolError::InlineTooLong);
        }
        let line = input.get(..length).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_inline = true;
        self.at = length + 1;
        self.split_inline(line)?;
        Ok(self.finish())
    }

    /// Splits an inline command at spaces, undoing quotes and the escapes within double quotes.
    fn split_inline(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        let mut rest = line.split(|byte| *byte == 0).next().unwrap_or_default();
        loop {
            rest = rest.trim_ascii_start();
            let Some(vertical) = rest.strip_prefix(b"\x0b") else {
                if rest.is_empty() {
                    return Ok(());
                }
                let start = self.inline.len();
                rest = self.inline_argument(rest)?;
                let length = self.inline.len() - start;
                self.spans.push(Span { start: start as u32, length: length as u32 });
                continue;
            };
            rest = vertical;
        }
    }

    /// Takes one argument off the front of `rest`.
    fn inline_argument<'i>(&mut self, mut rest: &'i [u8]) -> Result<&'i [u8], ProtocolError> {
        loop {
            match rest {
                [] => return Ok(rest),
                [space, ..] if is_space(*space) => return Ok(rest),
                [b'"', quoted @ ..] => {
                    rest = self.double_quoted(quoted)?;
                    return end_of_quoted(rest);
                }
                [b'\'', quoted @ ..] => {
                    rest = self.single_quoted(quoted)?;
                    return end_of_quoted(rest);
                }
                [byte, tail @ ..] => {
                    self.inline.push(*byte);
                    rest = tail;
                }
            }
        }
    }

    fn double_quoted<'i>(&mut self, mut rest: &'i [u8]) -> Result<&'i [u8], ProtocolError> {
        loop {
            let (byte, tail) = match rest {
                [] => return Err(ProtocolError::UnbalancedQuotes),
                [b'"', tail @ ..] => return Ok(tail),
                [b'\\', b'x', high, low, tail @ ..]
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    (hex(*high) * 16 + hex(*low), tail)
                }
                [b'\\', escaped, tail @ ..] => (unescaped(*escaped), tail),
                [byte, tail @ ..] => (*byte, tail),
            };
            self.inline.push(byte);
            rest = tail;
        }
    }

    fn single_quoted<'i>(&mut self, mut rest: &'i [u8]) -> Result<&'i [u8], ProtocolError> {
        loop {
            let (byte, tail) = match rest {
                [] => return Err(ProtocolError::UnbalancedQuotes),
                [b'\'', tail @ ..] => return Ok(tail),
                [b'\\', b'\'', tail @ ..] => (b'\'', tail),
                [byte, tail @ ..] => (*byte, tail),
            };
            self.inline.push(byte);
            rest = tail;
        }
    }
}

/// A closing quote must end its argument.
fn end_of_quoted(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}
