//! Two writes of one key at the same time, by two sessions: their answers are those of one after
//! the other.

use std::collections::BTreeMap;

use entresol_flash::{Condition, Version};
use entresol_sim::Stall;

use crate::history::{Ends, Kept, Name, Put, State, Visibility};
use crate::plan::kept;
use crate::requests::{Answer, Request};
use crate::world::World;

impl World {
    pub(crate) fn race(&mut self) {
        let name = self.draw_name();
        let Some(start) = self.model[&name].only() else { return };
        let visible = self.visibility(start);
        if visible == Visibility::Perhaps || !self.plan.has_room(name) {
            return;
        }
        let there = start.filter(|_| visible == Visibility::Always);
        let requests = [self.draw_racer(there), self.draw_racer(there)];
        self.device.stall(Stall::Reaps(1 + self.random.below(4) as u32));
        let mut answers = BTreeMap::new();
        let now = self.now();
        for (token, request) in (0..).zip(&requests) {
            let session = self.session(token);
            request.submit(session, (token, now), name, &mut |token, outcome| {
                answers.insert(token, Answer::of(outcome));
            });
        }
        self.await_answers(&mut answers);
        self.note(Some(name), &("race", requests, &answers));
        let first = (requests[0], &answers[&0]);
        let second = (requests[1], &answers[&1]);
        self.judge_race(name, (start, there), [first, second]);
        self.run_and_judge(name, Request::Get);
    }

    /// A write without an end and never evicted, so that what it leaves is certain.
    fn draw_racer(&mut self, there: State) -> Request {
        let version = there.and_then(|put| put.version).unwrap_or(3);
        let condition = match self.random.below(4) {
            0 => Condition::Absent,
            1 => Condition::Present,
            2 => Condition::Always,
            _ => Condition::Version(Version(version)),
        };
        // Removals and touches do not take it.
        let other = if condition == Condition::Absent { Condition::Always } else { condition };
        match self.random.below(4) {
            0 => Request::Remove(other),
            1 => Request::Touch(Ends::default(), other),
            _ => {
                self.puts += 1;
                let put = self.plan.put(&mut self.random, self.puts, self.now_ms);
                Request::Put(Put { ends: Ends::default(), pinned: true, ..put }, condition, None)
            }
        }
    }

    /// `start` is what the key's state is; `there` is what of it can be seen.
    fn judge_race(
        &mut self,
        name: Name,
        (start, there): (State, State),
        [first, second]: [(Request, &Answer); 2],
    ) {
        let apply = |state, (request, answer): (Request, &Answer)| request.apply(state, answer);
        let between = [apply(there, first).0, apply(there, second).0];
        if [first.1, second.1].contains(&&Answer::Full) {
            // Which of them counts is found by the next get.
            let both = [apply(between[0], second).0, apply(between[1], first).0];
            let possible = [start, there, between[0], between[1], both[0], both[1]];
            return self.history_mut(name).acknowledge(&possible, Kept::NOTHING);
        }
        let mut left = Vec::new();
        for (earlier, later) in [(first, second), (second, first)] {
            let (state, fits) = apply(there, earlier);
            let (state, fits_too) = apply(state, later);
            if fits && fits_too {
                // Nothing was changed: what was over still may be seen if the clock goes back.
                left.push(if there.is_none() && state.is_none() { start } else { state });
            }
        }
        if left.is_empty() {
            self.fail(name, &format!("{first:?} and {second:?} fit in neither order"));
        }
        let kept = kept(&self.options, None);
        let history = self.history_mut(name);
        history.pass_through(&between);
        history.acknowledge(&left, kept);
    }
}
