//! What an opening finds of values that are records of their own: which batches name one that is
//! lost, and which values no batch names.

use std::collections::{HashMap, HashSet};

use entresol_flash::{LogPosition, Operation, Outcome, Result, Timestamp};
use entresol_planted::planted;
use entresol_tier::Tiered;

use super::{Owner, Replaced, confirmed_key, cuts_key, words};
use crate::error::corrupt;
use crate::format::{Effect, PageRole, Reference, Root, ValueName, page_key, record_key};
use crate::merge::Change;
use crate::options::TreeOptions;
use crate::sequence::Sequence;
use crate::table::ROOT_PAGE;

/// What an opening knows of values.
#[derive(Debug, Default)]
pub(crate) struct FoundValues {
    /// The values that changes up to this one name are durable.
    pub confirmed: Sequence,
    /// Values from here on may be in no batch. `None`: there are none at all.
    pub position: Option<LogPosition>,
    /// Changes that never were: from one to another one.
    cuts: Vec<(Sequence, Sequence)>,
    is_cut_anew: bool,
    /// Tables whose values the journal names.
    tables: HashSet<u64>,
    /// Changes that name values which may be lost.
    named: Vec<(NamedValue, Box<[u8]>)>,
    /// Rows with values of tables that were dropped.
    dropped: Vec<Replaced>,
}

/// A change that names a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedValue {
    /// The first change of its batch.
    pub batch: Sequence,
    pub sequence: Sequence,
    pub table: u64,
}

/// Where an opening reads.
pub(crate) struct Place<'p> {
    pub store: &'p std::sync::Arc<Tiered>,
    pub options: &'p TreeOptions,
    pub now: Timestamp,
}

/// What the journal says of rows and tables.
pub(crate) trait Journaled {
    /// The last change of a row that says all of it.
    fn whole(&self, table: u64, key: &[u8]) -> Option<Change<'_>>;
    /// The change that dropped a table.
    fn dropped(&self, table: u64) -> Option<Sequence>;
}

impl FoundValues {
    /// What the store says.
    pub(crate) fn read(
        session: &mut entresol_tier::Session,
        place: &Place<'_>,
    ) -> Result<FoundValues> {
        let mut found = FoundValues::default();
        let confirmed = read(session, place, &confirmed_key())?.map(|(_, bytes)| words(&bytes));
        if let Some([through, segment, versions @ ..]) = confirmed.as_deref() {
            found.confirmed = Sequence(*through);
            let versions = versions.to_vec();
            found.position = Some(LogPosition { segment: *segment, versions });
        }
        let cuts = read(session, place, &cuts_key())?.map(|(_, bytes)| words(&bytes));
        let (cuts, _) = cuts.as_deref().unwrap_or_default().as_chunks::<2>();
        found.cuts = cuts.iter().map(|[from, to]| (Sequence(*from), Sequence(*to))).collect();
        Ok(found)
    }

    /// Whether the batch never was.
    pub(crate) fn is_cut(&self, batch: Sequence) -> bool {
        self.cuts.iter().any(|(from, to)| (*from..=*to).contains(&batch))
            && !planted!("batch-without-its-value-is-kept")
    }

    pub(crate) fn has_table(&self, id: u64) -> bool {
        self.tables.contains(&id)
    }

    pub(crate) fn note(&mut self, named: NamedValue, key: Box<[u8]>) {
        self.tables.insert(named.table);
        if named.sequence > self.confirmed {
            self.named.push((named, key));
        }
    }

    pub(crate) fn push_dropped(
        &mut self,
        table: u64,
        created: Sequence,
        sequence: Sequence,
        key: &[u8],
    ) {
        let (key, of) = (Box::from(key), Owner::Dropped { created });
        self.dropped.push(Replaced { table, key, sequence, of, bytes: 0 });
    }

    pub(crate) fn take_dropped(&mut self) -> Vec<Replaced> {
        std::mem::take(&mut self.dropped)
    }

    /// The first batch that names a value which is lost, and that no later one took the place of.
    pub(crate) fn first_lost(
        &self,
        session: &mut entresol_tier::Session,
        place: &Place<'_>,
        journal: &dyn Journaled,
    ) -> Result<Option<Sequence>> {
        let mut first: Option<Sequence> = None;
        let mut tables = HashMap::new();
        for (named, key) in &self.named {
            if planted!("batch-without-its-value-is-kept")
                || first.is_some_and(|first| first <= named.batch)
            {
                continue;
            }
            let Some(whole) = journal.whole(named.table, key) else { continue };
            if whole.sequence != named.sequence || whole.effect != Effect::Separate {
                continue;
            }
            let reference = Reference::decode(whole.value);
            let reference = reference.map_err(|damage| corrupt(&damage, named.table))?;
            let created = match tables.get(&named.table) {
                Some(created) => *created,
                None => {
                    let dropped = journal.dropped(named.table).unwrap_or_default();
                    let created = created_of(session, place, named.table)?.max(dropped);
                    tables.insert(named.table, created);
                    created
                }
            };
            let name = ValueName { table: named.table, created, key, side: reference.side };
            let there = read(session, place, &name.record_key())?;
            if there.is_none_or(|(version, _)| version != reference.version) {
                first = Some(named.batch);
            }
        }
        Ok(first)
    }

    /// The same, once changes from one to another one are left out.
    pub(crate) fn cut(self, from: Sequence, to: Sequence) -> FoundValues {
        let FoundValues { confirmed, position, mut cuts, .. } = self;
        cuts.retain(|cut| cut.0 < from);
        cuts.push((from, to));
        FoundValues { confirmed, position, cuts, is_cut_anew: true, ..FoundValues::default() }
    }

    /// Writes what was cut, durably: batches that come now must not fall under it.
    pub(crate) fn write_cuts(
        &mut self,
        session: &mut entresol_tier::Session,
        place: &Place<'_>,
    ) -> Result<()> {
        if !std::mem::take(&mut self.is_cut_anew) {
            return Ok(());
        }
        // The journal has let go of the batches of older ones.
        let start = self.cuts.len().saturating_sub(CUTS_MAX);
        let words = self.cuts[start..].iter().flat_map(|(from, to)| [from.0, to.0]);
        let value: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let key = cuts_key();
        let put = Operation::Put {
            key: record_key(place.options.space, &key),
            value: &value,
            options: entresol_flash::PutOptions::default(),
        };
        session.run(place.now, put, &mut |_| {})?;
        place.store.sync()
    }
}

/// Cuts that are kept: each of them takes an opening after a crash.
const CUTS_MAX: usize = 256;

/// The first record of a table says of which table of the name its values are.
fn created_of(
    session: &mut entresol_tier::Session,
    place: &Place<'_>,
    table: u64,
) -> Result<Sequence> {
    let record = read(session, place, &page_key(table, ROOT_PAGE, PageRole::Page))?;
    let Some((_, record)) = record else { return Ok(Sequence(0)) };
    let root = Root::decode(&record).map_err(|damage| corrupt(&damage, table))?;
    Ok(Sequence(root.created))
}

/// A record, and its version.
fn read(
    session: &mut entresol_tier::Session,
    place: &Place<'_>,
    key: &[u8],
) -> Result<Option<(u64, Vec<u8>)>> {
    let key = record_key(place.options.space, key);
    if !session.may_hold(key) {
        return Ok(None);
    }
    let mut found = None;
    session.run(place.now, Operation::Get { key }, &mut |outcome| {
        if let Outcome::Found(entry) = outcome {
            found = Some((entry.version.0, entry.value.to_vec()));
        }
    })?;
    Ok(found)
}
