//! Work that waits for the device, done by a thread of the store's: syncs, drops, pages of scans,
//! and writes that have to make room first.

use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use entresol_tier::{
    Entry, EntryName, Error, ErrorKind, NoteEntry, Session, SpaceId, Tiered, Timestamp, VisitEntry,
};
use parking_lot::{Condvar, Mutex};

use super::host::{Host, closed};
use super::record::{Kind, Record};
use super::request::OwnedOperation;
use super::roster::Roster;
use crate::text::Failure;

/// Most jobs that wait at a time.
const JOBS_MAX: usize = 1 << 16;
/// Most bytes of writes that wait at a time.
const JOB_BYTES_MAX: usize = 128 << 20;
/// Steps of a scan in one page, so that other jobs have their turn.
const STEPS_MAX: usize = 64;
/// Bytes after which a page ends.
const PAGE_WORDS: usize = 128 << 10;

/// Something to do whose outcome is reaped.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) token: u64,
    pub(super) task: Task,
}

/// What a job does.
#[derive(Debug)]
pub(super) enum Task {
    Sync,
    /// Drops a space, or one partition of it.
    Drop(SpaceId, Option<u16>),
    /// Reads a page of a scan.
    Scan {
        scan: Arc<Scan>,
        limit: usize,
        now: Timestamp,
    },
    Operation(OwnedOperation, Timestamp),
}

/// Jobs that wait.
#[derive(Debug, Default)]
pub(super) struct JobQueue {
    waiting: Mutex<Waiting>,
    added: Condvar,
    /// Drops and writes that are not done yet.
    changes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    ended: bool,
}

/// What the thread of the jobs works with.
#[derive(Debug)]
pub(super) struct Workbench {
    tiered: Arc<Tiered>,
    session: Session,
}

/// A scan that goes on page by page.
#[derive(Debug)]
pub(super) struct Scan {
    space: SpaceId,
    /// `None`: all.
    partitions: Option<HashSet<u16>>,
    with_values: bool,
    /// Entries in one step.
    step: usize,
    progress: Mutex<Progress>,
}

/// How far a scan is.
#[derive(Debug)]
enum Progress {
    Start,
    /// All entries are read, and others may be noted.
    Cursor(u64, Notes),
    /// Those that are named are read, from a number on.
    Named(Vec<EntryName>, usize),
    End,
}

/// What becomes of entries that a scan reads and does not want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    None,
    /// The roster has them.
    Taken,
    /// As above, but some are damaged.
    Partial,
}

impl JobQueue {
    /// Adds a job, unless there are too many, or none are done any more.
    pub(super) fn push(&self, job: Job) -> Result<(), Failure> {
        let mut waiting = self.waiting.lock();
        let bytes = job.bytes();
        if waiting.ended {
            return Err(closed());
        }
        let full = waiting.bytes + bytes > JOB_BYTES_MAX && bytes > 0 && waiting.bytes > 0;
        if full || waiting.jobs.len() >= JOBS_MAX {
            let detail = format!(
                "{} jobs with {} bytes wait for the device; at most {JOBS_MAX} with \
                 {JOB_BYTES_MAX} may: finish some first",
                waiting.jobs.len(),
                waiting.bytes
            );
            return Err(Error::new(ErrorKind::Busy, detail).into());
        }
        waiting.bytes += bytes;
        self.changes.fetch_add(usize::from(job.is_change()), Ordering::Release);
        waiting.jobs.push_back(job);
        drop(waiting);
        self.added.notify_one();
        Ok(())
    }

    /// Whether a write that came now would overtake one that came before it, or a drop.
    pub(super) fn has_changes(&self) -> bool {
        self.changes.load(Ordering::Acquire) > 0
    }

    /// Takes no more jobs; those that wait are done.
    pub(super) fn end(&self) {
        self.waiting.lock().ended = true;
        self.added.notify_all();
    }

