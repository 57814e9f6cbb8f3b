//! The fate of journalled writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use entresol_device::IoBuffer;

use super::format::{self, Entry, Event, Journalled};
use crate::load::content::{Place, UNIT_BYTES, Unit, read_unit};
use crate::load::error::{Error, Result};
use crate::load::target::Target;

/// What became of journalled writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Which journal.
    pub path: PathBuf,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes that were under way at the cut, or had failed.
    pub unsettled: u64,
    /// Acknowledged writes that are not there, nor anything newer.
    pub lost: u64,
    /// The first of them, in words.
    pub first: Option<String>,
}

/// Checks the newest journal in `directory` against its targets.
///
/// # Errors
/// There is no whole journal, or a target of it is not among `targets` or cannot be read.
pub fn check_journal(directory: &Path, targets: &[Target]) -> Result<JournalReport> {
    let path = newest(directory)?;
    let bytes = fs::read(&path).map_err(|error| {
        Error::System(format!("cannot read the journal {}: {error}", path.display()))
    })?;
    let journal = format::read(&bytes).ok_or_else(|| {
        Error::Plan(format!("{}: is no journal; its header is not whole", path.display()))
    })?;
    let ordered = in_order(&journal, targets)?;
    let history = History::of(&journal);
    let mut report = JournalReport {
        path,
        acknowledged: history.acknowledged.len() as u64,
        unsettled: history.unsettled.values().map(|list| list.len() as u64).sum(),
        ..JournalReport::default()
    };
    for (entry, floor) in &history.acknowledged {
        let target = ordered[usize::from(entry.device)];
        if let Some(text) = history.judge(&journal, target, (entry, *floor))? {
            report.lost += 1;
            report.first.get_or_insert(text);
        }
    }
    Ok(report)
}

/// What the journal says, put in relation.
struct History {
    /// With the oldest generation that may have landed after it.
    acknowledged: Vec<(Entry, u32)>,
    /// Ranges of writes that were never acknowledged, of each device.
    unsettled: BTreeMap<u16, Vec<(u64, u64)>>,
}

impl History {
    fn of(journal: &Journalled) -> History {
        let mut under_way: BTreeMap<u32, (Entry, u32)> = BTreeMap::new();
        let mut begun = BTreeSet::new();
        let mut acknowledged = Vec::new();
        for (event, entry) in &journal.events {
            match event {
                Event::Begun => {
                    begun.insert(entry.generation);
                    let floor = begun.first().copied().unwrap_or(entry.generation);
                    under_way.insert(entry.generation, (*entry, floor));
                }
                Event::Acknowledged => {
                    begun.remove(&entry.generation);
                    acknowledged.extend(under_way.remove(&entry.generation));
                }
            }
        }
        acknowledged.sort_by_key(|(entry, _)| (entry.device, entry.offset));
        let mut unsettled: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
        for (entry, _) in under_way.values() {
            let end = entry.offset + u64::from(entry.length);
            unsettled.entry(entry.device).or_default().push((entry.offset, end));
        }
        History { acknowledged, unsettled }
    }

    /// What is wrong where the write should be, if anything is.
    fn judge(
        &self,
        journal: &Journalled,
        target: &Target,
        (entry, floor): (&Entry, u32),
    ) -> Result<Option<String>> {
        let device = target.device().ok_or_else(|| {
            Error::Plan(format!("{}: is a file of the page cache", target.name()))
        })?;
        let mut bytes = IoBuffer::aligned(entry.length as usize);
        if let Err(error) = device.read_at(entry.offset, &mut bytes) {
            return Ok(Some(error.to_string()));
        }
        for (index, unit) in bytes.chunks_exact(UNIT_BYTES).enumerate() {
            let offset = entry.offset + (index * UNIT_BYTES) as u64;
            let place = Place { device: target.identity(), offset };
            let found = match read_unit(unit) {
                Unit::Ours(found) if found.run == journal.run && found.place == place => {
                    if found.generation >= floor {
                        continue;
                    }
                    format!("write {} of the run, which is older", found.generation)
                }
                Unit::Ours(found) if found.place == place => "what another run wrote".to_owned(),
                Unit::Ours(_) => "what belongs elsewhere".to_owned(),
                _ if self.may_be_torn(target, entry.device, offset) => continue,
                Unit::Changed { .. } => "a torn or changed sector".to_owned(),
                Unit::Foreign => "what no load wrote".to_owned(),
            };
            return Ok(Some(format!(
                "{}: write {} was acknowledged, but at offset {offset} is {found}",
                target.name(),
                entry.generation
            )));
        }
        Ok(None)
    }

    /// Whether a write that was never acknowledged shares a sync unit with the sector.
    fn may_be_torn(&self, target: &Target, device: u16, offset: u64) -> bool {
        let unit =
            target.device().map_or(4096, |device| u64::from(device.geometry().sync_unit_bytes));
        let start = offset / unit * unit;
        let ranges = self.unsettled.get(&device);
        ranges.is_some_and(|ranges| {
            ranges.iter().any(|&(from, to)| from < start + unit && start < to)
        })
    }
}

/// The targets in the journal's order.
fn in_order<'a>(journal: &Journalled, targets: &'a [Target]) -> Result<Vec<&'a Target>> {
    let devices = journal.identities.len();
    if journal.events.iter().any(|(_, entry)| usize::from(entry.device) >= devices) {
        return Err(Error::Plan("the journal names a target that it does not list".to_owned()));
    }
    let find = |(at, identity): (usize, &u32)| {
        // Where the system tells no two of them apart they are taken in their order.
        let before = journal.identities[..at].iter().filter(|other| *other == identity).count();
        let mut alike = targets.iter().filter(|target| target.identity() == *identity);
        alike.nth(before).ok_or_else(|| {
            Error::Plan(
                "a target of the journal is not in the configuration; check with the one that the \
                 load ran with"
                    .to_owned(),
            )
        })
    };
    journal.identities.iter().enumerate().map(find).collect()
}

fn newest(directory: &Path) -> Result<PathBuf> {
    let none = |why: String| Error::Plan(format!("{}: {why}", directory.display()));
    let entries = fs::read_dir(directory).map_err(|error| none(error.to_string()))?;
    let journals = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == format::EXTENSION));
    journals.max().ok_or_else(|| none("there is no journal in it".to_owned()))
}
