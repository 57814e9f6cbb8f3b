//! The end of a run: all that ends has ended, then everything is removed, and the store has the
//! room again that it had when it was made.

use entresol_flash::{
    Budget, Condition, Durability, ErrorKind, Key, Operation, PutOptions, Reclaim, SessionOptions,
    SpaceId, Store, StoreOptions, Timestamp,
};
use entresol_sim::Random;

use crate::history::SPACES;
use crate::plan::ENDS_MS_MAX;
use crate::requests::Request;
use crate::world::World;

/// Nothing of the steps is here.
const FILLED: SpaceId = SpaceId(50);
/// Puts refused one after another: the keys of some would be of each shard.
const REFUSALS: u32 = 24;
/// Share of what a fresh store takes that an emptied one must take. The rest is what filled
/// segments had no record in until then: a mean, so that the full mark is lower for a while.
const ROOM_PERCENT: u64 = 80;

impl World {
    pub(crate) fn finish(&mut self) {
        self.read_all();
        self.settle();
        self.check_counts();
        self.set_clock(self.latest_ms + ENDS_MS_MAX);
        self.settle();
        for _ in 0..4 {
            self.set_clock(self.now_ms + 1000);
            self.settle();
        }
        self.read_all();
        self.check_counts_exactly();
        self.check_soundness();
        self.empty();
        self.check_soundness();
        if self.plan.fills && self.options.reclaim == Reclaim::Compact {
            self.fill_as_if_fresh();
        }
    }

    fn check_soundness(&self) {
        let segments = self.store().segments();
        let damaged = segments.iter().filter(|segment| segment.state == "damaged");
        let unsound: Vec<_> = damaged.map(|segment| format!("{segment:?}")).collect();
        let verified = self.store().verify().expect("it reads, as no fault was ordered");
        let unsound = [unsound, verified.damaged].concat();
        if !unsound.is_empty() {
            self.fail_of(&|_| false, &format!("damaged, though no fault was ordered: {unsound:?}"));
        }
    }

    fn read_all(&mut self) {
        self.names().into_iter().for_each(|name| self.run_and_judge(name, Request::Get));
    }

    /// Lets maintenance do all that it finds to do.
    fn settle(&mut self) {
        for round in 0..400 {
            let budget = Budget { segments: 8 };
            let done = self.store().maintain(self.now(), budget);
            let done = done.expect("maintain works, as no fault was ordered");
            // A call sweeps one segment, and tells of no more work if that had none.
            if !done.more && !done.awaits_device && round > 50 {
                break;
            }
        }
        self.sync();
    }

    /// Removes most keys, and the rest with their spaces.
    fn empty(&mut self) {
        for name in self.names() {
            if !self.random.one_in(10) {
                self.run_and_judge(name, Request::Remove(Condition::Always));
            }
        }
        self.let_go();
        for space in SPACES {
            assert!(self.drop_all(space, None), "a drop works, as nothing is in flight");
        }
        self.settle();
        self.settle();
        for space in SPACES {
            let count = self.store().count(SpaceId(space));
            assert_eq!(count, 0, "seed {}: entries in the dropped space {space}", self.seed);
        }
    }

    /// Fills the emptied store twice, and a fresh one of the same shape.
    fn fill_as_if_fresh(&mut self) {
        let now = self.now();
        fill(self.store(), now);
        self.store().drop_space(FILLED).expect("nothing is in flight");
        self.settle();
        let taken = fill(self.store(), now);
        let shape = self.store().options();
        let options = StoreOptions {
            shards: shape.shards,
            segment_bytes: shape.segment_bytes,
            index_hash_bits: 64,
            buffer_directory: None,
            ..self.options.clone()
        };
        let devices = self.plan.devices(self.seed);
        let fresh = Store::open(devices.open(), options, now).expect("a store is made");
        let taken_fresh = fill(&fresh, now);
        if taken * 100 < taken_fresh * ROOM_PERCENT {
            let what = format!("room for {taken} entries; a fresh store takes {taken_fresh}");
            self.fail_of(&|_| false, &what);
        }
    }
}

/// Puts as many entries as there is room for; returns how many.
fn fill(store: &Store, now: Timestamp) -> u64 {
    let mut session = store.session(SessionOptions::default()).expect("a session opens");
    let mut random = Random::new(7);
    let durability = Some(Durability::Memory);
    let (mut taken, mut refused) = (0, 0);
    let mut value = vec![0; 3000];
    for number in 0u64.. {
        random.fill(&mut value);
        let key = format!("filled:{number}").into_bytes();
        let options = PutOptions { durability, ..PutOptions::default() };
        let operation = Operation::Put { key: Key::new(FILLED, &key), value: &value, options };
        match session.run(now, operation, &mut |_| {}) {
            Ok(()) => (taken, refused) = (taken + 1, 0),
            Err(error) if error.kind() == ErrorKind::Full && refused == REFUSALS => break,
            Err(error) if error.kind() == ErrorKind::Full => {
                refused += 1;
                let budget = Budget { segments: 8 };
                store.maintain(now, budget).expect("maintain works, as no fault was ordered");
            }
            Err(error) => panic!("a put failed with {error}"),
        }
    }
    taken
}
