//! One thread's door to ordered tables: operations submitted, then visited as they finish.
//!
//! Invariants:
//! 1. Every submitted operation is visited exactly once.
//! 2. A read looks at the changes that wait *before* it reads a page: changes move from memory to
//!    delta pages to leaves, never back, so none is passed over. A page that is newer than what was
//!    copied says so by its sequence.
//! 3. No table is locked while a read is in flight, nor while the store is called.

mod approach;
mod cached;
mod conditional;
mod counting;
mod dropping;
mod estimating;
mod gathering;
mod lookup;
mod moment;
mod owned;
mod placing;
mod scan;
mod values;
mod writing;

use std::os::fd::RawFd;
use std::sync::Arc;

use entresol_flash::{Durability, Error, Operation, Result, Timestamp};
use entresol_tier::SessionOptions;

use crate::format::Effect;
use crate::journal::{Journaled, journaled};
use crate::options::TableOptions;
use crate::rows::{RowBuffer, RowForm};
use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::statistics::Counters;
use crate::table::{Missing, Table};
use approach::PageKey;
use conditional::Conditional;
use counting::Counting;
use lookup::Lookup;
use placing::{Discarding, Putting};
use scan::Scanning;
use values::{Confirming, ValueRead};
use writing::check_key;

pub(crate) use values::value_of;
pub(crate) use writing::{Entered, NAMING_BYTES, Named, fill, said};

pub use conditional::{ConditionalBatch, Expected, RowCondition};
pub use counting::{CountRange, RankRange};
pub use estimating::RowEstimate;
pub use scan::{Order, RowRange};

/// How an operation ended. Slices are valid during the visit only.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// Get: the row's value.
    Found(&'a [u8]),
    /// Get: there is no such row.
    Missing,
    /// Write: done at the durability asked for. The sequence is that of the last change.
    Done(Sequence),
    /// Conditional write: nothing was written.
    Refused {
        /// The number of a condition that does not hold.
        condition: usize,
        /// The value of its row; `None`: there is no such row.
        found: Option<&'a [u8]>,
    },
    /// Scan: the rows.
    Rows(&'a RowBuffer),
    /// Count, rank: how many rows there are.
    Count(u64),
}

/// Called with the token and the outcome of each finished operation.
pub type Visit<'v> = &'v mut dyn FnMut(u64, Result<Outcome<'_>>);

/// One row of a table.
#[derive(Debug, Clone, Copy)]
pub struct RowAt<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The row's key: 1 byte to 2 KiB.
    pub key: &'a [u8],
}

/// Changes that become durable together.
#[derive(Debug, Clone, Copy)]
pub struct WriteBatch<'a> {
    /// The changes, at least one, in their order.
    pub writes: &'a [Write<'a>],
    /// What is survived once the batch is acknowledged; `None`: the store's level.
    pub durability: Option<Durability>,
}

/// One change of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The row's key.
    pub key: &'a [u8],
    /// What is done to it.
    pub action: Action<'a>,
}

/// What a write does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// The row has this value from now on.
    Put(&'a [u8]),
    /// There is no such row from now on.
    Remove,
    /// Adds a part, which the table's merge function folds into the row.
    Add(&'a [u8]),
}

impl<'a> Action<'a> {
    fn effect(self) -> Effect {
        match self {
            Action::Put(_) => Effect::Put,
            Action::Remove => Effect::Remove,
            Action::Add(_) => Effect::Part,
        }
    }

    pub(crate) fn value(self) -> &'a [u8] {
        match self {
            Action::Put(value) | Action::Add(value) => value,
            Action::Remove => &[],
        }
    }
}

/// How a session gives rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Whether parts are folded. Conditional batches fold in any case.
    pub form: RowForm,
    /// A scan ends once its rows have so many bytes, the last row included.
    pub scan_bytes_max: usize,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { form: RowForm::Folded, scan_bytes_max: usize::MAX }
    }
}

