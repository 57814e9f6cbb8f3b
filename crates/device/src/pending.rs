//! Counts the requests in flight, and how long they have been waiting at least. So a caller notices
//! a device that never answers, without a clock and without a look at each request.
//!
//! Requests are counted in groups. A caller that asks passes the present moment, of any clock that
//! only goes forward; requests that begin later are counted in another group. If a group still has
//! requests when it is left, these are at least as old as that moment.
//!
//! Each queue counts by itself, so that counting needs no exchange between processors.

use std::array;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

/// Groups of one counter. If requests of all of them are in flight, the last one takes all others,
/// which are not the oldest.
const GROUPS: usize = 8;

/// The oldest request that a device has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingIo {
    /// The name of the device.
    pub device: String,
    /// For how long it has been in flight, at least.
    pub age: Duration,
}

/// Requests in flight of a device: its own blocking ones, and those of its queues.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    own: Pending,
    queues: Mutex<Vec<Weak<Pending>>>,
}

/// Requests in flight of one queue, or of whatever else counts them.
#[derive(Debug, Default)]
pub struct Pending {
    /// The group that requests are counted in when they begin.
    current: AtomicUsize,
    counts: [AtomicU32; GROUPS],
    /// When each group was left; `None`: it was not, or is the current one.
    left: Mutex<[Option<Duration>; GROUPS]>,
}

/// The group that a request is counted in until it is done.
#[derive(Debug, Clone, Copy)]
pub struct Group(usize);

impl InFlight {
    /// The counter of a new queue.
    pub(crate) fn of_queue(&self) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&pending));
        pending
    }

    /// Counts a blocking request while `work` is done.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let group = self.own.begin();
        let done = work();
        self.own.end(group);
        done
    }

    /// For how long the oldest request has been in flight at least, seen from `now`.
    pub(crate) fn oldest(&self, now: Duration) -> Option<Duration> {
        let queues: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        let ages = queues.iter().map(|queue| queue.oldest(now));
        ages.chain([self.own.oldest(now)]).flatten().max()
    }
}

impl Pending {
    /// Counts a request that begins.
    #[inline]
    pub fn begin(&self) -> Group {
        let group = self.current.load(Ordering::Relaxed);
        self.counts[group].fetch_add(1, Ordering::Relaxed);
        Group(group)
    }

    /// It is done.
    #[inline]
    pub fn end(&self, Group(group): Group) {
        self.counts[group].fetch_sub(1, Ordering::Relaxed);
    }

    /// For how long the oldest request has been in flight at least, seen from `now`.
    pub fn oldest(&self, now: Duration) -> Option<Duration> {
        let mut left = self.left.lock();
        let counts: [bool; GROUPS] =
            array::from_fn(|group| self.counts[group].load(Ordering::Relaxed) > 0);
        let age =
            |group: usize| left[group].filter(|_| counts[group]).map(|at| now.saturating_sub(at));
        let oldest = (0..GROUPS).filter_map(age).max();
        let current = self.current.load(Ordering::Relaxed);
        // A request that began just now may be counted in a group that looked empty: it then seems
        // younger than it is, by no more than one question's time.
        let next = (0..GROUPS).find(|group| *group != current && !counts[*group]);
        let Some(next) = next.filter(|_| counts[current]) else { return oldest };
        left[current] = Some(now);
        left[next] = None;
        self.current.store(next, Ordering::Relaxed);
        oldest.or(Some(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_oldest_request_is_known_while_others_come_and_go() {
        let in_flight = InFlight::default();
        let queue = in_flight.of_queue();
        assert_eq!(in_flight.oldest(at(100)), None);
        let hung = queue.begin();
        assert_eq!(in_flight.oldest(at(101)), Some(at(0)));
        for second in 0..1000 {
            let others: Vec<Group> = (0..20).map(|_| queue.begin()).collect();
            assert_eq!(in_flight.oldest(at(102 + second)), Some(at(1 + second)));
            others.into_iter().for_each(|group| queue.end(group));
        }
        queue.end(hung);
        assert_eq!(in_flight.oldest(at(2000)), None);
        assert_eq!(in_flight.oldest(at(2001)), None);
    }

    #[test]
    fn requests_that_hang_one_after_another_use_no_more_than_there_is() {
        let in_flight = InFlight::default();
        let queue = in_flight.of_queue();
        let hung: Vec<Group> = (0..100)
            .map(|second| {
                let group = queue.begin();
                assert_eq!(in_flight.oldest(at(second)), Some(at(second)));
                group
            })
            .collect();
        // The first is done: what is known of the others is what they were counted with.
        let mut hung = hung.into_iter();
        hung.next().into_iter().for_each(|group| queue.end(group));
        assert_eq!(in_flight.oldest(at(100)), Some(at(99)));
        hung.for_each(|group| queue.end(group));
        assert_eq!(in_flight.oldest(at(101)), None);
    }

    #[test]
    fn blocking_requests_and_those_of_every_queue_count() {
        let in_flight = InFlight::default();
        let (first, second) = (in_flight.of_queue(), in_flight.of_queue());
        let _young = second.begin();
        in_flight.during(|| {
            assert_eq!(in_flight.oldest(at(1)), Some(at(0)));
            let _hung = first.begin();
            assert_eq!(in_flight.oldest(at(5)), Some(at(4)));
        });
        drop(second);
        assert_eq!(in_flight.oldest(at(9)), Some(at(4)), "the second queue is gone");
        assert_eq!(in_flight.queues.lock().len(), 2);
        let _third = in_flight.of_queue();
        assert_eq!(in_flight.queues.lock().len(), 2);
    }
}
