//! The writes of a run, so that a read tells an older version from the required one.
//!
//! For each piece of a target the ledger remembers the oldest write that may be found there: an
//! acknowledged write cannot be undone by a write that had ended before it began.
//!
//! Limits: the ledger remembers the [`PIECES_MAX`] pieces written last, or fewer if two of them
//! fall on the same place. In other pieces any write is accepted. When the numbers of writes begin
//! anew, the ledger forgets everything.

use std::collections::BTreeMap;

use crate::load::content::UNIT_BYTES;
use crate::load::plan::Stream;
use crate::load::shape::Shape;
use crate::load::target::Target;

/// What a run has written. Shared by all its threads.
#[derive(Debug)]
pub(crate) struct Ledger {
    run: u64,
    piece_bytes: u64,
    /// The number of the first piece of each target.
    firsts: Vec<u64>,
    cells: Vec<Cell>,
    /// Writes that were begun, each with the oldest one under way beside it.
    under_way: BTreeMap<u32, u32>,
    /// The oldest write that failed: whether it landed, and when, nobody knows.
    failed: Option<u32>,
    latest: u32,
}

/// The oldest writes that may be found in a range.
#[derive(Debug, Clone, Default)]
pub struct Floors {
    run: u64,
    piece_bytes: u64,
    from: u64,
    oldest: Vec<Option<u32>>,
}

/// The write that must be there, or a later one of the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Which run.
    pub run: u64,
    /// Which write of it.
    pub generation: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// The number of the piece and one; 0: none.
    piece: u64,
    oldest: u32,
}

/// Pieces that are remembered: 64 MiB of memory.
const PIECES_MAX: u64 = 4 << 20;
/// Bytes of a piece, where all writes are of whole ones.
const PIECE_BYTES: u64 = 4096;

impl Ledger {
    /// Nothing is written yet by `run`, which will write as `streams` say.
    pub(crate) fn new(run: u64, streams: &[Stream], targets: &[Target]) -> Ledger {
        let by_units = |of: &Stream| of.kind.writes() && !matches!(of.shape, Shape::Blocks { .. });
        let small = |of: &Stream| of.shape.bytes_max(1) < PIECE_BYTES;
        let fine = streams.iter().any(|of| of.kind.writes() && (by_units(of) || small(of)));
        let piece_bytes = if fine { UNIT_BYTES as u64 } else { PIECE_BYTES };
        let mut pieces = 0;
        let mut firsts = Vec::with_capacity(targets.len());
        for target in targets {
            firsts.push(pieces);
            pieces += target.size_bytes().div_ceil(piece_bytes);
        }
        let cells = vec![Cell::default(); pieces.clamp(1, PIECES_MAX) as usize];
        let under_way = BTreeMap::new();
        Ledger { run, piece_bytes, firsts, cells, under_way, failed: None, latest: 0 }
    }

    /// Write `generation` will begin. Numbers come in order.
    pub(crate) fn begin(&mut self, generation: u32) {
        if generation < self.latest {
            self.cells.fill(Cell::default());
            self.under_way.clear();
            self.failed = None;
        }
        self.latest = generation;
        let first = self.under_way.first_key_value().map(|(first, _)| *first);
        let oldest = [first, self.failed, Some(generation)].into_iter().flatten().min();
        self.under_way.insert(generation, oldest.unwrap_or(generation));
    }

    /// It is where it belongs.
    pub(crate) fn acknowledge(
        &mut self,
        device: usize,
        generation: u32,
        (offset, length): (u64, usize),
    ) {
        let Some(oldest) = self.under_way.remove(&generation) else { return };
        let end = offset + length as u64;
        for piece in offset.div_ceil(self.piece_bytes)..end / self.piece_bytes {
            let number = self.firsts[device] + piece;
            let cell = self.cell(number);
            let known = (cell.piece == number + 1).then_some(cell.oldest);
            let oldest = known.map_or(oldest, |known| known.max(oldest));
            *self.cell(number) = Cell { piece: number + 1, oldest };
        }
    }

    /// It failed.
    pub(crate) fn fail(&mut self, generation: u32) {
        if self.under_way.remove(&generation).is_some() {
            self.failed = Some(self.failed.map_or(generation, |failed| failed.min(generation)));
        }
    }

    /// It was not begun after all.
    pub(crate) fn withdraw(&mut self, generation: u32) {
        self.under_way.remove(&generation);
    }

