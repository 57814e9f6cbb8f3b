//! What base, delta page and changes say of one key, put together.

use entresol_planted::planted;

use super::together::fold_one;
use super::{Change, Folded, Leaf, MergeError, MergeFunction};
use crate::format::{
    Damage, Effect, INLINE_VALUE_BYTES_MAX, PageBuilder, ROW_KEY_BYTES_MAX, Row, Rows,
    SEPARATE_VALUE_BYTES_MAX,
};
use crate::rows::{RowBuffer, RowParts};
use crate::sequence::Sequence;

/// Parts of a row whose value is a record of its own stand beside it in the leaf, up to so many
/// bytes.
const PART_BYTES_MAX: usize = 16 << 10;
/// And up to so many with what a page has for each of them, so that small ones fit a page, too,
/// behind the other rows of a leaf.
const PAGED_PART_BYTES_MAX: usize = 40 << 10;

/// Walks a page from row to row. What it shows has keys that ascend and that pages may hold: pages
/// are made of it.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    rows: Option<Rows<'a>>,
    next: usize,
    row: Option<Row<'a>>,
    key: Vec<u8>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rows: Option<Rows<'a>>) -> Result<Cursor<'a>, Damage> {
        Cursor::at(rows, 0)
    }

    /// Begins with row `next`.
    pub(crate) fn at(rows: Option<Rows<'a>>, next: usize) -> Result<Cursor<'a>, Damage> {
        let mut cursor = Cursor { rows, next, row: None, key: Vec::new() };
        cursor.advance()?;
        Ok(cursor)
    }

    /// Key of the row that is next; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.row.map(|_| self.key.as_slice())
    }

    fn advance(&mut self) -> Result<(), Damage> {
        let before = self.row.take();
        let Some(rows) = self.rows.filter(|rows| self.next < rows.count()) else { return Ok(()) };
        let row = rows.row(self.next)?;
        let key_bytes = row.key.prefix.len() + row.key.suffix.len();
        if key_bytes == 0 || key_bytes > ROW_KEY_BYTES_MAX {
            return Err(Damage::new("key of a row", key_bytes, ROW_KEY_BYTES_MAX));
        }
        if before.is_some_and(|before| row.key.suffix < before.key.suffix) {
            return Err(Damage::new("order of rows", self.next, self.next));
        }
        row.key.copy_to(&mut self.key);
        self.row = Some(row);
        self.next += 1;
        Ok(())
    }
}

/// What one key has: a value or none, and what comes on top.
#[derive(Debug, Default)]
pub(crate) struct Gathered<'a> {
    key: Vec<u8>,
    /// The last put, separate value or remove.
    whole: Option<Whole<'a>>,
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Whole<'a> {
    effect: Effect,
    sequence: Sequence,
    value: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    sequence: Sequence,
    value: &'a [u8],
}

impl<'a> Gathered<'a> {
    /// Begins with nothing said of `key`.
    pub(crate) fn start(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.whole = None;
        self.parts.clear();
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// One more thing is said, later than all before.
    pub(crate) fn apply(&mut self, effect: Effect, sequence: Sequence, value: &'a [u8]) {
        if effect == Effect::Part {
            self.parts.push(Part { sequence, value });
        } else {
            self.whole = Some(Whole { effect, sequence, value });
            self.parts.clear();
        }
    }

    /// Applies those of `changes`, all of this key, that came after `known`.
    pub(crate) fn apply_after(&mut self, known: Sequence, changes: &[Change<'a>]) {
        for change in changes.iter().filter(|change| change.sequence > known) {
            self.apply(change.effect, change.sequence, change.value);
        }
    }

    /// Takes the rows of the key from `rows`.
    pub(crate) fn take_rows(&mut self, rows: &mut Cursor<'a>) -> Result<(), Damage> {
        while let Some(row) = rows.row.filter(|_| rows.key == self.key) {
            self.apply(row.effect, row.sequence.unwrap_or_default(), row.value);
            rows.advance()?;
        }
        Ok(())
    }

    /// Adds what was said to a delta page, which knows nothing of the base.
    pub(super) fn push_changes(&self, builder: &mut PageBuilder) {
        if let Some(whole) = self.whole {
            builder.push(&self.key, whole.effect, whole.sequence, whole.value);
        }
        for part in &self.parts {
            builder.push(&self.key, Effect::Part, part.sequence, part.value);
        }
    }

    /// Where the row's value is, if it is a record of its own.
    pub(crate) fn separate(&self) -> Option<&'a [u8]> {
        self.whole.filter(|whole| whole.effect == Effect::Separate).map(|whole| whole.value)
    }

    /// The parts, oldest first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.parts.iter().map(|part| part.value)
    }

