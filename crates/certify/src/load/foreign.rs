//! Does a regular file hold somebody's data?
//!
//! Data that somebody keeps has a pattern, or begins like other files of its kind. A test may take
//! a file that is blank, that holds bytes of our tests, or that holds bytes without any pattern, as
//! ACT leaves them (with `compress-pct`, after that share of zeros in each unit).

use std::ops::Range;

use entresol_device::IoBuffer;

use crate::load::content::{OWN_MAGIC, UNIT_BYTES, Unit, read_unit};

/// Bytes at the beginning that are looked at.
pub(crate) const KNOWN_BYTES: u64 = 4 << 20;
/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 4096;
/// Of 4096 bytes at random, chi-squared over the 256 values is 255 with a deviation of 23.
const CHI_SQUARED_MAX: f64 = 400.0;
/// Fewer bytes that differ from each other look random, whatever they are.
const SAMPLE_BYTES_MIN: usize = 256;
/// How packed files begin, which look random otherwise.
const PACKED: [&[u8]; 10] = [
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf",
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"Rar!",
    b"\x04\x22\x4d\x18",
];

/// The offset of the first bytes in `range` of a file that somebody may miss. `read` reads it.
pub(crate) fn somebodys(
    range: Range<u64>,
    read: &mut dyn FnMut(u64, &mut [u8]) -> entresol_device::Result<()>,
) -> entresol_device::Result<Option<u64>> {
    let mut memory = IoBuffer::aligned(PIECE_BYTES.min(range.end - range.start) as usize);
    let mut offset = range.start;
    while offset < range.end {
        let length = PIECE_BYTES.min(range.end - offset);
        let bytes = &mut memory[..length as usize];
        read(offset, bytes)?;
        if offset == 0 && PACKED.iter().any(|magic| bytes.starts_with(magic)) {
            return Ok(Some(0));
        }
        if let Some(block) = bytes.chunks(BLOCK_BYTES).position(|block| !is_nobodys(block)) {
            return Ok(Some(offset + (block * BLOCK_BYTES) as u64));
        }
        offset += length;
    }
    Ok(None)
}

fn is_nobodys(block: &[u8]) -> bool {
    let ours = |unit: &&[u8]| {
        unit.iter().all(|byte| *byte == 0)
            || unit.starts_with(OWN_MAGIC)
            || (unit.len() == UNIT_BYTES && !matches!(read_unit(unit), Unit::Foreign))
    };
    let others: Vec<&[u8]> = block.chunks(UNIT_BYTES).filter(|unit| !ours(unit)).collect();
    others.is_empty()
        || chi_squared(block) < CHI_SQUARED_MAX
        || behind_zeros(&others).is_some_and(|bytes| chi_squared(&bytes) < CHI_SQUARED_MAX)
}

/// What follows in `units` on zeros, of which each has as many words; `None` where that leaves too
/// little to tell random bytes by.
fn behind_zeros(units: &[&[u8]]) -> Option<Vec<u8>> {
    let words = |unit: &[u8]| unit.chunks(8).take_while(|word| **word == [0; 8]).count();
    let zeros = words(units.first()?);
    if units.iter().any(|unit| words(unit) != zeros) {
        return None;
    }
    let random: Vec<u8> = units.iter().flat_map(|unit| unit[8 * zeros..].to_vec()).collect();
    (random.len() >= SAMPLE_BYTES_MIN).then_some(random)
}

fn chi_squared(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = bytes.len() as f64 / 256.0;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}
