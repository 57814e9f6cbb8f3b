//! What one connection knows of its keys, and what a kill may have left of them.
//!
//! Invariants:
//! 1. The states of a key are in the order in which they were sent; the first is what the last
//!    check found, which a recovery has made durable.
//! 2. No two values that were ever sent are equal: each carries its key and a number of its own.

use super::{Promise, stream};

/// The keys of one connection; no other writes them.
#[derive(Debug)]
pub(super) struct Ledger {
    connection: u64,
    keys: Vec<Key>,
    next_number: u64,
}

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Value { number: u64, length: usize },
}

/// What a check found that was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The last acknowledged state.
    Acknowledged,
    /// One that was sent after it and not answered.
    Newer,
    /// One from before it, where the level allows that.
    Older,
}

#[derive(Debug)]
struct Key {
    states: Vec<State>,
    acknowledged: usize,
    saved: usize,
}

impl Ledger {
    pub(super) fn new(connection: u64, keys: usize) -> Ledger {
        let key = || Key { states: vec![State::Absent], acknowledged: 0, saved: 0 };
        Ledger { connection, keys: (0..keys).map(|_| key()).collect(), next_number: 1 }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The name of the key at `place`.
    pub(super) fn name(&self, place: usize) -> String {
        format!("key:{}:{place}", self.connection)
    }

    /// Notes that a value of `length` bytes is sent; returns the number it carries and the place
    /// of the state.
    pub(super) fn send_value(&mut self, place: usize, length: usize) -> (u64, usize) {
        let number = self.next_number;
        self.next_number += 1;
        (number, self.send(place, State::Value { number, length }))
    }

    /// Notes that a removal is sent; returns the place of the state.
    pub(super) fn send_removal(&mut self, place: usize) -> usize {
        self.send(place, State::Absent)
    }

    /// What the key holds once everything sent is carried out.
    pub(super) fn newest(&self, place: usize) -> State {
        self.keys[place].states.last().copied().unwrap_or(State::Absent)
    }

    /// Notes that the write of a state was acknowledged.
    pub(super) fn acknowledge(&mut self, place: usize, state: usize) {
        self.keys[place].acknowledged = state;
    }

    /// Notes that a sync was acknowledged that began when nothing was on its way.
    pub(super) fn save(&mut self) {
        for key in &mut self.keys {
            key.saved = key.acknowledged;
        }
    }

    /// Compares what was found after a kill with the promise, and goes on from there.
    pub(super) fn judge(
        &mut self,
        place: usize,
        found: Option<&[u8]>,
        promise: Promise,
    ) -> Result<Judgement, String> {
        let name = self.name(place);
        let state = match found {
            None => State::Absent,
            Some(value) => read_value(&name, value).map_err(|what| format!("{name} {what}"))?,
        };
        let key = &mut self.keys[place];
        let oldest = match promise {
            Promise::Acknowledged => key.acknowledged,
            Promise::Saved => key.saved,
        };
        let allowed = (oldest..key.states.len()).filter(|at| key.states[*at] == state);
        let judgement = match allowed.map(|at| at.cmp(&key.acknowledged)).max() {
            Some(std::cmp::Ordering::Equal) => Judgement::Acknowledged,
            Some(std::cmp::Ordering::Greater) => Judgement::Newer,
            Some(std::cmp::Ordering::Less) => Judgement::Older,
            None => {
                return Err(format!(
                    "{name} holds {state:?}; acknowledged last {:?}, oldest allowed {:?}, all \
                     since the last check, oldest first: {:?}",
                    key.states[key.acknowledged], key.states[oldest], key.states
                ));
            }
        };
        *key = Key { states: vec![state], acknowledged: 0, saved: 0 };
        Ok(judgement)
    }

    fn send(&mut self, place: usize, state: State) -> usize {
        let states = &mut self.keys[place].states;
        states.push(state);
        states.len() - 1
    }
}

/// The value of `length` bytes or a few more that carries `name` and `number`: half of it
/// compresses.
pub(super) fn write_value(name: &str, number: u64, length: usize) -> Vec<u8> {
    let mut value = format!("{name} {number} {length} ").into_bytes();
    let mut random = stream(number, length as u64);
    while value.len() < length {
        let word = random.next_u64().to_le_bytes();
        value.extend_from_slice(&word);
        value.extend_from_slice(&[word[0]; 8]);
    }
    value
}

/// The state that a value shows; an error if it is not, to the last byte, one that was written
/// under `name`.
pub(super) fn read_value(name: &str, value: &[u8]) -> Result<State, String> {
    let mut words = value.splitn(4, |byte| *byte == b' ');
    let mut text = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let (found, number, length) = (text(), text(), text());
    let number = number.and_then(|number| number.parse().ok());
    let length = length.and_then(|length| length.parse().ok());
    let (Some(found), Some(number), Some(length)) = (found, number, length) else {
        let start = value.get(..64).unwrap_or(value).escape_ascii();
        return Err(format!("holds {} bytes that nobody wrote: {start}", value.len()));
    };
    if found != name {
        return Err(format!("holds value {number} of {found}"));
    }
    let written = write_value(name, number, length);
    if written != value {
        let same = written.iter().zip(value).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "holds value {number} changed: {} bytes of {}, equal up to byte {same}",
            value.len(),
            written.len()
        ));
    }
    Ok(State::Value { number, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends values 1 to 4 and a removal, acknowledges up to `acknowledged`, saves at `saved`.
    fn judged(
        acknowledged: usize,
        saved: usize,
        found: usize,
        promise: Promise,
    ) -> Option<Judgement> {
        let mut ledger = Ledger::new(0, 1);
        let mut held = vec![None];
        for length in [10, 100, 1000] {
            let (number, _) = ledger.send_value(0, length);
            held.push(Some(write_value(&ledger.name(0), number, length)));
        }
        ledger.send_removal(0);
        held.push(None);
        ledger.acknowledge(0, saved);
        ledger.save();
        ledger.acknowledge(0, acknowledged);
        ledger.judge(0, held[found].as_deref(), promise).ok()
    }

    #[test]
    fn only_what_the_promise_allows_passes() {
        use Judgement::{Acknowledged, Newer, Older};
        assert_eq!(judged(2, 1, 2, Promise::Acknowledged), Some(Acknowledged));
        assert_eq!(judged(2, 1, 3, Promise::Acknowledged), Some(Newer));
        assert_eq!(judged(2, 1, 4, Promise::Acknowledged), Some(Newer));
        assert_eq!(judged(2, 1, 1, Promise::Acknowledged), None);
        assert_eq!(judged(4, 1, 3, Promise::Acknowledged), None);
        assert_eq!(judged(4, 1, 4, Promise::Acknowledged), Some(Acknowledged));
        assert_eq!(judged(3, 2, 2, Promise::Saved), Some(Older));
        assert_eq!(judged(3, 2, 1, Promise::Saved), None);
        assert_eq!(judged(3, 0, 0, Promise::Saved), Some(Newer), "absent once more at the end");
    }

    #[test]
    fn foreign_torn_and_invented_values_are_told() {
        let value = write_value("key:0:1", 7, 300);
        assert_eq!(read_value("key:0:1", &value), Ok(State::Value { number: 7, length: 300 }));
        assert!(read_value("key:0:2", &value).is_err());
        assert!(read_value("key:0:1", &value[..200]).is_err());
        assert!(read_value("key:0:1", b"").is_err());
        let mut changed = value;
        changed[250] ^= 1;
        assert!(read_value("key:0:1", &changed).unwrap_err().contains("byte 250"));
    }
}
