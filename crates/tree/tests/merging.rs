//! Leaves and delta pages against a map in memory: whatever changes come, and however they are cut
//! into merges, the pages say what the map says.
//!
//! `ENTRESOL_SEED` replaces the seeds.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;

use entresol_tree::format::{Effect, PageBuilder, PageFrame, PageKind, Rows};
use entresol_tree::{
    Change, DeltaTarget, Filter, FoldMany, Folded, FoldedRows, Leaf, LeafLimits, MergeError,
    MergeFunction, NewLeaf, Rewrite, RowBuffer, Sequence, merge_delta, merge_leaves,
};
use entresol_workload::Random;

const LIMITS: LeafLimits = LeafLimits { leaf_bytes_max: 1024 };
const ROUNDS: usize = 300;

/// Parts are appended; a part "-" ends the row.
struct Append;

impl MergeFunction for Append {
    fn fold(&self, _: &[u8], base: Option<&[u8]>, parts: &[&[u8]], out: &mut Vec<u8>) -> Folded {
        out.extend_from_slice(base.unwrap_or_default());
        for part in parts {
            if *part == b"-" {
                out.clear();
            } else {
                out.extend_from_slice(part);
            }
        }
        out.truncate(40);
        if parts.last() == Some(&&b"-"[..]) { Folded::Gone } else { Folded::Row }
    }
}

/// A leaf with its delta page, as a store would hold it.
#[derive(Debug, Clone)]
struct Stored {
    number: u32,
    low: Vec<u8>,
    base: Vec<u8>,
    delta: Option<Vec<u8>>,
    filter: Filter,
}

impl Stored {
    fn leaf(&self) -> Leaf<'_> {
        Leaf::parse(&self.base, self.delta.as_deref()).unwrap()
    }
}

#[derive(Debug, Clone)]
struct Waiting {
    key: Vec<u8>,
    effect: Effect,
    sequence: Sequence,
    value: Vec<u8>,
}

/// All leaves of a table, its changes that wait, and what it should hold.
struct Table {
    random: Random,
    leaves: Vec<Stored>,
    waiting: Vec<Waiting>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    sequence: u64,
    numbers: u32,
    has_sequences: bool,
}

impl Table {
    fn new(seed: u64) -> Table {
        let random = Random::new(seed);
        let has_sequences = seed.is_multiple_of(2);
        let frame = PageFrame {
            kind: PageKind::Leaf,
            high_key: None,
            sequence: Sequence(0),
            link: 0,
            has_sequences,
        };
        let base = PageBuilder::default().page(0..0, frame);
        let first = Stored { number: 1, low: Vec::new(), base, delta: None, filter: Filter(0) };
        let (leaves, model) = (vec![first], BTreeMap::new());
        Table { random, leaves, waiting: Vec::new(), model, sequence: 0, numbers: 1, has_sequences }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(400);
        match self.random.below(3) {
            0 => format!("row {number}").into_bytes(),
            1 => number.to_be_bytes().to_vec(),
            _ => vec![b'a'; 1 + (number as usize) % 30],
        }
    }

    fn change(&mut self) {
        let key = self.key();
        self.sequence += 1;
        let value = vec![b'0' + (self.sequence % 10) as u8; self.random.below(40) as usize];
        let (effect, value) = match self.random.below(10) {
            0..5 => (Effect::Put, value),
            5..7 => (Effect::Remove, Vec::new()),
            7 => (Effect::Part, b"-".to_vec()),
            _ => (Effect::Part, value),
        };
        match effect {
            Effect::Put => drop(self.model.insert(key.clone(), value.clone())),
            Effect::Remove => drop(self.model.remove(&key)),
            _ => {
                let mut folded = Vec::new();
                let base = self.model.get(&key).map(Vec::as_slice);
                match Append.fold(&key, base, &[&value], &mut folded) {
                    Folded::Row => drop(self.model.insert(key.clone(), folded)),
                    Folded::Gone => drop(self.model.remove(&key)),
                    Folded::Base => unreachable!("it makes values"),
                }
            }
        }
        let sequence = Sequence(self.sequence);
        self.waiting.push(Waiting { key, effect, sequence, value });
    }

    fn high(&self, index: usize) -> Option<Vec<u8>> {
        self.leaves.get(index + 1).map(|next| next.low.clone())
    }

