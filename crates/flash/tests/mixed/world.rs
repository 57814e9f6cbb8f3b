//! The store under test with its device and its clock, the model beside it, and the journal that a
//! failure is told with.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use entresol_flash::{
    Budget, Outcome, Reclaim, Result, Session, SessionOptions, Store, StoreOptions, Timestamp,
};
use entresol_sim::Random;

use crate::devices::Devices;
use crate::history::{History, Name, SPACES, State, Visibility};
use crate::plan::Plan;
use crate::requests::{Answer, Request};

const START_MS: u64 = 1_700_000_000_000;

pub(crate) struct World {
    pub seed: u64,
    pub random: Random,
    pub plan: Plan,
    pub device: Devices,
    pub directory: Directory,
    pub options: StoreOptions,
    opened: Option<Opened>,
    pub now_ms: u64,
    /// The latest time that the clock said.
    pub latest_ms: u64,
    pub puts: u64,
    pub model: BTreeMap<Name, History>,
    /// The store evicts now; it did so ever.
    pub evicting: bool,
    pub ever_evicted: bool,
    journal: Vec<(Option<Name>, String)>,
}

/// A store and two sessions of it, so that one may be in the way of the other.
struct Opened {
    store: Store,
    sessions: [Session; 2],
}

/// The shared memory of a run; removed with it.
pub(crate) struct Directory(PathBuf);

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let plan = Plan::draw(&mut random);
        let directory = Directory::new(seed);
        let options = plan.options(&mut random, directory.path());
        let names = SPACES.into_iter().flat_map(|space| {
            (0..plan.keys).map(move |number| (Name { space, number }, History::of(vec![None])))
        });
        let mut world = World {
            seed,
            device: plan.devices(seed),
            model: names.collect(),
            random,
            plan,
            directory,
            options,
            opened: None,
            now_ms: START_MS,
            latest_ms: START_MS,
            puts: 0,
            evicting: false,
            ever_evicted: false,
            journal: Vec::new(),
        };
        world.open();
        world
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now_ms)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.opened.as_ref().expect("the store is open").store
    }

    pub(crate) fn session(&mut self, number: u64) -> &mut Session {
        let opened = self.opened.as_mut().expect("the store is open");
        &mut opened.sessions[number as usize % 2]
    }

    pub(crate) fn in_flight(&self) -> usize {
        let opened = self.opened.as_ref().expect("the store is open");
        opened.sessions.iter().map(Session::in_flight).sum()
    }

    pub(crate) fn open(&mut self) {
        self.opened = None;
        let store = match Store::open(self.device.open(), self.options.clone(), self.now()) {
            Ok(store) => store,
            Err(error) => self.fail_of(&|_| false, &format!("it does not open: {error}")),
        };
        let depth = 1 + self.random.below(20) as usize;
        let options =
            SessionOptions { depth, read_buffer_bytes: 4096, ..SessionOptions::default() };
        let sessions = [(); 2].map(|()| store.session(options).expect("a session opens"));
        self.opened = Some(Opened { store, sessions });
        self.evicting = self.options.reclaim == Reclaim::Evict;
        self.ever_evicted |= self.evicting;
    }

    /// Ends the store without closing it.
    pub(crate) fn end_store(&mut self) {
        self.opened = None;
    }

    pub(crate) fn set_clock(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.latest_ms = self.latest_ms.max(now_ms);
        for put in self.model.values_mut().flat_map(History::puts_mut) {
            put.latest_ms = put.latest_ms.max(now_ms);
        }
    }

    pub(crate) fn maintain(&self, segments: u32) {
        let maintained = self.store().maintain(self.now(), Budget { segments });
        maintained.expect("maintain works, as no fault was ordered");
    }

    pub(crate) fn sync(&mut self) {
        self.store().sync().expect("a sync works, as no fault was ordered");
        self.model.values_mut().for_each(History::make_durable);
        self.note(None, &"sync");
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.model.keys().copied().collect()
    }

    pub(crate) fn history_mut(&mut self, name: Name) -> &mut History {
        self.model.get_mut(&name).expect("the model has all keys from the start")
    }

    pub(crate) fn draw_name(&mut self) -> Name {
        self.plan.name(&mut self.random)
    }

    pub(crate) fn draw_request(&mut self, name: Name) -> Request {
        self.puts += 1;
        let latest = self.model[&name].latest();
        self.plan.request(&mut self.random, latest, (self.puts, self.now_ms))
    }

    /// Does one thing and waits for it.
    pub(crate) fn run(&mut self, name: Name, request: &Request) -> Answer {
        let now = self.now();
        let mut answer = None;
        let mut visit = |_, outcome: Result<Outcome<'_>>| answer = Some(Answer::of(outcome));
        let session = self.session(0);
        request.submit(session, (0, now), name, &mut visit);
        while session.in_flight() > 0 {
            session.flush().expect("a flush works, as no fault was ordered");
            session.poll(1, now, &mut visit).expect("a poll works, as no fault was ordered");
        }
        answer.expect("every request is answered")
    }

    pub(crate) fn visibility(&self, state: State) -> Visibility {
        state.map_or(Visibility::Never, |put| put.visibility(self.now_ms, self.evicting))
    }

    /// Keeps what happened to a key, or to all.
    pub(crate) fn note(&mut self, name: Option<Name>, what: &dyn Debug) {
        self.journal.push((name, format!("{} {what:?}", self.now_ms)));
    }

    pub(crate) fn fail(&self, name: Name, what: &str) -> ! {
        self.fail_of(&|concerned| concerned == name, &format!("{name:?}: {what}"))
    }

    /// Prints what happened to the keys that are `concerned`, and what may be found of them; then
    /// it panics.
    pub(crate) fn fail_of(&self, concerned: &dyn Fn(Name) -> bool, what: &str) -> ! {
        println!("{:?}\n{:?}", self.plan, self.options);
        for (name, what) in &self.journal {
            match name {
                None => println!("{what}"),
                Some(name) if concerned(*name) => println!("{what} of {name:?}"),
                Some(_) => {}
            }
        }
        self.model
            .iter()
            .filter(|(name, _)| concerned(**name))
            .for_each(|(name, history)| println!("{name:?}: {history:?}"));
        panic!("seed {} at {}: {what}", self.seed, self.now_ms)
    }
}

impl Directory {
    fn new(seed: u64) -> Directory {
        let shared = PathBuf::from("/dev/shm");
        let base = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let directory =
            Directory(base.join(format!("entresol-mixed-{}-{seed}", std::process::id())));
        directory.wipe();
        directory
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Empties it, as a reboot does.
    pub(crate) fn wipe(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
        std::fs::create_dir_all(&self.0).expect("a directory for shared memory");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
