//! Strings as arrays of bits, the first of which is the highest of the first byte.

use entresol_tier::Entry;
use entresol_wire::resp::{Reply, parse_integer};

use crate::command::arguments::{expiry_of, integer, is};

use crate::command::types::STRING;

use crate::command::plan::{Change, Effect, Plan};
use crate::command::request::{Request, VALUE_BYTES_MAX};
use crate::command::types::string_value::string_of;
use crate::failure::Failure;

type Planned<'a> = Result<Plan<'a>, Failure>;
type Decided = Result<(), Failure>;

/// Bits that may be asked for: those of the largest string that Redis knows.
const BITS_MAX: usize = 1 << 32;

/// The number of a bit of which there are fewer than `limit`, in argument 2.
fn offset(request: &Request<'_>, limit: usize) -> Result<usize, Failure> {
    parse_integer(request.arguments.at(2))
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| *offset < limit)
        .ok_or(Failure::fixed("ERR bit offset is not an integer or out of range"))
}

/// The mask of bit number `offset` in its byte.
fn mask(offset: usize) -> u8 {
    0x80 >> (offset % 8)
}

pub(crate) fn setbit<'a>(request: &Request<'a>) -> Planned<'a> {
    offset(request, 8 * VALUE_BYTES_MAX)?;
    if !matches!(request.arguments.at(3), b"0" | b"1") {
        return Err(Failure::fixed("ERR bit is not an integer or out of range"));
    }
    Ok(Plan::Update { key: request.key(1)?, update: update_bit })
}

fn update_bit(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?.unwrap_or_default();
    let offset = offset(request, 8 * VALUE_BYTES_MAX)?;
    let wanted = request.arguments.at(3) == b"1";
    if old.get(offset / 8).is_some_and(|byte| (byte & mask(offset) != 0) == wanted) {
        // Nothing is written, and no watch ends.
        change.reply(request).integer(i64::from(wanted));
        return Ok(());
    }
    change.value.reserve_exact(old.len().max(offset / 8 + 1));
    change.value.extend_from_slice(old);
    if change.value.len() <= offset / 8 {
        change.value.resize(offset / 8 + 1, 0);
    }
    let byte = &mut change.value[offset / 8];
    let was_set = *byte & mask(offset) != 0;
    match wanted {
        true => *byte |= mask(offset),
        false => *byte &= !mask(offset),
    }
    change.effect = Effect::Put { label: STRING, expiry: expiry_of(entry) };
    change.reply(request).integer(i64::from(was_set));
    Ok(())
}

pub(crate) fn getbit<'a>(request: &Request<'a>) -> Planned<'a> {
    offset(request, BITS_MAX)?;
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        let value = string_of(entry)?.unwrap_or_default();
        let offset = offset(request, BITS_MAX)?;
        let is_set = value.get(offset / 8).is_some_and(|byte| byte & mask(offset) != 0);
        reply.integer(i64::from(is_set));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

/// Bits of a value: from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bits {
    first: usize,
    last: usize,
}

impl Bits {
    /// All bits of `value`, if there is one.
    fn all(value: &[u8]) -> Option<Bits> {
        Some(Bits { first: 0, last: (8 * value.len()).checked_sub(1)? })
    }

    /// Units `start` to `end` of `value`, negative ones counted from its end; `None` if none are.
    fn between(value: &[u8], (start, end): (i64, i64), unit_bits: usize) -> Option<Bits> {
        let units = (8 * value.len() / unit_bits) as i64;
        let from_end = |place: i64| if place < 0 { (units + place).max(0) } else { place };
        let (start, end) = (from_end(start), from_end(end).min(units - 1));
        if start > end {
            return None;
        }
        let (start, end) = (start as usize, end as usize);
        Some(Bits { first: start * unit_bits, last: (end + 1) * unit_bits - 1 })
    }

    /// How many of them are set in `value`.
    fn ones(self, value: &[u8]) -> i64 {
        self.bytes(value, 1).map(|(_, byte)| i64::from(byte.count_ones())).sum()
    }