/// One thread's operations on ordered tables.
pub struct Session {
    shared: Arc<Shared>,
    stripe: usize,
    reading: Reading,
    store: entresol_tier::Session,
    operations: Vec<Option<Pending>>,
    unused: Vec<u32>,
    in_flight: usize,
    finished: Vec<Finished>,
    /// Batches that are durable in the journal, while values of earlier ones may not be.
    confirming: Vec<Confirming>,
    /// Scans that go on to read values.
    filling: Vec<u32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

/// An operation that waits for the store.
enum Pending {
    Get(Box<Lookup>),
    Scan(Box<Scanning>),
    Count(Box<Counting>),
    Conditional(Box<Conditional>),
    Write {
        token: u64,
        first: Sequence,
        last: Sequence,
    },
    /// The value of a row of a scan.
    Value(Box<ValueRead>),
    /// The removal of a value that no batch names.
    Discard(Box<Discarding>),
}

/// What the store answered to an operation, and what is to be done outside of its locks.
enum Finished {
    /// A lookup or a scan goes on.
    Next { slot: u32, next: Next },
    /// A batch stands in the journal.
    Placed { first: Sequence, place: Journaled },
    /// A batch is durable there.
    Written { slot: u32 },
    /// A value is removed, or its removal failed.
    Discarded { slot: u32 },
}

/// What an operation asks the store for.
enum Ask {
    /// A page.
    Page(PageKey),
    /// The value of a row, by the key of its record.
    Value(Vec<u8>),
    /// The values of the rows of a scan.
    Values,
    /// To go on as a scan.
    Scan(Box<Scanning>),
    /// To put the value of a write.
    Put(Putting),
}

/// What an operation does next.
enum Next {
    /// It was visited.
    Done,
    /// It looks where its key is, again or further on.
    Locate,
    /// It has the page of an inner node.
    Load(Missing, Vec<u8>),
    /// The page with this number is not there: it was located before it was absorbed, or before
    /// the table had inner nodes.
    Reload(u32),
    /// The page with this number is not what it was when it was located, or says so.
    Astray(u32),
    /// A leaf says that its keys end before those that the directory gives it.
    Learn { high: Vec<u8>, right: u32 },
    /// It has the delta page and wants the leaf.
    ReadLeaf,
    /// It knows where the values of its rows are.
    ReadValue,
    /// It fails.
    Fail(Error),
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, options: SessionOptions) -> Result<Session> {
        let store = shared.store.session(options)?;
        Ok(Session {
            shared: Arc::clone(shared),
            stripe: shared.counters.next_stripe(),
            reading: Reading::default(),
            store,
            operations: Vec::new(),
            unused: Vec::new(),
            in_flight: 0,
            finished: Vec::new(),
            confirming: Vec::new(),
            filling: Vec::new(),
        })
    }

    /// The table `name`, however it was made; a new one keeps no counts. It comes into being with
    /// its first change; before it is as an empty one. Waits for one read, where nobody has opened
    /// it before.
    ///
    /// A table stays in memory for as long as somebody has it, and takes some hundred bytes there.
    ///
    /// Errors: `Busy`, while operations of the session are in flight, and where the memory for
    /// tables is full of open ones: give some up, call `Tree::maintain` and try again.
    pub fn table(&mut self, now: Timestamp, name: &[u8]) -> Result<Arc<Table>> {
        let shared = Arc::clone(&self.shared);
        shared.open_table(&mut self.store, now, name)
    }

    /// As [`Session::table`], of a table that is made so, or was.
    ///
    /// Errors: also `InvalidInput`, if the table exists and was made otherwise. A table that was
    /// dropped stays as it was made.
    pub fn table_with(
        &mut self,
        now: Timestamp,
        name: &[u8],
        options: TableOptions,
    ) -> Result<Arc<Table>> {
        let table = self.table(now, name)?;
        self.shared.check_options(&table, options)?;
        Ok(table)
    }