    /// Takes the changes of the leaves `range` out of those that wait.
    fn take(&mut self, range: std::ops::Range<usize>) -> Vec<Waiting> {
        let low = self.leaves[range.start].low.clone();
        let high = self.high(range.end - 1);
        let is_own = |key: &[u8]| key >= &low[..] && high.as_deref().is_none_or(|high| key < high);
        let (mut own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|change| is_own(&change.key));
        self.waiting = others;
        own.sort_by(|a, b| (&a.key, a.sequence).cmp(&(&b.key, b.sequence)));
        own
    }

    fn merge_into_delta(&mut self, index: usize) {
        let own = self.take(index..index + 1);
        let leaf = &self.leaves[index];
        let target =
            DeltaTarget { through: Sequence(self.sequence), has_sequences: self.has_sequences };
        let base = leaf.leaf().base().header().sequence;
        let old = leaf.delta.as_deref().map(|delta| Rows::parse(delta).unwrap());
        let made = merge_delta(old, base, &borrow(&own), target).unwrap();
        Rows::parse(&made.page).unwrap().check().unwrap();
        let leaf = &mut self.leaves[index];
        (leaf.delta, leaf.filter) = (Some(made.page), made.filter);
    }

    /// Rewrites the leaves `range`; sometimes twice with the same changes, as after a crash.
    fn rewrite(&mut self, range: std::ops::Range<usize>) {
        let own = self.take(range.clone());
        let again = self.random.below(3) == 0;
        let mut made = self.rewritten(&range, &own);
        self.replace(range.clone(), made);
        if again {
            let repeated = range.start..range.start + 1;
            let high = self.high(range.start);
            let own: Vec<_> = own
                .into_iter()
                .filter(|change| high.as_ref().is_none_or(|high| change.key < *high))
                .collect();
            made = self.rewritten(&repeated, &own);
            self.replace(repeated, made);
        }
    }

    /// Rewrites a leaf with the changes below one of those that wait for it.
    fn rewrite_below(&mut self, index: usize) {
        let mut own = self.take(index..index + 1);
        let Some(last) = own.last().filter(|last| last.key > own[0].key) else {
            return self.waiting.extend(own);
        };
        let middle = own[self.random.below(own.len() as u64) as usize].key.clone();
        let end = if middle > own[0].key { middle } else { last.key.clone() };
        self.waiting.extend(own.extract_if(.., |change| change.key >= end));
        let made = self.rewritten_below(&(index..index + 1), &own, Some(&end));
        let rest = made.iter().find(|made| !made.is_merged).expect("a leaf with the end");
        assert!(rest.separator.as_ref().is_some_and(|low| *low <= end));
        self.replace(index..index + 1, made);
    }

    fn rewritten(&mut self, range: &std::ops::Range<usize>, own: &[Waiting]) -> Vec<NewLeaf> {
        self.rewritten_below(range, own, None)
    }

    fn rewritten_below(
        &mut self,
        range: &std::ops::Range<usize>,
        own: &[Waiting],
        end: Option<&[u8]>,
    ) -> Vec<NewLeaf> {
        let leaves: Vec<Leaf<'_>> = self.leaves[range.clone()].iter().map(Stored::leaf).collect();
        let numbers = &mut self.numbers;
        let mut rewrite = Rewrite {
            number: self.leaves[range.start].number,
            through: Sequence(self.sequence),
            end,
            limits: LIMITS,
            merge: Some(&Append),
            fresh: &mut || {
                *numbers += 1;
                *numbers
            },
        };
        merge_leaves(&leaves, &borrow(own), &mut rewrite).unwrap()
    }

    fn replace(&mut self, range: std::ops::Range<usize>, made: Vec<NewLeaf>) {
        let low = self.leaves[range.start].low.clone();
        let stored = made.into_iter().map(|made| {
            let low = made.separator.unwrap_or_else(|| low.clone());
            let rows = Rows::parse(&made.page).unwrap();
            rows.check().unwrap();
            assert!(rows.count() >= made.rows as usize);
            Stored { number: made.number, low, base: made.page, delta: None, filter: Filter(0) }
        });
        self.leaves.splice(range, stored.collect::<Vec<_>>());
    }

