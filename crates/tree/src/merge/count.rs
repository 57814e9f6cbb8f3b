//! Which rows a leaf has, for tables that keep counts.
//!
//! A row counts while a page or a change that waits has it, and its parts, if there are any, do not
//! fold into no row. What ends rows as time passes is not asked: the rows of a leaf would be others
//! with each look. So such a row counts until its leaf is written anew. A row whose value is a
//! record of its own counts, whatever its parts would fold into.

use super::gather::{Cursor, Gathered, Resolved};
use super::together::Questions;
use super::{Change, Folded, Leaf, MergeError, MergeFunction};
use crate::sequence::Sequence;

/// A merge function without what ends rows as time passes.
struct Lasting<'m>(&'m dyn MergeFunction);

impl MergeFunction for Lasting<'_> {
    fn fold(&self, key: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        self.0.fold(key, base, parts, out)
    }
}

/// Rows of a leaf below a key, with changes that ascend by key and then by sequence.
#[derive(Clone, Copy)]
pub(crate) struct LeafRows<'r> {
    pub leaf: Option<Leaf<'r>>,
    pub changes: &'r [Change<'r>],
    pub high: Option<&'r [u8]>,
}

/// Gives the keys of the rows, in order.
///
/// Errors: a page is damaged, or parts cannot be folded.
pub(crate) fn visit_rows(
    rows: LeafRows<'_>,
    merge: Option<&dyn MergeFunction>,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), MergeError> {
    if let Some(many) = merge.and_then(MergeFunction::many) {
        let questions = Questions::new(false);
        visit_with(rows, Some(&questions), &mut |_| {})?;
        return visit_with(rows, Some(&questions.ask(many)?), visit);
    }
    let merge = merge.map(Lasting);
    visit_with(rows, merge.as_ref().map(|merge| merge as _), visit)
}

fn visit_with(
    rows: LeafRows<'_>,
    merge: Option<&dyn MergeFunction>,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), MergeError> {
    let LeafRows { leaf, changes, high } = rows;
    let (mut base, mut delta) =
        (Cursor::new(leaf.map(|leaf| leaf.base()))?, Cursor::new(leaf.and_then(|l| l.delta()))?);
    let known = leaf.map_or(Sequence(0), |leaf| leaf.sequence());
    let mut waiting = changes.iter().filter(|change| change.sequence > known).peekable();
    let (mut gathered, mut folded) = (Gathered::default(), Vec::new());
    loop {
        let next = [base.key(), delta.key(), waiting.peek().map(|change| change.key)];
        let Some(key) = next.into_iter().flatten().min() else { return Ok(()) };
        if high.is_some_and(|high| key >= high) {
            return Ok(());
        }
        gathered.start(key);
        gathered.take_rows(&mut base)?;
        gathered.take_rows(&mut delta)?;
        while let Some(change) = waiting.next_if(|change| change.key == gathered.key()) {
            gathered.apply(change.effect, change.sequence, change.value);
        }
        if gathered.resolve(merge, &mut folded)? != Resolved::Gone {
            visit(gathered.key());
        }
    }
}

/// How many rows a leaf has, without changes that wait.
pub(crate) fn count_rows(
    leaf: Leaf<'_>,
    merge: Option<&dyn MergeFunction>,
) -> Result<u32, MergeError> {
    let mut rows = 0;
    let of = LeafRows { leaf: Some(leaf), changes: &[], high: None };
    visit_rows(of, merge, &mut |_| rows += 1)?;
    Ok(rows)
}
