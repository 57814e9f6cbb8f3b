//! A page and the changes that wait for it become new pages: pure functions over bytes.
//!
//! Invariants:
//! 1. A leaf that comes out holds all changes of its range up to its sequence, and no other.
//! 2. A change whose sequence is not above that of the leaf is in the leaf already. So a merge that
//!    is repeated after a crash changes nothing, and a part is never added twice.
//! 3. Leaves that come out cover the range of those that went in: the first one keeps its number,
//!    each one names the next, the last one names the old right neighbour.

mod count;
mod cut;
mod gather;
mod together;

use entresol_planted::planted;

use crate::filter::Filter;
use crate::format::{
    Damage, Effect, HEADER_BYTES, PAGE_BYTES_MAX, PageBuilder, PageFrame, PageKind, Rows,
};
use crate::sequence::Sequence;

pub(crate) use count::{LeafRows, count_rows, visit_rows};
pub use cut::LeafLimits;
use cut::cut;
use gather::Target;
pub(crate) use gather::{Cursor, Gathered, Pushed, Resolved, gather_keys};
use together::Questions;
pub use together::{FoldMany, FoldedRows};

/// Most bytes of the rows of a delta page, each with its key whole.
const DELTA_BYTES_MAX: usize = PAGE_BYTES_MAX - HEADER_BYTES;

/// A change of one row that is in no page.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The row's key.
    pub key: &'a [u8],
    /// What is done to it.
    pub effect: Effect,
    /// Its place among all changes.
    pub sequence: Sequence,
    /// The value, or the part.
    pub value: &'a [u8],
}

/// What folding the parts of a row came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folded {
    /// The row has the value that was made.
    Row,
    /// The row has its base, as before; it is no more where there is none.
    Base,
    /// The row is no more.
    Gone,
}

/// How the owner of a table folds parts into rows. It must be a pure function of its arguments.
pub trait MergeFunction {
    /// Folds `parts`, oldest first, into the value `base`; the new value goes to `out`, which is
    /// empty before.
    fn fold(&self, key: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded;

    /// Whether a row of this value is over, as one is whose time has passed.
    fn is_over(&self, _key: &[u8], _value: &[u8]) -> bool {
        false
    }

    /// Whether rows without parts are folded as well, where they are read and where their leaf is
    /// written anew. It is how rows shrink, or go, as time passes.
    fn folds_all(&self) -> bool {
        false
    }

    /// Whoever folds many rows at a time in place of `fold`, where that costs less.
    fn many(&self) -> Option<&dyn FoldMany> {
        None
    }
}

/// Why pages could not be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeError {
    /// A page's bytes are not what was written.
    Damage(Damage),
    /// There are parts to fold, and the table's merge function is not known.
    NoMergeFunction,
    /// A merge function made a value larger than a page holds: its bytes.
    LargeValue(usize),
    /// A row whose value is a record of its own has more parts than a leaf has room for.
    ManyParts {
        /// Bytes of the parts.
        bytes: usize,
        /// How many there are.
        parts: usize,
    },
    /// The merge function could not be called, or failed: what it says.
    Refused(String),
}

impl From<Damage> for MergeError {
    fn from(damage: Damage) -> MergeError {
        MergeError::Damage(damage)
    }
}

impl std::fmt::Display for MergeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MergeError::Damage(damage) => write!(f, "a page is damaged: {damage}"),
            MergeError::NoMergeFunction => {
                f.write_str("rows of the table have parts; register the table's merge function")
            }
            MergeError::LargeValue(bytes) => write!(
                f,
                "a merge function made a value of {bytes} bytes; expected at most {}",
                crate::format::INLINE_VALUE_BYTES_MAX
            ),
            MergeError::ManyParts { bytes, parts } => write!(
                f,
                "a row with a large value has {parts} parts of {bytes} bytes, more than a leaf \
                 has room for; put the row as a whole"
            ),
            MergeError::Refused(why) => write!(f, "its merge function failed: {why}"),
        }
    }
}

impl std::error::Error for MergeError {}

/// A leaf as it stands: its page, and the delta page that belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    base: Rows<'a>,
    delta: Option<Rows<'a>>,
}

