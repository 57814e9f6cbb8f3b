//! Parts that a leaf does not hold beside a large value, and values that merge functions make and
//! no leaf holds: the row is written once more, with all of its parts folded.
//!
//! The journal may be full then. So batches that name such rows may go beyond it, if the rows' leaf
//! has the oldest changes: the journal lets go of these next. Others wait.
//!
//! Invariant: all parts that wait of the row are folded, those as well that the round leaves to the
//! next one. So what is written takes the place of them all.

use entresol_flash::{JournalRoom, Operation, Outcome, Result};
use entresol_planted::planted;

use super::held_back::LargeFolds;
use super::marking::write_marker;
use super::merging::{Input, Made, Site, Work};
use super::placing::{Anew, LargeRow, PART_BYTES_MAX, Placing};
use crate::error::{damaged, refused};
use crate::format::{
    Damage, Effect, INLINE_VALUE_BYTES_MAX, Reference, Row, SEPARATE_VALUE_BYTES_MAX, ValueName,
};
use crate::journal::WRITERS_ROOM;
use crate::merge::{Change, Gathered, Leaf, MergeError, MergeFunction, Resolved, gather_keys};
use crate::sequence::Sequence;
use crate::table::{Copied, Quota};

/// A row that is to be folded.
struct Unfolded<'a> {
    gathered: Gathered<'a>,
    /// The newest change of it that waits.
    newest: Option<Sequence>,
}

impl Work {
    /// Folds the rows that no leaf holds, and writes them once more.
    pub(super) fn fold_large(&self, site: &mut Site<'_>, input: &Input) -> Result<LargeFolds> {
        let Some(merge) = site.shared.merge_of(&self.table) else {
            return Ok(LargeFolds::Nothing);
        };
        let copied = self.copied(site);
        let mut rows = Vec::new();
        for unfolded in self.unfolded(input, &copied).map_err(|d| damaged(&self.table, &d))? {
            let Unfolded { gathered, newest } = unfolded;
            let Some(to) = self.fold(site, &gathered, &*merge)? else { continue };
            let (table, key) = (self.table.clone(), gathered.key().to_vec());
            rows.push(LargeRow { table, key, created: self.created, newest, to });
        }
        if rows.is_empty() {
            return Ok(LargeFolds::Nothing);
        }
        site.shared.watch_values(site.now)?;
        let confirmed = site.shared.values.confirmed();
        let room = self.room(site);
        let (shared, now, session) = (site.shared, site.now, &mut *site.session);
        let mut placing = Placing { shared, session, now, confirmed, room };
        match placing.place(rows)?.is_empty() {
            true => Ok(LargeFolds::Written),
            false => Ok(LargeFolds::Waiting),
        }
    }

    /// What its batches may take of the journal: more than there is only where the journal lets go
    /// of changes after the leaf is merged. Else all of it could go to others.
    fn room(&self, site: &Site<'_>) -> JournalRoom {
        let oldest = site.shared.journal.lock().oldest();
        match self.oldest(site.shared).is_some_and(|waiting| waiting <= oldest) {
            true => JournalRoom::Beyond,
            false => WRITERS_ROOM,
        }
    }

    /// As `rewrite`, with all changes that there are: those that took the place of folded parts
    /// came after the round had begun. They are durable before the leaves, and the next round
    /// merges them for a second time, which changes nothing.
    pub(super) fn rewrite_later(
        &self,
        site: &mut Site<'_>,
        input: &mut Input,
    ) -> Result<std::result::Result<Made, MergeError>> {
        let last = site.shared.journal.lock().last();
        (input.copied, input.end) = (self.copied(site), None);
        write_marker(site.shared, site.session, site.now, &self.table, &input.copied)?;
        let through = std::mem::replace(&mut site.through, last);
        let made = self.rewrite(site, input);
        site.through = through;
        made
    }

    /// All changes of its range. Of a batch all or none: a row may have several of them.
    fn copied(&self, site: &Site<'_>) -> Copied {
        let mut copied = Copied::default();
        let _whole_batches = site.shared.journal.lock();
        let (state, arena) = (self.table.lock(), site.shared.arena.read());
        if state.directory.created() == self.created {
            copied.copy_range(&state.pending, &arena, self.keys(), Quota::ALL);
        }
        copied
    }

