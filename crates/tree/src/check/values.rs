//! Values that are records of their own: each one that a row names is there, and each one that is
//! there is named, or is still to be removed.
//!
//! A row whose value was replaced by a change that the journal has says nothing: its old value may
//! be there or not. So may values that no row names, where they were put since the place up to
//! which the store has confirmed them: the next opening removes those. Memory is 8 bytes for each
//! value, and for each change of the journal.

use std::collections::{BTreeMap, HashSet};

use entresol_flash::{EntryName, Error, Listing, LogPosition, Result};
use entresol_planted::planted;
use entresol_tier::Tiered;
use xxhash_rust::xxh3::xxh3_64;

use super::journal::Journaled;
use super::reader::Reader;
use super::{TOGETHER, TableDamage, Tell, Told, shown};
use crate::format::{Damage, Effect, Reference, Row, Rows, Side, VALUES, ValueName};
use crate::options::TreeOptions;
use crate::sequence::Sequence;
use crate::values::{confirmed_key, words};

/// Values that are read together, and bytes of them.
const READ_MAX: usize = 64;
const READ_BYTES_MAX: u64 = 16 << 20;

/// What is known of values.
pub(super) struct Values<'j> {
    pub journaled: &'j Journaled,
    /// Those that rows name, by the hashes of their records' keys.
    named: HashSet<u64>,
    /// How many of those are there.
    held: u64,
    /// The names of tables that were looked at.
    names: BTreeMap<u64, Vec<u8>>,
}

/// A value that is not as its row says.
pub(super) struct ValueDamage {
    pub place: String,
    pub expected: String,
    pub found: String,
}

/// The rows of a leaf.
pub(super) struct LeafValues<'a> {
    pub table: u64,
    /// Of which table of the name they are.
    pub created: Sequence,
    pub leaf: Rows<'a>,
    pub delta: Option<Rows<'a>>,
}

/// A row, and the value that it names.
struct Wanted {
    key: Vec<u8>,
    record_key: Vec<u8>,
    reference: Reference,
}

impl<'j> Values<'j> {
    pub(super) fn new(journaled: &'j Journaled) -> Values<'j> {
        Values { journaled, named: HashSet::new(), held: 0, names: BTreeMap::new() }
    }

    /// A table was looked at.
    pub(super) fn add_table(&mut self, id: u64, name: &[u8]) {
        self.names.insert(id, name.to_vec());
    }

    /// Looks for the values that the rows of a leaf name.
    pub(super) fn look(
        &mut self,
        reader: &mut Reader,
        of: &LeafValues<'_>,
    ) -> Result<std::result::Result<Vec<ValueDamage>, Damage>> {
        let wanted = match wanted(of) {
            Ok(wanted) => wanted,
            Err(damage) => return Ok(Err(damage)),
        };
        let (mut damaged, mut rest) = (Vec::new(), &wanted[..]);
        while !rest.is_empty() {
            let (mut count, mut bytes) = (0, 0);
            while count < rest.len().min(READ_MAX) && bytes < READ_BYTES_MAX {
                bytes += u64::from(rest[count].reference.bytes);
                count += 1;
            }
            let (some, others) = rest.split_at(count);
            rest = others;
            let keys: Vec<&[u8]> = some.iter().map(|wanted| &wanted.record_key[..]).collect();
            let found = reader.versions(&keys)?;
            for (Wanted { key, record_key, reference }, found) in some.iter().zip(found) {
                self.named.insert(xxh3_64(record_key));
                self.held += u64::from(!matches!(found, Ok(None)));
                let is_there = matches!(found, Ok(Some(version)) if version == reference.version)
                    || planted!("values-not-looked-for");
                if !is_there && !self.journaled.changes_row(of.table, key) {
                    damaged.push(damage_of(key, reference, found));
                }
            }
        }
        Ok(Ok(damaged))
    }

    /// Looks for values that no row names, and tells of those that nothing is left to remove. How
    /// many others there are.
    pub(super) fn find_leftovers(
        &self,
        store: &Tiered,
        options: &TreeOptions,
        reader: &mut Reader,
        tell: Tell<'_>,
    ) -> Result<u64> {
        if store.store().count_partition(options.space, VALUES) <= self.held {
            return Ok(0);
        }
        let since = values_since(store, options, reader)?;
        let mut names: Vec<EntryName> = Vec::new();
        store.store().list(options.space, &mut |listing| {
            if let Listing::Entry(entry) = listing
                && entry.partition == VALUES
            {
                names.push(entry.name);
            }
        })?;
        names.sort_unstable();
        names.dedup();
        let (mut left, mut seen) = (0, HashSet::new());
        for some in names.chunks(TOGETHER) {
            reader.visit(some, &mut |record_key, _| {
                let hash = xxh3_64(record_key);
                let Some(name) = ValueName::parse(record_key) else { return };
                if self.named.contains(&hash) || !seen.insert(hash) {
                    return;
                }
                let is_dropped = self.journaled.of(name.table).is_old(name.created);
                let is_changed = self.journaled.changes_row(name.table, name.key);
                if is_dropped || is_changed || since.contains(&hash) {
                    left += 1;
                    return;
                }
                let table = self.names.get(&name.table).filter(|table| !table.is_empty());
                let side = side_text(name.side);
                let place = format!("value of row '{}' on its {side} side", shown(name.key));
                let place = match table {
                    Some(_) => place,
                    None => format!("{place} of table {:016x}", name.table),
                };
                tell(Told::Damage(&TableDamage {
                    table: table.cloned(),
                    place,
                    what: "its row".to_owned(),
                    expected: "one that names it".to_owned(),
                    found: "none".to_owned(),
                }));
            })?;
        }
        Ok(left)
    }
}

fn side_text(side: Side) -> &'static str {
    match side {
        Side::First => "first",
        Side::Second => "second",
    }
}

