//! What is asked of a store and what it answers, as values that a journal can keep, and which
//! answers a request may get that nothing comes in between with.

use std::fmt;
use std::num::NonZeroU32;

use entresol_flash::{
    Condition, Durability, Entry, ErrorKind, Expiry, Key, Lifespan, Operation, Outcome, Pinning,
    PutOptions, Result, Session, SpaceId, Timestamp, Visit,
};

use crate::history::{Ends, Name, Put, State};

/// Something to do with a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Get,
    Put(Put, Condition, Option<Durability>),
    Remove(Condition),
    Touch(Ends, Condition),
}

/// How a request ended; versions as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Found(Box<Found>),
    Missing,
    Stored(u64),
    Refused(Option<u64>),
    Removed(u64),
    Touched(u64),
    /// Nothing was done.
    Full,
    /// Nothing was done, and never will be.
    Invalid(String),
    Failed(String),
}

/// An entry as it was shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub version: u64,
    pub label: u8,
    pub ends: Ends,
    pub pinned: bool,
}

impl Request {
    /// Hands it to `session`; `visit` is called at once or by a later poll.
    pub(crate) fn submit(
        &self,
        session: &mut Session,
        (token, now): (u64, Timestamp),
        name: Name,
        visit: Visit<'_>,
    ) {
        let bytes = name.bytes();
        let key = Key { space: SpaceId(name.space), partition: name.partition(), bytes: &bytes };
        let operation = match *self {
            Request::Get => Operation::Get { key },
            Request::Remove(condition) => Operation::Remove { key, condition },
            Request::Touch(ends, condition) => {
                Operation::Touch { key, expiry: expiry(ends), condition }
            }
            Request::Put(put, condition, durability) => {
                let pinning = if put.pinned { Pinning::Pinned } else { Pinning::Evictable };
                let (expiry, label) = (expiry(put.ends), put.label);
                let hints = [Lifespan::Learned, Lifespan::Short, Lifespan::Long];
                let lifespan = hints[usize::from(label) % hints.len()];
                let options =
                    PutOptions { expiry, condition, pinning, label, durability, lifespan };
                let operation = Operation::Put { key, value: &name.value(&put), options };
                return session.submit(token, now, operation, visit);
            }
        };
        session.submit(token, now, operation, visit);
    }

    /// The state that `answer` says was left of `state`, and whether it fits `state`, which is
    /// certain, or absent.
    pub(crate) fn apply(&self, state: State, answer: &Answer) -> (State, bool) {
        let there = state.is_some();
        let version = state.and_then(|put| put.version);
        // A version that the store has not told yet may be any.
        let unknown = version.is_none();
        let holds = |condition: Condition| match condition {
            Condition::Always => true,
            Condition::Absent => !there,
            Condition::Present => there,
            Condition::Version(wanted) => there && (unknown || version == Some(wanted.0)),
        };
        let compares = |condition| matches!(condition, Condition::Version(_));
        match (*self, answer) {
            (Request::Put(put, condition, _), Answer::Stored(stored)) => {
                let put = Put { version: Some(*stored), ..put };
                (Some(put), holds(condition) && version.is_none_or(|version| version < *stored))
            }
            (Request::Put(_, condition, _), Answer::Refused(current)) => {
                let fails = !holds(condition) || (compares(condition) && unknown);
                (state, fails && (unknown || *current == version))
            }
            (Request::Remove(condition), Answer::Removed(removed)) => {
                (None, there && holds(condition) && (unknown || version == Some(*removed)))
            }
            (Request::Remove(_) | Request::Touch(..), Answer::Missing) => (state, !there),
            (
                Request::Remove(condition) | Request::Touch(_, condition),
                Answer::Refused(current),
            ) => {
                let fails = !holds(condition) || unknown;
                (state, there && fails && (unknown || *current == version))
            }
            (Request::Touch(ends, condition), Answer::Touched(touched)) => {
                let touch = |put| Put { ends, version: Some(*touched), ..put };
                (state.map(touch), there && holds(condition))
            }
            _ => (state, false),
        }
    }
}

impl Answer {
    pub(crate) fn of(result: Result<Outcome<'_>>) -> Answer {
        match result {
            Ok(Outcome::Found(entry)) => Answer::Found(Box::new(Found::of(&entry))),
            Ok(Outcome::Missing) => Answer::Missing,
            Ok(Outcome::Larger { bytes }) => Answer::Failed(format!("larger: {bytes} bytes")),
            Ok(Outcome::Stored { version }) => Answer::Stored(version.0),
            Ok(Outcome::Refused { current }) => Answer::Refused(current.map(|version| version.0)),
            Ok(Outcome::Removed { version }) => Answer::Removed(version.0),
            Ok(Outcome::Touched { version }) => Answer::Touched(version.0),
            Ok(other) => Answer::Failed(format!("{other:?}")),
            Err(error) if error.kind() == ErrorKind::Full => Answer::Full,
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Answer::Invalid(error.to_string())
            }
            Err(error) => Answer::Failed(format!("{:?}: {error}", error.kind())),
        }
    }
}

impl Found {
    pub(crate) fn of(entry: &Entry<'_>) -> Found {
        let ends = Ends {
            at_ms: entry.expiry.at.map(|at| at.0),
            idle_seconds: entry.expiry.idle_seconds.map(NonZeroU32::get),
        };
        Found {
            key: entry.key.to_vec(),
            value: entry.value.to_vec(),
            version: entry.version.0,
            label: entry.label,
            ends,
            pinned: entry.pinning == Pinning::Pinned,
        }
    }

    /// Whether it is what `put` put under `name`.
    pub(crate) fn is(&self, name: Name, put: &Put) -> bool {
        (self.label, self.ends, self.pinned) == (put.label, put.ends, put.pinned)
            && put.version.is_none_or(|version| version == self.version)
            && self.value == name.value(put)
    }
}

/// Without the bytes of key and value: they would hide the rest of a journal.
impl fmt::Debug for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { value, version, label, ends, pinned, .. } = self;
        let bytes = value.len();
        write!(out, "version {version}, {bytes} bytes, label {label}, {ends:?}, pinned: {pinned}")
    }
}

fn expiry(ends: Ends) -> Expiry {
    let idle_seconds = ends.idle_seconds.and_then(NonZeroU32::new);
    Expiry { at: ends.at_ms.map(Timestamp), idle_seconds }
}