    /// Rows with more parts than a leaf holds beside a large value, and with any beside none: those
    /// as well that no change waits for, since delta pages hold more parts than leaves.
    fn unfolded<'a>(
        &self,
        input: &'a Input,
        copied: &'a Copied,
    ) -> std::result::Result<Vec<Unfolded<'a>>, Damage> {
        let all = copied.changes();
        let mut changes = &all[..];
        let mut found = Vec::new();
        for pages in &input.leaves {
            let leaf = Leaf::parse(&pages.base, pages.delta.as_deref())?;
            let high = leaf.base().high_key();
            let is_below = |change: &Change<'_>| high.is_none_or(|high| change.key < high);
            let (own, rest) = changes.split_at(changes.partition_point(is_below));
            changes = rest;
            gather_keys(&leaf, own, &mut Gathered::default(), |gathered| {
                let end = own.partition_point(|change| change.key <= gathered.key());
                let last = own[..end].last().filter(|last| last.key == gathered.key());
                let newest = last.map(|last| last.sequence);
                let is_seen = newest.is_some() || !planted!("parts-of-pages-not-folded");
                if is_seen && is_unfolded(gathered) {
                    found.push(Unfolded { gathered: std::mem::take(gathered), newest });
                }
                Ok::<(), Damage>(())
            })?;
        }
        Ok(found)
    }

    /// What the row comes to; `None`: a leaf holds it, or its value is not there.
    fn fold(
        &self,
        site: &mut Site<'_>,
        gathered: &Gathered<'_>,
        merge: &dyn MergeFunction,
    ) -> Result<Option<Anew>> {
        let (mut folded, least) = (Vec::new(), site.shared.options.separate_bytes_min);
        let failed = |error: MergeError| refused(&self.table, &error);
        let Some(value) = gathered.separate() else {
            let resolved = gathered.resolve(Some(merge), &mut folded).map_err(failed)?;
            return Ok(match resolved {
                Resolved::Row(value) if is_large(value, least) => Some(Anew::Large(value.to_vec())),
                _ => None,
            });
        };
        let reference = Reference::decode(value).map_err(|damage| damaged(&self.table, &damage))?;
        let (table, created) = (self.table.id(), self.created);
        let key = gathered.key();
        let name = ValueName { table, created, key, side: reference.side }.record_key();
        let mut base = None;
        let get = Operation::Get { key: site.shared.key(&name) };
        site.session.run(site.now, get, &mut |outcome| {
            if let Outcome::Found(entry) = outcome
                && entry.version.0 == reference.version
            {
                base = Some(entry.value.to_vec());
            }
        })?;
        let Some(base) = base else { return Ok(None) };
        let mut whole = Gathered::default();
        whole.start(key);
        whole.apply(Effect::Put, Sequence(0), &base);
        let parts: Vec<&[u8]> = gathered.parts().collect();
        let kept = parts.len() - usize::from(planted!("newest-part-not-folded"));
        for part in &parts[..kept] {
            whole.apply(Effect::Part, Sequence(0), part);
        }
        let resolved = whole.resolve(Some(merge), &mut folded).map_err(failed)?;
        Ok(Some(match resolved {
            Resolved::Row(value) if is_large(value, least) => Anew::Large(value.to_vec()),
            Resolved::Row(value) => Anew::Small(value.to_vec()),
            Resolved::Gone | Resolved::Separate => Anew::Gone,
        }))
    }
}

/// Whether a leaf may not hold the row as it is.
fn is_unfolded(gathered: &Gathered<'_>) -> bool {
    // With what a page has for each.
    let frame = gathered.key().len() + Row::overhead_bytes(true);
    let (mut parts, mut bytes) = (0, 0);
    gathered.parts().for_each(|part| (parts, bytes) = (parts + 1, bytes + part.len() + frame));
    parts > 0 && (gathered.separate().is_none() || bytes > PART_BYTES_MAX)
}

fn is_large(value: &[u8], least: usize) -> bool {
    value.len() >= least.min(INLINE_VALUE_BYTES_MAX + 1) && value.len() <= SEPARATE_VALUE_BYTES_MAX
}
