//! Which volume's request is served next: mClock.
//!
//! After "mClock: Handling Throughput Variability for Hypervisor IO Scheduling" by Gulati, Merchant
//! and Varman (OSDI 2010). Each request gets three tags on arrival: the time at which its volume's
//! reservation is due, the time at which its volume's limit allows it, and its place by weight.
//! Requests whose reservation is due go first, by that tag; then requests whose limit allows them,
//! by their place.
//!
//! Invariants:
//! 1. Requests of one volume are served in the order in which they came.
//! 2. A volume with waiting requests gets its reservation, if all reservations together are less
//!    than the rate of service. It never gets more than its limit.
//! 3. Requests that a volume got by its weight do not count against its reservation.
//!
//! Weights are relative, and scaled so that places run ahead of the time. Otherwise a slow device
//! would serve in the order of arrival.

use std::collections::VecDeque;

use crate::types::{Moment, Qos, VolumeId};

/// The greatest weight; more counts as this.
pub const WEIGHT_MAX: f64 = 10_000.0;

/// Decides whose request is next. One [`MClock::push`] or [`MClock::pop`] looks at every volume's
/// first request, and allocates only while a queue grows longer than it ever was.
#[derive(Debug)]
pub struct MClock {
    options: Options,
    origin: Moment,
    volumes: Vec<Volume>,
    queued: usize,
    /// The farthest place that was served.
    place: f64,
}

/// What holds for all volumes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// What happens where only limits hold requests back.
    pub at_limit: AtLimit,
    /// Requests that a volume may be served at once after it was idle, beyond the pace of its
    /// limit and its reservation.
    pub burst: f64,
}

/// What happens where only limits hold requests back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtLimit {
    /// They wait.
    #[default]
    Wait,
    /// They are served by weight: nothing waits while the device is idle.
    Allow,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Serve this request.
    Serve {
        /// Whose it is.
        volume: VolumeId,
        /// The token it was pushed with.
        token: u64,
        /// Why it is next.
        phase: Phase,
    },
    /// Nothing before this moment.
    Wait(Moment),
    /// There are no requests.
    Idle,
}

/// Why a request is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its volume's reservation is due it.
    Reservation,
    /// By its volume's weight, within its limit.
    Weight,
    /// By its volume's weight, beyond its limit ([`AtLimit::Allow`]).
    Surplus,
}

/// What requests of a size cost, in requests of no size.
///
/// A device that serves an empty request in some time and moves some bytes meanwhile serves a
/// request of so many bytes in twice the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Latency of a small request times the highest throughput, in bytes.
    pub bytes_doubling: f64,
}

impl Cost {
    /// The cost of a request of `bytes`.
    pub fn of(&self, bytes: u64) -> f64 {
        if self.bytes_doubling > 0.0 { 1.0 + bytes as f64 / self.bytes_doubling } else { 1.0 }
    }
}

#[derive(Debug)]
struct Volume {
    id: VolumeId,
    qos: Qos,
    queue: VecDeque<Tagged>,
    /// Tags of the request that came last, served or not.
    last: Tags,
    /// What service by weight has taken off the reservation tags of all that came.
    taken_off: f64,
}

#[derive(Debug, Clone, Copy)]
struct Tagged {
    token: u64,
    cost: f64,
    tags: Tags,
}

/// Seconds since the origin; the reservation's before what was taken off.
#[derive(Debug, Clone, Copy)]
struct Tags {
    reservation: f64,
    limit: f64,
    place: f64,
}

impl Tags {
    const NONE: Tags =
        Tags { reservation: f64::NEG_INFINITY, limit: f64::NEG_INFINITY, place: f64::NEG_INFINITY };
}

impl MClock {
    /// No volumes yet. `now` only says from when time is counted.
    pub fn new(options: Options, now: Moment) -> MClock {
        MClock { options, origin: now, volumes: Vec::new(), queued: 0, place: 0.0 }
    }

    /// Adds a volume, or changes what it gets; requests that wait are counted as if they came now.
    /// Rates that are negative or no numbers count as 0.
    pub fn set(&mut self, id: VolumeId, qos: Qos, now: Moment) {
        let rate = |rate: f64| if rate.is_finite() && rate > 0.0 { rate } else { 0.0 };
        let weight = match rate(qos.weight) {
            0.0 => 1.0,
            weight => weight.min(WEIGHT_MAX),
        };
        let qos = Qos { reservation: rate(qos.reservation), limit: rate(qos.limit), weight };
        let now = self.seconds(now);
        let burst = self.options.burst;
        match self.volumes.binary_search_by_key(&id, |volume| volume.id) {
            Err(at) => {
                let queue = VecDeque::new();
                let volume = Volume { id, qos, queue, last: Tags::NONE, taken_off: 0.0 };
                self.volumes.insert(at, volume);
            }
            Ok(at) => self.volumes[at].change(qos, now, burst),
        }
    }

    /// Removes a volume; returns the tokens of its requests that were not served.
    pub fn remove(&mut self, id: VolumeId) -> impl Iterator<Item = u64> + use<> {
        let found = self.volumes.binary_search_by_key(&id, |volume| volume.id);
        let queue = found.map(|at| self.volumes.remove(at).queue).unwrap_or_default();
        self.queued -= queue.len();
        queue.into_iter().map(|tagged| tagged.token)
    }

