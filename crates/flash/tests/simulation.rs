//! A store under seeded faults, compared with a model after every step and after every restart.
//!
//! One run is a function of its seed: operations, sizes, times, the order of completions, faults,
//! and what a power failure keeps. First come faults (safety), then none (liveness): a healed
//! store must take writes again and give back everything. `ENTRESOL_SEED` replaces the seeds.
//!
//! The model keeps, for each key, the states that may be found: the last one that is durable, and
//! all that were written after it. While the store runs only the last counts.

use std::sync::Arc;

use entresol_device::Device;
use entresol_flash::{
    Budget, Condition, Durability, ErrorKind, Expiry, Key, Operation, Outcome, PutOptions, Reclaim,
    Session, SessionOptions, SpaceId, Store, StoreOptions, Timestamp,
};
use entresol_sim::{CrashChoice, Persistence, Random, SimDevice, SimOptions, Stall};

const SPACE: SpaceId = SpaceId(3);
const CAPACITY_BYTES: u64 = 6 << 20;
const KEYS: u64 = 120;
const STEPS: u64 = 1500;

/// What was put under a key; `None`: nothing, or it was removed.
type State = Option<Put>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Put {
    number: u64,
    length: usize,
    ends_ms: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct History {
    /// The oldest is durable; those after `acknowledged` met an error, and nobody knows whether
    /// they count.
    states: Vec<State>,
    acknowledged: usize,
}

impl History {
    fn of(state: State) -> History {
        History { states: vec![state], acknowledged: 0 }
    }

    fn acknowledge(&mut self, state: State) {
        self.states.push(state);
        self.acknowledged = self.states.len() - 1;
    }

    /// What may be found without a restart: the last one acknowledged, or one of those after it.
    fn current(&self) -> &[State] {
        &self.states[self.acknowledged..]
    }

    /// Everything acknowledged is durable now.
    fn forget_the_past(&mut self) {
        self.states.drain(..self.acknowledged);
        self.acknowledged = 0;
    }
}

struct World {
    random: Random,
    device: SimDevice,
    options: StoreOptions,
    store: Option<(Store, Session)>,
    now_ms: u64,
    puts: u64,
    model: Vec<History>,
    poisoned: bool,
    /// What happened, for whom it concerns: one key, or all. Printed with a failure.
    journal: Vec<(Option<u64>, String)>,
    /// Bytes cannot be read everywhere: a get may end in an error.
    blind: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let options = StoreOptions {
            segment_bytes: 64 << 10,
            shards: 1 + random.below(2) as u16,
            durability: if random.one_in(2) { Durability::Memory } else { Durability::Flushed },
            reclaim: if random.one_in(4) { Reclaim::Evict } else { Reclaim::Compact },
            ..StoreOptions::default()
        };
        let device = SimDevice::new(SimOptions::new(seed, CAPACITY_BYTES));
        let model = vec![History::of(None); KEYS as usize];
        let mut world = World {
            random,
            device,
            options,
            store: None,
            now_ms: 1_700_000_000_000,
            puts: 0,
            model,
            poisoned: false,
            journal: Vec::new(),
            blind: false,
        };
        world.open();
        world
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms)
    }

    fn open(&mut self) {
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let store = Store::open(device, self.options.clone(), self.now()).expect("the store opens");
        let session = store.session(SessionOptions::default()).expect("a session opens");
        self.store = Some((store, session));
        self.poisoned = false;
        self.blind = false;
    }

    fn step(&mut self) {
        self.now_ms += self.random.below(40);
        match self.random.below(1000) {
            0..500 => self.put(),
            500..570 => self.remove(),
            570..850 => self.get(),
            850..890 => self.maintain(),
            890..905 => self.sync(),
            905..940 => self.fault(),
            940..965 => self.restart_cleanly(),
            965..985 => self.lose_power(),
            _ => self.kill(),
        }
    }

    fn put(&mut self) {
        let number = self.random.below(KEYS);
        let length = match self.random.below(40) {
            0 => 70_000 + self.random.below(60_000) as usize,
            1..4 => self.random.below(20_000) as usize,
            _ => self.random.below(1500) as usize,
        };
        let ends_ms = self.random.one_in(6).then(|| self.now_ms + 1 + self.random.below(4000));
        self.puts += 1;
        let put = Put { number: self.puts, length, ends_ms };
        let value = value_of(number, put);
        let durability = self.random.one_in(12).then_some(Durability::Synced);
        let expiry = Expiry { at: ends_ms.map(Timestamp), idle_seconds: None };
        let options = PutOptions { expiry, durability, ..PutOptions::default() };
        let key = key_of(number);
        let key = Key::new(SPACE, &key);
        let operation = Operation::Put { key, value: &value, options };
        let result = self.run(operation, &mut |outcome| {
            assert!(matches!(outcome, Outcome::Stored { .. }), "{outcome:?}");
        });
        self.record(number, Some(put), result, durability.is_some());
    }

    fn remove(&mut self) {
        let number = self.random.below(KEYS);
        let key = key_of(number);
        let key = Key::new(SPACE, &key);
        let operation = Operation::Remove { key, condition: Condition::Always };
        let result = self.run(operation, &mut |outcome| {
            assert!(matches!(outcome, Outcome::Removed { .. } | Outcome::Missing), "{outcome:?}");
        });
        self.record(number, None, result, false);
    }

    /// Takes what a write came to into the model.
    fn record(&mut self, number: u64, state: State, result: Result<(), ErrorKind>, synced: bool) {
        let what = format!("write of {state:?}, synced: {synced}: {result:?}");
        self.journal.push((Some(number), what));
        let history = &mut self.model[number as usize];
        match result {
            Ok(()) if synced => *history = History::of(state),
            Ok(()) => history.acknowledge(state),
            Err(_) if self.poisoned => history.states.push(state),
            // Refused before anything was done.
            Err(ErrorKind::Full) => {}
            Err(ErrorKind::Io | ErrorKind::Corrupt) if self.blind => {}
            Err(kind) => panic!("a write failed with {kind:?} and no fault was ordered"),
        }
    }

    fn get(&mut self) {
        let number = self.random.below(KEYS);
        let found = self.read(number);
        self.check_running(number, found);
    }

    /// What a get finds, verified to be a value that was put: its number.
    fn read(&mut self, number: u64) -> Result<Option<u64>, ErrorKind> {
        let key = key_of(number);
        let mut found = None;
        self.run(Operation::Get { key: Key::new(SPACE, &key) }, &mut |outcome| match outcome {
            Outcome::Found(entry) => {
                assert_eq!(entry.key, key, "a foreign entry");
                found = Some(entry.value.to_vec());
            }
            Outcome::Missing => {}
            other => panic!("a get ended in {other:?}"),
        })?;
        let Some(value) = found else { return Ok(None) };
        let put = self.model[number as usize]
            .states
            .iter()
            .flatten()
            .find(|put| value == value_of(number, **put));
        let put = put.unwrap_or_else(|| {
            self.tell(number);
            panic!("key {number}: a value that is none of its states")
        });
        assert!(put.ends_ms.is_none_or(|end| end > self.now_ms), "key {number}: an expired value");
        Ok(Some(put.number))
    }

    fn check_running(&self, number: u64, found: Result<Option<u64>, ErrorKind>) {
        let found = match found {
            Ok(found) => found,
            Err(kind) => {
                assert!(self.blind, "a read failed with {kind:?} and no fault was ordered");
                return;
            }
        };
        let history = &self.model[number as usize];
        let mut allowed: Vec<Option<u64>> =
            history.current().iter().map(|state| self.visible(*state)).collect();
        if self.options.reclaim == Reclaim::Evict {
            allowed.push(None);
        }
        assert!(
            allowed.contains(&found),
            "key {number}: found put {found:?}, allowed {allowed:?} of {history:?}"
        );
    }

    fn visible(&self, state: State) -> Option<u64> {
        let put = state?;
        put.ends_ms.is_none_or(|end| end > self.now_ms).then_some(put.number)
    }

    fn maintain(&mut self) {
        let now = self.now();
        let (store, _) = self.store.as_ref().expect("the store is open");
        let result = store.maintain(now, Budget { segments: 1 + self.random.below(4) as u32 });
        if let Err(error) = result {
            assert!(self.poisoned || self.blind, "maintain failed: {error}");
        }
    }

    fn sync(&mut self) {
        let (store, _) = self.store.as_ref().expect("the store is open");
        let synced = store.sync();
        self.journal.push((None, format!("sync: {synced:?}")));
        match synced {
            Ok(()) => self.model.iter_mut().for_each(History::forget_the_past),
            Err(error) => assert!(self.poisoned, "sync failed: {error}"),
        }
    }

    /// Orders a fault for one of the next calls.
    fn fault(&mut self) {
        let call = self.device.calls() + self.random.below(4);
        let persistence =
            if self.random.one_in(2) { Persistence::Transient } else { Persistence::Persistent };
        match self.random.below(6) {
            0 => {
                self.device.fail_write(call, persistence);
                self.poisoned = true;
            }
            1 => {
                self.device.fail_sync(call, persistence);
                self.poisoned = true;
            }
            2 => {
                self.device.fill_up(call);
                self.poisoned = true;
            }
            3 => {
                let from = self.random.below(CAPACITY_BYTES / 4096) * 4096;
                self.device.fail_reads(from.max(256 << 10)..from + (64 << 10));
                self.blind = true;
            }
            _ => self.device.stall(Stall::Reaps(1 + self.random.below(5) as u32)),
        }
    }

    fn restart_cleanly(&mut self) {
        let now = self.now();
        let (store, session) = self.store.take().expect("the store is open");
        drop(session);
        let closed = store.close(now);
        self.journal.push((None, format!("close: {closed:?}")));
        drop(store);
        match closed {
            Ok(()) => {
                self.model.iter_mut().for_each(History::forget_the_past);
                self.reopen(CrashChoice::KeepAll);
            }
            Err(error) => {
                assert!(self.poisoned || self.blind, "close failed: {error}");
                self.reopen_by_chance();
            }
        }
    }

    fn lose_power(&mut self) {
        self.device.crash_now();
        self.store = None;
        self.reopen_by_chance();
    }

    fn kill(&mut self) {
        self.store = None;
        self.reopen(CrashChoice::KeepAll);
    }

    fn reopen_by_chance(&mut self) {
        let choice = match self.random.below(5) {
            0 => CrashChoice::KeepAll,
            1 => CrashChoice::DropAll,
            _ => CrashChoice::Random(self.random.next_u64()),
        };
        self.reopen(choice);
    }

    /// Opens what the medium holds, perhaps losing power once more while it recovers, and compares
    /// every key with the model.
    fn reopen(&mut self, choice: CrashChoice) {
        self.store = None;
        self.journal.push((None, format!("reopen at {} after {choice:?}", self.now_ms)));
        self.device = self.device.reopened(choice);
        self.device.heal();
        if self.random.one_in(3) {
            self.device.crash_after(self.random.below(6));
            self.journal.push((None, "power fails while it recovers".to_string()));
            let device: Arc<dyn Device> = Arc::new(self.device.clone());
            drop(Store::open(device, self.options.clone(), self.now()));
            self.device = self.device.reopened(CrashChoice::Random(self.random.next_u64()));
            self.device.heal();
        }
        self.open();
        for number in 0..KEYS {
            let found = self.read(number).unwrap_or_else(|kind| {
                self.tell(number);
                panic!("key {number}: a healed device reads, but: {kind:?}")
            });
            self.journal.push((Some(number), format!("found {found:?}")));
            let history = &self.model[number as usize];
            let state = history.states.iter().rev().find(|s| self.visible(**s) == found).copied();
            match state {
                Some(state) => self.model[number as usize] = History::of(state),
                // A cache may let go of an entry, and may have it again later.
                None if self.options.reclaim == Reclaim::Evict && found.is_none() => {}
                None => {
                    self.tell(number);
                    let history = &self.model[number as usize];
                    panic!("key {number}: found put {found:?} after {choice:?}, of {history:?}")
                }
            }
        }
    }

    /// Prints what happened to a key.
    fn tell(&self, number: u64) {
        println!("{:?}", self.options);
        let concerns = |key: &Option<u64>| key.is_none_or(|key| key == number);
        self.journal.iter().filter(|(k, _)| concerns(k)).for_each(|(_, what)| println!("{what}"));
    }

    fn run(
        &mut self,
        operation: Operation<'_>,
        visit: &mut dyn FnMut(Outcome<'_>),
    ) -> Result<(), ErrorKind> {
        let now = self.now();
        let (_, session) = self.store.as_mut().expect("the store is open");
        session.run(now, operation, visit).map_err(|error| error.kind())
    }

    /// No more faults: everything works, and stays.
    fn live(&mut self) {
        self.reopen(CrashChoice::KeepAll);
        for round in 0..3 {
            for number in 0..KEYS {
                self.puts += 1;
                let put = Put { number: self.puts, length: 900, ends_ms: None };
                let key = key_of(number);
                let key = Key::new(SPACE, &key);
                let value = value_of(number, put);
                let options = PutOptions::default();
                let result = self.run(Operation::Put { key, value: &value, options }, &mut |_| {});
                assert_eq!(result, Ok(()), "round {round}, key {number}: a healed store refuses");
                self.model[number as usize] = History::of(Some(put));
            }
            self.maintain();
        }
        self.sync();
        self.reopen(CrashChoice::DropAll);
        for number in 0..KEYS {
            let found = self.read(number);
            self.check_running(number, found);
        }
    }
}

fn key_of(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn value_of(key: u64, put: Put) -> Vec<u8> {
    let mut value = vec![0; put.length];
    Random::new(key << 40 | put.number).fill(&mut value);
    let mark = format!("{key}/{}/", put.number).into_bytes();
    value.splice(0..0, mark);
    value
}

#[test]
fn a_store_keeps_its_promises_under_any_faults() {
    let seeds = match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..6).collect(),
    };
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.live();
    }
}