    /// The bytes of `value` with bits among these, each with its number and without other bits.
    /// Clear bits are made set ones first where `wanted` is 0.
    fn bytes(self, value: &[u8], wanted: u8) -> impl Iterator<Item = (usize, u8)> {
        let flip = if wanted == 0 { 0xFF } else { 0 };
        let (first, last) = (self.first / 8, self.last / 8);
        let bytes = value.iter().enumerate().take(last + 1).skip(first);
        bytes.map(move |(place, byte)| {
            let head = if place == first { 0xFF >> (self.first % 8) } else { 0xFF };
            let tail = if place == last { 0xFF << (7 - self.last % 8) } else { 0xFF };
            (place, (byte ^ flip) & head & tail)
        })
    }
}

/// Bits of the unit that argument `index` names, bytes if there is no such argument.
fn unit_bits(request: &Request<'_>, index: usize) -> Result<usize, Failure> {
    match request.arguments.get(index) {
        None => Ok(8),
        Some(unit) if is(unit, "BYTE") => Ok(8),
        Some(unit) if is(unit, "BIT") => Ok(1),
        Some(_) => Err(Failure::SYNTAX),
    }
}

pub(crate) fn bitcount<'a>(request: &Request<'a>) -> Planned<'a> {
    let key = request.key(1)?;
    if request.arguments.len() == 2 {
        return Ok(Plan::Read { key, answer: answer_count });
    }
    Ok(Plan::Read { key, answer: answer_count_of_part })
}

fn answer_count(entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>) -> Decided {
    let value = string_of(entry)?.unwrap_or_default();
    reply.integer(Bits::all(value).map_or(0, |bits| bits.ones(value)));
    Ok(())
}

fn answer_count_of_part(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Decided {
    let ones = match string_of(entry)? {
        Some(value) => counted(value, request)?.map(|bits| bits.ones(value)),
        None => None,
    };
    reply.integer(ones.unwrap_or(0));
    Ok(())
}

/// The bits of `value` that `BITCOUNT` of a part looks at.
fn counted(value: &[u8], request: &Request<'_>) -> Result<Option<Bits>, Failure> {
    if !matches!(request.arguments.len(), 4 | 5) {
        return Err(Failure::SYNTAX);
    }
    let range = (integer(request.arguments.at(2))?, integer(request.arguments.at(3))?);
    if range.0 < 0 && range.1 < 0 && range.0 > range.1 {
        return Ok(None);
    }
    Ok(Bits::between(value, range, unit_bits(request, 4)?))
}

pub(crate) fn bitpos<'a>(request: &Request<'a>) -> Planned<'a> {
    if !matches!(integer(request.arguments.at(2))?, 0 | 1) {
        return Err(Failure::fixed("ERR The bit argument must be 1 or 0."));
    }
    Ok(Plan::Read { key: request.key(1)?, answer: answer_position })
}

fn answer_position(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Decided {
    let wanted = u8::from(integer(request.arguments.at(2))? == 1);
    let Some(value) = string_of(entry)? else {
        reply.integer(if wanted == 1 { -1 } else { 0 });
        return Ok(());
    };
    let bits = searched(value, request)?;
    let found = bits.and_then(|bits| bits.bytes(value, wanted).find(|(_, byte)| *byte != 0));
    reply.integer(match found {
        Some((place, byte)) => (8 * place) as i64 + i64::from(byte.leading_zeros()),
        // Behind a value whose end nobody named, all bits are clear.
        None if wanted == 0 && bits.is_some() && request.arguments.len() < 5 => {
            (8 * value.len()) as i64
        }
        None => -1,
    });
    Ok(())
}

/// The bits of `value` that `BITPOS` looks at.
fn searched(value: &[u8], request: &Request<'_>) -> Result<Option<Bits>, Failure> {
    if request.arguments.len() == 3 {
        return Ok(Bits::all(value));
    }
    if request.arguments.len() > 6 {
        return Err(Failure::SYNTAX);
    }
    let start = integer(request.arguments.at(3))?;
    let unit_bits = unit_bits(request, 5)?;
    let end = request.arguments.get(4).map_or(Ok(-1), integer)?;
    Ok(Bits::between(value, (start, end), unit_bits))
}
