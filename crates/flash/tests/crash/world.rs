//! One run: a store on a simulated device, a workload from a seed, and the model beside them.

use entresol_device::Device;
use entresol_flash::{
    Budget, Condition, Durability, Expiry, FoundAt, Key, Operation, Outcome, PutOptions, Session,
    SessionOptions, Snapshot, SpaceId, Store, Timestamp,
};
use entresol_sim::{Random, SimDevice};
use std::sync::Arc;

use crate::model::{KEYS, Model, Name, Put, SPACES, alive, key_bytes, value_bytes};
use crate::setup::{Directory, Ending, Setup};

/// Steps of one run.
pub(crate) const STEPS: usize = 110;
/// Bytes of values that any setup has room for, with what goes with them.
const VALUES_BYTES_MAX: u64 = 280_000;
const START_MS: u64 = 1_700_000_000_000;

/// Why a run went no further: the first error of the engine.
pub(crate) type Stop = String;

/// What a get returned.
pub(crate) struct Found {
    value: Vec<u8>,
    ends_ms: Option<u64>,
}

impl Found {
    /// Whether it is what `put` wrote under `name`.
    pub(crate) fn is_of(&self, name: Name, put: Put) -> bool {
        self.ends_ms == put.ends_ms && self.value == value_bytes(name, put)
    }
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, bytes) = (crate::model::id_of(&self.value), self.value.len());
        write!(f, "put {id:?} of {bytes} bytes that ends at {:?}", self.ends_ms)
    }
}

/// A run under way, or ended.
pub(crate) struct World {
    pub setup: Setup,
    pub device: SimDevice,
    pub directory: Directory,
    pub model: Model,
    pub now_ms: u64,
    /// Which boot of the machine this is.
    boot: u128,
    /// How often the store was opened.
    openings: u64,
    pub open: Option<(Store, Session)>,
    random: Random,
    /// The snapshot under way, and how many of its segments it has let go.
    held: Option<(Snapshot, usize)>,
    ids: u32,
}

impl World {
    pub(crate) fn new(setup: &Setup, seed: u64) -> World {
        World {
            setup: setup.clone(),
            device: SimDevice::new(setup.device(seed)),
            directory: Directory::new(),
            model: Model::new(),
            now_ms: START_MS,
            boot: 1,
            openings: 0,
            open: None,
            random: Random::new(seed),
            held: None,
            ids: 0,
        }
    }

    /// Goes on after a crash on another device.
    pub(crate) fn after(&self, device: SimDevice, ending: Ending) -> World {
        let directory = match ending {
            Ending::Kill => self.directory.copied(),
            Ending::PowerLoss => Directory::new(),
        };
        World {
            setup: self.setup.clone(),
            device,
            directory,
            model: self.model.clone(),
            now_ms: self.now_ms,
            boot: self.boot + u128::from(ending == Ending::PowerLoss),
            openings: self.openings,
            open: None,
            random: self.random.clone(),
            held: None,
            ids: self.ids + 1000,
        }
    }

    /// Opens the store.
    pub(crate) fn open(&mut self) -> Result<(), Stop> {
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let options = self.setup.options(&self.directory.0, self.boot, self.openings);
        self.openings += 1;
        let store = Store::open(device, options, self.now()).map_err(stop("open"))?;
        let session = store.session(SessionOptions {
            depth: 16,
            read_buffer_bytes: 4096,
            ..SessionOptions::default()
        });
        self.open = Some((store, session.map_err(stop("session"))?));
        Ok(())
    }

    /// A copy of the device, with the identity of the store and beside its write buffers, is
    /// opened, filled and killed. The store is none the wiser.
    pub(crate) fn live_as_a_copy(&self) -> Result<(), Stop> {
        let device = self.device.copied_to(2);
        for round in 0..2 {
            let options = self.setup.options(&self.directory.0, self.boot, self.openings);
            let store = Store::open(Arc::new(device.clone()), options, self.now());
            let store = store.map_err(stop("open of a copy"))?;
            let mut session = store.session(SessionOptions::default()).map_err(stop("session"))?;
            for number in 0..KEYS {
                let (key, value) = (key_bytes((SPACES[0], number)), [round; 900]);
                let key = Key::new(SpaceId(SPACES[0]), &key);
                let operation =
                    Operation::Put { key, value: &value, options: PutOptions::default() };
                session.run(self.now(), operation, &mut |_| {}).map_err(stop("put into a copy"))?;
            }
        }
        Ok(())
    }

