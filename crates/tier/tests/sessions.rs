//! What sessions promise beside one another, to a write budget, and of memory.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use entresol_device::{Device, MemoryDevice};
use entresol_sim::{SimDevice, SimOptions};
use entresol_tier::{
    Admission, Budget, Condition, Durability, ErrorKind, Expiry, JournalAppend, JournalRoom, Key,
    Operation, Outcome, Pinning, PutOptions, Reclaim, Session, SessionOptions, SpaceId,
    StoreOptions, Tiered, TieredOptions, Timestamp, Version,
};

const NOW: Timestamp = Timestamp(1_000);
const SPACE: SpaceId = SpaceId(0);

fn open(durability: Durability, memory_bytes: u64, admission: Admission) -> Arc<Tiered> {
    let reclaim = match admission {
        Admission::Always => Reclaim::Compact,
        Admission::WriteBudget(_) => Reclaim::Evict,
    };
    try_open(durability, memory_bytes, (admission, reclaim)).unwrap()
}

fn try_open(
    durability: Durability,
    memory_bytes: u64,
    (admission, reclaim): (Admission, Reclaim),
) -> entresol_tier::Result<Arc<Tiered>> {
    let device = MemoryDevice::new(160 << 20).unwrap();
    let store = StoreOptions {
        durability,
        reclaim,
        segment_bytes: 256 << 10,
        shards: 2,
        ..StoreOptions::default()
    };
    let options = TieredOptions { store, memory_bytes, cache_bytes: None, admission };
    Tiered::open(Arc::new(device), options, NOW)
}

fn session(tiered: &Arc<Tiered>) -> Session {
    tiered.session(SessionOptions::default()).unwrap()
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { space: SPACE, partition: 0, bytes }
}

/// What became of a put of `value` under `name`: its version, or that it was refused.
fn put(
    session: &mut Session,
    (name, value): (&[u8], &[u8]),
    options: PutOptions,
) -> Result<Version, Option<Version>> {
    let mut ended = Err(None);
    let operation = Operation::Put { key: key(name), value, options };
    let mut visit = |outcome: Outcome<'_>| match outcome {
        Outcome::Stored { version } => ended = Ok(version),
        Outcome::Refused { current } => ended = Err(current),
        other => panic!("a put ended as {other:?}"),
    };
    session.run(NOW, operation, &mut visit).unwrap();
    ended
}

fn get(session: &mut Session, name: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let mut visit = |outcome: Outcome<'_>| {
        if let Outcome::Found(entry) = outcome {
            found = Some(entry.value.to_vec());
        }
    };
    session.run(NOW, Operation::Get { key: key(name) }, &mut visit).unwrap();
    found
}

fn only_if(condition: Condition) -> PutOptions {
    PutOptions { condition, ..PutOptions::default() }
}

/// A put that the budget leaves out was answered as stored whatever its condition, and took the
/// entry away that should have refused it.
#[test]
fn a_put_beyond_the_write_budget_keeps_its_condition() {
    let tiered = open(Durability::Memory, 32 << 20, Admission::WriteBudget(1));
    let mut session = session(&tiered);
    // The first one takes all of the budget, and more.
    let first = put(&mut session, (b"a", b"first"), PutOptions::default()).unwrap();
    assert_eq!(put(&mut session, (b"a", b"x"), only_if(Condition::Absent)), Err(Some(first)));
    let other = only_if(Condition::Version(Version(first.0 + 1)));
    assert_eq!(put(&mut session, (b"a", b"x"), other), Err(Some(first)));
    assert_eq!(get(&mut session, b"a").as_deref(), Some(&b"first"[..]));
    for condition in [Condition::Present, Condition::Version(first)] {
        assert_eq!(put(&mut session, (b"b", b"x"), only_if(condition)), Err(None));
    }
    assert!(put(&mut session, (b"a", b"x"), only_if(Condition::Version(first))).is_ok());
    assert_eq!(get(&mut session, b"a"), None, "what was left out hides what it replaces");
}

