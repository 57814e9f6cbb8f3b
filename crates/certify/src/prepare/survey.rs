//! The progress of a target's preparation, seen from its contents.
//!
//! Loads write anywhere, so their writes at one place say nothing of other places. A target is
//! prepared if the random pass, or a later load, has written every one of some sampled places.

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
        /// Which run wrote the end of the last piece.
        run: u64,
    },
}

/// Pieces before the end of what is done that may not have been: those that were in flight.
const UNSURE_PIECES: u64 = 2 * super::DEPTH as u64;

/// Pieces that are looked at.
const SAMPLES: u64 = 64;

/// Looks at some pieces.
///
/// # Errors
/// The target cannot be read.
pub fn survey(target: &Target) -> Result<Survey> {
    let device = device_of(target)?;
    let total = device.geometry().capacity_bytes;
    let pieces = total.div_ceil(PIECE_BYTES);
    let Some(first) = end_of(target, device, 0)? else { return Ok(Survey::Unprepared) };
    let unfilled = match first.generation {
        // A filling that began anew has zeros at the beginning.
        ZEROS => Some(0),
        _ => first_unfilled(target, device, pieces)?,
    };
    let Some(unfilled) = unfilled else {
        let last = end_of(target, device, pieces - 1)?;
        return Ok(Survey::Prepared { run: last.unwrap_or(first).run });
    };
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
    let done = open.saturating_sub(UNSURE_PIECES);
    let done_bytes = done * PIECE_BYTES;
    Ok(match first.generation {
        ZEROS => Survey::Zeroing { run: first.run, done_bytes },
        // What is not filled among what was is somebody's: the filling begins anew.
        RANDOM if unfilled >= done => Survey::Randomizing { run: first.run, done_bytes },
        _ => Survey::Unprepared,
    })
}

/// The first of some of the pieces that was not filled throughout: at its end and at another place.
fn first_unfilled(target: &Target, device: &dyn Device, pieces: u64) -> Result<Option<u64>> {
    const PLACES: u64 = PIECE_BYTES / 4096;
    let total = device.geometry().capacity_bytes;
    let count = SAMPLES.min(pieces);
    for sample in 0..count {
        let index = sample * (pieces - 1) / (count - 1).max(1);
        // Elsewhere in each piece: large blocks begin and end at the same places in all of them.
        let within = (index * 97 + 31) % PLACES * 4096;
        let place = (index * PIECE_BYTES + within + 4096).min(total);
        let ends = [end_of(target, device, index)?, unit_before(target, device, place)?];
        let is_filled = |end: &Option<Description>| end.is_some_and(|end| end.generation != ZEROS);
        if !ends.iter().all(is_filled) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// What the last unit of piece `index` says of itself, if it is where it belongs.
fn end_of(target: &Target, device: &dyn Device, index: u64) -> Result<Option<Description>> {
    let end = ((index + 1) * PIECE_BYTES).min(device.geometry().capacity_bytes);
    unit_before(target, device, end)
}

/// The same of the last unit before `end`.
fn unit_before(target: &Target, device: &dyn Device, end: u64) -> Result<Option<Description>> {
    let length = u64::from(device.geometry().sector_bytes).max(UNIT_BYTES as u64);
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
