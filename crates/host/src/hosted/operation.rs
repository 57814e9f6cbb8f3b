//! Operations as callers give them, and copies of those that wait.

use entresol_tier::{Condition, Expiry, Key, Operation, PutOptions, SpaceId};

/// One operation of a caller's, its bytes still in the caller's memory.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Given back with the answer.
    pub token: u64,
    /// The caller's clock; 0: the system's.
    pub now_ms: i64,
    /// What is to be done.
    pub operation: Operation<'a>,
    /// Who waits for the device.
    pub waiter: Waiter,
}

/// Who waits for the device where an operation needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// The caller's thread, if it reads.
    Caller,
    /// The one who reaps.
    Reaper,
}

/// An operation with bytes of its own.
#[derive(Debug)]
pub(super) struct OwnedOperation {
    space: SpaceId,
    partition: u16,
    key: Vec<u8>,
    value: Vec<u8>,
    action: Action,
}

/// What an owned operation does.
#[derive(Debug, Clone, Copy)]
enum Action {
    Get,
    Put(PutOptions),
    Remove(Condition),
    Touch(Expiry, Condition),
}

impl OwnedOperation {
    pub(super) fn of(operation: &Operation<'_>) -> OwnedOperation {
        let (key, value, action) = match *operation {
            Operation::Get { key } => (key, &[][..], Action::Get),
            // Where it was found may be another's by the time it is tried again.
            Operation::Put { key, value, options }
            | Operation::Replace { key, value, options, .. } => (key, value, Action::Put(options)),
            Operation::Remove { key, condition } => (key, &[][..], Action::Remove(condition)),
            Operation::RemoveFound { key, .. } | Operation::Discard { key } => {
                (key, &[][..], Action::Remove(Condition::Always))
            }
            Operation::Touch { key, expiry, condition } => {
                (key, &[][..], Action::Touch(expiry, condition))
            }
        };
        OwnedOperation {
            space: key.space,
            partition: key.partition,
            key: key.bytes.to_vec(),
            value: value.to_vec(),
            action,
        }
    }

    pub(super) fn operation(&self) -> Operation<'_> {
        let key = Key { space: self.space, partition: self.partition, bytes: &self.key };
        match self.action {
            Action::Get => Operation::Get { key },
            Action::Put(options) => Operation::Put { key, value: &self.value, options },
            Action::Remove(condition) => Operation::Remove { key, condition },
            Action::Touch(expiry, condition) => Operation::Touch { key, expiry, condition },
        }
    }

    /// Bytes of key and value.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}
