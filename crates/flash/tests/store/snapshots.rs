//! Snapshots: what they show, what they hold, and when they are given up.

use std::collections::HashMap;

use entresol_device::IoBuffer;
use entresol_flash::{
    Error, JournalAppend, JournalContinuation, JournalRoom, JournalSequence, Snapshot,
    SnapshotSegment,
};
use entresol_sim::Random;

use super::*;

const KEYS: u64 = 300;
/// Not a multiple of anything.
const PIECE_BYTES: usize = 23_001;

type Model = HashMap<Vec<u8>, Vec<u8>>;

/// A snapshot that is being copied, a piece at a time.
struct Copying {
    snapshot: Snapshot,
    image: Vec<u8>,
    /// The segment to read, and from where on.
    next: (usize, u64),
    model: Model,
}

impl Copying {
    fn begin(store: &Store, model: &Model) -> Copying {
        let snapshot = store.snapshot().unwrap();
        let mut image = vec![0; snapshot.device_bytes() as usize];
        for copy in 0..2 {
            let superblock = snapshot.superblock();
            image[copy * superblock.len()..][..superblock.len()].copy_from_slice(superblock);
        }
        Copying { snapshot, image, next: (0, 0), model: model.clone() }
    }

    /// Reads a piece. Whether that was the last.
    fn step(&mut self) -> Result<bool, Error> {
        let (number, offset) = self.next;
        let Some(segment) = self.snapshot.segments().get(number).copied() else { return Ok(true) };
        let length = PIECE_BYTES.min((self.snapshot.segment_bytes() - offset) as usize);
        let start = (segment.at + offset) as usize;
        self.snapshot.read(&segment, offset, &mut self.image[start..start + length])?;
        self.next.1 += length as u64;
        if self.next.1 == self.snapshot.segment_bytes() {
            self.snapshot.let_go(&segment);
            self.next = (number + 1, 0);
        }
        Ok(false)
    }

    /// A step of the one that is under way, if it is due. Whether that was its last.
    fn go_on(copying: &mut Option<Copying>, is_due: bool) -> bool {
        is_due && copying.as_mut().is_some_and(|copying| copying.step().unwrap())
    }

    /// What the copy opens as is what was there when it was begun.
    fn check(self, options: StoreOptions) -> Store {
        let copy = device(self.image.len() as u64);
        let mut bytes = IoBuffer::aligned(self.image.len());
        bytes.copy_from_slice(&self.image);
        copy.write_at(0, &bytes).unwrap();
        let (store, mut session) = open(&copy, options);
        assert!(store.superblock_damage().is_none());
        for n in 0..KEYS {
            let name = name(n);
            let (found, expected) = (get(&mut session, &name), self.model.get(&name));
            assert!(found.as_ref() == expected, "{n}: {:?} bytes", found.map(|value| value.len()));
        }
        assert_eq!(store.count(SPACE), self.model.len() as u64);
        store
    }
}

fn name(n: u64) -> Vec<u8> {
    format!("key {n}").into_bytes()
}

fn write(session: &mut Session, model: &mut Model, random: &mut Random) {
    let n = random.below(KEYS);
    if random.below(6) == 0 {
        remove(session, &name(n));
        model.remove(&name(n));
        return;
    }
    // Some have pieces of their own.
    let length = if random.below(40) == 0 { 40_000 } else { random.below(6_000) as usize };
    let value = value_of(random.next_u64(), length);
    put(session, &name(n), &value, PutOptions::default());
    model.insert(name(n), value);
}

/// Appends to the journal: what continues its last record, where that can be.
fn append(session: &mut Session, records: &mut Vec<(JournalSequence, Vec<u8>)>, bytes: Vec<u8>) {
    let after = records.last().map(|(sequence, _)| *sequence);
    let append = JournalAppend {
        lane: 0,
        owner: 5,
        bytes: &bytes,
        durability: None,
        continues: after.map(|after| JournalContinuation { after, bytes: &bytes }),
        room: JournalRoom::Leaving(0),
    };
    let mut appended = None;
    session.submit_journal(7, NOW, append, &mut |_, outcome| match outcome.unwrap() {
        Outcome::Journaled { sequence, .. } => appended = Some(sequence),
        other => panic!("{other:?}"),
    });
    records.push((appended.unwrap(), bytes));
}