    fn merge_somewhere(&mut self) {
        let index = self.random.below(self.leaves.len() as u64) as usize;
        match self.random.below(5) {
            0 | 1 => self.merge_into_delta(index),
            2 => self.rewrite(index..index + 1),
            3 => self.rewrite_below(index),
            _ => self.rewrite(index..(index + 2).min(self.leaves.len())),
        }
    }

    /// Links, high keys and rows of all leaves say what the model says.
    fn check(&mut self) {
        while let Some(change) = self.waiting.first() {
            let key = change.key.clone();
            let index = self.leaves.partition_point(|leaf| leaf.low <= key) - 1;
            self.rewrite(index..index + 1);
        }
        // What delta pages have is in them, and their filters know it.
        let mut found = BTreeMap::new();
        for index in 0..self.leaves.len() {
            let stored = &self.leaves[index];
            let header = *stored.leaf().base().header();
            let right = self.leaves.get(index + 1).map_or(0, |next| next.number);
            assert_eq!(header.link, u64::from(right));
            assert_eq!(stored.leaf().base().high_key().map(<[u8]>::to_vec), self.high(index));
            if let Some(delta) = stored.leaf().delta() {
                for row in 0..delta.count() {
                    assert!(stored.filter.may_hold(&delta.row(row).unwrap().key.to_vec()));
                }
            }
            let made = self.rewritten(&(index..index + 1), &[]);
            for made in made {
                let rows = Rows::parse(&made.page).unwrap();
                for row in 0..rows.count() {
                    let row = rows.row(row).unwrap();
                    assert_eq!(row.effect, Effect::Put);
                    found.insert(row.key.to_vec(), row.value.to_vec());
                }
            }
        }
        assert_eq!(found, self.model);
    }
}

fn borrow(changes: &[Waiting]) -> Vec<Change<'_>> {
    changes
        .iter()
        .map(|Waiting { key, effect, sequence, value }| Change {
            key,
            effect: *effect,
            sequence: *sequence,
            value,
        })
        .collect()
}

fn seeds() -> Vec<u64> {
    let given = std::env::var("ENTRESOL_SEED").ok().and_then(|text| text.parse().ok());
    given.map_or_else(|| (1..=40).collect(), |seed| vec![seed])
}

#[test]
fn leaves_and_delta_pages_say_what_a_map_says() {
    for seed in seeds() {
        eprintln!("ENTRESOL_SEED={seed}");
        let mut table = Table::new(seed);
        for _ in 0..ROUNDS {
            let changes = table.random.below(30);
            (0..changes).for_each(|_| table.change());
            table.merge_somewhere();
        }
        table.check();
        assert!(table.numbers > 3, "leaves were split");
    }
}

#[test]
fn appended_rows_leave_full_leaves_behind() {
    let mut table = Table::new(1);
    for number in 0..4000_u32 {
        table.sequence += 1;
        let key = format!("{number:08}").into_bytes();
        let (sequence, value) = (Sequence(table.sequence), vec![7; 20]);
        table.model.insert(key.clone(), value.clone());
        table.waiting.push(Waiting { key, effect: Effect::Put, sequence, value });
        if number % 200 == 199 {
            let last = table.leaves.len() - 1;
            table.rewrite(last..last + 1);
        }
    }
    let bytes: usize = table.leaves.iter().map(|leaf| leaf.base.len()).sum();
    let share = bytes as f64 / (table.leaves.len() * LIMITS.leaf_bytes_max) as f64;
    assert!(share > 0.80, "leaves are {share} full");
    table.check();
}

#[test]
fn a_delta_page_of_another_base_does_not_count() {
    let mut table = Table::new(2);
    (0..5).for_each(|_| table.change());
    table.merge_into_delta(0);
    let old = table.leaves[0].delta.clone();
    (0..5).for_each(|_| table.change());
    table.rewrite(0..1);
    assert!(Leaf::parse(&table.leaves[0].base, old.as_deref()).unwrap().delta().is_none());
}