    /// A request of a volume that was [`MClock::set`]; `cost` as [`Cost::of`] says, 1 for a small
    /// one.
    pub fn push(&mut self, id: VolumeId, token: u64, cost: f64, now: Moment) {
        let at = self.volumes.binary_search_by_key(&id, |volume| volume.id);
        let at = at.expect("requests come for volumes that were set");
        let now = self.seconds(now);
        let waiting = self.volumes.iter().filter_map(|volume| volume.queue.front());
        let first = waiting.map(|tagged| tagged.tags.place).min_by(f64::total_cmp);
        let volume = &mut self.volumes[at];
        if volume.queue.is_empty() {
            // A volume that was idle has no claim on the time in which it asked for nothing.
            let floor = first.unwrap_or(self.place) - cost / scaled(volume.qos.weight);
            volume.last.place = volume.last.place.max(floor);
        }
        let tags = volume.tags(cost, now, self.options.burst);
        volume.last = tags;
        volume.queue.push_back(Tagged { token, cost, tags });
        self.queued += 1;
    }

    /// What to do at `now`.
    pub fn pop(&mut self, now: Moment) -> Turn {
        if self.queued == 0 {
            return Turn::Idle;
        }
        let moment = now;
        let now = self.seconds(moment);
        let heads = || {
            let heads = self.volumes.iter().enumerate();
            heads.filter_map(|(at, volume)| Some((at, volume, volume.queue.front()?.tags)))
        };
        let due = |volume: &Volume, tags: &Tags| tags.reservation - volume.taken_off;
        let first = |key: &dyn Fn(&Volume, &Tags) -> f64, most: f64| {
            heads()
                .map(|(at, volume, tags)| (key(volume, &tags), at))
                .filter(|(key, _)| *key <= most)
                .min_by(|(a, _), (b, _)| a.total_cmp(b))
                .map(|(_, at)| at)
        };
        if let Some(at) = first(&due, now) {
            return self.serve(at, Phase::Reservation);
        }
        let allowed =
            |_: &Volume, tags: &Tags| if tags.limit <= now { tags.place } else { f64::INFINITY };
        if let Some(at) = first(&allowed, f64::MAX) {
            return self.serve(at, Phase::Weight);
        }
        if self.options.at_limit == AtLimit::Allow
            && let Some(at) = first(&|_, tags| tags.place, f64::MAX)
        {
            return self.serve(at, Phase::Surplus);
        }
        let next = heads().map(|(_, volume, tags)| due(volume, &tags).min(tags.limit));
        let next = next.min_by(f64::total_cmp).unwrap_or(now);
        // Later than now, so that whoever waits gets on.
        Turn::Wait(self.moment(next).max(Moment(moment.0 + 1)))
    }

    /// Requests that wait, of all volumes.
    pub fn queued(&self) -> usize {
        self.queued
    }

    fn serve(&mut self, at: usize, phase: Phase) -> Turn {
        let volume = &mut self.volumes[at];
        let served = volume.queue.pop_front().expect("a volume was chosen by its first request");
        self.queued -= 1;
        self.place = self.place.max(served.tags.place);
        if phase != Phase::Reservation && volume.qos.reservation > 0.0 {
            volume.taken_off += served.cost / volume.qos.reservation;
        }
        Turn::Serve { volume: volume.id, token: served.token, phase }
    }

    fn seconds(&self, moment: Moment) -> f64 {
        moment.0.saturating_sub(self.origin.0) as f64 / 1e9
    }

    fn moment(&self, seconds: f64) -> Moment {
        Moment(self.origin.0.saturating_add((seconds * 1e9).ceil() as u64))
    }
}

impl Volume {
    /// The tags of a request that comes at `now`.
    fn tags(&self, cost: f64, now: f64, burst: f64) -> Tags {
        let spaced = |rate: f64, last: f64| (now - burst / rate).max(last + cost / rate);
        let Qos { reservation, limit, weight } = self.qos;
        Tags {
            reservation: if reservation > 0.0 {
                // Both sides before what is taken off.
                spaced(reservation, self.last.reservation - self.taken_off) + self.taken_off
            } else {
                f64::INFINITY
            },
            limit: if limit > 0.0 { spaced(limit, self.last.limit) } else { f64::NEG_INFINITY },
            place: now.max(self.last.place + cost / scaled(weight)),
        }
    }

    fn change(&mut self, qos: Qos, now: f64, burst: f64) {
        self.qos = qos;
        let place = match self.queue.front() {
            Some(first) => first.tags.place - first.cost / scaled(qos.weight),
            None => self.last.place,
        };
        self.last = Tags { place, ..Tags::NONE };
        self.taken_off = 0.0;
        for at in 0..self.queue.len() {
            let tags = self.tags(self.queue[at].cost, now, burst);
            self.queue[at].tags = tags;
            self.last = tags;
        }
    }
}

/// A weight as a rate that no device falls short of.
fn scaled(weight: f64) -> f64 {
    weight / WEIGHT_MAX
}