/// The budget was ignored without a word: a store takes every entry.
#[test]
fn a_store_with_a_write_budget_is_refused_and_told_of_both_options() {
    let policies = (Admission::WriteBudget(5_000), Reclaim::Compact);
    let opened = try_open(Durability::Memory, 32 << 20, policies);
    let error = opened.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let told = error.to_string();
    assert!(told.contains("`write-budget` of 5000"), "{told}");
    assert!(told.contains("choose `reclaim` = `cache`"), "{told}");
    for policies in [
        (Admission::Always, Reclaim::Compact),
        (Admission::Always, Reclaim::Evict),
        (Admission::WriteBudget(5_000), Reclaim::Evict),
    ] {
        try_open(Durability::Memory, 32 << 20, policies).unwrap();
    }
}

#[test]
fn a_pinned_put_is_not_left_out_by_the_write_budget() {
    let tiered = open(Durability::Memory, 32 << 20, Admission::WriteBudget(1));
    let mut session = session(&tiered);
    let pinned = PutOptions { pinning: Pinning::Pinned, ..PutOptions::default() };
    for name in [b"a", b"b", b"c"] {
        put(&mut session, (name, b"pinned"), pinned).unwrap();
        put(&mut session, (b"x", b"not"), PutOptions::default()).unwrap();
        assert_eq!(get(&mut session, name).as_deref(), Some(&b"pinned"[..]));
    }
    assert_eq!(get(&mut session, b"x"), None, "pinned entries take from the budget");
}

/// Gets of keys whose hash is near that of the write went to the device for ever.
#[test]
fn a_session_dropped_with_a_write_pending_leaves_its_key_to_the_cache() {
    let tiered = open(Durability::Synced, 32 << 20, Admission::Always);
    let mut dropped = session(&tiered);
    let operation = Operation::Put { key: key(b"a"), value: b"1", options: PutOptions::default() };
    dropped.submit(7, NOW, operation, &mut |_, _| panic!("it is not durable yet"));
    assert_eq!(dropped.in_flight(), 1);
    drop(dropped);
    let mut session = session(&tiered);
    for _ in 0..3 {
        assert_eq!(get(&mut session, b"a").as_deref(), Some(&b"1"[..]));
    }
    assert_eq!(tiered.statistics().memory_hits, 2);
}

/// The cache gave way to an index only once that had grown by a part of the cache.
#[test]
fn a_large_cache_gives_way_to_a_growing_index_within_the_cap() {
    const CAP: u64 = 4 << 30;
    let tiered = open(Durability::Memory, CAP, Admission::Always);
    let mut session = session(&tiered);
    for number in 0..600_000u32 {
        put(&mut session, (&number.to_be_bytes(), b""), PutOptions::default()).unwrap();
        if number % 20_000 == 0 {
            tiered.maintain(NOW, Budget { segments: 1 }).unwrap();
        }
    }
    tiered.maintain(NOW, Budget { segments: 1 }).unwrap();
    let used = tiered.statistics();
    assert!(used.index_bytes > 4 << 20, "{} bytes of index", used.index_bytes);
    let all = tiered.cache_capacity() + used.index_bytes + used.buffer_bytes + used.other_bytes;
    // What sessions and the program itself take is held back: 8 MiB, of which half may be late.
    assert!(all <= CAP - (4 << 20), "{all} bytes of {CAP}, {} of them index", used.index_bytes);
}

/// Maintenance failed before the cache was looked at: beside what could not be read, index and
/// cache grew over the cap.
#[test]
fn the_cache_gives_way_also_where_maintenance_fails() {
    const CAP: u64 = 64 << 20;
    const CAPACITY: u64 = 160 << 20;
    let sim = SimDevice::new(SimOptions::new(1, CAPACITY));
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        shards: 2,
        ..StoreOptions::default()
    };
    let options =
        TieredOptions { store, memory_bytes: CAP, cache_bytes: None, admission: Admission::Always };
    let device: Arc<dyn Device> = Arc::new(sim.clone());
    let tiered = Tiered::open(device, options, NOW).unwrap();
    let mut session = session(&tiered);
    let at = Some(Timestamp(NOW.0 + 1000));
    let ending = PutOptions { expiry: Expiry { at, idle_seconds: None }, ..PutOptions::default() };
    for number in 0..600_000u32 {
        let options = if number < 20_000 { ending } else { PutOptions::default() };
        put(&mut session, (&number.to_be_bytes(), b""), options).unwrap();
    }
    sim.fail_reads(0..CAPACITY);
    let later = Timestamp(NOW.0 + 9000);
    tiered.maintain(later, Budget { segments: 1 }).unwrap_err();
    let used = tiered.statistics();
    let all = tiered.cache_capacity() + used.index_bytes + used.buffer_bytes + used.other_bytes;
    assert!(all <= CAP - (4 << 20), "{all} bytes of {CAP}, {} of them index", used.index_bytes);
}