    /// Whether nothing that came before the things said counts any more.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// What the row is, all in all. Parts are folded into `folded`.
    pub(crate) fn resolve<'v>(
        &self,
        merge: Option<&dyn MergeFunction>,
        folded: &'v mut Vec<u8>,
    ) -> Result<Resolved<'v>, MergeError>
    where
        'a: 'v,
    {
        let whole = self.whole.filter(|whole| whole.effect != Effect::Remove);
        if whole.is_some_and(|whole| whole.effect == Effect::Separate) {
            return Ok(Resolved::Separate);
        }
        let base = whole.map(|whole| whole.value);
        let is_folded = |merge: &dyn MergeFunction| merge.folds_all() && base.is_some();
        let value = if self.parts.is_empty() && !merge.is_some_and(is_folded) {
            base
        } else {
            let merge = merge.ok_or(MergeError::NoMergeFunction)?;
            match self.fold(merge, base, folded)? {
                Folded::Gone => None,
                Folded::Base => base,
                Folded::Row => Some(&folded[..]),
            }
        };
        let Some(value) = value else { return Ok(Resolved::Gone) };
        let is_over = merge.is_some_and(|merge| merge.is_over(&self.key, value));
        Ok(if is_over { Resolved::Gone } else { Resolved::Row(value) })
    }

    /// Folds the parts, into `folded`.
    fn fold(
        &self,
        merge: &dyn MergeFunction,
        base: Option<&[u8]>,
        folded: &mut Vec<u8>,
    ) -> Result<Folded, MergeError> {
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| part.value).collect();
        folded.clear();
        let ended = match merge.many() {
            Some(many) => fold_one(many, RowParts { key: &self.key, base, parts: &parts }, folded)?,
            None => merge.fold(&self.key, base, &parts, folded),
        };
        if folded.len() > SEPARATE_VALUE_BYTES_MAX {
            return Err(MergeError::LargeValue(folded.len()));
        }
        Ok(ended)
    }

    /// Adds the row as it is, unfolded, to `rows`, if there is one.
    pub(crate) fn push_unfolded(&self, rows: &mut RowBuffer) -> Pushed {
        let whole = self.whole.filter(|whole| whole.effect != Effect::Remove);
        if whole.is_some_and(|whole| whole.effect == Effect::Separate) {
            return Pushed::Separate;
        }
        if whole.is_none() && self.parts.is_empty() {
            return Pushed::Nothing;
        }
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| part.value).collect();
        let base = whole.map(|whole| whole.value);
        rows.push_unfolded(RowParts { key: &self.key, base, parts: &parts });
        Pushed::Row
    }

    /// The sequence of the last thing said.
    fn sequence(&self) -> Sequence {
        let whole = self.whole.map(|whole| whole.sequence);
        self.parts.last().map(|part| part.sequence).or(whole).unwrap_or_default()
    }
}

/// Gathers what a leaf and changes say of each key, in order.
pub(crate) fn gather_keys<'a, E: From<Damage>>(
    leaf: &Leaf<'a>,
    changes: &[Change<'a>],
    gathered: &mut Gathered<'a>,
    mut see: impl FnMut(&mut Gathered<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut base, mut delta) = (Cursor::new(Some(leaf.base))?, Cursor::new(leaf.delta)?);
    let known = leaf.sequence();
    let is_new = |change: &&Change<'_>| change.sequence > known || planted!("part-added-twice");
    let mut waiting = changes.iter().filter(is_new).peekable();
    loop {
        let next = [base.key(), delta.key(), waiting.peek().map(|change| change.key)];
        let Some(key) = next.into_iter().flatten().min() else { return Ok(()) };
        gathered.start(key);
        gathered.take_rows(&mut base)?;
        gathered.take_rows(&mut delta)?;
        while let Some(change) = waiting.next_if(|change| change.key == gathered.key()) {
            gathered.apply(change.effect, change.sequence, change.value);
        }
        see(gathered)?;
    }
}

/// Whether an unfolded row was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It was.
    Row,
    /// There is none.
    Nothing,
    /// Its base is a record of its own.
    Separate,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved<'v> {
    /// There is none.
    Gone,
    /// It has this value.
    Row(&'v [u8]),
    /// Its value is a record of its own.
    Separate,
}

/// The rows of new leaves, as they are gathered.
pub(super) struct Target<'m> {
    builder: PageBuilder,
    merge: Option<&'m dyn MergeFunction>,
    folded: Vec<u8>,
}

impl<'m> Target<'m> {
    pub(super) fn new(merge: Option<&'m dyn MergeFunction>) -> Target<'m> {
        Target { builder: PageBuilder::default(), merge, folded: Vec::new() }
    }

    pub(super) fn into_builder(self) -> PageBuilder {
        self.builder
    }

    /// Adds the rows of one leaf with its changes.
    pub(super) fn merge<'a>(
        &mut self,
        leaf: &Leaf<'a>,
        changes: &[Change<'a>],
    ) -> Result<(), MergeError> {
        let mut gathered = Gathered::default();
        gather_keys(leaf, changes, &mut gathered, |gathered| self.push(gathered))
    }

    /// Adds what became of a key.
    fn push(&mut self, gathered: &Gathered<'_>) -> Result<(), MergeError> {
        let sequence = gathered.sequence();
        let mut folded = std::mem::take(&mut self.folded);
        match gathered.resolve(self.merge, &mut folded)? {
            // The value is a record of its own, which is not at hand: parts stay beside it.
            Resolved::Separate => {
                let bytes = gathered.parts().map(<[u8]>::len).sum();
                let frame = gathered.key().len() + Row::overhead_bytes(true);
                if bytes > PART_BYTES_MAX
                    || bytes + gathered.parts.len() * frame > PAGED_PART_BYTES_MAX
                {
                    let parts = gathered.parts.len();
                    return Err(MergeError::ManyParts { bytes, parts });
                }
                gathered.push_changes(&mut self.builder);
            }
            Resolved::Gone => {}
            Resolved::Row(value) if value.len() > INLINE_VALUE_BYTES_MAX => {
                return Err(MergeError::LargeValue(value.len()));
            }
            Resolved::Row(value) => {
                self.builder.push(gathered.key(), Effect::Put, sequence, value);
            }
        }
        self.folded = folded;
        Ok(())
    }
}
