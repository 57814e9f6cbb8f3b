//! Whether an answer is one that the model allows, and what it says about the state that is there
//! from then on.

use entresol_flash::Condition;

use crate::history::{Kept, Name, Put, State, Visibility};
use crate::plan::kept;
use crate::requests::{Answer, Found, Request};
use crate::world::World;

/// A request that was answered.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub request: Request,
    /// A drop came while it was in flight: it may have found what was there before.
    pub raced: Option<&'a [State]>,
}

/// What may have been there when a request was carried out.
struct Scene {
    states: Vec<(State, Visibility)>,
    may_be_absent: bool,
    may_be_present: bool,
    version_max: u64,
    kept: Kept,
}

impl Scene {
    /// Whether an entry of that version may have been there.
    fn knows(&self, version: u64) -> bool {
        self.visible().any(|put| put.version.is_none_or(|known| known == version))
    }

    fn visible(&self) -> impl Iterator<Item = Put> {
        let visible = self.states.iter().filter(|(_, seen)| *seen != Visibility::Never);
        visible.filter_map(|(state, _)| *state)
    }

    /// Whether a write with `condition` may have been done.
    fn permits(&self, condition: Condition) -> bool {
        match condition {
            Condition::Always => true,
            Condition::Absent => self.may_be_absent,
            Condition::Present => self.may_be_present,
            Condition::Version(wanted) => self.may_be_present && self.knows(wanted.0),
        }
    }

    /// Whether a write with `condition` may have been refused because of `current`.
    fn permits_refusal(&self, condition: Condition, current: Option<u64>) -> bool {
        match (condition, current) {
            (Condition::Absent, Some(version)) => self.knows(version),
            (Condition::Present | Condition::Version(_), None) => self.may_be_absent,
            (Condition::Version(wanted), Some(version)) => {
                version != wanted.0 && self.knows(version)
            }
            _ => false,
        }
    }
}

impl World {
    pub(crate) fn judge(&mut self, name: Name, asked: &Asked<'_>, answer: &Answer) {
        self.note(Some(name), &(asked, answer));
        let scene = self.scene(name, asked);
        let raced = asked.raced.is_some();
        match (asked.request, answer) {
            (Request::Get, Answer::Missing) => {
                self.demand(name, scene.may_be_absent, "a get finds nothing");
            }
            (Request::Get, Answer::Found(found)) => self.judge_found(name, &scene, found),
            (Request::Put(..), Answer::Invalid(_)) => {
                self.demand(name, !self.plan.has_room(name), "a put is refused as invalid");
            }
            // It changes nothing. A store that is full too early is found where it is filled.
            (Request::Put(..) | Request::Remove(_) | Request::Touch(..), Answer::Full) => {}
            (Request::Put(put, condition, _), Answer::Stored(version)) => {
                let put = Put { version: Some(*version), ..put };
                self.judge_stored(name, &scene, (put, condition, raced));
            }
            (Request::Put(_, condition, _), Answer::Refused(current)) => {
                let permitted = scene.permits_refusal(condition, *current);
                self.demand(name, permitted, "a put is refused");
            }
            (
                Request::Remove(condition @ Condition::Version(_))
                | Request::Touch(_, condition @ Condition::Version(_)),
                Answer::Refused(current @ Some(_)),
            ) => {
                let permitted = scene.permits_refusal(condition, *current);
                self.demand(name, permitted, "a removal or a touch is refused");
            }
            (Request::Remove(condition), Answer::Missing) => {
                self.demand(name, scene.may_be_absent, "a removal finds nothing");
                self.take_missed(name, &scene, condition);
            }
            (Request::Remove(condition), Answer::Removed(version)) => {
                let wanted = match condition {
                    Condition::Version(wanted) => wanted.0 == *version,
                    _ => true,
                };
                self.demand(name, wanted && scene.knows(*version), "a removal is done");
                self.history_mut(name).acknowledge(&[None], scene.kept);
            }
            (Request::Touch(..), Answer::Missing) => {
                self.demand(name, scene.may_be_absent, "a touch finds nothing");
            }
            (Request::Touch(_, condition), Answer::Touched(version)) => {
                let permitted = scene.may_be_present && scene.permits(condition);
                self.demand(name, permitted, "a touch is done");
                self.demand(name, *version > scene.version_max, "a version does not grow");
                // What was dropped meanwhile stays away, touched or not.
                if !raced {
                    self.take_touched(name, &scene, (asked.request, *version));
                }
            }
            (request, answer) => self.fail(name, &format!("{request:?} ends in {answer:?}")),
        }
    }

