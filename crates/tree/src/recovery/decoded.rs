//! What some segments of the journal say, decoded while other threads decode others.
//!
//! Changes go into an arena that is lent for it, and are sorted there. Whoever puts all parts
//! together does so in the order of the journal. That order does not decide what a row has:
//! sequences do.

use std::collections::{BTreeMap, HashMap};

use entresol_flash::{JournalRead, JournalRecord};

use crate::format::{Batch, BatchReader, Damage, Effect, INLINE_VALUE_BYTES_MAX, NAMES, Naming};
use crate::journal::Found;
use crate::merge::Change;
use crate::pending::{Gathered, Lent};
use crate::sequence::Sequence;
use crate::values::{FoundValues, NamedValue};

/// The change that dropped a table last, and what *created* of its first record was each time.
pub(super) type Drops = HashMap<u64, (Sequence, Vec<Sequence>)>;

/// What is known before a part is decoded.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub values: &'k FoundValues,
    pub dropped: &'k Drops,
}

/// The change that dropped a table, and what the table's first record said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dropped {
    pub table: u64,
    pub sequence: Sequence,
    pub created: Sequence,
}

/// What the journal says of a table.
pub(super) struct Named {
    pub name: Box<[u8]>,
    pub keeps_counts: bool,
}

/// What comes one after the other.
pub(super) enum Step {
    /// Changes of a table, in order, under the names that they have in the arena that was lent.
    Changes(u64, Gathered),
    /// A table was dropped.
    Dropped(Dropped),
}

/// What some segments say.
#[derive(Default)]
pub(super) struct Said {
    pub steps: Vec<Step>,
    pub names: HashMap<u64, Named>,
    /// Changes that name a value.
    pub values: Vec<(NamedValue, Box<[u8]>)>,
    /// The last change.
    pub last: u64,
    /// Those with changes, in their order.
    pub segments: Vec<Found>,
    pub damage: Option<Damage>,
}

/// Some segments that are being decoded.
pub(super) struct Decoding<'k> {
    known: Known<'k>,
    lent: Lent,
    said: Said,
    /// What the segment has that is being decoded.
    segment: Option<Found>,
    gathered: BTreeMap<u64, Gathered>,
    dropped: HashMap<u64, Sequence>,
}

impl<'k> Decoding<'k> {
    /// Decodes into an arena that was lent.
    pub(super) fn into(lent: Lent, known: Known<'k>) -> Decoding<'k> {
        let (gathered, dropped) = (BTreeMap::new(), HashMap::new());
        Decoding { known, lent, said: Said::default(), segment: None, gathered, dropped }
    }

    /// Decodes segments that follow each other, up to the first damage.
    pub(super) fn decode(mut self, reads: &mut [JournalRead<'_>]) -> (Lent, Said) {
        let mut reader = BatchReader::default();
        for read in reads {
            self.segment = None;
            read.visit(&mut |record| {
                if self.said.damage.is_none() {
                    self.said.damage = self.take(&mut reader, record).err();
                }
            });
            self.said.segments.extend(self.segment.take());
        }
        self.sort();
        (self.lent, self.said)
    }

    fn take(&mut self, reader: &mut BatchReader, record: JournalRecord<'_>) -> Result<(), Damage> {
        let mut batch = reader.read(record.bytes)?;
        let end = batch.sequence.0 + u64::from(batch.count);
        let last_change = end.max(batch.low.0).saturating_sub(1);
        if self.known.values.is_cut(batch.sequence) {
            batch.skip()?;
        } else {
            self.add(&mut batch)?;
        }
        self.said.last = self.said.last.max(last_change);
        let segment = self.segment.get_or_insert(Found {
            last: Sequence(0),
            first_record: record.head,
            last_record: record.head,
        });
        segment.last = segment.last.max(Sequence(last_change));
        segment.last_record = record.head;
        Ok(())
    }

    fn add(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), Damage> {
        let first = batch.sequence;
        let mut next = first.0;
        while let Some(operation) = batch.operation() {
            let operation = operation?;
            let (table, sequence) = (operation.table, Sequence(next));
            next += 1;
            if table == NAMES {
                let naming = Naming::decode(operation.effect, operation.value);
                naming.into_iter().for_each(|naming| self.name(operation.key, sequence, naming));
                continue;
            }
            let dropped = self.known.dropped.get(&table).map(|(by, _)| *by);
            if dropped.max(self.dropped.get(&table).copied()).is_some_and(|by| sequence < by) {
                continue;
            }
            let (key, effect, value) = (operation.key, operation.effect, operation.value);
            if value.len() > INLINE_VALUE_BYTES_MAX {
                let found = value.len();
                return Err(Damage::new("value of an operation", found, INLINE_VALUE_BYTES_MAX));
            }
            if effect == Effect::Separate {
                self.said
                    .values
                    .push((NamedValue { batch: first, sequence, table }, Box::from(key)));
            }
            let gathered = self.gathered.entry(table).or_default();
            gathered.push(&mut self.lent.arena, Change { key, effect, sequence, value });
        }
        Ok(())
    }

    fn name(&mut self, name: &[u8], sequence: Sequence, naming: Naming) {
        let Naming { id, dropped, keeps_counts } = naming;
        let named = self.said.names.entry(id);
        let named = named.or_insert_with(|| Named { name: Box::from(name), keeps_counts });
        named.keeps_counts |= keeps_counts;
        if let Some(created) = dropped.map(Sequence) {
            // What came before goes, and what comes now stays.
            self.sort();
            self.said.steps.push(Step::Dropped(Dropped { table: id, sequence, created }));
            let by = self.dropped.entry(id).or_default();
            *by = sequence.max(*by);
        }
    }

    /// Brings what was gathered in order.
    fn sort(&mut self) {
        for (table, mut gathered) in std::mem::take(&mut self.gathered) {
            gathered.sort(&self.lent.arena);
            self.said.steps.push(Step::Changes(table, gathered));
        }
    }
}
