//! Reading arguments: integers, expiries and the options that several commands share.

use entresol_tier::{Entry, Expiry, Timestamp};
use entresol_wire::resp::parse_integer;

use super::request::Request;
use crate::failure::Failure;

/// `argument` as an integer.
pub(crate) fn integer(argument: &[u8]) -> Result<i64, Failure> {
    parse_integer(argument).ok_or(Failure::NOT_AN_INTEGER)
}

/// Whether `argument` is `word`, which is written in capitals here.
pub(crate) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// `argument` for people.
pub(crate) fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

/// The first `bytes_max` bytes of `argument` in an error, as C shows them: up to a byte 0.
pub(crate) fn quoted(argument: &[u8], bytes_max: usize) -> String {
    let cut = &argument[..argument.len().min(bytes_max)];
    shown(cut.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// The expiry of `entry`, none if there is no entry.
pub(crate) fn expiry_of(entry: Option<&Entry<'_>>) -> Expiry {
    entry.map(|entry| entry.expiry).unwrap_or_default()
}

/// A moment given in one of four ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Milliseconds,
    /// Seconds since the epoch.
    EpochSeconds,
    /// Milliseconds since the epoch.
    EpochMilliseconds,
}

impl Unit {
    /// The unit that an option of `SET` and `GETEX` names.
    pub(crate) fn named(option: &[u8]) -> Option<Unit> {
        [
            ("EX", Unit::Seconds),
            ("PX", Unit::Milliseconds),
            ("EXAT", Unit::EpochSeconds),
            ("PXAT", Unit::EpochMilliseconds),
        ]
        .into_iter()
        .find_map(|(name, unit)| is(option, name).then_some(unit))
    }

    fn is_seconds(self) -> bool {
        matches!(self, Unit::Seconds | Unit::EpochSeconds)
    }

    fn is_relative(self) -> bool {
        matches!(self, Unit::Seconds | Unit::Milliseconds)
    }

    /// The moment that `number` of this unit means; it must be after the epoch. For `SET` and kin.
    pub(crate) fn positive_moment(
        self,
        number: &[u8],
        request: &Request<'_>,
        command: &str,
    ) -> Result<Timestamp, Failure> {
        let number = integer(number)?;
        if number <= 0 {
            return Err(Failure::expire_time(command));
        }
        let moment = self.moment(number, request.now).filter(|moment| *moment > 0);
        let moment = moment.ok_or_else(|| Failure::expire_time(command))?;
        Ok(Timestamp(moment as u64))
    }

    /// Milliseconds since the epoch that `number` of this unit means, unless it overflows.
    pub(crate) fn moment(self, number: i64, now: Timestamp) -> Option<i64> {
        let number = if self.is_seconds() { number.checked_mul(1000)? } else { number };
        if self.is_relative() { number.checked_add(now.0 as i64) } else { Some(number) }
    }
}

/// An expiry at `moment`.
pub(crate) fn expiry_at(moment: Timestamp) -> Expiry {
    Expiry { at: Some(moment), idle_seconds: None }
}

/// Refuses a reply that has grown to `bytes` while it is made if that is over `limit`.
pub(crate) fn check_reply(bytes: usize, limit: usize) -> Result<(), Failure> {
    if bytes <= limit {
        return Ok(());
    }
    let text =
        format!("ERR the reply takes more than {limit} bytes (`output-limit`); ask for less");
    Err(Failure::new(text))
}

/// A cursor as `SCAN` and kin give it. As C's `strtoul` reads it, nothing is 0 and a sign counts.
pub(crate) fn cursor(argument: &[u8]) -> Result<u64, Failure> {
    if argument.is_empty() {
        return Ok(0);
    }
    let (digits, is_negative) = match argument.split_first() {
        Some((b'-', digits)) => (digits, true),
        Some((b'+', digits)) => (digits, false),
        _ => (argument, false),
    };
    let has_sign = digits.first().is_none_or(|first| !first.is_ascii_digit());
    let text = std::str::from_utf8(digits).ok().filter(|_| !has_sign);
    let number: u64 = text.and_then(|text| text.parse().ok()).ok_or(Failure::INVALID_CURSOR)?;
    Ok(if is_negative { number.wrapping_neg() } else { number })
}

/// The options of `SCAN` and kin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanOptions<'a> {
    /// About how many to visit.
    pub(crate) count: usize,
    /// A pattern that names must match.
    pub(crate) pattern: Option<&'a [u8]>,
    /// The name of a type.
    pub(crate) type_name: Option<&'a [u8]>,
    /// Whether fields come without their values.
    pub(crate) leaves_out_values: bool,
}

/// Reads the options of `SCAN` and kin from argument `first` on.
pub(crate) fn scan_options<'a>(
    request: &Request<'a>,
    first: usize,
    kind: ScanKind,
) -> Result<ScanOptions<'a>, Failure> {
    let mut options =
        ScanOptions { count: 10, pattern: None, type_name: None, leaves_out_values: false };
    let mut rest = request.arguments.from(first);
    while let Some(option) = rest.next() {
        if is(option, "NOVALUES") && kind == ScanKind::Fields {
            options.leaves_out_values = true;
            continue;
        }
        let value = rest.next().ok_or(Failure::SYNTAX)?;
        if is(option, "COUNT") {
            let count = integer(value)?;
            options.count = usize::try_from(count).unwrap_or(0);
            if options.count == 0 {
                return Err(Failure::SYNTAX);
            }
        } else if is(option, "MATCH") {
            options.pattern = (value != b"*").then_some(value);
        } else if is(option, "TYPE") && kind == ScanKind::Keys {
            options.type_name = Some(value);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(options)
}

/// What a scan walks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanKind {
    /// The keys of a space, of one type if that is asked for.
    Keys,
    /// The fields of a hash, without their values if that is asked for.
    Fields,
}