    /// Gets and scans that begin from now on give rows so.
    pub fn set_reading(&mut self, reading: Reading) {
        self.reading = reading;
    }

    /// Begins to read a row.
    pub fn get(&mut self, token: u64, now: Timestamp, row: RowAt<'_>, visit: Visit<'_>) {
        let RowAt { table, key } = row;
        self.in_flight += 1;
        Counters::add(&self.shared.counters.reads(self.stripe).gets, 1);
        if let Err(error) = check_key(key) {
            return self.finish(token, Err(error), visit);
        }
        if self.get_from_memory(token, now, row, visit) {
            self.in_flight -= 1;
            return;
        }
        let lookup = Lookup::new(token, table, key).in_form(self.reading.form);
        let slot = self.take(Pending::Get(Box::new(lookup.past_leaf())));
        self.advance(slot, now, Next::Locate, visit);
    }

    /// Begins to read rows in the order of their keys, or against it.
    pub fn scan(&mut self, token: u64, now: Timestamp, range: RowRange<'_>, visit: Visit<'_>) {
        self.in_flight += 1;
        let scanning = Scanning::new(token, range, self.reading);
        let slot = self.take(Pending::Scan(Box::new(scanning)));
        self.advance(slot, now, Next::Locate, visit);
    }

    /// As `scan`, of the table as of one moment: a batch is seen whole or not at all. For ranges of
    /// some leaves, as one partition of many is: where a leaf of the range was merged meanwhile the
    /// scan begins anew. Where many changes wait in the range the scan may end early, as it does at
    /// its limit; what a further scan shows is of a later moment.
    ///
    /// Errors: `Busy`, where merges came between again and again.
    pub fn scan_at_one_moment(
        &mut self,
        token: u64,
        now: Timestamp,
        range: RowRange<'_>,
        visit: Visit<'_>,
    ) {
        self.in_flight += 1;
        let scanning = Scanning::new(token, range, self.reading).at_one_moment();
        let slot = self.take(Pending::Scan(Box::new(scanning)));
        self.advance(slot, now, Next::Locate, visit);
    }

    /// Begins a batch: all of its changes become durable together, in the order given. Each row is
    /// seen by readers from then on, not all of them at the same moment.
    ///
    /// Errors: `Busy`, while too many changes wait for merges, and `Full`, where the journal has no
    /// room: call `Tree::maintain` and try again.
    pub fn write(&mut self, token: u64, now: Timestamp, batch: WriteBatch<'_>, visit: Visit<'_>) {
        self.in_flight += 1;
        if batch.writes.iter().any(|write| self.is_separate(write)) {
            self.in_flight -= 1;
            return self.write_if(token, now, ConditionalBatch { conditions: &[], batch }, visit);
        }
        if let Err(error) = self.check(batch.writes, &[]) {
            return self.finish(token, Err(error), visit);
        }
        let shared = Arc::clone(&self.shared);
        let slot = self.take(waiting(token));
        let mut journal = shared.journal.lock();
        let appended = self.append(slot, now, Named { batch, values: &[] }, &mut journal);
        drop(journal);
        self.appended(token, appended, visit);
    }

    /// Visits a batch, unless it waits for its durability.
    fn appended(&mut self, token: u64, appended: Result<Option<Sequence>>, visit: Visit<'_>) {
        match appended {
            Ok(Some(last)) => self.finish(token, Ok(Outcome::Done(last)), visit),
            Ok(None) => {}
            Err(error) => self.finish(token, Err(error), visit),
        }
    }

