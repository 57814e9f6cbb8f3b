//! Rows as readers get them, folded or not.
//!
//! A row that nobody has folded is a base, if there is one, and parts on top of it:
//!
//! ```text
//! { base's length u32, or all ones for none; number of parts u32; base; { length u32; part } … }
//! ```
//!
//! Little-endian, with nothing between. It is what readers get that fold rows themselves, and what
//! whoever folds many rows at a time is asked with. It stands in memory only.

/// Stands for the length of a base that is not there.
const NO_BASE: u32 = u32::MAX;
const WORD_BYTES: usize = 4;

/// What a row consists of.
#[derive(Debug, Clone, Copy)]
pub struct RowParts<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// The last value that was put, unless it was removed since.
    pub base: Option<&'a [u8]>,
    /// What was added since, oldest first.
    pub parts: &'a [&'a [u8]],
}

impl RowParts<'_> {
    /// Appends base and parts to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let length = self.base.map_or(NO_BASE, |base| base.len() as u32);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        out.extend_from_slice(self.base.unwrap_or_default());
        for part in self.parts {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(part);
        }
    }
}

/// A row that nobody has folded, as a reader got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfoldedRow<'a> {
    /// The last value that was put, unless it was removed since.
    pub base: Option<&'a [u8]>,
    parts: usize,
    rest: &'a [u8],
}

impl<'a> UnfoldedRow<'a> {
    /// Reads a row. `None`: the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Option<UnfoldedRow<'a>> {
        let (length, rest) = word(bytes)?;
        let (parts, rest) = word(rest)?;
        let (base, rest) = match length {
            NO_BASE => (None, rest),
            length => {
                let (base, rest) = rest.split_at_checked(length as usize)?;
                (Some(base), rest)
            }
        };
        Some(UnfoldedRow { base, parts: parts as usize, rest })
    }

    /// How many parts there are.
    pub fn part_count(&self) -> usize {
        self.parts
    }

    /// The parts, oldest first.
    pub fn parts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.rest;
        (0..self.parts).map_while(move |_| {
            let (length, after) = word(rest)?;
            let (part, after) = after.split_at_checked(length as usize)?;
            rest = after;
            Some(part)
        })
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<WORD_BYTES>()?;
    Some((u32::from_le_bytes(*word), rest))
}

/// How a session gives rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowForm {
    /// Parts are folded into values by the table's merge function.
    #[default]
    Folded,
    /// Each row is an [`UnfoldedRow`], for readers that fold themselves.
    Unfolded,
}

/// Rows in order.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    form: RowForm,
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<RowEnds>,
    goes_on: bool,
}

#[derive(Debug, Clone, Copy)]
struct RowEnds {
    key: usize,
    value: usize,
}

impl RowBuffer {
    /// An empty one for rows of that form.
    pub fn new(form: RowForm) -> RowBuffer {
        RowBuffer { form, ..RowBuffer::default() }
    }

    /// In which form rows are.
    pub fn form(&self) -> RowForm {
        self.form
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Key and value of row `index`; of unfolded rows the value is an [`UnfoldedRow`].
    pub fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let start = self.end_before(index) + self.head_bytes();
        let RowEnds { key, value } = self.ends[index];
        (&self.bytes[start..key], &self.bytes[key..value])
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// Whether rows of the range may follow: the scan ended at one of its limits.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// The bytes of all rows one after the other. Unfolded ones are records:
    /// `{ bytes of the record u32; key's length u32; key; base and parts }`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a row: its value, or what an [`UnfoldedRow`] is read from.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let head = self.begin(key);
        self.bytes.extend_from_slice(value);
        self.end(head, key);
    }

    /// Adds an unfolded row.
    ///
    /// # Panics
    /// Where rows are folded ones.
    pub fn push_unfolded(&mut self, row: RowParts<'_>) {
        assert_eq!(self.form, RowForm::Unfolded, "a buffer of rows that are not folded");
        let head = self.begin(row.key);
        row.write(&mut self.bytes);
        self.end(head, row.key);
    }

    pub(crate) fn set_goes_on(&mut self) {
        self.goes_on = true;
    }

    fn begin(&mut self, key: &[u8]) -> usize {
        let head = self.bytes.len();
        self.bytes.resize(head + self.head_bytes(), 0);
        self.bytes.extend_from_slice(key);
        head
    }

    fn end(&mut self, head: usize, key: &[u8]) {
        let value = self.bytes.len();
        if self.form == RowForm::Unfolded {
            let words = [(value - head) as u32, key.len() as u32];
            for (place, word) in words.into_iter().enumerate() {
                let at = head + place * WORD_BYTES;
                self.bytes[at..at + WORD_BYTES].copy_from_slice(&word.to_le_bytes());
            }
        }
        self.ends.push(RowEnds { key: head + self.head_bytes() + key.len(), value });
    }

    fn head_bytes(&self) -> usize {
        match self.form {
            RowForm::Folded => 0,
            RowForm::Unfolded => 2 * WORD_BYTES,
        }
    }

    fn end_before(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before].value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&[u8]; 3] = [b"first", b"", b"third"];

    #[test]
    fn unfolded_rows_of_every_shape_come_back_and_cut_ones_do_not() {
        let mut rows = RowBuffer::new(RowForm::Unfolded);
        let mut written = Vec::new();
        for base in [None, Some(&b""[..]), Some(&b"the base"[..])] {
            for count in 0..=PARTS.len() {
                let row = RowParts { key: b"a key", base, parts: &PARTS[..count] };
                let mut bytes = Vec::new();
                row.write(&mut bytes);
                rows.push_unfolded(row);
                let row = UnfoldedRow::parse(&bytes).unwrap();
                assert_eq!((row.base, row.part_count()), (base, count));
                assert_eq!(row.parts().collect::<Vec<_>>(), PARTS[..count]);
                for cut in 0..bytes.len() {
                    let row = UnfoldedRow::parse(&bytes[..cut]);
                    assert!(row.is_none_or(|row| row.parts().count() < count), "cut at {cut}");
                }
                written.push(bytes);
            }
        }
        let found: Vec<_> = rows.iter().collect();
        assert_eq!(found, written.iter().map(|row| (&b"a key"[..], &row[..])).collect::<Vec<_>>());
        let records: usize = written.iter().map(|row| 8 + 5 + row.len()).sum();
        assert_eq!(rows.bytes().len(), records);
        assert_eq!(word(rows.bytes()).unwrap().0 as usize, 8 + 5 + written[0].len());
    }
}
