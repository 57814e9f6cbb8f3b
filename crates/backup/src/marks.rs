//! Marks in a repository: who writes a backup, who removes some. Those who remove and those who
//! write keep out of each other's way; any number of them may write.
//!
//! Each side writes its mark first and then looks for the other's, so of two that begin together at
//! least one sees the other. A mark that nobody renews grows old, by the clock of the place.

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::format::Id;
use crate::repository::Repository;

/// How often the owner of a mark renews it.
const RENEWED_EVERY: Duration = Duration::from_secs(60);
/// An older mark belongs to nobody.
const AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// What the owner of a mark does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Writing,
    Removing,
}

/// A mark of one's own, removed when dropped.
#[derive(Debug)]
pub(crate) struct Mark<'a> {
    repository: &'a Repository,
    name: String,
    id: Id,
    renewed: Instant,
}

impl Work {
    fn folder(self) -> &'static str {
        match self {
            Work::Writing => "writing",
            Work::Removing => "removing",
        }
    }

    fn other(self) -> Work {
        match self {
            Work::Writing => Work::Removing,
            Work::Removing => Work::Writing,
        }
    }
}

impl<'a> Mark<'a> {
    /// Sets a mark under `id`, or the next name that nobody has. Refuses where somebody does the
    /// other work.
    pub(crate) fn set(repository: &'a Repository, work: Work, mut id: Id) -> Result<Mark<'a>> {
        loop {
            let name = format!("{}/{id}", work.folder());
            if repository.put_new(&name, text())? {
                let mark = Mark { repository, name, id, renewed: Instant::now() };
                mark.demand_alone(work)?;
                return Ok(mark);
            }
            id = id.following();
        }
    }

    /// The name that nobody else has.
    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Tells that the owner lives, where it is time to.
    pub(crate) fn renew(&mut self) -> Result<()> {
        if self.renewed.elapsed() >= RENEWED_EVERY {
            self.demand_kept()?;
            self.repository.put(&self.name, text())?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    /// That nobody took the owner for dead, and removed the mark.
    pub(crate) fn demand_kept(&self) -> Result<()> {
        let folder = self.name.split('/').next().unwrap_or_default();
        if self.repository.list(folder)?.iter().any(|mark| mark.name == self.name) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{}: expected the mark {}, found none: nothing was heard of this process for so \
                 long that another took it for dead. Start again",
                self.repository.place(),
                self.name
            ),
        ))
    }

    fn demand_alone(&self, work: Work) -> Result<()> {
        let own = self.repository.list(work.folder())?;
        let now = own.iter().find(|mark| mark.name == self.name).map(|mark| mark.changed);
        for mark in self.repository.list(work.other().folder())? {
            let age = now.and_then(|now| now.duration_since(mark.changed).ok());
            if age.is_some_and(|age| age > AGE_MAX) {
                self.repository.remove(&mark.name)?;
                continue;
            }
            let (what, place) = (work.other().folder(), self.repository.place());
            return Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "{place}: somebody is {what} backups there ({}); nothing was changed. Try \
                     again once that has ended; if it was killed, {} minutes after",
                    mark.name,
                    AGE_MAX.as_secs() / 60
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        // One that stays grows old.
        drop(self.repository.remove(&self.name));
    }
}

/// Who it is, for people.
fn text() -> Vec<u8> {
    format!("process {}\n", std::process::id()).into_bytes()
}
