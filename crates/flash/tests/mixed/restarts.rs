//! Ends of a store, by a clean stop, a kill or a loss of power, its opening again with other
//! options, and the comparison of every key with what that ending permits.

use entresol_flash::{OpenMode, Opened, Outcome, Result, SessionOptions, Store, StoreOptions};
use entresol_sim::CrashChoice;

use crate::history::{Ending, History, Name, Put, State, Visibility};
use crate::requests::{Answer, Request};
use crate::world::World;

impl World {
    pub(crate) fn restart(&mut self) {
        let ending = match self.random.below(10) {
            0..3 => Ending::Close,
            3..7 => Ending::Kill,
            _ => Ending::PowerLoss,
        };
        self.restart_after(ending);
    }

    pub(crate) fn restart_after(&mut self, ending: Ending) {
        self.let_go();
        let mut choice = CrashChoice::KeepAll;
        match ending {
            Ending::Close => {
                self.store().close(self.now()).expect("it closes, as no fault was ordered");
                self.model.values_mut().for_each(History::make_durable);
            }
            Ending::Kill => {}
            Ending::PowerLoss => {
                choice = match self.random.below(5) {
                    0 => CrashChoice::KeepAll,
                    1 => CrashChoice::DropAll,
                    _ => CrashChoice::Random(self.random.next_u64()),
                };
            }
        }
        self.end_store();
        self.note(None, &(ending, choice));
        self.plan.change(&mut self.random, &mut self.options);
        self.device = self.device.reopened(choice);
        if ending == Ending::PowerLoss {
            self.reboot();
        }
        self.reopen(ending);
    }

    /// In a cache all that is not pinned may have gone, and is not promised again by a store that
    /// is opened on it.
    pub(crate) fn let_go(&mut self) {
        if self.evicting {
            let puts = self.model.values_mut().flat_map(History::puts_mut);
            puts.for_each(|put| put.may_be_evicted |= !put.pinned);
        }
    }

    fn reboot(&mut self) {
        self.directory.wipe();
        self.options.boot += 1;
    }

    fn reopen(&mut self, ending: Ending) {
        if ending != Ending::Close {
            for put in self.model.values_mut().flat_map(History::puts_mut) {
                // When an entry was read last is in memory alone: it may be idle for as long as it
                // is there.
                put.idle_from_ms.0 = 0;
                // What had been dropped as over has no tombstone: see where a removal misses it.
                put.removed = false;
            }
        }
        if self.random.one_in(4) {
            let now_ms = self.now_ms + 1000 * self.random.below(10);
            self.set_clock(now_ms);
        }
        if ending == Ending::PowerLoss && self.random.one_in(3) {
            self.crash_recovery();
        }
        let looks = match ending {
            // Some may be in write buffers alone.
            Ending::Kill => self.now_ms.is_multiple_of(4),
            Ending::Close | Ending::PowerLoss => self.random.one_in(4),
        };
        if looks {
            self.look(ending);
        }
        self.open();
        let opened = self.store().statistics().opened;
        self.note(None, &("opened", opened));
        if opened == Opened::DamagedCheckpoint {
            self.fail_of(&|_| false, "a checkpoint is damaged, though no fault was ordered");
        }
        for name in self.names() {
            self.compare(name, ending);
        }
        self.check_counts();
    }

    /// Opens the store for reading only, which changes nothing.
    fn look(&mut self, ending: Ending) {
        let before = self.device.calls();
        let options = StoreOptions { mode: OpenMode::ReadOnly, ..self.options.clone() };
        let store =
            Store::open(self.device.open(), options, self.now()).expect("it opens for reading");
        let mut session = store.session(SessionOptions::default()).expect("a session opens");
        for name in self.names() {
            let mut answer = None;
            let mut visit = |_, outcome: Result<Outcome<'_>>| answer = Some(Answer::of(outcome));
            Request::Get.submit(&mut session, (0, self.now()), name, &mut visit);
            while session.in_flight() > 0 {
                session.poll(1, self.now(), &mut visit).expect("a poll works");
            }
            let answer = answer.expect("every request is answered");
            let possible = self.model[&name].after(ending);
            if !possible.iter().any(|state| self.is_possible(name, &answer, state)) {
                self.fail(name, &format!("looked at after {ending:?}: {answer:?}"));
            }
        }
        store.sync().expect("there is nothing to sync");
        assert_eq!(self.device.calls(), before, "seed {}: only read, and written", self.seed);
    }

    /// Loses power once more while the store recovers.
    fn crash_recovery(&mut self) {
        self.device.crash_after(self.random.below(8));
        drop(Store::open(self.device.open(), self.options.clone(), self.now()));
        self.device = self.device.reopened(CrashChoice::Random(self.random.next_u64()));
        self.reboot();
        self.note(None, &"power lost in recovery");
    }

    fn compare(&mut self, name: Name, ending: Ending) {
        let possible = self.model[&name].after(ending).to_vec();
        let answer = self.run(name, &Request::Get);
        self.note(Some(name), &("found", &answer));
        let now_ms = self.now_ms;
        let is_possible = |state: &&State| self.is_possible(name, &answer, state);
        let mut states: Vec<State> = possible.iter().filter(is_possible).copied().collect();
        if states.is_empty() {
            self.fail(name, &format!("after {ending:?}: {answer:?}, of {possible:?}"));
        }
        if matches!(answer, Answer::Found(_)) {
            let renew = |put: Put| {
                let (first, last) = put.idle_from_ms;
                Put { idle_from_ms: (first, last.max(now_ms)), ..put }
            };
            states.iter_mut().for_each(|state| *state = state.map(renew));
        }
        states.dedup();
        self.model.insert(name, History::of(states));
    }

    /// Whether `answer` to a get may be given where the key is in `state`.
    fn is_possible(&self, name: Name, answer: &Answer, state: &State) -> bool {
        match (answer, state) {
            (Answer::Missing, state) => self.visibility(*state) != Visibility::Always,
            (Answer::Found(found), Some(put)) => {
                self.visibility(*state) != Visibility::Never
                    && found.key == name.bytes()
                    && found.is(name, put)
            }
            _ => false,
        }
    }
}