#[test]
fn parts_without_a_merge_function_are_refused_and_a_large_folded_value_as_well() {
    struct Large;
    impl MergeFunction for Large {
        fn fold(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], out: &mut Vec<u8>) -> Folded {
            out.resize(9000, 0);
            Folded::Row
        }
    }
    let table = Table::new(2);
    let change = Change { key: b"k", effect: Effect::Part, sequence: Sequence(1), value: b"value" };
    let merge = |function: Option<&dyn MergeFunction>| {
        let mut rewrite = Rewrite {
            number: 1,
            through: Sequence(1),
            end: None,
            limits: LIMITS,
            merge: function,
            fresh: &mut || 2,
        };
        merge_leaves(&[table.leaves[0].leaf()], &[change], &mut rewrite)
    };
    assert_eq!(merge(None), Err(MergeError::NoMergeFunction));
    assert_eq!(merge(Some(&Large)), Err(MergeError::LargeValue(9000)));
    assert!(merge(Some(&Append)).is_ok());
    let refused = |why: &str| Err(MergeError::Refused(why.to_owned()));
    assert_eq!(merge(Some(&Fails { answers: 0 })), refused("0 answers for 1 rows"));
    assert_eq!(merge(Some(&Fails { answers: 2 })), refused("2 answers for 1 rows"));
    assert_eq!(merge(Some(&Fails { answers: 9 })), refused("nine are too many"));
}

/// Folds rows together, and gives so many answers.
struct Fails {
    answers: usize,
}

impl MergeFunction for Fails {
    fn fold(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Folded {
        unreachable!("rows are folded together")
    }

    fn many(&self) -> Option<&dyn FoldMany> {
        Some(self)
    }
}

impl FoldMany for Fails {
    fn fold_rows(&self, _: &RowBuffer, folded: &mut FoldedRows) -> Result<(), String> {
        (0..self.answers).for_each(|_| folded.push(Folded::Gone, b""));
        if self.answers == 9 { Err("nine are too many".to_owned()) } else { Ok(()) }
    }
}

/// Small parts beside a value that is a record of its own were counted by their bytes alone. More
/// of them than a page has room for made the merge panic.
#[test]
fn small_parts_beside_a_large_value_that_fill_a_page_are_refused() {
    let stored = Table::new(0).leaves.remove(0);
    let change = |number: u64, effect, value| Change {
        key: &b"a row"[..],
        effect,
        sequence: Sequence(number),
        value,
    };
    for (parts, may_be) in [(1000, true), (9000, false), (70_000, false)] {
        let mut changes = vec![change(1, Effect::Separate, &[0; 12][..])];
        changes.extend((0..parts).map(|number| change(number + 2, Effect::Part, b"")));
        let mut rewrite = Rewrite {
            number: 1,
            through: Sequence(parts + 2),
            end: None,
            limits: LIMITS,
            merge: Some(&Append),
            fresh: &mut || 2,
        };
        let made = merge_leaves(&[stored.leaf()], &changes, &mut rewrite);
        match made {
            Ok(made) => assert!(may_be && Rows::parse(&made[0].page).unwrap().count() > 1000),
            Err(refused) => {
                assert_eq!(refused, MergeError::ManyParts { bytes: 0, parts: parts as usize });
                assert!(!may_be);
            }
        }
    }
}

/// Pages come from a medium: one with keys that no page holds, or in no order, made the merge
/// panic.
#[test]
fn a_leaf_with_keys_that_no_page_holds_is_damage_to_a_merge() {
    let frame = PageFrame {
        kind: PageKind::Leaf,
        high_key: None,
        sequence: Sequence(1),
        link: 0,
        has_sequences: false,
    };
    let mut builder = PageBuilder::default();
    builder.push(b"b", Effect::Put, Sequence(1), b"");
    builder.push(b"a", Effect::Put, Sequence(1), b"");
    let disordered = builder.page(0..2, frame);
    let mut empty = builder.page(0..1, frame);
    // The only key is the prefix: without it there is none.
    empty[4] = 0;
    empty.remove(32);
    let mut long = empty.clone();
    let at = long.len() - 4;
    long[at..at + 2].copy_from_slice(&3000_u16.to_le_bytes());
    long.resize(long.len() + 3000, b'k');
    for (page, field) in
        [(disordered, "order of rows"), (empty, "key of a row"), (long, "key of a row")]
    {
        let leaf = Leaf::parse(&page, None).unwrap();
        let mut rewrite = Rewrite {
            number: 1,
            through: Sequence(2),
            end: None,
            limits: LIMITS,
            merge: None,
            fresh: &mut || 2,
        };
        let refused = merge_leaves(&[leaf], &[], &mut rewrite).unwrap_err();
        let MergeError::Damage(damage) = refused else { panic!("{refused}") };
        assert_eq!(damage.field, field);
    }
}
