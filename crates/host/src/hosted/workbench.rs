//! The thread that does jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use entresol_tier::{Operation, Session, Tiered};

use crate::hosted::answer::{Answer, Outbox, with_answer};
use crate::hosted::failure::Failure;
use crate::hosted::jobs::{Job, JobQueue, Task};
use crate::hosted::outlet::Outlet;
use crate::hosted::pages::{Page, Reader};
use crate::hosted::roster::Roster;

/// What the thread works with.
pub(super) struct Workbench<'a, O> {
    pub(super) tiered: &'a Tiered,
    pub(super) session: Session,
    pub(super) outlet: &'a Outlet<O>,
    pub(super) roster: &'a Roster,
}

impl<O: Outbox> Workbench<'_, O> {
    /// Does jobs until they end.
    pub(super) fn work(mut self, jobs: &JobQueue) {
        while let Some(job) = jobs.next() {
            let done = catch_unwind(AssertUnwindSafe(|| self.perform(&job)));
            jobs.finish(&job);
            let failure = match done {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure,
                Err(panic) => Failure::of_panic(panic.as_ref()),
            };
            self.outlet.fail(job.token, &failure);
        }
    }

    /// Does a job and tells its answer, unless that is a failure.
    fn perform(&mut self, job: &Job) -> Result<(), Failure> {
        match &job.task {
            Task::Sync => self.tiered.sync()?,
            Task::Drop(space, None) => self.tiered.drop_space(*space)?,
            Task::Drop(space, Some(partition)) => self.tiered.drop_partition(*space, *partition)?,
            Task::Scan { scan, limit, now } => {
                let Workbench { tiered, session, roster, .. } = self;
                let mut page = Page::new(job.token, *limit, *now);
                Reader { tiered, session, roster }.read(scan, &mut page)?;
                self.outlet.give_all(&mut page.answers);
                return Ok(());
            }
            Task::Operation(operation, now) => {
                let operation = operation.operation();
                let Workbench { session, outlet, .. } = self;
                session.run(*now, operation, &mut |outcome| {
                    with_answer(Ok(outcome), |answer| outlet.give(job.token, answer));
                })?;
                // In time for scans: this thread begins them.
                if let Operation::Put { key, .. } = &operation {
                    let name = || Some(self.tiered.store().name(*key));
                    self.roster.wrote(*key, None, &name);
                }
                return Ok(());
            }
        }
        self.outlet.give(job.token, &Answer::Done);
        Ok(())
    }
}
