//! Reading the values of a scan's rows, many at a time, and waiting for the values of batches that
//! came before one.

use std::sync::Arc;

use entresol_flash::{Error, Operation, Outcome as Stored, Result, SyncPoint, Timestamp};

use super::lookup::Lookup;
use super::{Ask, Next, Outcome, Pending, Session, Visit};
use crate::format::Reference;
use crate::rows::RowForm;
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::Table;

/// Values of one scan that are read at once.
const READS_MAX: usize = 32;

/// A batch that is durable in the journal.
pub(super) struct Confirming {
    slot: u32,
    /// All changes up to this one were appended before.
    through: Sequence,
    point: SyncPoint,
}

/// The read of the value of one row of a scan.
pub(super) struct ValueRead {
    /// The slot of the scan.
    scan: u32,
    /// Which of its values.
    index: usize,
    lookup: Lookup,
    found: Option<Vec<u8>>,
    failed: Option<Error>,
}

/// How the read of a value ended.
pub(super) struct ValueEnd {
    scan: u32,
    index: usize,
    found: Result<Option<Vec<u8>>>,
    /// The row had another value meanwhile.
    is_late: bool,
}

impl ValueRead {
    pub(super) fn prepare(
        &mut self,
        shared: &Shared,
        store: &entresol_tier::Session,
        next: Next,
    ) -> Result<Option<Ask>> {
        let ValueRead { lookup, found, failed, .. } = self;
        lookup.prepare(shared, store, next, &mut |_, outcome| keep(outcome, found, failed))
    }

    pub(super) fn take(&mut self, shared: &Shared, outcome: Result<Stored<'_>>) -> Next {
        let ValueRead { lookup, found, failed, .. } = self;
        lookup.take(shared, outcome, &mut |_, outcome| keep(outcome, found, failed))
    }

    /// What came of it; `error`: why it ended without a visit.
    pub(super) fn ended(&mut self, error: Option<Error>) -> ValueEnd {
        let failed = error.or(self.failed.take());
        let found = failed.map_or_else(|| Ok(self.found.take()), Err);
        let is_late = self.lookup.has_missed();
        ValueEnd { scan: self.scan, index: self.index, found, is_late }
    }
}

fn keep(outcome: Result<Outcome<'_>>, found: &mut Option<Vec<u8>>, failed: &mut Option<Error>) {
    match outcome {
        Ok(Outcome::Found(value)) => *found = Some(value.to_vec()),
        Ok(_) => {}
        Err(error) => *failed = Some(error),
    }
}

impl Session {
    /// Begins reads of the values of the scan in `slot`, and visits it once it has all of them.
    pub(super) fn fill(&mut self, slot: u32, now: Timestamp, visit: Visit<'_>) {
        loop {
            let Some(Pending::Scan(scan)) = self.operations[slot as usize].as_mut() else { return };
            let Some((index, lookup)) = scan.next_value(READS_MAX) else {
                if !scan.gathered().is_filled() {
                    return;
                }
                if scan.is_outdated() || scan.passes_over_rows() {
                    return self.advance(slot, now, Next::Locate, visit);
                }
                let (token, ended) = (scan.token(), scan.gathered().assemble());
                self.give_back(slot);
                return match ended {
                    Ok(rows) => self.finish(token, Ok(Outcome::Rows(&rows)), visit),
                    Err(error) => self.finish(token, Err(error), visit),
                };
            };
            let read = ValueRead { scan: slot, index, lookup, found: None, failed: None };
            let child = self.take(Pending::Value(Box::new(read)));
            self.advance(child, now, Next::ReadValue, visit);
        }
    }

    /// The read of a value in `slot` is over.
    pub(super) fn end_value(&mut self, slot: u32, end: ValueEnd) {
        self.give_back(slot);
        let ValueEnd { scan, index, found, is_late } = end;
        if let Some(Pending::Scan(scanning)) = self.operations[scan as usize].as_mut() {
            scanning.gathered().take_value(index, found);
            if is_late {
                scanning.begin_anew();
            }
            if !self.filling.contains(&scan) {
                self.filling.push(scan);
            }
        }
    }

    /// Has the batch in `slot` wait until the values of all batches before it are durable.
    pub(super) fn begin_confirming(&mut self, slot: u32) {
        let through = self.shared.journal.lock().last();
        let point = self.store.sync_point();
        self.confirming.push(Confirming { slot, through, point });
    }

    /// Visits the batches whose values are durable. `waits`: until some are, where nothing else is
    /// in flight.
    pub(super) fn confirm(&mut self, waits: bool, visit: Visit<'_>) -> Result<()> {
        if self.confirming.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if waits && self.store.in_flight() == 0 {
            // Where it fails, each batch is told why.
            let _synced = shared.store.sync();
        }
        for confirming in std::mem::take(&mut self.confirming) {
            let reached = self.store.reach(&confirming.point);
            if matches!(reached, Ok(false)) {
                self.confirming.push(confirming);
                continue;
            }
            if reached.is_ok() {
                shared.values.confirm(confirming.through);
            }
            let slot = confirming.slot;
            if let Some(Pending::Write { token, last, .. }) = self.operations[slot as usize] {
                self.give_back(slot);
                self.finish(token, reached.map(|_| Outcome::Done(last)), visit);
            }
        }
        Ok(())
    }
}

/// The value that a row names, if it is a record of its own. Waits for pages.
pub(crate) fn value_of(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Arc<Table>,
    key: &[u8],
) -> Result<Option<Reference>> {
    let mut lookup = Lookup::new(0, table, key).in_form(RowForm::Unfolded);
    let mut next = Next::Locate;
    loop {
        let page = match lookup.prepare(shared, session, next, &mut |_, _| {})? {
            Some(Ask::Page(page)) => page,
            Some(_) => return Ok(lookup.reference()),
            None => return Ok(None),
        };
        let mut answer = None;
        session.run(now, Operation::Get { key: shared.key(&page) }, &mut |outcome| {
            answer = Some(lookup.take(shared, Ok(outcome), &mut |_, _| {}));
        })?;
        next = answer.expect("a read that ended was visited");
    }
}
