//! Work on ordered tables in the caller's thread, from its beginning to its end; with patience
//! where it needs room that merges have yet to make.

use std::time::{Duration, Instant};

use entresol_tier::{Error, ErrorKind};
use entresol_tree::{Outcome, Session, Visit};

use crate::clock::now;
use crate::hosted::HostedStore;
use crate::hosted::answer::Outbox;
use crate::hosted::failure::Failure;

/// How long a writer makes room, or waits until others have, before it is refused.
const PATIENCE: Duration = Duration::from_secs(10);
/// A writer without room is refused after so many sweeps that held a leaf back: they merged others.
const FAILED_SWEEPS_MAX: u32 = 3;
/// What such a sweep ends with.
const HELD_BACK: ErrorKind = ErrorKind::InvalidInput;

/// Begins one operation and waits for its outcome.
///
/// # Errors
/// The device cannot be asked.
pub fn run_on_tables(
    session: &mut Session,
    begin: impl FnOnce(&mut Session, Visit<'_>),
    see: &mut dyn FnMut(Result<Outcome<'_>, Error>),
) -> Result<(), Error> {
    let mut visit = |_: u64, outcome: Result<Outcome<'_>, Error>| see(outcome);
    begin(session, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, now(), &mut visit)?;
    }
    Ok(())
}

impl<O: Outbox> HostedStore<O> {
    /// Does work that needs room for changes, as [`HostedStore::with_tables`] does work. Where
    /// there is no room it merges some, or waits until others have, and tries again.
    ///
    /// # Errors
    /// As of the work. Where room was found in no time the sentence says what stands in the way of
    /// merges.
    pub fn change_tables<T>(
        &self,
        mut work: impl FnMut(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let (mut until, mut failed_sweeps) = (None, 0);
        loop {
            let error = match self.with_tables(&mut work)? {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let waits = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Full);
            let now = Instant::now();
            let out_of_patience = *until.get_or_insert(now + PATIENCE) <= now;
            if !waits || out_of_patience || failed_sweeps == FAILED_SWEEPS_MAX {
                return Err(self.refusal(error));
            }
            match self.relieve_tables() {
                Err(Failure::Store(error)) if error.kind() == HELD_BACK => failed_sweeps += 1,
                relieved => relieved?,
            }
        }
    }

    /// A writer that found no room is told what stands in the way of merges.
    fn refusal(&self, error: Error) -> Failure {
        let why = self.tree().ok().and_then(|tree| tree.held_back());
        Failure::Store(match why {
            Some(why) => Error::new(error.kind(), format!("{error}; merges cannot go on: {why}")),
            None => error,
        })
    }
}