    /// The whole workload; stops at the first error.
    pub(crate) fn run(&mut self) -> Result<(), Stop> {
        self.open()?;
        for step in 0..STEPS {
            if step == STEPS / 2 {
                self.reopen_after_close()?;
            }
            self.step()?;
        }
        Ok(())
    }

    /// A few more steps, on a store that is open.
    pub(crate) fn live_on(&mut self, steps: usize) -> Result<(), Stop> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now_ms)
    }

    pub(crate) fn parts(&mut self) -> (&Store, &mut Session) {
        let (store, session) = self.open.as_mut().expect("the run has opened its store");
        (store, session)
    }

    /// Takes a snapshot, or lets the next segment of the present one go.
    fn hold(&mut self) -> Result<(), Stop> {
        if let Some((snapshot, gone)) = &mut self.held {
            match snapshot.segments().get(*gone) {
                Some(segment) => snapshot.let_go(segment),
                None => self.held = None,
            }
            if let Some((_, gone)) = &mut self.held {
                *gone += 1;
            }
            return Ok(());
        }
        let snapshot = self.parts().0.snapshot().map_err(stop("snapshot"))?;
        self.held = Some((snapshot, 0));
        Ok(())
    }

    fn step(&mut self) -> Result<(), Stop> {
        if self.setup.holds {
            self.hold()?;
        }
        match self.random.below(100) {
            0..=47 => self.put_some(1),
            48..=57 => self.put_some(5),
            58..=69 => self.remove(),
            70..=74 => self.touch(),
            75..=81 => self.get_one(),
            82..=90 => self.maintain(),
            91..=93 => self.sync(),
            94..=95 => {
                self.now_ms += 1000 * (1 + self.random.below(4));
                Ok(())
            }
            96 => self.drop_space(),
            97 => self.reopen_after_close(),
            _ => self.reopen_after_kill(),
        }
    }

    fn name(&mut self) -> Name {
        let space = SPACES[usize::from(self.random.one_in(3))];
        (space, self.random.below(u64::from(KEYS)) as u8)
    }

    fn put_some(&mut self, count: usize) -> Result<(), Stop> {
        let mut puts: Vec<(Name, Put, PutOptions)> = Vec::new();
        while puts.len() < count {
            let name = self.name();
            if !puts.iter().any(|(other, ..)| *other == name) {
                let begun: u64 = puts.iter().map(|(_, put, _)| u64::from(put.length)).sum();
                let (put, options) = self.new_put(name, self.model.bytes() + begun);
                puts.push((name, put, options));
            }
        }
        let mut expected = Vec::new();
        for (name, put, options) in &puts {
            let present = alive(self.model.current(*name), self.now_ms).is_some();
            let holds = match options.condition {
                Condition::Absent => !present,
                Condition::Present => present,
                _ => true,
            };
            expected.push(holds);
            if holds {
                self.model.begin(*name, Some(*put));
            }
        }
        let now = self.now();
        let found: Vec<Option<FoundAt>> =
            puts.iter().map(|(name, ..)| self.find(*name)).collect::<Result<_, _>>()?;
        let (_, session) = self.parts();
        let mut answers: Vec<Option<Result<bool, Stop>>> = vec![None; puts.len()];
        let mut visit = |token: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            answers[token as usize] = Some(match outcome {
                Ok(Outcome::Stored { .. }) => Ok(true),
                Ok(Outcome::Refused { .. }) => Ok(false),
                other => Err(format!("put: {other:?}")),
            });
        };
        for (token, (name, put, options)) in puts.iter().enumerate() {
            let (key, value) = (key_bytes(*name), value_bytes(*name, *put));
            let key = Key::new(SpaceId(name.0), &key);
            let (value, options) = (&value[..], *options);
            let operation = match found[token] {
                None => Operation::Put { key, value, options },
                Some(found) => Operation::Replace { key, value, options, found },
            };
            session.submit(token as u64, now, operation, &mut visit);
        }
        let mut ended = session.flush();
        while ended.is_ok() && session.in_flight() > 0 {
            ended = session.poll(1, now, &mut visit).map(|_| ());
        }
        for (at, (name, _, options)) in puts.iter().enumerate() {
            match answers[at].take() {
                Some(Ok(stored)) => {
                    assert_eq!(stored, expected[at], "put of {name:?}: {:?}", options.condition);
                    if stored {
                        let level = options.durability.unwrap_or(self.setup.durability);
                        self.acknowledge(*name, level);
                    }
                }
                Some(Err(why)) => ended = ended.and(Err(error_of(&why))),
                None => ended = ended.and(Err(error_of("unanswered"))),
            }
        }
        ended.map_err(stop("put"))
    }

    /// Where the entry is, if the setup looks for it before it is written.
    fn find(&mut self, name: Name) -> Result<Option<FoundAt>, Stop> {
        if !self.setup.finds_first {
            return Ok(None);
        }
        let key = key_bytes(name);
        let get = Operation::Get { key: Key::new(SpaceId(name.0), &key) };
        let now = self.now();
        let mut found = None;
        let mut visit = |outcome: Outcome<'_>| {
            if let Outcome::Found(entry) = outcome {
                found = entry.found;
            }
        };
        self.parts().1.run(now, get, &mut visit).map_err(stop("get"))?;
        Ok(found)
    }

    /// Puts one entry without a condition.
    pub(crate) fn put_one(&mut self, name: Name, put: Put) -> Result<(), Stop> {
        self.model.begin(name, Some(put));
        let (key, value) = (key_bytes(name), value_bytes(name, put));
        let key = Key::new(SpaceId(name.0), &key);
        let expiry = Expiry { at: put.ends_ms.map(Timestamp), idle_seconds: None };
        let options = PutOptions { expiry, ..PutOptions::default() };
        let now = self.now();
        let (_, session) = self.parts();
        let operation = Operation::Put { key, value: &value, options };
        session.run(now, operation, &mut |_| {}).map_err(stop("put"))
    }

    /// A put beside values of `taken` bytes.
    fn new_put(&mut self, name: Name, taken: u64) -> (Put, PutOptions) {
        self.ids += 1;
        let length = match self.random.below(20) {
            0..=5 => self.random.below(300),
            6..=15 => 1000 + self.random.below(6000),
            16..=18 => 9000 + self.random.below(7000),
            _ => 20_000 + self.random.below(30_000),
        };
        let length = length.min(VALUES_BYTES_MAX.saturating_sub(taken));
        let seconds = self.random.one_in(6).then(|| 1 + self.random.below(8));
        let ends_ms = seconds.map(|seconds| self.now_ms + seconds * 1000);
        let durability = self.random.one_in(12).then_some(Durability::Synced);
        let condition = match self.random.below(12) {
            // A cache may have evicted it.
            _ if self.evicts() => Condition::Always,
            0 => Condition::Absent,
            1 => Condition::Present,
            _ => Condition::Always,
        };
        let expiry = Expiry { at: ends_ms.map(Timestamp), idle_seconds: None };
        let put = Put { id: self.ids, length: length as u32, ends_ms };
        debug_assert!(name.1 < KEYS);
        (put, PutOptions { expiry, durability, condition, ..PutOptions::default() })
    }

    fn acknowledge(&mut self, name: Name, level: Durability) {
        for ending in [Ending::PowerLoss, Ending::Kill] {
            if self.setup.keeps(level, ending) {
                self.model.make_certain(name, ending);
            }
        }
    }

    fn remove(&mut self) -> Result<(), Stop> {
        let name = self.name();
        let present = alive(self.model.current(name), self.now_ms).is_some();
        let evicts = self.evicts();
        let found = self.find(name)?;
        self.model.begin(name, None);
        let key = key_bytes(name);
        let key = Key::new(SpaceId(name.0), &key);
        let mut removed = false;
        let operation = match found {
            None if self.random.below(2) == 0 => Operation::Discard { key },
            None => Operation::Remove { key, condition: Condition::Always },
            Some(found) => Operation::RemoveFound { key, found },
        };
        let is_blind = matches!(operation, Operation::Discard { .. });
        let now = self.now();
        let (_, session) = self.parts();
        session
            .run(now, operation, &mut |o| removed = matches!(o, Outcome::Removed { .. }))
            .map_err(stop("remove"))?;
        let is_right = removed == present || (evicts && !removed) || is_blind;
        assert!(is_right, "remove of {name:?}: {removed}");
        // Whether there was one or not: nothing of the key may come back.
        let durability = if is_blind { Durability::Memory } else { self.setup.durability };
        self.acknowledge(name, durability);
        Ok(())
    }

    fn touch(&mut self) -> Result<(), Stop> {
        let name = self.name();
        let present = alive(self.model.current(name), self.now_ms);
        let ends_ms = self.now_ms + 1000 * (2 + self.random.below(20));
        if let Some(put) = present {
            self.model.begin(name, Some(Put { ends_ms: Some(ends_ms), ..put }));
        }
        let key = key_bytes(name);
        let key = Key::new(SpaceId(name.0), &key);
        let expiry = Expiry { at: Some(Timestamp(ends_ms)), idle_seconds: None };
        let mut touched = false;
        let now = self.now();
        let evicts = self.evicts();
        let (_, session) = self.parts();
        session
            .run(now, Operation::Touch { key, expiry, condition: Condition::Always }, &mut |o| {
                touched = matches!(o, Outcome::Touched { .. });
            })
            .map_err(stop("touch"))?;
        assert!(touched == present.is_some() || (evicts && !touched), "touch of {name:?}");
        if touched {
            self.acknowledge(name, self.setup.durability);
        } else if present.is_some() {
            // Evicted before: a crash may bring it back, with the end that it had.
            self.model.withdraw(name);
        }
        Ok(())
    }

    fn evicts(&self) -> bool {
        self.setup.reclaim == entresol_flash::Reclaim::Evict
    }

    fn get_one(&mut self) -> Result<(), Stop> {
        let name = self.name();
        let found = self.get(name)?;
        let expected = alive(self.model.current(name), self.now_ms);
        let right = match (&found, expected) {
            (None, None) => true,
            (None, Some(_)) => self.evicts(),
            (Some(found), Some(put)) => found.is_of(name, put),
            (Some(_), None) => false,
        };
        assert!(right, "get of {name:?}: {expected:?} expected, {found:?} found");
        Ok(())
    }

    pub(crate) fn get(&mut self, name: Name) -> Result<Option<Found>, Stop> {
        let key = key_bytes(name);
        let key = Key::new(SpaceId(name.0), &key);
        let now = self.now();
        let (_, session) = self.parts();
        let mut found = None;
        session
            .run(now, Operation::Get { key }, &mut |outcome| {
                if let Outcome::Found(entry) = outcome {
                    assert_eq!(entry.key, key.bytes, "the entry of another key");
                    let ends_ms = entry.expiry.at.map(|at| at.0);
                    found = Some(Found { value: entry.value.to_vec(), ends_ms });
                }
            })
            .map_err(stop("get"))?;
        Ok(found)
    }

    pub(crate) fn maintain(&mut self) -> Result<(), Stop> {
        let now = self.now();
        self.parts().0.maintain(now, Budget { segments: 2 }).map_err(stop("maintain")).map(|_| ())
    }

    pub(crate) fn sync(&mut self) -> Result<(), Stop> {
        self.parts().0.sync().map_err(stop("sync"))?;
        self.model.make_all_certain();
        Ok(())
    }

    fn drop_space(&mut self) -> Result<(), Stop> {
        let space = SPACES[usize::from(self.random.one_in(2))];
        let names: Vec<Name> = self.model.names().into_iter().filter(|n| n.0 == space).collect();
        names.iter().for_each(|name| self.model.begin(*name, None));
        self.parts().0.drop_space(SpaceId(space)).map_err(stop("drop_space"))?;
        for name in names {
            self.model.make_certain(name, Ending::PowerLoss);
            self.model.make_certain(name, Ending::Kill);
        }
        Ok(())
    }

    fn reopen_after_close(&mut self) -> Result<(), Stop> {
        let now = self.now();
        self.parts().0.close(now).map_err(stop("close"))?;
        self.model.make_all_certain();
        (self.held, self.open) = (None, None);
        self.open()
    }

    fn reopen_after_kill(&mut self) -> Result<(), Stop> {
        if !self.setup.keeps(self.setup.durability, Ending::Kill) {
            self.sync()?;
        }
        (self.held, self.open) = (None, None);
        self.open()
    }
}

fn error_of(why: &str) -> entresol_flash::Error {
    entresol_flash::Error::new(entresol_flash::ErrorKind::Io, why)
}

fn stop(what: &'static str) -> impl Fn(entresol_flash::Error) -> Stop {
    move |error| format!("{what}: {:?}: {error}", error.kind())
}
