//! What may be found: for each key the states it went through, and which of them are certain.

use std::collections::BTreeMap;

use crate::setup::Ending;

/// A key of the workload: its space and its number.
pub(crate) type Name = (u16, u8);

/// A value that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Put {
    pub id: u32,
    pub length: u32,
    pub ends_ms: Option<u64>,
}

/// The states of one key, oldest first. The last is current while the store runs.
#[derive(Debug, Clone)]
pub(crate) struct History {
    states: Vec<Option<Put>>,
    /// States before these are gone for good after a power loss, after a kill.
    certain: [usize; 2],
}

/// The states of all keys.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    keys: BTreeMap<Name, History>,
}

pub(crate) const SPACES: [u16; 2] = [0, 7];
pub(crate) const KEYS: u8 = 12;

fn at(ending: Ending) -> usize {
    usize::from(ending == Ending::Kill)
}

/// What is there at `now_ms` of a state.
pub(crate) fn alive(state: Option<Put>, now_ms: u64) -> Option<Put> {
    state.filter(|put| put.ends_ms.is_none_or(|end| end > now_ms))
}

impl Model {
    pub(crate) fn new() -> Model {
        let names = SPACES.into_iter().flat_map(|space| (0..KEYS).map(move |key| (space, key)));
        let history = || History { states: vec![None], certain: [0, 0] };
        Model { keys: names.map(|name| (name, history())).collect() }
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.keys.keys().copied().collect()
    }

    pub(crate) fn current(&self, name: Name) -> Option<Put> {
        *self.keys[&name].states.last().unwrap()
    }

    /// Bytes of all values, whether their time is over or not.
    pub(crate) fn bytes(&self) -> u64 {
        let lengths = self.names().into_iter().filter_map(|name| self.current(name));
        lengths.map(|put| u64::from(put.length)).sum()
    }

    /// A write begins: from now on its outcome is possible.
    pub(crate) fn begin(&mut self, name: Name, state: Option<Put>) {
        let history = || History { states: vec![None], certain: [0, 0] };
        self.keys.entry(name).or_insert_with(history).states.push(state);
    }

    /// The last write of `name` was answered: it changed nothing.
    pub(crate) fn withdraw(&mut self, name: Name) {
        self.keys.get_mut(&name).unwrap().states.pop();
    }

    /// The last write of `name` was acknowledged at a level that outlives `ending`.
    pub(crate) fn make_certain(&mut self, name: Name, ending: Ending) {
        let history = self.keys.get_mut(&name).unwrap();
        history.certain[at(ending)] = history.states.len() - 1;
    }

    /// All writes so far are on the medium for good.
    pub(crate) fn make_all_certain(&mut self) {
        for history in self.keys.values_mut() {
            history.certain = [history.states.len() - 1; 2];
        }
    }

    /// What `name` may be found to be after `ending`.
    pub(crate) fn allowed(&self, name: Name, ending: Ending, now_ms: u64) -> Vec<Option<Put>> {
        let history = &self.keys[&name];
        let states = &history.states[history.certain[at(ending)]..];
        states.iter().map(|state| alive(*state, now_ms)).collect()
    }

    /// What was found is all there is.
    pub(crate) fn settle(&mut self, name: Name, state: Option<Put>) {
        self.keys.insert(name, History { states: vec![state], certain: [0, 0] });
    }
}

/// The bytes of a key.
pub(crate) fn key_bytes(name: Name) -> Vec<u8> {
    format!("key {} of {}", name.1, name.0).into_bytes()
}

/// The bytes of a value: a function of key and put, so that a foreign one is recognised.
pub(crate) fn value_bytes(name: Name, put: Put) -> Vec<u8> {
    let mut value = format!("{}/{}/{}/", name.0, name.1, put.id).into_bytes();
    let mut random = entresol_sim::Random::new(
        u64::from(put.id) << 32 | u64::from(name.0) << 8 | u64::from(name.1),
    );
    let half = put.length as usize / 2;
    // Half of it is random, so that it compresses to about a half.
    let mut bytes = vec![b'x'; put.length as usize];
    random.fill(&mut bytes[..half]);
    value.extend_from_slice(&bytes);
    value
}

/// Which put of `name` wrote `value`.
pub(crate) fn id_of(value: &[u8]) -> Option<u32> {
    let mut parts = value.splitn(4, |byte| *byte == b'/').skip(2);
    std::str::from_utf8(parts.next()?).ok()?.parse().ok()
}
