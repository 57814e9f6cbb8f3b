//! What happens to a running store: batches of requests, drops, maintenance, syncs, and a clock
//! that goes on, leaps and goes back.

use std::collections::BTreeMap;

use entresol_flash::{Condition, ErrorKind, Outcome, Result, SpaceId};
use entresol_sim::Stall;

use crate::history::{Ending, History, Name, PARTITIONS, State};
use crate::judge::Asked;
use crate::plan::{ENDS_MS_MAX, space};
use crate::requests::{Answer, Request};
use crate::world::World;

/// More polls than any batch needs: past it, something is never answered.
const POLLS_MAX: u32 = 100_000;

/// Requests that are in flight together, each of another key.
#[derive(Default)]
struct Batch {
    requests: Vec<(Name, Request)>,
    /// For each request what might have been there when it was submitted.
    before: Vec<Vec<State>>,
    answers: BTreeMap<u64, Answer>,
    /// Drops, each with the number of requests before it.
    drops: Vec<(usize, u16, Option<u16>)>,
}

impl World {
    pub(crate) fn step(&mut self) {
        if self.plan.restless_clock {
            match self.random.below(40) {
                0..2 => self.leap(),
                2..4 => self.meet_end(),
                _ => {}
            }
        }
        match self.random.below(1000) {
            0..700 => self.batch(),
            700..780 => self.race(),
            780..850 => {
                let segments = 1 + self.random.below(4) as u32;
                self.maintain(segments);
            }
            850..880 => self.sync(),
            880..910 => self.pass(3000 * self.plan.stretch),
            910..912 => self.go_back(5000 * self.plan.stretch),
            912..926 => self.scan(),
            926..930 => self.scan_log(),
            930..945 => self.check_counts(),
            945..949 => {
                self.drop_some();
            }
            949..975 => self.restart(),
            _ => self.pass(200),
        }
    }

    fn pass(&mut self, ms_max: u64) {
        let now_ms = self.now_ms + self.random.below(ms_max);
        self.set_clock(now_ms);
    }

    fn go_back(&mut self, ms_max: u64) {
        let now_ms = self.now_ms - self.random.below(ms_max);
        self.set_clock(now_ms);
        self.note(None, &"the clock went back");
    }

    /// To behind the ends that entries have, where the store may drop them, or back; there a store
    /// may be that remembers nothing but what it wrote when it was closed.
    fn leap(&mut self) {
        let ms_max = 20_000 * self.plan.stretch;
        if self.random.one_in(2) {
            self.pass(ms_max);
            self.maintain(8);
        } else {
            self.go_back(ms_max);
            if self.random.one_in(3) {
                self.restart_after(Ending::Close);
            }
        }
    }

    /// To just behind the end of an entry, where something is asked of it, and back to before it.
    fn meet_end(&mut self) {
        let now_ms = self.now_ms;
        let end_of = |history: &History| history.latest().and_then(|put| put.ends.at_ms);
        let soon_ms = now_ms..now_ms + ENDS_MS_MAX;
        let ending = self.model.iter().filter_map(|(name, history)| {
            end_of(history).filter(|at_ms| soon_ms.contains(at_ms)).map(|at_ms| (*name, at_ms))
        });
        let ending: Vec<(Name, u64)> = ending.collect();
        if ending.is_empty() {
            return;
        }
        let (name, ends_ms) = ending[self.random.below(ending.len() as u64) as usize];
        // Footers know ends in full seconds: within one, the entry is over but cannot be dropped.
        let behind_ms = ends_ms + self.random.below(2000);
        self.set_clock(behind_ms);
        let request = if self.random.one_in(2) {
            Request::Remove(Condition::Always)
        } else {
            self.draw_request(name)
        };
        self.run_and_judge(name, request);
        if self.random.one_in(2) {
            self.maintain(2);
        }
        self.set_clock(now_ms);
        let request = match self.random.below(4) {
            0 => Request::Remove(Condition::Always),
            1 => self.draw_request(name),
            _ => Request::Get,
        };
        self.run_and_judge(name, request);
    }

