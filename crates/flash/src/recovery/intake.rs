//! What recovery takes in of every record: sums by segment, pieces by value, claims of one pass.

use std::ops::Range;

use super::claims::{Claims, Cut};
use super::rows::{Gathered, Rows};
use crate::error::Result;
use crate::format::{FooterLine, PieceName, RecordKind, SizeCode};
use crate::log::Shape;

/// What has been found out about all records, and the claims of one pass.
pub(super) struct Intake {
    pub rows: Rows,
    pub claims: Claims,
    pub pieces: Gathered,
    /// The highest sequence.
    pub highest: u64,
    pub cut: Cut,
}

impl Intake {
    /// For the parts of `pass` first, in memory of `bytes`.
    pub(super) fn new(
        shape: Shape,
        (cut, pass): (Cut, Range<usize>),
        bytes: u64,
    ) -> Result<Intake> {
        let mut claims = Claims::new(cut, bytes)?;
        claims.begin(pass, bytes)?;
        Ok(Intake { rows: Rows::new(shape), claims, pieces: Gathered::new(), highest: 0, cut })
    }

    /// Takes one record in.
    #[inline]
    pub(super) fn take(&mut self, segment: u32, line: FooterLine) {
        let Some(address) = self.rows.places.address_of(segment, line) else { return };
        self.highest = self.highest.max(line.sequence());
        let counted = SizeCode::covering(u64::from(line.record_bytes())).bytes();
        let row = &mut self.rows.rows[segment as usize];
        row.used_bytes += counted;
        row.before_end = row.before_end.min(line.ends_seconds().wrapping_sub(1));
        if line.is_kind(RecordKind::Tombstone) {
            // Live until reclaim decides it, also beneath a newer record: that one may end first.
            row.live_bytes += counted;
            row.tombstone_bytes += counted;
        }
        if line.is_kind(RecordKind::Piece) {
            let PieceName { value, number } = line.piece_name();
            let piece = (number, address, line.record_bytes());
            self.pieces.entry(value).or_default().push(piece);
            return;
        }
        self.claims.add(line, address);
    }
}