    /// Waits until at least `wait_for` operations (0: none) have finished; visits all finished.
    pub fn poll(&mut self, wait_for: usize, now: Timestamp, visit: Visit<'_>) -> Result<()> {
        let before = self.in_flight;
        let wait_for = wait_for.min(before);
        loop {
            let missing = wait_for.saturating_sub(before - self.in_flight);
            self.poll_store(usize::from(missing > 0), now, visit)?;
            for finished in std::mem::take(&mut self.finished) {
                match finished {
                    Finished::Next { slot, next } => self.advance(slot, now, next, visit),
                    Finished::Placed { first, place } => {
                        self.shared.journal.lock().place(first, place);
                    }
                    Finished::Written { slot } => self.begin_confirming(slot),
                    Finished::Discarded { slot } => self.end_discard(slot),
                }
            }
            for slot in std::mem::take(&mut self.filling) {
                self.fill(slot, now, visit);
            }
            self.confirm(wait_for.saturating_sub(before - self.in_flight) > 0, visit)?;
            if before - self.in_flight >= wait_for {
                return Ok(());
            }
        }
    }

    fn poll_store(&mut self, wait_for: usize, now: Timestamp, visit: Visit<'_>) -> Result<()> {
        let Session { shared, store, operations, unused, in_flight, finished, .. } = self;
        store.poll(wait_for, now, &mut |slot, outcome| {
            let slot = slot as u32;
            let pending = operations[slot as usize].as_mut().expect("an operation in flight");
            let (token, answer) = match pending {
                Pending::Write { token, first, last } => {
                    let answer = outcome.map(|outcome| {
                        let (first, place) = (*first, journaled(outcome));
                        finished.push(Finished::Placed { first, place });
                        Outcome::Done(*last)
                    });
                    if answer.is_ok() && shared.values.are_unconfirmed() {
                        finished.push(Finished::Written { slot });
                        return;
                    }
                    (*token, answer)
                }
                Pending::Get(lookup) => {
                    let next = lookup.take(shared, outcome, visit);
                    finished.push(Finished::Next { slot, next });
                    return;
                }
                Pending::Count(count) => {
                    let next = count.take(outcome);
                    finished.push(Finished::Next { slot, next });
                    return;
                }
                Pending::Conditional(conditional) => {
                    let next = conditional.take(shared, outcome);
                    finished.push(Finished::Next { slot, next });
                    return;
                }
                Pending::Value(value) => {
                    let next = value.take(shared, outcome);
                    finished.push(Finished::Next { slot, next });
                    return;
                }
                Pending::Discard(discarding) => {
                    discarding.take(&outcome);
                    finished.push(Finished::Discarded { slot });
                    return;
                }
                Pending::Scan(scan) => {
                    let next = scan.take(outcome);
                    finished.push(Finished::Next { slot, next });
                    return;
                }
            };
            operations[slot as usize] = None;
            unused.push(slot);
            *in_flight -= 1;
            visit(token, answer);
        })?;
        Ok(())
    }

    /// Hands gathered reads to the device without waiting.
    pub fn flush(&mut self) -> Result<()> {
        self.store.flush()
    }

    /// Operations begun and not yet visited.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Descriptors that poll readable when `poll(0, …)` may have something to visit.
    pub fn poll_fds(&self) -> Vec<RawFd> {
        self.store.poll_fds()
    }