    fn batch(&mut self) {
        let requests = 1 + self.random.below(12);
        if self.random.one_in(3) {
            self.device.stall(Stall::Reaps(1 + self.random.below(4) as u32));
        }
        let mut batch = Batch::default();
        for _ in 0..requests {
            let name = self.draw_name();
            if batch.requests.iter().all(|(other, _)| *other != name) {
                self.submit(name, &mut batch);
                self.come_between(&mut batch);
            }
        }
        self.await_answers(&mut batch.answers);
        for (at, (name, request)) in batch.requests.iter().enumerate() {
            let answer = batch.answers.remove(&(at as u64)).expect("every request is answered");
            let met = |(before, space, partition): &(usize, u16, Option<u16>)| {
                *before > at && name.is_in(*space, *partition)
            };
            let raced = batch.drops.iter().any(met).then_some(&batch.before[at][..]);
            self.judge(*name, &Asked { request: *request, raced }, &answer);
        }
    }

    fn submit(&mut self, name: Name, batch: &mut Batch) {
        let request = self.draw_request(name);
        let (now, number) = (self.now(), self.random.below(2));
        batch.before.push(self.model[&name].current().to_vec());
        batch.requests.push((name, request));
        let token = batch.requests.len() as u64 - 1;
        let answers = &mut batch.answers;
        request.submit(self.session(number), (token, now), name, &mut |token, outcome| {
            keep(answers, token, Answer::of(outcome));
        });
    }

    /// What may come between the submissions of a batch.
    fn come_between(&mut self, batch: &mut Batch) {
        match self.random.below(30) {
            0 => self.maintain(2),
            1 => self.poll(0, &mut batch.answers),
            2 if self.random.one_in(8) => {
                if let Some((space, partition)) = self.drop_some() {
                    batch.drops.push((batch.requests.len(), space, partition));
                }
            }
            _ => {}
        }
    }

    /// Polls both sessions in any order, with maintenance between, until all is answered.
    pub(crate) fn await_answers(&mut self, answers: &mut BTreeMap<u64, Answer>) {
        let mut polls = 0;
        while self.in_flight() > 0 {
            let wait_for = self.random.below(2) as usize;
            self.poll(wait_for, answers);
            if self.random.one_in(8) {
                self.maintain(2);
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "seed {}: something is never answered", self.seed);
        }
    }

    fn poll(&mut self, wait_for: usize, answers: &mut BTreeMap<u64, Answer>) {
        let (now, number) = (self.now(), self.random.below(2));
        let session = self.session(number);
        if wait_for > 0 {
            session.flush().expect("a flush works, as no fault was ordered");
        }
        let mut visit = |token, outcome: Result<Outcome<'_>>| {
            keep(answers, token, Answer::of(outcome));
        };
        session.poll(wait_for, now, &mut visit).expect("a poll works, as no fault was ordered");
    }

    /// Drops a space or a partition, unless what is in flight forbids it.
    fn drop_some(&mut self) -> Option<(u16, Option<u16>)> {
        let space = space(&mut self.random);
        let partition = self.random.one_in(2);
        let partition = partition.then(|| self.random.below(u64::from(PARTITIONS)) as u16);
        self.drop_all(space, partition).then_some((space, partition))
    }

    /// Drops a space or a partition of it; `false`: the store is too busy.
    pub(crate) fn drop_all(&mut self, space: u16, partition: Option<u16>) -> bool {
        let dropped = match partition {
            None => self.store().drop_space(SpaceId(space)),
            Some(partition) => self.store().drop_partition(SpaceId(space), partition),
        };
        match dropped {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Busy => return false,
            Err(error) => panic!("seed {}: a drop failed: {error}", self.seed),
        }
        self.note(None, &("drop", space, partition));
        // A drop outlives every ending once it is answered.
        let names = self.model.iter_mut().filter(|(name, _)| name.is_in(space, partition));
        names.for_each(|(_, history)| *history = History::of(vec![None]));
        true
    }

    /// Does one thing and compares its answer with the model.
    pub(crate) fn run_and_judge(&mut self, name: Name, request: Request) {
        let answer = self.run(name, &request);
        self.judge(name, &Asked { request, raced: None }, &answer);
    }
}

fn keep(answers: &mut BTreeMap<u64, Answer>, token: u64, answer: Answer) {
    assert!(answers.insert(token, answer).is_none(), "a request is answered once");
}
