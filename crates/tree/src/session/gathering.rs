//! The rows of a scan, and the values of theirs that are still to be read.

use entresol_flash::{Error, Result};

use super::lookup::Wanted;
use crate::rows::{RowBuffer, RowForm};
use crate::sequence::Sequence;

/// Values of their own that one scan reads, bytes. It ends there, and says that it goes on.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// Rows in order, some of them without their values.
#[derive(Debug)]
pub(super) struct Gathering {
    pub rows: RowBuffer,
    /// In the order of the rows.
    values: Vec<ValueOf>,
    /// Bytes of these values.
    value_bytes: usize,
    /// All rows are gathered: values may be read.
    is_complete: bool,
    /// The first value that nobody reads so far.
    next: usize,
    /// How many are being read.
    reading: usize,
    failed: Option<Error>,
}

/// The value of a row that is a record of its own.
#[derive(Debug)]
struct ValueOf {
    row: usize,
    created: Sequence,
    wanted: Option<Wanted>,
    /// Once it is read. `None`: there is no such row any more.
    found: Option<Vec<u8>>,
}

impl Gathering {
    pub(super) fn new(form: RowForm) -> Gathering {
        Gathering {
            rows: RowBuffer::new(form),
            values: Vec::new(),
            value_bytes: 0,
            is_complete: false,
            next: 0,
            reading: 0,
            failed: None,
        }
    }

    /// Bytes of the rows, with all of their values. Without end where the values are too many.
    pub(super) fn bytes(&self) -> usize {
        match self.value_bytes < VALUE_BYTES_MAX {
            true => self.rows.bytes().len() + self.value_bytes,
            false => usize::MAX,
        }
    }

    /// Adds a row whose value is to be read.
    pub(super) fn push_wanted(&mut self, key: &[u8], created: Sequence, wanted: Wanted) {
        let row = self.rows.len();
        self.rows.push(key, &[]);
        self.value_bytes += wanted.reference.bytes as usize;
        self.values.push(ValueOf { row, created, wanted: Some(wanted), found: None });
    }

    /// Adds the row number `index` of `other`, whose rows behind it were taken before.
    pub(super) fn push_last_of(&mut self, other: &mut Gathering, index: usize) {
        let (key, value) = other.rows.row(index);
        match other.values.pop_if(|value| value.row == index) {
            Some(ValueOf { created, wanted: Some(wanted), .. }) => {
                self.push_wanted(key, created, wanted);
            }
            _ => self.rows.push(key, value),
        }
    }

    /// No more rows come.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    pub(super) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// The value that is to be read next, while fewer than `most` are being read: its number, the
    /// row's key, and where it is.
    pub(super) fn next_value(&mut self, most: usize) -> Option<(usize, Vec<u8>, Sequence, Wanted)> {
        if self.reading >= most || self.failed.is_some() || !self.is_complete {
            return None;
        }
        let index = self.next;
        let value = self.values.get_mut(index)?;
        let wanted = value.wanted.take()?;
        self.next += 1;
        self.reading += 1;
        Some((index, self.rows.row(value.row).0.to_vec(), value.created, wanted))
    }

    /// What came of the read of value number `index`.
    pub(super) fn take_value(&mut self, index: usize, found: Result<Option<Vec<u8>>>) {
        self.reading -= 1;
        match found {
            Ok(found) => self.values[index].found = found,
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }

    /// Whether all values are read, or none will be any more.
    pub(super) fn is_filled(&self) -> bool {
        let is_over = self.next == self.values.len() || self.failed.is_some();
        self.is_complete && self.reading == 0 && is_over
    }

    /// Whether none of the rows is there any more, now that their values were read.
    pub(super) fn is_gone(&self) -> bool {
        let is_none = self.values.iter().all(|value| value.found.is_none());
        self.failed.is_none() && self.values.len() == self.rows.len() && is_none
    }

    /// The rows with their values.
    pub(super) fn assemble(&mut self) -> Result<RowBuffer> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut rows = RowBuffer::new(self.rows.form());
        let mut values = std::mem::take(&mut self.values).into_iter().peekable();
        for index in 0..self.rows.len() {
            let (key, value) = self.rows.row(index);
            match values.next_if(|value| value.row == index) {
                Some(ValueOf { found: Some(found), .. }) => rows.push(key, &found),
                Some(_) => {}
                None => rows.push(key, value),
            }
        }
        if self.rows.goes_on() {
            rows.set_goes_on();
        }
        Ok(rows)
    }
}
