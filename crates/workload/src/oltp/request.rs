//! One request of the workload, and the text line that a trace keeps of it.

use std::fmt;
use std::str::FromStr;

/// Bytes of a block, the unit of positions and lengths.
pub const BLOCK_BYTES: u64 = 4096;
/// The unit of times: ticks of 0.1 ms.
pub const TICKS_PER_SECOND: u64 = 10_000;

/// An application storage unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asu {
    /// The data store, 45 % of the capacity.
    Data,
    /// The user store, 45 % of the capacity.
    User,
    /// The log, 10 % of the capacity; only written.
    Log,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads its blocks.
    Read,
    /// Writes its blocks.
    Write,
}

/// Blocks to read or write, and when. As text: unit, `R` or `W`, blocks, stream, position, time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// On which unit.
    pub asu: Asu,
    /// Reading or writing.
    pub operation: Operation,
    /// How many blocks, 1 to 16 in generated requests.
    pub blocks: u64,
    /// Which of the eight kinds of stream asked, 0 to 7.
    pub stream: u8,
    /// The first block.
    pub position: u64,
    /// When it is due, in ticks since the start.
    pub due: u64,
}

/// Why a line is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    field: &'static str,
    expected: &'static str,
    found: String,
}

impl Asu {
    /// All units, in the order of their numbers.
    pub const ALL: [Asu; 3] = [Asu::Data, Asu::User, Asu::Log];

    /// Counts from 0.
    pub fn index(self) -> usize {
        match self {
            Asu::Data => 0,
            Asu::User => 1,
            Asu::Log => 2,
        }
    }

    /// Counts from 1, as people name units.
    pub fn number(self) -> u64 {
        self.index() as u64 + 1
    }
}

impl Request {
    /// Most blocks of a request, generated or read from a trace.
    pub const BLOCKS_MAX: u64 = 64;

    /// The blocks' range.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.position..self.position + self.blocks
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.operation {
            Operation::Read => 'R',
            Operation::Write => 'W',
        };
        let Request { asu, blocks, stream, position, due, .. } = self;
        write!(f, "{} {letter} {blocks} {stream} {position} {due}", asu.number())
    }
}

impl FromStr for Request {
    type Err = TraceError;

    fn from_str(line: &str) -> Result<Request, TraceError> {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let asu = match word() {
            "1" => Asu::Data,
            "2" => Asu::User,
            "3" => Asu::Log,
            other => return Err(TraceError::new("unit", "1, 2 or 3", other)),
        };
        let operation = match word() {
            "R" => Operation::Read,
            "W" => Operation::Write,
            other => return Err(TraceError::new("operation", "R or W", other)),
        };
        let blocks = number("number of blocks", "1 to 64", word(), 1..=Request::BLOCKS_MAX)?;
        let stream = number("stream", "0 to 7", word(), 0..=7)? as u8;
        let position = number("position", "a block below 2^32", word(), 0..=u32::MAX.into())?;
        let due = number("time", "ticks of 0.1 ms below 2^48", word(), 0..=(1 << 48))?;
        match words.next() {
            None => Ok(Request { asu, operation, blocks, stream, position, due }),
            Some(other) => Err(TraceError::new("end", "six fields", other)),
        }
    }
}

impl TraceError {
    fn new(field: &'static str, expected: &'static str, found: &str) -> TraceError {
        TraceError { field, expected, found: found.to_owned() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { field, expected, found } = self;
        write!(f, "the request's {field} is `{found}`; expected {expected}")
    }
}

impl std::error::Error for TraceError {}

fn number(
    field: &'static str,
    expected: &'static str,
    word: &str,
    allowed: std::ops::RangeInclusive<u64>,
) -> Result<u64, TraceError> {
    let parsed = word.parse().ok().filter(|number| allowed.contains(number));
    parsed.ok_or_else(|| TraceError::new(field, expected, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_text() {
        for line in ["1 R 1 2 6668 320", "3 W 16 7 820 2248"] {
            let request: Request = line.parse().unwrap();
            assert_eq!(request.to_string(), line);
        }
    }

    #[test]
    fn a_line_that_is_no_request_is_refused_by_its_field() {
        let refusals = [
            ("4 R 1 2 3 4", "unit"),
            ("1 X 1 2 3 4", "operation"),
            ("1 R 0 2 3 4", "number of blocks"),
            ("1 R 1 8 3 4", "stream"),
            ("1 R 1 2 -1 4", "position"),
            ("1 R 1 2 3", "time"),
            ("1 R 1 2 3 4 5", "end"),
        ];
        for (line, field) in refusals {
            let error = line.parse::<Request>().unwrap_err().to_string();
            assert!(error.contains(field), "{line}: {error}");
        }
    }
}