    /// Does what comes next for the operation in `slot`, until it waits for the store or is done.
    fn advance(&mut self, slot: u32, now: Timestamp, mut next: Next, visit: Visit<'_>) {
        let shared = Arc::clone(&self.shared);
        loop {
            let pending = self.operations[slot as usize].as_mut().expect("an operation");
            let ask = match pending {
                Pending::Scan(scan) if matches!(next, Next::ReadValue) => {
                    scan.gathered().complete();
                    return self.fill(slot, now, visit);
                }
                Pending::Value(value) => value.prepare(&shared, &self.store, next),
                Pending::Get(lookup) => lookup.prepare(&shared, &self.store, next, visit),
                Pending::Scan(scan) => scan.prepare(&shared, &self.store, next, visit),
                Pending::Count(count) => count.prepare(&shared, &self.store, next, visit),
                Pending::Conditional(conditional) => {
                    let ask = conditional.prepare(&shared, &self.store, next);
                    if let Ok(None) = ask {
                        match self.conclude(slot, now, visit) {
                            Some(after) => next = after,
                            None => return,
                        }
                        continue;
                    }
                    ask
                }
                Pending::Write { .. } | Pending::Discard(_) => unreachable!("it only waits"),
            };
            if let Pending::Value(value) = pending
                && !matches!(ask, Ok(Some(_)))
            {
                let ended = value.ended(ask.err());
                return self.end_value(slot, ended);
            }
            let ask = match ask {
                Ok(Some(ask)) => ask,
                Ok(None) => {
                    self.give_back(slot);
                    self.in_flight -= 1;
                    return;
                }
                Err(error) => {
                    let token = self.token_of(slot);
                    self.abandon(slot, now);
                    self.give_back(slot);
                    return self.finish(token, Err(error), visit);
                }
            };
            let ask = match ask {
                Ask::Values => {
                    next = Next::ReadValue;
                    continue;
                }
                Ask::Scan(scan) => {
                    self.operations[slot as usize] = Some(Pending::Scan(scan));
                    next = Next::Locate;
                    continue;
                }
                ask => ask,
            };
            match self.ask(slot, now, ask, visit) {
                Some(after) => next = after,
                None => return,
            }
        }
    }

    /// Asks the store for something. What the operation does next, if the answer is at hand.
    fn ask(&mut self, slot: u32, now: Timestamp, ask: Ask, visit: Visit<'_>) -> Option<Next> {
        let Session { shared, store, operations, stripe, .. } = self;
        let operation = match &ask {
            Ask::Page(key) => Operation::Get { key: shared.key(key) },
            Ask::Value(key) => Operation::Get { key: shared.key(key) },
            Ask::Put(putting) => putting.operation(shared),
            Ask::Values | Ask::Scan(_) => unreachable!("it reads nothing itself"),
        };
        if !matches!(ask, Ask::Put(_)) {
            Counters::add(&shared.counters.reads(*stripe).get_reads, 1);
        }
        let mut answer = None;
        store.submit(slot.into(), now, operation, &mut |_, outcome| {
            answer = Some(match operations[slot as usize].as_mut() {
                Some(Pending::Get(lookup)) => lookup.take(shared, outcome, visit),
                Some(Pending::Scan(scan)) => scan.take(outcome),
                Some(Pending::Count(count)) => count.take(outcome),
                Some(Pending::Conditional(conditional)) => conditional.take(shared, outcome),
                Some(Pending::Value(value)) => value.take(shared, outcome),
                _ => unreachable!("an operation that asks"),
            });
        });
        if let (Ask::Put(putting), Some(Pending::Conditional(conditional))) =
            (ask, operations[slot as usize].as_mut())
        {
            conditional.take_back(putting);
        }
        answer
    }

    fn token_of(&self, slot: u32) -> u64 {
        match self.operations[slot as usize].as_ref().expect("an operation") {
            Pending::Get(lookup) => lookup.token(),
            Pending::Scan(scan) => scan.token(),
            Pending::Count(count) => count.token(),
            Pending::Conditional(conditional) => conditional.token(),
            Pending::Write { token, .. } => *token,
            Pending::Value(_) | Pending::Discard(_) => unreachable!("nobody gave it a token"),
        }
    }

    fn take(&mut self, pending: Pending) -> u32 {
        if let Some(slot) = self.unused.pop() {
            self.operations[slot as usize] = Some(pending);
            return slot;
        }
        self.operations.push(Some(pending));
        self.operations.len() as u32 - 1
    }

    fn give_back(&mut self, slot: u32) {
        self.operations[slot as usize] = None;
        self.unused.push(slot);
    }

    fn finish(&mut self, token: u64, answer: Result<Outcome<'_>>, visit: Visit<'_>) {
        self.in_flight -= 1;
        visit(token, answer);
    }
}

/// A batch before it has a place in the journal.
fn waiting(token: u64) -> Pending {
    Pending::Write { token, first: Sequence(0), last: Sequence(0) }
}
