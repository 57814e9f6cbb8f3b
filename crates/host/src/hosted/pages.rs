//! Pages of scans.

use std::sync::Arc;

use entresol_tier::{Entry, EntryName, Error, NoteEntry, Session, Tiered, Timestamp, VisitEntry};

use crate::hosted::answer::{Answer, Extent, Outbox, PageEnd};
use crate::hosted::roster::Roster;
use crate::hosted::scan::{Notes, Progress, Scan};

/// Steps of a scan in one page, so that other jobs have their turn.
const STEPS_MAX: usize = 64;
/// Bytes after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// A page of a scan that is being read.
#[derive(Debug)]
pub(super) struct Page<O> {
    token: u64,
    limit: usize,
    now: Timestamp,
    pub(super) answers: O,
    /// Records that do not verify.
    damaged: u64,
    /// What was said of the first of them.
    damage: Option<String>,
}

/// What pages are read with.
pub(super) struct Reader<'a> {
    pub(super) tiered: &'a Tiered,
    pub(super) session: &'a mut Session,
    pub(super) roster: &'a Roster,
}

impl Reader<'_> {
    /// Reads the next page of a scan, to its end.
    pub(super) fn read<O: Outbox>(
        &mut self,
        scan: &Arc<Scan>,
        page: &mut Page<O>,
    ) -> Result<(), Error> {
        let mut progress = scan.progress.lock();
        if matches!(*progress, Progress::Start) {
            *progress = self.start(scan);
        }
        for _ in 0..STEPS_MAX {
            if page.is_full() || matches!(*progress, Progress::End) {
                break;
            }
            let before = page.mark();
            if let Err(failure) = self.step(scan, &mut progress, page) {
                // The scan stands where it stood: whoever asks for the next page has it once more.
                page.go_back(before);
                if page.mark() == Mark::default() {
                    return Err(failure);
                }
                break;
            }
        }
        page.end(!matches!(*progress, Progress::End));
        Ok(())
    }

    /// Where a scan starts: a partition whose entries are noted needs no others, and one that is
    /// wanted alone is likely to be followed by the next.
    fn start(&self, scan: &Arc<Scan>) -> Progress {
        let Some(only) = scan.only_partition() else {
            return Progress::Cursor(0, Notes::None);
        };
        if let Some(names) = self.roster.take(scan.space, only) {
            return Progress::Named(names, 0);
        }
        let counts = self.tiered.store().count_partitions(scan.space);
        if !counts.iter().any(|of| of.0 == only && of.1 > 0) {
            return Progress::Cursor(0, Notes::None);
        }
        let (before, after): (Vec<_>, Vec<_>) =
            counts.into_iter().filter(|of| of.0 != only).partition(|of| of.0 < only);
        let notes = match self.roster.begin(scan, after.into_iter().chain(before)) {
            true => Notes::Taken,
            false => Notes::None,
        };
        Progress::Cursor(0, notes)
    }

    /// Adds the entries of one step to `page`; one that fails leaves the scan where it is.
    fn step<O: Outbox>(
        &mut self,
        scan: &Scan,
        progress: &mut Progress,
        page: &mut Page<O>,
    ) -> Result<(), Error> {
        let wanted = |partition| scan.wants(partition);
        let (before, now) = (page.damaged, page.now);
        let mut visit = |entry: Result<Entry<'_>, Error>| match entry {
            Ok(entry) if scan.with_values => page.add(&entry),
            Ok(entry) => page.add(&Entry { value: &[], ..entry }),
            Err(error) => page.add_damage(&error),
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
                    self.roster.note(scan, &noted);
                }
                if next == 0 && notes != Notes::None {
                    self.roster.finish(scan, notes == Notes::Taken);
                }
                *progress = if next == 0 { Progress::End } else { Progress::Cursor(next, notes) };
            }
            Progress::Start | Progress::End => {}
        }
        Ok(())
    }
}

/// What a page holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    extent: Extent,
    damaged: u64,
}

impl<O: Outbox> Page<O> {
    /// An empty one of about `limit` entries as of `now`.
    pub(super) fn new(token: u64, limit: usize, now: Timestamp) -> Page<O> {
        Page { token, limit, now, answers: O::default(), damaged: 0, damage: None }
    }

    fn is_full(&self) -> bool {
        let Extent { answers, bytes } = self.answers.extent();
        answers >= self.limit.max(1) || bytes >= PAGE_BYTES
    }

    /// What it holds so far.
    fn mark(&self) -> Mark {
        Mark { extent: self.answers.extent(), damaged: self.damaged }
    }

    /// Lets go what was added since.
    fn go_back(&mut self, mark: Mark) {
        self.answers.truncate(mark.extent);
        self.damaged = mark.damaged;
        self.damage = self.damage.take().filter(|_| mark.damaged > 0);
    }

    fn add(&mut self, entry: &Entry<'_>) {
        self.answers.add(self.token, &Answer::Entry(entry));
    }

    fn add_damage(&mut self, error: &Error) {
        self.damaged += 1;
        self.damage.get_or_insert_with(|| error.to_string());
    }

    fn end(&mut self, goes_on: bool) {
        let end = PageEnd { goes_on, damaged: self.damaged, damage: self.damage.as_deref() };
        self.answers.add(self.token, &Answer::PageEnd(end));
    }
}