impl<'a> Leaf<'a> {
    /// The leaf of the pages `base` and `delta`. A delta page of another base does not count: a
    /// crash came between the two.
    pub fn parse(base: &'a [u8], delta: Option<&'a [u8]>) -> Result<Leaf<'a>, Damage> {
        let base = Rows::parse(base)?;
        if base.header().kind != PageKind::Leaf {
            return Err(Damage::new("kind of a leaf", 2, 1));
        }
        let delta = delta.map(Rows::parse).transpose()?;
        if delta.is_some_and(|delta| delta.header().kind != PageKind::Delta) {
            return Err(Damage::new("kind of a delta page", 1, 2));
        }
        let belongs = |delta: &Rows<'_>| delta.header().link == base.header().sequence.0;
        let counts = |delta: &Rows<'_>| belongs(delta) || planted!("delta-of-another-leaf");
        Ok(Leaf { base, delta: delta.filter(counts) })
    }

    /// All changes of the leaf's range up to this one are in it.
    pub fn sequence(&self) -> Sequence {
        self.delta.map_or(self.base.header().sequence, |delta| delta.header().sequence)
    }

    /// The leaf's own page.
    pub fn base(&self) -> Rows<'a> {
        self.base
    }

    /// The delta page, where one belongs to the base.
    pub fn delta(&self) -> Option<Rows<'a>> {
        self.delta
    }

    fn has_sequences(&self) -> bool {
        self.base.header().has_sequences
    }
}

/// A delta page that takes the place of the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelta {
    /// The page.
    pub page: Vec<u8>,
    /// Which keys it may hold.
    pub filter: Filter,
}

/// Puts `changes`, which ascend by key and then by sequence, into the delta page of the leaf whose
/// page has the sequence `base`. All changes of the leaf up to `through` are among them or in the
/// pages.
///
/// Errors: the old delta page is damaged.
pub fn merge_delta<'a>(
    old: Option<Rows<'a>>,
    base: Sequence,
    changes: &[Change<'a>],
    target: DeltaTarget,
) -> Result<NewDelta, Damage> {
    let old = old.filter(|old| old.header().link == base.0);
    let known = old.map_or(base, |old| old.header().sequence);
    let mut rows = Cursor::new(old)?;
    let mut waiting = changes.iter().filter(|change| change.sequence > known).peekable();
    let (mut builder, mut filter) = (PageBuilder::default(), Filter::default());
    let mut gathered = Gathered::default();
    loop {
        let next = [rows.key(), waiting.peek().map(|change| change.key)];
        let Some(key) = next.into_iter().flatten().min() else { break };
        gathered.start(key);
        gathered.take_rows(&mut rows)?;
        while let Some(change) = waiting.next_if(|change| change.key == gathered.key()) {
            gathered.apply(change.effect, change.sequence, change.value);
        }
        filter.insert(gathered.key());
        gathered.push_changes(&mut builder);
    }
    let frame = PageFrame {
        kind: PageKind::Delta,
        high_key: None,
        sequence: target.through.max(known),
        link: base.0,
        has_sequences: target.has_sequences,
    };
    let rows = 0..builder.count();
    let bytes = rows.clone().map(|index| builder.row_bytes(index, target.has_sequences)).sum();
    // Entries of a damaged page may lie in one another.
    if bytes > DELTA_BYTES_MAX {
        return Err(Damage::new("bytes of a delta page", bytes, DELTA_BYTES_MAX));
    }
    Ok(NewDelta { page: builder.page(rows, frame), filter })
}

/// What a new delta page is to be.
#[derive(Debug, Clone, Copy)]
pub struct DeltaTarget {
    /// All changes of the leaf up to this one are in the page then.
    pub through: Sequence,
    /// Whether rows carry sequences.
    pub has_sequences: bool,
}

/// A leaf that a merge made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLeaf {
    /// Its number in the table.
    pub number: u32,
    /// The page.
    pub page: Vec<u8>,
    /// The key from which on it holds rows; `None`: as the first leaf that went in.
    pub separator: Option<Vec<u8>>,
    /// Its rows.
    pub rows: u32,
    /// Whether it lies below the end of the range of which the changes came.
    pub is_merged: bool,
}

/// How leaves are rewritten.
pub struct Rewrite<'r> {
    /// The first leaf's number.
    pub number: u32,
    /// All changes of the range up to this one are in the leaves then.
    pub through: Sequence,
    /// The range of which the changes came ends here, where it is not that of the leaves. Rows from
    /// it on go to leaves of their own, which are as old as those that went in.
    pub end: Option<&'r [u8]>,
    /// When a leaf is split.
    pub limits: LeafLimits,
    /// The table's merge function, where it has one.
    pub merge: Option<&'r dyn MergeFunction>,
    /// Gives a number that no page of the table has had.
    pub fresh: &'r mut dyn FnMut() -> u32,
}