fn damage_of(
    key: &[u8],
    reference: &Reference,
    found: std::result::Result<Option<u64>, Error>,
) -> ValueDamage {
    let side = side_text(reference.side);
    ValueDamage {
        place: format!("value of row '{}' on its {side} side", shown(key)),
        expected: format!("a record with the version {}", reference.version),
        found: match found {
            Ok(Some(version)) => format!("one with the version {version}"),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        },
    }
}

/// The values that the rows of a leaf name.
fn wanted(of: &LeafValues<'_>) -> std::result::Result<Vec<Wanted>, Damage> {
    let mut all = Vec::new();
    let mut add = |row: &Row<'_>| {
        let (key, reference) = (row.key.to_vec(), Reference::decode(row.value)?);
        let (table, created) = (of.table, of.created);
        let name = ValueName { table, created, key: &key, side: reference.side };
        all.push(Wanted { record_key: name.record_key(), key, reference });
        Ok(())
    };
    for index in 0..of.leaf.count() {
        let row = of.leaf.row(index)?;
        if row.effect != Effect::Separate {
            continue;
        }
        let said = of.delta.map(|delta| Ok((delta, delta.entries_of(&row.key.to_vec())?)));
        let is_replaced = match said.transpose()? {
            Some((delta, mut entries)) => entries.try_fold(false, |is_replaced, index| {
                Ok(is_replaced || delta.row(index)?.effect != Effect::Part)
            })?,
            None => false,
        };
        if !is_replaced {
            add(&row)?;
        }
    }
    if let Some(delta) = of.delta {
        for index in 0..delta.count() {
            let row = delta.row(index)?;
            if row.effect == Effect::Separate {
                add(&row)?;
            }
        }
    }
    Ok(all)
}

/// Values that were put since the place up to which they are confirmed, by the hashes of their
/// records' keys.
fn values_since(
    store: &Tiered,
    options: &TreeOptions,
    reader: &mut Reader,
) -> Result<HashSet<u64>> {
    let mut since = HashSet::new();
    let Some(record) = reader.read(&confirmed_key())? else { return Ok(since) };
    let [_, segment, versions @ ..] = &words(&record)[..] else { return Ok(since) };
    let position = LogPosition { segment: *segment, versions: versions.to_vec() };
    store.store().scan_log_since(&position, reader.now, &mut |space, entry| {
        if space == options.space && ValueName::parse(entry.key).is_some() {
            since.insert(xxh3_64(entry.key));
        }
    })?;
    Ok(since)
}