    /// Does jobs until the end.
    pub(super) fn work(&self, mut bench: Workbench, host: &Host) {
        while let Some(job) = self.next() {
            let done = catch_unwind(AssertUnwindSafe(|| bench.perform(&job, host)));
            self.changes.fetch_sub(usize::from(job.is_change()), Ordering::Release);
            let failure = match done {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure,
                Err(panic) => Failure::defect(panic.as_ref()),
            };
            host.push(&mut |outbox| outbox.fail(job.token, &failure));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.bytes -= job.bytes();
                return Some(job);
            }
            if waiting.ended {
                return None;
            }
            self.added.wait(&mut waiting);
        }
    }
}

impl Job {
    /// Whether it changes entries.
    fn is_change(&self) -> bool {
        matches!(self.task, Task::Drop(..) | Task::Operation(..))
    }

    fn bytes(&self) -> usize {
        match &self.task {
            Task::Operation(operation, _) => operation.bytes(),
            _ => 0,
        }
    }
}

impl Workbench {
    pub(super) fn new(tiered: Arc<Tiered>, session: Session) -> Workbench {
        Workbench { tiered, session }
    }

    /// Does a job and tells its outcome, unless that is a failure.
    fn perform(&mut self, job: &Job, host: &Host) -> Result<(), Failure> {
        match &job.task {
            Task::Sync => self.tiered.sync()?,
            Task::Drop(space, None) => self.tiered.drop_space(*space)?,
            Task::Drop(space, Some(partition)) => self.tiered.drop_partition(*space, *partition)?,
            Task::Scan { scan, limit, now } => {
                let (words, records) = self.page(scan, host, (job.token, *limit), *now)?;
                host.push(&mut |outbox| outbox.extend(&words, records));
                return Ok(());
            }
            Task::Operation(operation, now) => {
                let operation = operation.operation();
                self.session.run(*now, operation, &mut |outcome| {
                    host.push(&mut |outbox| outbox.push(job.token, Ok(outcome)));
                })?;
                // In time for scans: this thread begins them.
                host.note_put(&operation, None);
                return Ok(());
            }
        }
        host.push(&mut |outbox| outbox.done(job.token));
        Ok(())
    }
}

impl Scan {
    /// A scan of those `partitions` of `space`, or of all, in steps of so many entries.
    pub(super) fn new(step: usize, space: SpaceId, partitions: Option<HashSet<u16>>) -> Scan {
        let progress = Mutex::new(Progress::Start);
        Scan { space, partitions, with_values: true, step, progress }
    }

    /// The same without the values.
    pub(super) fn of_keys(self) -> Scan {
        Scan { with_values: false, ..self }
    }
}

impl Workbench {
    /// The records of the next page of a scan, the one that ends it included, and how many.
    fn page(
        &mut self,
        scan: &Arc<Scan>,
        host: &Host,
        (token, limit): (u64, usize),
        now: Timestamp,
    ) -> Result<(Vec<u64>, i64), Failure> {
        let mut progress = scan.progress.lock();
        if matches!(*progress, Progress::Start) {
            *progress = self.start(scan, host.roster());
        }
        let mut page = Page { token, words: Vec::new(), records: 0, damaged: 0, first: None };
        for _ in 0..STEPS_MAX {
            let full = page.records as usize >= limit.max(1) || page.words.len() >= PAGE_WORDS;
            if full || matches!(*progress, Progress::End) {
                break;
            }
            let before = page.mark();
            if let Err(failure) = self.step(scan, host.roster(), (&mut progress, now), &mut page) {
                // The scan stands where it stood: whoever asks for the next page has it once more.
                page.go_back(before);
                if page.records == 0 && page.damaged == 0 {
                    return Err(failure);
                }
                break;
            }
        }
        let goes_on = !matches!(*progress, Progress::End);
        let end = Record {
            number: u64::from(goes_on),
            expires_ms: page.damaged,
            value: page.first.as_deref().unwrap_or_default().as_bytes(),
            ..Record::new(token, Kind::Done)
        };
        end.append(&mut page.words);
        Ok((page.words, page.records + 1))
    }

