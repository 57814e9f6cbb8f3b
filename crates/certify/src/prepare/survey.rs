//! How far a target's preparation is, seen from its contents.

use entresol_device::{Device, IoBuffer};

use super::{PIECE_BYTES, RANDOM, ZEROS, device_of, system};
use crate::load::{Description, Result, Target, UNIT_BYTES, Unit, read_unit};

/// How far a target's preparation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survey {
    /// None was begun.
    Unprepared,
    /// The pass of zeros was stopped.
    Zeroing {
        /// Which run.
        run: u64,
        /// Bytes from the beginning that are surely done.
        done_bytes: u64,
    },
    /// The random pass was stopped.
    Randomizing {
        /// Which run.
        run: u64,
        /// Bytes from the beginning that are surely done.
        done_bytes: u64,
    },
    /// It is prepared; loads may have written to it since.
    Prepared {
        /// Which run wrote the last piece.
        run: u64,
    },
}

/// Pieces before the end of what is done that may not have been: those that were in flight.
const UNSURE_PIECES: u64 = 2 * super::DEPTH as u64;

/// Looks at the ends of some pieces.
///
/// # Errors
/// The target cannot be read.
pub fn survey(target: &Target) -> Result<Survey> {
    let device = device_of(target)?;
    let total = device.geometry().capacity_bytes;
    let pieces = total.div_ceil(PIECE_BYTES);
    let Some(first) = end_of(target, device, 0)? else { return Ok(Survey::Unprepared) };
    // A filling that began anew since then has zeros at the beginning.
    if let Some(last) = end_of(target, device, pieces - 1)?
        && last.generation != ZEROS
        && first.generation != ZEROS
    {
        return Ok(Survey::Prepared { run: last.run });
    }
    let same = |index: u64| -> Result<bool> {
        let found = end_of(target, device, index)?;
        Ok(found.is_some_and(|end| (end.run, end.generation) == (first.run, first.generation)))
    };
    // The first piece is of this pass; the first that is not lies between.
    let (mut done, mut open) = (0, pieces);
    while done + 1 < open {
        let middle = done + (open - done) / 2;
        if same(middle)? {
            done = middle;
        } else {
            open = middle;
        }
    }
    let done_bytes = open.saturating_sub(UNSURE_PIECES) * PIECE_BYTES;
    Ok(match first.generation {
        ZEROS => Survey::Zeroing { run: first.run, done_bytes },
        RANDOM => Survey::Randomizing { run: first.run, done_bytes },
        _ => Survey::Unprepared,
    })
}

/// What the last unit of piece `index` says of itself, if it is where it belongs.
fn end_of(target: &Target, device: &dyn Device, index: u64) -> Result<Option<Description>> {
    let geometry = device.geometry();
    let end = ((index + 1) * PIECE_BYTES).min(geometry.capacity_bytes);
    let length = u64::from(geometry.sector_bytes).max(UNIT_BYTES as u64);
    let mut bytes = IoBuffer::aligned(length as usize);
    device.read_at(end - length, &mut bytes).map_err(system)?;
    let unit = &bytes[bytes.len() - UNIT_BYTES..];
    Ok(match read_unit(unit) {
        Unit::Ours(found)
            if found.place.device == target.identity()
                && found.place.offset == end - UNIT_BYTES as u64 =>
        {
            Some(found)
        }
        _ => None,
    })
}