    fn scene(&self, name: Name, asked: &Asked<'_>) -> Scene {
        let history = &self.model[&name];
        let before = asked.raced.unwrap_or_default();
        let states = history.current().iter().chain(before);
        let states: Vec<(State, Visibility)> =
            states.map(|state| (*state, self.visibility(*state))).collect();
        let durability = match asked.request {
            Request::Put(_, _, durability) => durability,
            _ => None,
        };
        Scene {
            may_be_absent: states.iter().any(|(_, seen)| *seen != Visibility::Always),
            may_be_present: states.iter().any(|(_, seen)| *seen != Visibility::Never),
            states,
            version_max: history.version_max(),
            kept: kept(&self.options, durability),
        }
    }

    fn demand(&self, name: Name, holds: bool, what: &str) {
        if !holds {
            self.fail(name, &format!("{what}, against what the model allows"));
        }
    }

    fn judge_found(&mut self, name: Name, scene: &Scene, found: &Found) {
        self.demand(name, found.key == name.bytes(), "a get finds another key");
        let hit = scene.visible().filter(|put| found.is(name, put)).last();
        let Some(hit) = hit else { self.fail(name, &format!("a get finds {found:?}")) };
        let now_ms = self.now_ms;
        for put in self.history_mut(name).current_puts_mut().filter(|put| put.id == hit.id) {
            put.idle_from_ms.1 = put.idle_from_ms.1.max(now_ms);
        }
    }

    fn judge_stored(
        &mut self,
        name: Name,
        scene: &Scene,
        (put, condition, raced): (Put, Condition, bool),
    ) {
        self.demand(name, scene.permits(condition), "a put is done");
        self.demand(name, put.version > Some(scene.version_max), "a version does not grow");
        self.demand(name, self.plan.has_room(name), "a put that no segment has room for is done");
        let history = self.history_mut(name);
        if raced {
            // Either may have been first.
            history.acknowledge(&[Some(put), None], Kept::ALL);
        } else {
            history.acknowledge(&[Some(put)], scene.kept);
        }
    }

    /// A removal found nothing. What was over stays away, whatever the clock says later; but what
    /// the store had dropped already needs no tombstone unless the clock has gone back, and may be
    /// found again by a recovery before whose opening it does.
    fn take_missed(&mut self, name: Name, scene: &Scene, condition: Condition) {
        let ends = |state: &State| {
            state.is_some_and(|put| put.ends.at_ms.is_some() || put.ends.idle_seconds.is_some())
        };
        if self.evicting && !scene.states.iter().any(|(state, _)| ends(state)) {
            // A cache leaves a tombstone for what was evicted and might come back.
            return self.history_mut(name).acknowledge(&[None], scene.kept);
        }
        // It was dropped as over, and would not be by now: the clock went back since.
        let dropped = |(state, seen): &(State, Visibility)| {
            state.is_none_or(|put| put.ends.idle_seconds.is_none() && *seen == Visibility::Perhaps)
        };
        if !self.ever_evicted && scene.states.iter().all(dropped) {
            return self.history_mut(name).acknowledge(&[None], scene.kept);
        }
        for put in self.history_mut(name).current_puts_mut() {
            let other = match condition {
                Condition::Version(wanted) => put.version != Some(wanted.0),
                _ => false,
            };
            put.removed |= !other;
        }
    }

    fn take_touched(&mut self, name: Name, scene: &Scene, (request, version): (Request, u64)) {
        let Request::Touch(ends, condition) = request else { return };
        let idle_from_ms = (self.now_ms, self.now_ms);
        let is_wanted = |put: &Put| match condition {
            Condition::Version(wanted) => put.version.is_none_or(|known| known == wanted.0),
            _ => true,
        };
        let touch = |put| Some(Put { ends, version: Some(version), idle_from_ms, ..put });
        let touched: Vec<State> = scene.visible().filter(is_wanted).map(touch).collect();
        self.history_mut(name).acknowledge(&touched, scene.kept);
    }
}
