//! What callers of a hosted store are told, and where it waits for them.

use entresol_tier::{Entry, Error, Outcome};

use crate::hosted::failure::Failure;

/// What became of an operation or a job; each has one, and a page of a scan has entries before it.
#[derive(Debug)]
pub enum Answer<'a> {
    /// An operation's outcome.
    Outcome(&'a Outcome<'a>),
    /// An entry of a scan; more follows.
    Entry(&'a Entry<'a>),
    /// A sync or a drop is done.
    Done,
    /// A page of a scan ends.
    PageEnd(PageEnd<'a>),
    /// There is no outcome.
    Failed(&'a Failure),
}

/// How a page of a scan ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageEnd<'a> {
    /// Whether another page follows.
    pub goes_on: bool,
    /// Records that do not verify.
    pub damaged: u64,
    /// What was said of the first of them.
    pub damage: Option<&'a str>,
}

/// Where a request's answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// With the one who asked.
    AtOnce,
    /// With those that are reaped, now or later.
    Reaped,
}

/// Answers that wait to be reaped, in whatever form their reader wants them. They lie under a lock:
/// what these functions do is short.
pub trait Outbox: Default + Send + 'static {
    /// Adds an answer behind all others.
    fn add(&mut self, token: u64, answer: &Answer<'_>);

    /// Moves all answers of `others` behind its own.
    fn append(&mut self, others: &mut Self);

    /// What it holds.
    fn extent(&self) -> Extent;

    /// Lets go what was added since it held `extent`.
    fn truncate(&mut self, extent: Extent);
}

/// Of a store that is asked for its ordered tables alone: there are no answers about entries.
impl Outbox for () {
    fn add(&mut self, _token: u64, _answer: &Answer<'_>) {}
    fn append(&mut self, _others: &mut ()) {}
    fn extent(&self) -> Extent {
        Extent::default()
    }
    fn truncate(&mut self, _extent: Extent) {}
}

/// How much an outbox holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Answers.
    pub answers: usize,
    /// Bytes of memory that they take.
    pub bytes: usize,
}

/// Shows the answer that the outcome of an operation is.
pub(super) fn with_answer<T>(
    outcome: Result<Outcome<'_>, Error>,
    see: impl FnOnce(&Answer<'_>) -> T,
) -> T {
    match outcome {
        Ok(outcome) => see(&Answer::Outcome(&outcome)),
        Err(error) => see(&Answer::Failed(&Failure::Store(error))),
    }
}