    /// What may be found in a range by a read that begins now, or that has begun and is looked at
    /// for a first time.
    pub(crate) fn floors(&self, device: usize, (offset, length): (u64, usize)) -> Floors {
        let from = offset / self.piece_bytes;
        let to = (offset + length as u64).div_ceil(self.piece_bytes);
        let oldest = (from..to).map(|piece| {
            let number = self.firsts[device] + piece;
            let cell = self.cells[(number % self.cells.len() as u64) as usize];
            (cell.piece == number + 1).then_some(cell.oldest)
        });
        let oldest = oldest.collect();
        Floors { run: self.run, piece_bytes: self.piece_bytes, from, oldest }
    }

    fn cell(&mut self, number: u64) -> &mut Cell {
        let index = number % self.cells.len() as u64;
        &mut self.cells[index as usize]
    }
}

impl Floors {
    /// What must be at `offset`, where that is known.
    pub(crate) fn at(&self, offset: u64) -> Option<Floor> {
        let piece = offset.checked_div(self.piece_bytes)?.checked_sub(self.from)?;
        let generation = (*self.oldest.get(piece as usize)?)?;
        Some(Floor { run: self.run, generation })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use entresol_device::MemoryDevice;

    use super::*;
    use crate::load::interval::Kind;
    use crate::load::plan::Pacing;
    use crate::load::shape::Sizes;

    fn ledger(shape: Shape) -> Ledger {
        let target = || Target::of(Arc::new(MemoryDevice::new(1 << 20).unwrap()));
        let stream = Stream { kind: Kind::LargeWrite, device: None, pacing: Pacing::Fed, shape };
        Ledger::new(9, &[stream], &[target(), target()])
    }

    fn blocks() -> Ledger {
        ledger(Shape::Blocks { bytes: 8192 })
    }

    fn generation(ledger: &Ledger, device: usize, offset: u64) -> Option<u32> {
        ledger.floors(device, (offset, 512)).at(offset).map(|floor| floor.generation)
    }

    #[test]
    fn a_write_is_expected_from_its_acknowledgement_on_where_it_was_and_nowhere_else() {
        let mut ledger = blocks();
        ledger.begin(1);
        assert_eq!(generation(&ledger, 1, 8192), None);
        ledger.acknowledge(1, 1, (8192, 8192));
        let floors = ledger.floors(1, (4096, 16384));
        let found: Vec<_> = (0..5).map(|piece| floors.at(4096 * (piece + 1))).collect();
        let there = Some(Floor { run: 9, generation: 1 });
        assert_eq!(found, [None, there, there, None, None]);
        assert_eq!(generation(&ledger, 0, 8192), None, "another target");
    }

    #[test]
    fn a_write_that_was_under_way_beside_may_be_found_but_none_before() {
        let mut ledger = blocks();
        for number in 1..=4 {
            ledger.begin(number);
        }
        ledger.acknowledge(0, 1, (0, 8192));
        ledger.acknowledge(0, 4, (0, 8192));
        assert_eq!(generation(&ledger, 0, 0), Some(1), "2 and 3 may land later, 1 before them");
        ledger.acknowledge(0, 2, (0, 8192));
        ledger.acknowledge(0, 3, (0, 8192));
        ledger.begin(5);
        ledger.acknowledge(0, 5, (0, 8192));
        assert_eq!(generation(&ledger, 0, 0), Some(5));
    }

    #[test]
    fn a_write_that_failed_may_be_found_for_ever() {
        let mut ledger = blocks();
        ledger.begin(1);
        ledger.fail(1);
        ledger.begin(2);
        ledger.acknowledge(0, 2, (0, 8192));
        assert_eq!(generation(&ledger, 0, 0), Some(1));
    }

    #[test]
    fn writes_of_parts_of_pieces_change_nothing_unless_pieces_are_as_small() {
        let sizes = Sizes::Between { min: 1536, max: 1536 };
        for (shape, expected) in [
            (Shape::Records { sizes, granule_bytes_min: 0 }, Some(1)),
            (Shape::Blocks { bytes: 8192 }, None),
        ] {
            let mut ledger = ledger(shape);
            ledger.begin(1);
            ledger.acknowledge(0, 1, (512, 1536));
            assert_eq!(generation(&ledger, 0, 1024), expected);
            assert_eq!(generation(&ledger, 0, 2048), None);
        }
    }

    #[test]
    fn nothing_is_expected_of_what_was_written_before_the_numbers_began_anew() {
        let mut ledger = blocks();
        ledger.begin(u32::MAX - 1);
        ledger.acknowledge(0, u32::MAX - 1, (0, 8192));
        ledger.begin(u32::MAX);
        ledger.begin(0);
        assert_eq!(generation(&ledger, 0, 0), None);
        ledger.acknowledge(0, u32::MAX, (0, 8192));
        assert_eq!(generation(&ledger, 0, 0), None);
        ledger.acknowledge(0, 0, (0, 8192));
        assert_eq!(generation(&ledger, 0, 0), Some(0));
    }
}