#[test]
fn a_snapshot_is_the_store_of_one_moment_while_writes_and_reclaim_go_on() {
    for seed in 1..6 {
        let mut random = Random::new(seed);
        let options = StoreOptions { shards: 2, ..small() };
        let (store, mut session) = open(&device(8 << 20), options.clone());
        let (mut model, mut copying, mut done) = (Model::new(), None::<Copying>, 0);
        for _ in 0..6_000 {
            write(&mut session, &mut model, &mut random);
            if random.below(4) == 0 {
                store.maintain(NOW, Budget { segments: 2 }).unwrap();
            }
            if Copying::go_on(&mut copying, random.below(2) == 0) {
                copying.take().unwrap().check(options.clone());
                done += 1;
            } else if copying.is_none() && random.below(50) == 0 {
                copying = Some(Copying::begin(&store, &model));
            }
        }
        assert!(done > 3 && store.statistics().moved_bytes > 0, "seed {seed}: {done} snapshots");
    }
}

#[test]
fn a_snapshot_has_the_journal_of_its_moment_and_no_append_of_later() {
    for seed in 1..6 {
        let mut random = Random::new(seed);
        let options = StoreOptions { shards: 1, journal_bytes: 1 << 20, ..small() };
        let (store, mut session) = open(&device(8 << 20), options.clone());
        let (mut records, mut done) = (Vec::new(), 0);
        let (mut copying, mut expected) = (None::<Copying>, Vec::new());
        for _ in 0..20_000 {
            let length = if random.below(20) == 0 { 3_000 } else { 1 + random.below(30) };
            append(&mut session, &mut records, value_of(random.next_u64(), length as usize));
            if records.len() > 2_000 {
                records.drain(..1_000);
                store.trim_journal(0, records[0].0).unwrap();
            }
            if Copying::go_on(&mut copying, random.below(8) == 0) {
                let copy = copying.take().unwrap().check(options.clone());
                let mut found = Vec::new();
                let mut visit = |record: entresol_flash::JournalRecord<'_>| {
                    found.push((record.sequence, record.bytes.to_vec()));
                };
                copy.replay_journal(0, &mut visit).unwrap();
                // What was superseded by then may be there.
                let first = found.iter().position(|record| Some(record) == expected.first());
                assert!(found[first.unwrap()..] == expected, "seed {seed}");
                done += 1;
            } else if copying.is_none() && random.below(200) == 0 {
                expected = records.clone();
                copying = Some(Copying::begin(&store, &Model::new()));
            }
        }
        assert!(done > 3, "seed {seed}: {done} snapshots");
    }
}

#[test]
fn an_encrypted_store_that_is_restored_uses_no_sequence_that_the_original_or_another_copy_uses() {
    let options = |seed| StoreOptions { encryption: Some(EncryptionKey([7; 32])), seed, ..small() };
    let (store, mut session) = open(&device(8 << 20), options(1));
    let put_one =
        |session: &mut Session| put(session, &name(0), b"value", PutOptions::default()).unwrap().0;
    put_one(&mut session);
    let mut versions = Vec::new();
    for seed in 2..5 {
        let model = Model::from([(name(0), b"value".to_vec())]);
        let mut copying = Copying::begin(&store, &model);
        while !copying.step().unwrap() {}
        let copy = copying.check(options(seed));
        let mut session = copy.session(SessionOptions::default()).unwrap();
        versions.push(put_one(&mut session));
    }
    // As if it had crashed some thousand times since.
    let original = put_one(&mut session) + (5_000 << 32);
    versions.push(original);
    versions.sort_unstable();
    let apart = versions.windows(2).map(|two| two[1] - two[0]).min().unwrap();
    assert!(apart > 1 << 40 && versions[0] == original, "{versions:?}");
}

/// What is sealed in a snapshot, and its bytes.
fn sealed(store: &Store) -> HashMap<(u64, u64), Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let read = |segment: &SnapshotSegment| {
        let mut bytes = vec![0; snapshot.segment_bytes() as usize];
        snapshot.read(segment, 0, &mut bytes).unwrap();
        ((segment.at, segment.sequence), bytes)
    };
    snapshot.segments().iter().filter(|segment| segment.sealed).map(read).collect()
}

