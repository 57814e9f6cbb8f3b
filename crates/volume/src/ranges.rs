//! Keeping requests that overlap apart: any number of readers, or one writer, of each block.
//!
//! Overlapping requests are granted in the order of arrival, all others at once: a waiting writer
//! holds back later readers of its range.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use entresol_planted::planted;

use crate::tasks::{Answer, Tasks, reply};

/// Whether others may have the range too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Others that read.
    Shared,
    /// Nobody.
    Exclusive,
}

/// The ranges of one volume that requests have or wait for.
#[derive(Default)]
pub(crate) struct Ranges {
    held: RefCell<Vec<Held>>,
    waiting: RefCell<Vec<Waiting>>,
    next: RefCell<u64>,
}

#[derive(Clone)]
struct Held {
    number: u64,
    range: Range<u64>,
    access: Access,
}

struct Waiting {
    wanted: Held,
    answer: Answer<()>,
}

/// A range that is held until this is dropped.
pub(crate) struct Guard {
    ranges: Rc<Ranges>,
    number: u64,
}

impl Held {
    fn conflicts(&self, other: &Held) -> bool {
        self.range.start < other.range.end
            && other.range.start < self.range.end
            && (self.access == Access::Exclusive || other.access == Access::Exclusive)
    }
}

impl Ranges {
    /// Waits for `range` and holds it. The place in the order is taken by the call itself.
    pub(crate) fn lock(
        self: &Rc<Self>,
        tasks: &Rc<Tasks>,
        range: Range<u64>,
        access: Access,
    ) -> impl Future<Output = Guard> + use<> {
        let number = {
            let mut next = self.next.borrow_mut();
            *next += 1;
            *next
        };
        let wanted = Held { number, range, access };
        let mut waiting = self.waiting.borrow_mut();
        let blocked = !planted!("overlapping-writes-together");
        let conflicts = self.held.borrow().iter().any(|held| held.conflicts(&wanted))
            || waiting.iter().any(|earlier| earlier.wanted.conflicts(&wanted));
        let granted = if blocked && conflicts {
            let (answer, granted) = reply(tasks);
            waiting.push(Waiting { wanted, answer });
            Some(granted)
        } else {
            self.held.borrow_mut().push(wanted);
            None
        };
        drop(waiting);
        let ranges = Rc::clone(self);
        async move {
            if let Some(granted) = granted {
                granted.await;
            }
            Guard { ranges, number }
        }
    }

    fn release(&self, number: u64) {
        let mut held = self.held.borrow_mut();
        held.retain(|held| held.number != number);
        let mut waiting = self.waiting.borrow_mut();
        let mut still: Vec<Waiting> = Vec::with_capacity(waiting.len());
        for waits in waiting.drain(..) {
            let wanted = &waits.wanted;
            if held.iter().any(|held| held.conflicts(wanted))
                || still.iter().any(|earlier| earlier.wanted.conflicts(wanted))
            {
                still.push(waits);
            } else {
                held.push(waits.wanted);
                waits.answer.give(());
            }
        }
        *waiting = still;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.ranges.release(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn overlapping_requests_take_effect_in_order_and_others_at_once() {
        let tasks = Rc::new(Tasks::default());
        let ranges = Rc::new(Ranges::default());
        let log = Rc::new(RefCell::new(Vec::new()));
        let gates: Vec<_> = (0..5).map(|_| reply::<()>(&tasks)).collect();
        let wanted = [
            (0..4, Access::Exclusive),
            (2..3, Access::Shared),
            (2..6, Access::Exclusive),
            (2..3, Access::Shared),
            (9..10, Access::Exclusive),
        ];
        let mut answers = Vec::new();
        for (number, ((answer, gate), (range, access))) in gates.into_iter().zip(wanted).enumerate()
        {
            answers.push(Some(answer));
            let lock = ranges.lock(&tasks, range, access);
            let log = Rc::clone(&log);
            tasks.spawn(async move {
                let guard = lock.await;
                log.borrow_mut().push(number);
                gate.await;
                drop(guard);
            });
        }
        tasks.run();
        assert_eq!(*log.borrow(), [0, 4]);
        for (end, expected) in [(0, vec![0, 4, 1]), (1, vec![0, 4, 1, 2]), (2, vec![0, 4, 1, 2, 3])]
        {
            answers[end].take().unwrap().give(());
            tasks.run();
            assert_eq!(*log.borrow(), expected);
        }
    }
}
