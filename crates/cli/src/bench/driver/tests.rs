//! Tests of the driver.

use super::*;
use crate::bench::target::Visit;

/// Answers every request as soon as it is waited for.
struct Prompt(Vec<u64>);

impl Connection for Prompt {
    fn begin(&mut self, token: u64, _request: Request<'_>, _visit: Visit<'_>) {
        self.0.push(token);
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn wait(&mut self, _at_least: usize, visit: Visit<'_>) -> Outcome<()> {
        self.0.drain(..).for_each(|token| visit(token, Answer::Missing));
        Ok(())
    }

    fn scan(&mut self, _token: u64, _span: Span<'_>, _visit: Visit<'_>) -> Outcome<()> {
        Ok(())
    }
}

/// What was due while the store was slow and had not begun when the time was over was left out:
/// of a stall at the end only those in flight were counted.
#[test]
fn every_request_that_is_due_within_an_open_run_is_counted() {
    let time = Duration::from_millis(1);
    let job = Job {
        mix: Mix::gets(entresol_workload::Distribution::Uniform),
        keys: 10,
        first_key: 0,
        layout: KeyLayout::Text,
        scan_entries: 1..=1,
        sizes: Sizes::Fixed(10),
        put: PutOptions::default(),
        in_flight: 8,
        // No machine makes a hundred a microsecond.
        arrivals: Arrivals::Even(1e8),
        seed: 1,
        until: Until::Elapsed(time),
    };
    let tally = drive(&job, &Shared::new(10), vec![Prompt(Vec::new())]).unwrap();
    assert_eq!(tally.operations() + tally.not_begun, 100_000);
}

/// Answers an insert only after many other requests, and knows what it answered.
#[derive(Default)]
struct Slow {
    there: std::collections::HashMap<Vec<u8>, Vec<u8>>,
    begun: Vec<(u64, Vec<u8>, Option<Vec<u8>>)>,
    held: VecDeque<(u64, Vec<u8>, Vec<u8>)>,
    turns: u64,
}

impl Connection for Slow {
    fn begin(&mut self, token: u64, request: Request<'_>, _visit: Visit<'_>) {
        self.begun.push(match request {
            Request::Get(key) => (token, key.to_vec(), None),
            Request::Put(key, value, _) => (token, key.to_vec(), Some(value.to_vec())),
        });
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn wait(&mut self, _at_least: usize, visit: Visit<'_>) -> Outcome<()> {
        self.turns += 1;
        for (token, key, value) in std::mem::take(&mut self.begun) {
            match (value, self.there.get(&key)) {
                (None, Some(value)) => visit(token, Answer::Value(value)),
                (None, None) => visit(token, Answer::Missing),
                (Some(value), _) => self.held.push_back((token, key, value)),
            }
        }
        // One at a time, the newest first: the oldest waits longest.
        let done = if self.turns.is_multiple_of(40) { self.held.pop_back() } else { None };
        let all = if self.turns.is_multiple_of(1000) { self.held.len() } else { 0 };
        for (token, key, value) in done.into_iter().chain(self.held.drain(..all)) {
            self.there.insert(key, value);
            visit(token, Answer::Done);
        }
        Ok(())
    }

    fn scan(&mut self, _token: u64, _span: Span<'_>, _visit: Visit<'_>) -> Outcome<()> {
        Ok(())
    }
}

/// A key counted as there once as many inserts had begun after it as could be in flight, which
/// a thread that was slow at its own did not keep to: keys were reported as lost.
#[test]
fn no_key_is_read_before_its_insert_was_answered() {
    const KEYS: u64 = 50;
    let shared = Shared::new(KEYS);
    let mut slow = Slow::default();
    for id in 0..KEYS {
        let mut value = vec![0; 30];
        shared.values.fill(id, 1, &mut value);
        slow.there.insert(KeyLayout::Text.key(id).to_vec(), value);
    }
    let job = Job {
        mix: entresol_workload::YCSB[3],
        keys: KEYS,
        first_key: 0,
        layout: KeyLayout::Text,
        scan_entries: 1..=1,
        sizes: Sizes::Fixed(30),
        put: PutOptions::default(),
        in_flight: 4,
        arrivals: Arrivals::Closed,
        seed: 3,
        until: Until::Operations(3_000),
    };
    let tally = drive(&job, &shared, vec![slow]).unwrap().sound().unwrap();
    assert_eq!((tally.operations(), tally.misses), (3_000, 0));
    assert!(shared.inserts.visible(1) > KEYS + 50, "new keys were read");
}
