//! Questions of merges to the caller's functions. No thread of this library calls into another
//! language: one of the caller's threads asks for the next question and brings the answers.
//!
//! ```text
//! Nobody ──next──► Listening ──fold──► Asked ──next──► Listening, with the answers
//!                                        │
//!                        no answer in time
//!                                        ▼
//!                                      Silent ──next──► Listening: the answers come too late
//! ```
//!
//! Invariants:
//! 1. A question's bytes stay where they are until the caller comes back: it may still read them.
//! 2. Whoever asks gets an answer or a sentence, also where nobody listens or the store closes.
//!
//! Lock order: the state is a leaf.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_tree::{FoldMany, Folded, FoldedRows, MergeFunction, RowBuffer};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::text::Failure;

/// How long a merge waits for answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// The meeting place of merges and the caller's thread. Thread-safe.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    listener: Listener,
    closed: bool,
    ticket: u64,
    /// A question that was put and is not answered; one at a time.
    asked: Option<Asked>,
    answer: Option<Reply<Vec<u8>>>,
    /// What the caller was shown.
    shown: Vec<u8>,
}

/// What the caller's thread does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Listener {
    /// There is none.
    #[default]
    Nobody,
    /// It is about to come.
    Announced,
    /// It waits for a question.
    Listening,
    /// It has one.
    Asked,
    /// It has one that nobody waits for any more.
    Silent,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    function: u64,
    rows: usize,
    /// Whether the caller has it.
    is_shown: bool,
}

/// A question as the caller gets it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) ticket: u64,
    pub(super) function: u64,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) rows: usize,
}

/// What the caller brings.
#[derive(Debug)]
pub(super) enum Reply<B> {
    /// Nothing: it has just come.
    None,
    /// An answer for each row: `{ 0 the base stays, 1 a value, 2 gone; length; value }`.
    Answers(B),
    /// A sentence: why there are none.
    Refusal(B),
    /// Nothing, and it does not wait: it will come soon.
    Announcement,
}

impl<'a> Reply<&'a [u8]> {
    pub(super) fn of(kind: u64, bytes: &'a [u8]) -> Reply<&'a [u8]> {
        match kind {
            1 => Reply::Answers(bytes),
            2 => Reply::Refusal(bytes),
            3 => Reply::Announcement,
            _ => Reply::None,
        }
    }

    fn to_owned(&self) -> Reply<Vec<u8>> {
        match self {
            Reply::None | Reply::Announcement => Reply::None,
            Reply::Answers(bytes) => Reply::Answers(bytes.to_vec()),
            Reply::Refusal(bytes) => Reply::Refusal(bytes.to_vec()),
        }
    }
}

impl Folds {
    /// Takes the reply to the question `ticket` and waits for the next question; none once the
    /// store is closed.
    pub(super) fn next(
        &self,
        ticket: u64,
        reply: &Reply<&[u8]>,
    ) -> Result<Option<Question>, Failure> {
        let mut state = self.state.lock();
        if matches!(reply, Reply::Announcement) {
            if state.listener == Listener::Nobody {
                state.listener = Listener::Announced;
            }
            return Ok(None);
        }
        if state.listener == Listener::Listening {
            let sentence = "another thread waits for questions of merges already".to_owned();
            return Err(Failure { kind: 2, sentence });
        }
        if state.listener == Listener::Asked && state.ticket == ticket {
            state.answer = Some(reply.to_owned());
        }
        state.listener = Listener::Listening;
        self.changed.notify_all();
        loop {
            if state.closed {
                state.listener = Listener::Nobody;
                return Ok(None);
            }
            if let Some(asked) = &mut state.asked
                && !asked.is_shown
            {
                asked.is_shown = true;
                let Asked { function, rows, .. } = *asked;
                state.listener = Listener::Asked;
                let State { ticket, shown, .. } = &*state;
                let (address, bytes) = (shown.as_ptr() as u64, shown.len() as u64);
                return Ok(Some(Question { ticket: *ticket, function, address, bytes, rows }));
            }
            self.changed.wait(&mut state);
        }
    }

    /// No question is asked or given any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Has the caller's function fold rows; what it says of them.
    fn ask(&self, function: u64, rows: &RowBuffer) -> Result<Vec<u8>, String> {
        let mut state = self.state.lock();
        let until = Instant::now() + PATIENCE;
        while state.asked.is_some() && !state.closed {
            self.wait(&mut state, until)?;
        }
        state.check()?;
        state.ticket += 1;
        state.answer = None;
        state.shown.clear();
        state.shown.extend_from_slice(rows.bytes());
        state.asked = Some(Asked { function, rows: rows.len(), is_shown: false });
        self.changed.notify_all();
        let ended = loop {
            match state.answer.take() {
                Some(Reply::Answers(bytes)) => break Ok(bytes),
                Some(Reply::Refusal(why)) => {
                    break Err(String::from_utf8_lossy(&why).into_owned());
                }
                Some(Reply::None | Reply::Announcement) => {
                    break Err("it was asked, and gave no answer".to_owned());
                }
                None if state.closed => break Err("the store closes".to_owned()),
                None => {}
            }
            if let Err(late) = self.wait(&mut state, until) {
                break Err(late);
            }
        };
        if state.listener == Listener::Asked && ended.is_err() {
            state.listener = Listener::Silent;
        }
        state.asked = None;
        self.changed.notify_all();
        ended
    }

    fn wait(&self, state: &mut MutexGuard<'_, State>, until: Instant) -> Result<(), String> {
        if self.changed.wait_until(state, until).timed_out() {
            return Err(format!("it gave no answer within {} s", PATIENCE.as_secs()));
        }
        Ok(())
    }
}

impl State {
    /// Whether somebody listens who could answer.
    fn check(&self) -> Result<(), String> {
        if self.closed {
            return Err("the store closes".to_owned());
        }
        match self.listener {
            Listener::Announced | Listener::Listening | Listener::Asked => Ok(()),
            Listener::Nobody => Err("no thread listens to questions of merges".to_owned()),
            Listener::Silent => Err("it has not come back from a question before".to_owned()),
        }
    }
}

/// A function of the caller's.
#[derive(Debug)]
pub(super) struct RemoteMerge {
    pub(super) folds: Arc<Folds>,
    pub(super) function: u64,
    /// Whether rows without parts are shown to it.
    pub(super) folds_all: bool,
}

impl MergeFunction for RemoteMerge {
    fn fold(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Folded {
        unreachable!("a function that folds many rows at a time")
    }

    fn folds_all(&self) -> bool {
        self.folds_all
    }

    fn many(&self) -> Option<&dyn FoldMany> {
        Some(self)
    }
}

impl FoldMany for RemoteMerge {
    fn fold_rows(&self, rows: &RowBuffer, folded: &mut FoldedRows) -> Result<(), String> {
        let answers = self.folds.ask(self.function, rows)?;
        let mut rest = &answers[..];
        while !rest.is_empty() {
            let row = take(&mut rest).ok_or("an answer that is none")?;
            folded.push(row.0, row.1);
        }
        Ok(())
    }
}

/// The answer at the beginning of `rest`, which is cut off.
fn take<'a>(rest: &mut &'a [u8]) -> Option<(Folded, &'a [u8])> {
    let (kind, after) = rest.split_first_chunk()?;
    let (length, after) = after.split_first_chunk()?;
    let (value, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    let folded = match u32::from_le_bytes(*kind) {
        0 => Folded::Base,
        1 => Folded::Row,
        2 => Folded::Gone,
        _ => return None,
    };
    Some((folded, value))
}
