//! The observers of a transaction's end: the owners of the bytes that it changes, which keep others
//! away from these bytes meanwhile.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody who is told what becomes of a transaction.
pub(crate) trait Witness: Send + Sync + fmt::Debug {
    /// Old bytes are going to be put back.
    fn restoring(&self);
    /// They are back.
    fn restored(&self);
    /// The transaction's record is in the log, or everything was put back.
    fn ended(&self);
}

/// The witnesses of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    number: u64,
    witnesses: Vec<Arc<dyn Witness>>,
}

impl Attendance {
    /// A number that no other transaction has, given when it is first asked for: older ones are
    /// smaller.
    pub(crate) fn number(&mut self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if self.number == 0 {
            self.number = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        self.number
    }

    /// The number, if it was asked for.
    pub(crate) fn number_given(&self) -> Option<u64> {
        (self.number > 0).then_some(self.number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.witnesses.is_empty()
    }

    pub(crate) fn add(&mut self, witness: Arc<dyn Witness>) {
        self.witnesses.push(witness);
    }

    /// Tells of old bytes that are put back; they are back when the result is dropped.
    pub(crate) fn restore(&self) -> Restoring<'_> {
        self.witnesses.iter().for_each(|witness| witness.restoring());
        Restoring(self)
    }

    /// Tells of the end, once.
    pub(crate) fn end(&mut self) {
        self.witnesses.drain(..).for_each(|witness| witness.ended());
    }
}

/// Old bytes are being put back.
pub(crate) struct Restoring<'a>(&'a Attendance);

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        self.0.witnesses.iter().for_each(|witness| witness.restored());
    }
}