#[test]
fn a_sealed_segment_has_the_same_bytes_in_every_snapshot() {
    let mut random = Random::new(3);
    let (store, mut session) = open(&device(8 << 20), StoreOptions { shards: 2, ..small() });
    let (mut model, mut before, mut same) = (Model::new(), HashMap::new(), 0);
    for _ in 0..20 {
        for _ in 0..100 {
            write(&mut session, &mut model, &mut random);
        }
        store.maintain(NOW, Budget { segments: 4 }).unwrap();
        let present = sealed(&store);
        for (use_of, bytes) in &present {
            if let Some(earlier) = before.get(use_of) {
                assert!(earlier == bytes, "{use_of:?}");
                same += 1;
            }
        }
        before = present;
    }
    assert!(same > 100, "{same}");
}

#[test]
fn a_store_that_needs_the_room_gives_the_snapshot_up_and_not_a_write() {
    let mut random = Random::new(9);
    let (store, mut session) = open(&device(4 << 20), StoreOptions { shards: 2, ..small() });
    let mut model = Model::new();
    for _ in 0..800 {
        write(&mut session, &mut model, &mut random);
    }
    let snapshot = store.snapshot().unwrap();
    for _ in 0..3_000 {
        write(&mut session, &mut model, &mut random);
    }
    assert!(snapshot.is_broken());
    let mut bytes = vec![0; 100];
    let error = snapshot.read(&snapshot.segments()[0], 0, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(snapshot);
    for n in 0..KEYS {
        assert!(get(&mut session, &name(n)).as_ref() == model.get(&name(n)), "{n}");
    }
    // The next one is whole again.
    let mut copying = Copying::begin(&store, &model);
    while !copying.step().unwrap() {}
    copying.check(StoreOptions { shards: 2, ..small() });
}

/// How many writes a store takes that has been overwritten for long, until it gives up a snapshot
/// that nobody reads.
fn writes_beside_a_snapshot(makes_room: bool) -> u32 {
    let mut random = Random::new(9);
    let (store, mut session) = open(&device(32 << 20), StoreOptions { shards: 2, ..small() });
    let mut model = Model::new();
    let mut write_one = || write(&mut session, &mut model, &mut random);
    for _ in 0..40_000 {
        write_one();
    }
    let mut rounds = 0;
    while makes_room && !store.make_room_for_snapshot() {
        store.maintain(NOW, Budget { segments: 1 }).unwrap();
        rounds += 1;
        assert!(rounds < 10_000, "the room does not come");
    }
    let snapshot = store.snapshot().unwrap();
    assert!(store.make_room_for_snapshot(), "of a second one, which there cannot be");
    let mut writes = 0;
    while !snapshot.is_broken() {
        store.maintain(NOW, Budget { segments: 2 }).unwrap();
        write_one();
        writes += 1;
    }
    writes
}

#[test]
fn a_store_that_made_room_before_a_snapshot_goes_on_longer_beside_it() {
    let (without, with) = (writes_beside_a_snapshot(false), writes_beside_a_snapshot(true));
    assert!(with > 2 * without, "{with} writes against {without}");
}

#[test]
fn a_snapshot_is_the_only_one_and_ends_with_its_store() {
    let (store, mut session) = open(&device(4 << 20), small());
    put(&mut session, b"a", b"one", PutOptions::default());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(store.snapshot().unwrap_err().kind(), ErrorKind::Busy);
    let segment = snapshot.segments()[0];
    let mut bytes = vec![0; 100];
    snapshot.read(&segment, 0, &mut bytes).unwrap();
    let beyond = snapshot.read(&segment, snapshot.segment_bytes(), &mut bytes).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::InvalidInput, "{beyond}");
    snapshot.let_go(&segment);
    let gone = snapshot.read(&segment, 0, &mut bytes).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::InvalidInput, "{gone}");
    drop(snapshot);
    let snapshot = store.snapshot().unwrap();
    drop(session);
    store.close(NOW).unwrap();
    let closed = snapshot.read(&snapshot.segments()[0], 0, &mut bytes).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Busy, "{closed}");
    assert_eq!(store.snapshot().unwrap_err().kind(), ErrorKind::Poisoned);
    let cache = StoreOptions { reclaim: Reclaim::Evict, ..small() };
    let (cache, _session) = open(&device(4 << 20), cache);
    assert_eq!(cache.snapshot().unwrap_err().kind(), ErrorKind::InvalidInput);
}
