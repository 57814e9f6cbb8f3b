//! Folding of all rows of a leaf at once: rows are gathered twice, first to ask, then with the
//! answers.
//!
//! Invariant: both times the same rows are met in the same order, since nothing but bytes that
//! stay as they are decides which.

use std::cell::{Cell, RefCell};

use super::{Folded, MergeError, MergeFunction};
use crate::rows::{RowBuffer, RowForm, RowParts};

/// Whoever folds many rows at a time, as where a function in another language is called.
pub trait FoldMany {
    /// Folds rows, unfolded ones with their keys. `folded`, which is empty before, gets one answer
    /// for each, in their order.
    ///
    /// # Errors
    /// A sentence that says why they cannot be folded. Their changes stay where they are.
    fn fold_rows(&self, rows: &RowBuffer, folded: &mut FoldedRows) -> Result<(), String>;
}

/// What rows came to that were folded together.
#[derive(Debug, Default)]
pub struct FoldedRows {
    bytes: Vec<u8>,
    rows: Vec<(Folded, usize)>,
}

impl FoldedRows {
    /// Adds the next one; `value` counts where the row has the value that was made.
    pub fn push(&mut self, folded: Folded, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.rows.push((folded, self.bytes.len()));
    }

    fn row(&self, index: usize) -> Option<(Folded, &[u8])> {
        let (folded, end) = *self.rows.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.rows[before].1);
        Some((folded, &self.bytes[start..end]))
    }
}

/// Has `many` fold one row.
pub(super) fn fold_one(
    many: &dyn FoldMany,
    row: RowParts<'_>,
    out: &mut Vec<u8>,
) -> Result<Folded, MergeError> {
    let mut rows = RowBuffer::new(RowForm::Unfolded);
    rows.push_unfolded(row);
    let answers = Answers::of(many, &rows)?;
    Ok(answers.fold(row.key, row.base, row.parts, out))
}

/// Takes note of the rows that are to be folded.
#[derive(Debug)]
pub(super) struct Questions {
    rows: RefCell<RowBuffer>,
    folds_all: bool,
}

impl Questions {
    pub(super) fn new(folds_all: bool) -> Questions {
        Questions { rows: RefCell::new(RowBuffer::new(RowForm::Unfolded)), folds_all }
    }

    /// Has them folded.
    pub(super) fn ask(self, many: &dyn FoldMany) -> Result<Answers, MergeError> {
        let answers = Answers::of(many, &self.rows.into_inner())?;
        Ok(Answers { folds_all: self.folds_all, ..answers })
    }
}

impl MergeFunction for Questions {
    fn fold(&self, key: &[u8], base: Option<&[u8]>, parts: &[&[u8]], _: &mut Vec<u8>) -> Folded {
        self.rows.borrow_mut().push_unfolded(RowParts { key, base, parts });
        Folded::Gone
    }

    fn folds_all(&self) -> bool {
        self.folds_all
    }
}

/// Gives rows what they came to, one after the other.
#[derive(Debug)]
pub(super) struct Answers {
    folded: FoldedRows,
    next: Cell<usize>,
    folds_all: bool,
}

impl Answers {
    fn of(many: &dyn FoldMany, rows: &RowBuffer) -> Result<Answers, MergeError> {
        let mut folded = FoldedRows::default();
        if !rows.is_empty() {
            many.fold_rows(rows, &mut folded).map_err(MergeError::Refused)?;
        }
        if folded.rows.len() != rows.len() {
            let (found, expected) = (folded.rows.len(), rows.len());
            return Err(MergeError::Refused(format!("{found} answers for {expected} rows")));
        }
        Ok(Answers { folded, next: Cell::new(0), folds_all: false })
    }
}

impl MergeFunction for Answers {
    fn fold(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        let index = self.next.replace(self.next.get() + 1);
        let (folded, value) = self.folded.row(index).expect("the rows that were asked about");
        out.extend_from_slice(value);
        folded
    }

    fn folds_all(&self) -> bool {
        self.folds_all
    }
}
