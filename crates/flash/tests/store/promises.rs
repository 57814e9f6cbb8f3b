//! What a period promises, and what a single put may ask for beside what the store keeps.

use std::sync::atomic::Ordering;

use entresol_flash::WriteMode;
use entresol_sim::CrashChoice;

use super::waiting::Telling;
use super::*;

const BUDGET: Budget = Budget { segments: 1 };

fn period(milliseconds: u32) -> Durability {
    Durability::Periodic(NonZeroU32::new(milliseconds).unwrap())
}

fn asking(durability: Durability) -> PutOptions {
    PutOptions { durability: Some(durability), ..PutOptions::default() }
}

/// A period that ended while the device was busy with what another write waited for was noted as
/// kept: what came after that write waited for another one.
#[test]
fn a_period_covers_what_was_appended_before_its_end_whatever_the_device_is_busy_with() {
    let telling = Telling::new(16 << 20, 4);
    let device: Arc<dyn Device> = telling.clone();
    let syncs = || device.counters().syncs.load(Ordering::Relaxed);
    let options =
        StoreOptions { shards: 1, durability: period(10), mode: OpenMode::Reformat, ..small() };
    let (store, mut session) = open(&device, options);
    let operation =
        Operation::Put { key: key(b"a"), value: b"1", options: asking(Durability::Flushed) };
    session.submit(1, NOW, operation, &mut |_, _| {});
    session.flush().unwrap();
    let mut other = store.session(SessionOptions::default()).unwrap();
    put(&mut other, b"b", b"2", PutOptions::default());
    let before = syncs();
    let due = Timestamp(NOW.0 + 10);
    let mut done = store.maintain(due, BUDGET).unwrap();
    let mut calls = 0;
    while done.awaits_device && calls < 100 {
        assert!(!done.quiet);
        done = store.maintain(due, BUDGET).unwrap();
        calls += 1;
    }
    assert!(!done.awaits_device, "it never ends");
    assert_eq!(syncs() - before, 1, "within the period that was due");
}

#[test]
fn a_single_put_survives_what_was_asked_for_it_whatever_the_store_keeps() {
    let asked = [Durability::Process, Durability::Flushed, period(5), Durability::Synced];
    let kept = [
        Durability::Memory,
        Durability::Process,
        period(50),
        Durability::Flushed,
        Durability::Synced,
    ];
    for (store_keeps, asked) in kept.into_iter().flat_map(|k| asked.map(|a| (k, a))) {
        for write_mode in [WriteMode::Through, WriteMode::Behind] {
            let case = format!("{asked:?} of a store that keeps {store_keeps:?}, {write_mode:?}");
            let sim = SimDevice::new(SimOptions::new(3, 64 << 16));
            let device: Arc<dyn Device> = Arc::new(sim.clone());
            // Its buffers end with the process.
            let options = StoreOptions { durability: store_keeps, write_mode, ..small() };
            let (store, mut session) = open(&device, options.clone());
            put(&mut session, b"k", b"v", asking(asked));
            if write_mode == WriteMode::Behind {
                while store.maintain(NOW, BUDGET).unwrap().awaits_device {}
            }
            sim.crash_now();
            drop((session, store));
            let power = matches!(asked, Durability::Periodic(_) | Durability::Synced);
            let choice = if power { CrashChoice::DropAll } else { CrashChoice::KeepAll };
            let device: Arc<dyn Device> = Arc::new(sim.reopened(choice));
            let (_store, mut session) = open(&device, options);
            assert_eq!(get(&mut session, b"k").as_deref(), Some(&b"v"[..]), "{case}");
        }
    }
}

/// Whoever submits has no place for what it did not ask about: others are for `poll`.
#[test]
fn submit_visits_no_operation_but_its_own() {
    let device = device(32 << 20);
    let options = StoreOptions { durability: Durability::Synced, ..small() };
    let (_store, mut session) = open(&device, options);
    for n in 0..2_000u64 {
        put(&mut session, &n.to_le_bytes(), &value_of(n, 2_000), PutOptions::default());
    }
    let (mut begun, mut visited) = (0u64, HashMap::new());
    for round in 0..20u64 {
        for n in 0..60 {
            // Gets of what is on the device, puts that wait for a sync, removes of both.
            let (name, token) = ((round * 97 + n * 13).to_le_bytes(), begun);
            let operation = match n % 3 {
                0 => Operation::Get { key: key(&name) },
                1 => Operation::Put {
                    key: key(&name),
                    value: b"new",
                    options: PutOptions::default(),
                },
                _ => Operation::Remove { key: key(&name), condition: Condition::Always },
            };
            begun += 1;
            session.submit(token, NOW, operation, &mut |other, outcome| {
                assert_eq!(other, token, "another operation is visited");
                outcome.unwrap();
                *visited.entry(other).or_insert(0) += 1;
            });
        }
        session
            .poll(7, NOW, &mut |token, outcome| {
                outcome.unwrap();
                *visited.entry(token).or_insert(0) += 1;
            })
            .unwrap();
    }
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut |token, _| *visited.entry(token).or_insert(0) += 1).unwrap();
    }
    assert!(visited.len() as u64 == begun && visited.values().all(|count| *count == 1));
}