    /// Where a scan starts: a partition whose entries are noted needs no others, and one that is
    /// wanted alone is likely to be followed by the next.
    fn start(&self, scan: &Arc<Scan>, roster: &Roster) -> Progress {
        let only = scan.partitions.as_ref().filter(|wanted| wanted.len() == 1);
        let Some(only) = only.and_then(|wanted| wanted.iter().next().copied()) else {
            return Progress::Cursor(0, Notes::None);
        };
        if let Some(names) = roster.take(scan.space, only) {
            return Progress::Named(names, 0);
        }
        let counts = self.tiered.store().count_partitions(scan.space);
        if !counts.iter().any(|of| of.0 == only && of.1 > 0) {
            return Progress::Cursor(0, Notes::None);
        }
        let (before, after): (Vec<_>, Vec<_>) =
            counts.into_iter().filter(|of| of.0 != only).partition(|of| of.0 < only);
        let noting = (Arc::downgrade(scan), scan.space);
        let notes = match roster.begin(noting, after.into_iter().chain(before)) {
            true => Notes::Taken,
            false => Notes::None,
        };
        Progress::Cursor(0, notes)
    }

    /// Adds the entries of one step to `page`; one that fails leaves the scan where it is.
    fn step(
        &mut self,
        scan: &Scan,
        roster: &Roster,
        (progress, now): (&mut Progress, Timestamp),
        page: &mut Page,
    ) -> Result<(), Failure> {
        let wanted = |partition| scan.partitions.as_ref().is_none_or(|p| p.contains(&partition));
        let with_values = scan.with_values;
        let before = page.damaged;
        let mut visit = |entry: Result<Entry<'_>, Error>| match entry {
            Ok(entry) => page.add(&entry, with_values),
            Err(error) => {
                page.damaged += 1;
                page.first.get_or_insert_with(|| error.to_string());
            }
        };
        let place = (scan.space, &wanted as &dyn Fn(u16) -> bool);
        match progress {
            Progress::Named(names, at) => {
                let end = names.len().min(*at + scan.step);
                self.session.visit_named(place, &names[*at..end], now, &mut visit)?;
                *at = end;
                if end == names.len() {
                    *progress = Progress::End;
                }
            }
            Progress::Cursor(cursor, notes) => {
                let (at, notes) = (*cursor, *notes);
                let (mut noted, mut nameless) = (Vec::new(), false);
                let mut note = |partition, name: Option<EntryName>| match name {
                    Some(name) => noted.push((partition, name)),
                    None => nameless = true,
                };
                let visits: (VisitEntry<'_>, NoteEntry<'_>) = (&mut visit, &mut note);
                let next = self.session.scan_partitions(place, (at, scan.step), now, visits)?;
                let notes = match notes {
                    Notes::Taken if page.damaged > before || nameless => Notes::Partial,
                    other => other,
                };
                if notes == Notes::Taken {
                    roster.note(scan, &noted);
                }
                if next == 0 && notes != Notes::None {
                    roster.finish(scan, notes == Notes::Taken);
                }
                *progress = if next == 0 { Progress::End } else { Progress::Cursor(next, notes) };
            }
            Progress::Start | Progress::End => {}
        }
        Ok(())
    }
}

/// A page of a scan that is being read.
struct Page {
    token: u64,
    words: Vec<u64>,
    records: i64,
    /// Records that do not verify.
    damaged: u64,
    /// What was said of the first of them.
    first: Option<String>,
}

impl Page {
    /// What it holds so far.
    fn mark(&self) -> (usize, i64, u64) {
        (self.words.len(), self.records, self.damaged)
    }

    /// Lets go what was added since.
    fn go_back(&mut self, (words, records, damaged): (usize, i64, u64)) {
        self.words.truncate(words);
        (self.records, self.damaged) = (records, damaged);
        self.first = self.first.take().filter(|_| damaged > 0);
    }

    fn add(&mut self, entry: &Entry<'_>, with_value: bool) {
        let record = Record::of_entry(self.token, entry);
        let value = if with_value { record.value } else { &[] };
        Record { value, ..record }.append(&mut self.words);
        self.records += 1;
    }
}
