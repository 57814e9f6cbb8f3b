//! When each part of the keys was merged last: what the journal may let go of.
//!
//! A sweep merges the keys in their order, round after round. Right behind it all is new, right
//! before it are the changes that have waited longest, nearly since the sweep before. So the
//! journal can let go of changes with each round, and need not wait for the end of a sweep.

use std::collections::BTreeMap;

use entresol_planted::planted;

use crate::sequence::Sequence;

/// A place among the keys of all tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub table: u64,
    pub key: Vec<u8>,
}

/// Where a part of the keys ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Below(Position),
    Last,
}

/// A part of the keys, and a change: all changes of these keys up to it are in durable pages.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    pub from: Position,
    pub to: End,
    pub through: Sequence,
}

/// The last pass over each part of the keys.
#[derive(Debug)]
pub(super) struct Passes {
    /// By their ends; each begins where the one before ends.
    last: BTreeMap<End, Sequence>,
}

impl Default for Passes {
    /// Nothing is known to be merged.
    fn default() -> Passes {
        Passes { last: BTreeMap::from([(End::Last, Sequence(0))]) }
    }
}

impl Passes {
    /// Takes note of a pass.
    pub(super) fn add(&mut self, pass: Pass) {
        let Pass { from, to, through } = pass;
        let start = End::Below(from);
        if start != End::Below(Position::default()) && !self.last.contains_key(&start) {
            let around = self.last.range(&start..).next().map(|(_, through)| *through);
            self.last.insert(start.clone(), around.unwrap_or_default());
        }
        self.last.retain(|end, _| *end <= start || *end > to);
        self.last.insert(to, through);
    }

    /// All changes up to this one are in durable pages.
    pub(super) fn through(&self) -> Sequence {
        let through = match planted!("journal-cut-by-the-newest-pass") {
            true => self.last.values().max(),
            false => self.last.values().min(),
        };
        through.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(from: u8, to: u8, through: u64) -> Pass {
        let at = |key: u8| Position { table: u64::from(key > 0), key: vec![key] };
        let from = if from == 0 { Position::default() } else { at(from) };
        let to = if to == 0 { End::Last } else { End::Below(at(to)) };
        Pass { from, to, through: Sequence(through) }
    }

    #[test]
    fn the_part_that_was_merged_longest_ago_decides() {
        let mut passes = Passes::default();
        assert_eq!(passes.through(), Sequence(0));
        for (from, to, through, expected) in [
            (0, 10, 5, 0),
            (10, 20, 7, 0),
            (20, 0, 9, 5),
            (0, 10, 11, 7),
            (10, 15, 12, 7),
            (15, 25, 13, 9),
            (25, 0, 14, 11),
        ] {
            passes.add(pass(from, to, through));
            assert_eq!(passes.through(), Sequence(expected), "after {from} to {to}");
        }
    }

    /// A sweep that failed begins anew somewhere within what passes before it covered.
    #[test]
    fn a_pass_from_the_middle_of_another_leaves_the_rest_of_that() {
        let mut passes = Passes::default();
        passes.add(pass(0, 0, 5));
        passes.add(pass(10, 20, 9));
        assert_eq!(passes.through(), Sequence(5));
        passes.add(pass(0, 10, 9));
        assert_eq!(passes.through(), Sequence(5));
        passes.add(pass(20, 0, 8));
        assert_eq!(passes.through(), Sequence(8));
    }
}