/// It never ended in memory, where 0 says that an entry has no end; flash had none of it.
#[test]
fn an_entry_that_ends_at_the_beginning_of_time_is_in_memory_as_little_as_on_flash() {
    let tiered = open(Durability::Memory, 32 << 20, Admission::Always);
    let mut session = session(&tiered);
    let expiry = Expiry { at: Some(Timestamp(0)), idle_seconds: None };
    put(&mut session, (b"a", b"x"), PutOptions { expiry, ..PutOptions::default() }).unwrap();
    assert_eq!(get(&mut session, b"a"), None);
}

/// As in flash: others are for `poll`.
#[test]
fn submit_visits_no_operation_but_its_own() {
    let tiered = open(Durability::Synced, 32 << 20, Admission::Always);
    let mut session = session(&tiered);
    let mut visited = std::collections::HashMap::new();
    for token in 0..3_000u64 {
        let name = (token * 7 % 1_000).to_le_bytes();
        let operation = match token % 3 {
            0 => Operation::Get { key: key(&name) },
            1 => Operation::Put {
                key: key(&name),
                value: &[7; 3_000],
                options: PutOptions::default(),
            },
            _ => Operation::Remove { key: key(&name), condition: Condition::Always },
        };
        session.submit(token, NOW, operation, &mut |other, outcome| {
            assert_eq!(other, token, "another operation is visited");
            outcome.unwrap();
            *visited.entry(other).or_insert(0) += 1;
        });
        let wanted = if session.in_flight() > 50 { 20 } else { 0 };
        session.poll(wanted, NOW, &mut |token, _| *visited.entry(token).or_insert(0) += 1).unwrap();
    }
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut |token, _| *visited.entry(token).or_insert(0) += 1).unwrap();
    }
    assert!(visited.len() == 3_000 && visited.values().all(|count| *count == 1));
}

/// Users above keep tables in memory, too: one cap is for all.
#[test]
fn what_users_above_reserve_the_cache_gives_up_and_the_index_never_takes() {
    const CAP: u64 = 48 << 20;
    const RESERVABLE: u64 = 12 << 20;
    let device = || Arc::new(MemoryDevice::new(160 << 20).unwrap());
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        shards: 2,
        ..StoreOptions::default()
    };
    let admission = Admission::Always;
    let options = TieredOptions { store, memory_bytes: CAP, cache_bytes: None, admission };
    let tiered = Tiered::open_reserving(device(), options.clone(), RESERVABLE, NOW).unwrap();
    let before = tiered.cache_capacity();
    tiered.reserve(RESERVABLE).unwrap();
    assert_eq!(tiered.reserved_bytes(), RESERVABLE);
    assert!(tiered.cache_capacity() <= before - RESERVABLE);
    let refused = tiered.reserve(RESERVABLE + 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(refused.to_string().contains(&(RESERVABLE + 1).to_string()), "{refused}");
    assert_eq!(tiered.reserved_bytes(), RESERVABLE, "what is refused changes nothing");
    let index_max = tiered.store().options().index_bytes_max;
    let buffers = 2 * 8 * (256 << 10);
    assert!(index_max + buffers + RESERVABLE < CAP, "the index leaves what may be reserved");
    tiered.reserve(0).unwrap();
    assert!(tiered.cache_capacity() > before - RESERVABLE / 2, "given back");
    let opened = Tiered::open_reserving(device(), options, CAP, NOW).map(drop);
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// What a table above the tier needs to order its writes without a thread that waits.
#[test]
fn a_session_of_the_tier_reaches_a_point_of_sync_without_waiting() {
    let sim = SimDevice::new(SimOptions::new(5, 160 << 20));
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        shards: 2,
        ..StoreOptions::default()
    };
    let admission = Admission::Always;
    let options = TieredOptions { store, memory_bytes: 32 << 20, cache_bytes: None, admission };
    let tiered = Tiered::open(Arc::new(sim), options, NOW).unwrap();
    let mut session = session(&tiered);
    put(&mut session, (b"a", b"value"), PutOptions::default()).unwrap();
    let point = session.sync_point();
    let reached = (0..1000).any(|_| session.reach(&point).unwrap());
    assert!(reached, "a sync is under way after the first question");
    assert!(session.reach(&point).unwrap());
    assert!(session.may_hold(key(b"a")) && !session.may_hold(key(b"b")));
}