impl std::fmt::Debug for Rewrite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rewrite").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Makes new leaves of `leaves`, which are neighbours in ascending order, and of `changes`, which
/// ascend by key and then by sequence. Several leaves come in where the first absorbs its right
/// neighbours; several come out where there is too much for one.
///
/// # Panics
/// Where `leaves` is empty.
pub fn merge_leaves<'a>(
    leaves: &[Leaf<'a>],
    changes: &[Change<'a>],
    rewrite: &mut Rewrite<'_>,
) -> Result<Vec<NewLeaf>, MergeError> {
    let last = leaves.last().expect("a merge has a leaf");
    let has_sequences = last.has_sequences();
    let builder = match rewrite.merge.map(|merge| (merge, merge.many())) {
        Some((merge, Some(many))) => {
            let questions = Questions::new(merge.folds_all());
            gather(leaves, changes, Some(&questions))?;
            gather(leaves, changes, Some(&questions.ask(many)?))?
        }
        _ => gather(leaves, changes, rewrite.merge)?,
    };
    let appends = appends(leaves, changes)?;
    let known = leaves.iter().map(Leaf::sequence).max().unwrap_or_default();
    let cut = |rows| cut(&builder, rows, has_sequences, rewrite.limits, appends);
    let merged_rows = rewrite.end.map_or(builder.count(), |end| builder.rows_below(end));
    let mut parts = Parts { rows: cut(0..merged_rows), merged: 0, known };
    parts.merged = parts.rows.len();
    if rewrite.end.is_some() {
        parts.rows.extend(cut(merged_rows..builder.count()));
    }
    if leaves.len() > 1 && known > rewrite.through {
        // The neighbour's changes up to `known` would be missing.
        let (found, expected) = (known.0 as usize, rewrite.through.0 as usize);
        return Err(Damage::new("sequence of a leaf that is absorbed", found, expected).into());
    }
    let frame = PageFrame {
        kind: PageKind::Leaf,
        high_key: last.base.high_key(),
        sequence: rewrite.through.max(known),
        link: last.base.header().link,
        has_sequences,
    };
    Ok(pages(&builder, &parts, frame, rewrite))
}

/// The rows of `leaves` with their changes.
fn gather(
    leaves: &[Leaf<'_>],
    changes: &[Change<'_>],
    merge: Option<&dyn MergeFunction>,
) -> Result<PageBuilder, MergeError> {
    let mut target = Target::new(merge);
    let mut rest = changes;
    for leaf in leaves {
        let high = leaf.base.high_key();
        let own = rest.partition_point(|change| high.is_none_or(|high| change.key < high));
        let (of_leaf, others) = rest.split_at(own);
        target.merge(leaf, of_leaf)?;
        rest = others;
    }
    Ok(target.into_builder())
}

/// Whether all changes are above all rows: then the left leaves stay full, since nothing is
/// expected between their rows.
fn appends(leaves: &[Leaf<'_>], changes: &[Change<'_>]) -> Result<bool, Damage> {
    let Some(first) = changes.first() else { return Ok(false) };
    for leaf in leaves.iter().rev() {
        let mut last = Vec::new();
        for rows in [Some(leaf.base), leaf.delta].into_iter().flatten() {
            if let Some(index) = rows.count().checked_sub(1) {
                let row = rows.row(index)?;
                let key = row.key.to_vec();
                last = last.max(key);
            }
        }
        if !last.is_empty() {
            return Ok(first.key > last.as_slice());
        }
    }
    Ok(true)
}

/// What becomes of the rows of a merge.
struct Parts {
    /// Those of each leaf.
    rows: Vec<std::ops::Range<usize>>,
    /// So many leaves have the changes.
    merged: usize,
    /// The others are as old as this.
    known: Sequence,
}

/// The pages of the parts, from right to left, since each one names the next.
fn pages(
    builder: &PageBuilder,
    parts: &Parts,
    last: PageFrame<'_>,
    rewrite: &mut Rewrite<'_>,
) -> Vec<NewLeaf> {
    let mut made = Vec::with_capacity(parts.rows.len());
    let mut high_key = last.high_key.map(<[u8]>::to_vec);
    let mut link = last.link;
    for (place, part) in parts.rows.iter().enumerate().rev() {
        let is_merged = place < parts.merged || planted!("unmerged-rows-said-to-be-merged");
        let sequence = if is_merged { last.sequence } else { parts.known };
        let frame = PageFrame { high_key: high_key.as_deref(), link, sequence, ..last };
        let page = builder.page(part.clone(), frame);
        let number = if place == 0 { rewrite.number } else { (rewrite.fresh)() };
        let first = match rewrite.end.filter(|_| place == parts.merged) {
            Some(end) => end,
            None if place > 0 => builder.key(part.start),
            None => &[],
        };
        let separator = (place > 0).then(|| separator(builder, part.start, first));
        high_key.clone_from(&separator);
        link = number.into();
        let (rows, is_merged) = (builder.keys(part.clone()), place < parts.merged);
        made.push(NewLeaf { number, page, separator, rows, is_merged });
    }
    made.reverse();
    made
}

/// The shortest key that is above the row before `index` and not above `key`.
fn separator(builder: &PageBuilder, index: usize, key: &[u8]) -> Vec<u8> {
    // Without a row before nobody knows how low the leaf's keys go.
    let Some(before) = index.checked_sub(1) else { return key.to_vec() };
    let before = builder.key(before);
    key[..=crate::format::common_prefix_bytes(before, key)].to_vec()
}
