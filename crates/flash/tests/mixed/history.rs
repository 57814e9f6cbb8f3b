//! What may be found: for each key the states that it went through, and since which of them each
//! kind of ending keeps it.
//!
//! A state is what a write left. What is certain of it depends on the clock, which may go back, and
//! on whether the store evicts, so that a state is seen as absent, as present, or as either.

use entresol_sim::Random;

/// The spaces that keys are in.
pub(crate) const SPACES: [u16; 3] = [1, 2, 7];
/// Partitions of each space.
pub(crate) const PARTITIONS: u16 = 3;

/// A key: its space and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub space: u16,
    pub number: u64,
}

/// When an entry ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ends {
    pub at_ms: Option<u64>,
    pub idle_seconds: Option<u32>,
}

/// A value that was put, and what is known of it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Put {
    pub id: u64,
    pub length: usize,
    pub ends: Ends,
    pub label: u8,
    pub pinned: bool,
    /// `None` until the store said it.
    pub version: Option<u64>,
    /// The first and the last time from which its idle time may count: a read renews it only once
    /// an eighth of it is over, and a crash may forget that.
    pub idle_from_ms: (u64, u64),
    /// A cache may have let it go. It may come back with a restart, so this says no more.
    pub may_be_evicted: bool,
    /// A removal was answered with `Missing` when it was over: a clock that goes back must not show
    /// it again.
    pub removed: bool,
    /// The latest time that the clock said since it was put. What was over by then may have been
    /// dropped, although the clock went back.
    pub latest_ms: u64,
}

/// `None`: nothing was put, or it was removed.
pub(crate) type State = Option<Put>;

/// Whether a get finds a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    Never,
    Perhaps,
    Always,
}

/// How a store ended that is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was closed, or is open yet.
    Close,
    /// The device has all that was handed to it; shared memory stays.
    Kill,
    /// What no sync covered may be lost, memory is.
    PowerLoss,
}

/// What an acknowledgement outlives, besides a clean stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub kill: bool,
    pub power_loss: bool,
}

/// The states of one key, oldest first.
#[derive(Debug, Clone)]
pub(crate) struct History {
    states: Vec<State>,
    /// For each [`Ending`] the first state that may be found after it.
    since: [usize; 3],
}

impl Name {
    pub(crate) fn partition(self) -> u16 {
        (self.number % u64::from(PARTITIONS)) as u16
    }

    pub(crate) fn is_in(self, space: u16, partition: Option<u16>) -> bool {
        self.space == space && partition.is_none_or(|partition| partition == self.partition())
    }

    /// Most keys are short; some are longer than a read that is made for them, and one is as long
    /// as keys may be, for which the smallest segments have no room.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = format!("key:{}", self.number).into_bytes();
        if self.has_longest_key() {
            bytes.resize(entresol_flash::KEY_BYTES_MAX, b'x');
        } else if self.number % 17 == 5 {
            bytes.resize(5000, b'x');
        }
        bytes
    }

    pub(crate) fn has_longest_key(self) -> bool {
        self.number == 11
    }

    /// The bytes of a value: a function of key and put, so that a foreign one is recognised. A
    /// third of the values do not compress.
    pub(crate) fn value(self, put: &Put) -> Vec<u8> {
        let mut value = vec![0; put.length];
        let mut random = Random::new(self.number << 40 | u64::from(self.space) << 56 | put.id);
        if put.id.is_multiple_of(3) {
            random.fill(&mut value);
        } else {
            let pattern = random.next_u64().to_le_bytes();
            for (at, byte) in value.iter_mut().enumerate() {
                let (row, column) = (at / 64, at % 64);
                *byte = if column < 40 { pattern[column % 8] } else { row as u8 ^ put.id as u8 };
            }
        }
        let mark = format!("{}/{}/{}/", self.space, self.number, put.id).into_bytes();
        let marked = mark.len().min(value.len());
        value[..marked].copy_from_slice(&mark[..marked]);
        value
    }
}

impl Put {
    /// Whether it is found at `now_ms`, in a cache if it is `evicting`.
    pub(crate) fn visibility(&self, now_ms: u64, evicting: bool) -> Visibility {
        let latest_ms = self.latest_ms.max(now_ms);
        let (mut possible, mut certain) = (!self.removed, true);
        if let Some(at_ms) = self.ends.at_ms {
            // What ends at 0 is written as what ends at 1, since 0 is no end.
            let at_ms = at_ms.max(1);
            possible &= now_ms < at_ms;
            certain &= latest_ms < at_ms;
        }
        if let Some(seconds) = self.ends.idle_seconds {
            // Idle times are kept in seconds.
            let idle_ms = u64::from(seconds) * 1000;
            possible &= now_ms < self.idle_from_ms.1 + idle_ms + 1000;
            certain &= latest_ms + 1000 < self.idle_from_ms.0 + idle_ms;
        }
        certain &= !self.may_be_evicted && (self.pinned || !evicting);
        match (possible, certain) {
            (false, _) => Visibility::Never,
            (true, false) => Visibility::Perhaps,
            (true, true) => Visibility::Always,
        }
    }
}

impl Kept {
    pub(crate) const NOTHING: Kept = Kept { kill: false, power_loss: false };
    pub(crate) const ALL: Kept = Kept { kill: true, power_loss: true };
}

impl History {
    /// Of a key of which it is certain that one of `states` is there, whatever happens.
    pub(crate) fn of(states: Vec<State>) -> History {
        History { states, since: [0; 3] }
    }

    /// What may be found after `ending`.
    pub(crate) fn after(&self, ending: Ending) -> &[State] {
        let since = self.since[ending as usize].min(self.since[Ending::Close as usize]);
        &self.states[since..]
    }

    /// What may be found while the store runs.
    pub(crate) fn current(&self) -> &[State] {
        self.after(Ending::Close)
    }

    /// The only state that may be found, if there is one.
    pub(crate) fn only(&self) -> Option<State> {
        match self.current() {
            [only] => Some(*only),
            _ => None,
        }
    }

    pub(crate) fn latest(&self) -> State {
        *self.states.last().expect("a history begins with a state")
    }

    /// The highest version that any of the states had.
    pub(crate) fn version_max(&self) -> u64 {
        self.states.iter().flatten().filter_map(|put| put.version).max().unwrap_or(0)
    }

    /// A write was acknowledged, after which one of `states` is there.
    pub(crate) fn acknowledge(&mut self, states: &[State], kept: Kept) {
        let since = self.states.len();
        self.states.extend_from_slice(states);
        for (index, applies) in [true, kept.kill, kept.power_loss].into_iter().enumerate() {
            if applies {
                self.since[index] = since;
            }
        }
        let oldest = self.since.into_iter().min().unwrap_or(0);
        self.states.drain(..oldest);
        self.since = self.since.map(|since| since - oldest);
    }

    /// The key was in one of `states` on the way to what will be acknowledged.
    pub(crate) fn pass_through(&mut self, states: &[State]) {
        self.states.extend_from_slice(states);
    }

    /// Everything acknowledged outlives all endings now.
    pub(crate) fn make_durable(&mut self) {
        self.states.drain(..self.since[Ending::Close as usize]);
        self.since = [0; 3];
    }

    pub(crate) fn puts_mut(&mut self) -> impl Iterator<Item = &mut Put> {
        self.states.iter_mut().flatten()
    }

    /// The puts that may be there while the store runs.
    pub(crate) fn current_puts_mut(&mut self) -> impl Iterator<Item = &mut Put> {
        self.states[self.since[Ending::Close as usize]..].iter_mut().flatten()
    }
}