#[test]
fn what_is_replaced_where_it_was_found_is_in_memory_what_it_is_on_flash() {
    let tiered = open(Durability::Memory, 32 << 20, Admission::Always);
    let (mut session, mut beside) = (session(&tiered), session(&tiered));
    put(&mut session, (b"a", b"before"), PutOptions::default()).unwrap();
    let mut of_flash = tiered.store().session(SessionOptions::default()).unwrap();
    let mut found = None;
    let mut visit = |outcome: Outcome<'_>| {
        if let Outcome::Found(entry) = outcome {
            found = entry.found;
        }
    };
    of_flash.run(NOW, Operation::Get { key: key(b"a") }, &mut visit).unwrap();
    assert_eq!(get(&mut beside, b"a").as_deref(), Some(&b"before"[..]), "it is cached");
    let (options, found) = (PutOptions::default(), found.unwrap());
    let replace = Operation::Replace { key: key(b"a"), value: b"after", options, found };
    session.run(NOW, replace, &mut |_| {}).unwrap();
    assert_eq!(get(&mut beside, b"a").as_deref(), Some(&b"after"[..]));
    // It is elsewhere by now, and goes all the same.
    session.run(NOW, Operation::RemoveFound { key: key(b"a"), found }, &mut |_| {}).unwrap();
    assert_eq!(get(&mut beside, b"a"), None);
}

#[test]
fn appends_to_the_journal_are_answered_beside_operations_on_entries() {
    let store = StoreOptions {
        durability: Durability::Memory,
        segment_bytes: 256 << 10,
        shards: 2,
        journal_bytes: 4 << 20,
        ..StoreOptions::default()
    };
    let admission = Admission::Always;
    let options = TieredOptions { store, memory_bytes: 32 << 20, cache_bytes: None, admission };
    let device = Arc::new(MemoryDevice::new(160 << 20).unwrap());
    let tiered = Tiered::open(device, options, NOW).unwrap();
    let mut session = session(&tiered);
    let mut answers = Vec::new();
    for token in 0..20 {
        let mut visit = |token: u64, outcome: entresol_tier::Result<Outcome<'_>>| {
            let journaled = matches!(outcome.unwrap(), Outcome::Journaled { .. });
            answers.push((token, journaled));
        };
        let bytes = &[token as u8; 50][..];
        if token % 2 == 0 {
            let append = JournalAppend {
                lane: 1,
                owner: token,
                bytes,
                durability: None,
                continues: None,
                room: JournalRoom::Leaving(0),
            };
            session.submit_journal(token, NOW, append, &mut visit);
        } else {
            let options = PutOptions::default();
            let operation = Operation::Put { key: key(b"k"), value: bytes, options };
            session.submit(token, NOW, operation, &mut visit);
        }
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).unwrap();
        }
    }
    let expected: Vec<_> = (0..20).map(|token| (token, token % 2 == 0)).collect();
    assert_eq!(answers, expected);
    let mut owners = Vec::new();
    tiered.store().replay_journal(1, &mut |record| owners.push(record.owner)).unwrap();
    assert_eq!(owners, (0..20).step_by(2).collect::<Vec<_>>());
}

#[test]
fn what_the_opening_writes_is_no_amplification() {
    // A new store of two small entries once told that it wrote four thousand bytes for each.
    let tiered = open(Durability::Memory, 32 << 20, Admission::Always);
    let opened = tiered.statistics();
    assert!(opened.device_written_bytes > 0);
    assert_eq!(opened.write_amplification(), 0.0);
}
