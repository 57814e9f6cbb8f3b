//! Ground that vanishes under a running store: its write buffers, its files.

use std::fs;

use super::identity::Yard;
use super::*;

fn maintained(store: &Store, round: u64) {
    let now = Timestamp(NOW.0 + 2_000 * round);
    store.maintain(now, Budget { segments: 1 }).unwrap();
}

fn set(session: &mut Session, number: u64) {
    put(session, &number.to_le_bytes(), &value_of(number, 700), PutOptions::default());
}

fn all_are_there(session: &mut Session, count: u64) {
    for number in 0..count {
        let found = get(session, &number.to_le_bytes());
        assert_eq!(found, Some(value_of(number, 700)), "{number} of {count}");
    }
}

/// Whoever logs out has systemd remove what is theirs in shared memory: the next kill took all that
/// was acknowledged since, without a word.
#[test]
fn buffers_that_are_removed_under_a_store_are_made_again_with_all_that_was_acknowledged() {
    let yard = Yard::new("removed");
    let (store, mut session) = yard.open("a");
    for round in 1..4 {
        (0..100).for_each(|number| set(&mut session, (round - 1) * 100 + number));
        yard.buffers().iter().for_each(|file| fs::remove_file(file).unwrap());
        maintained(&store, round);
        let figures = store.statistics();
        assert_eq!((figures.buffers_remade, figures.ground), (round, None));
        assert_eq!(yard.buffers().len(), 1);
        all_are_there(&mut session, round * 100);
    }
    (300..350).for_each(|number| set(&mut session, number));
    drop((store, session));
    let (store, mut session) = yard.open("a");
    all_are_there(&mut session, 350);
    store.close(NOW).unwrap();
    assert!(yard.buffers().is_empty());
}

#[test]
fn a_write_waits_for_the_device_while_buffers_cannot_be_made_again() {
    let yard = Yard::new("unmade");
    let (store, mut session) = yard.open("a");
    (0..50).for_each(|number| set(&mut session, number));
    fs::remove_dir_all(yard.path("buffers")).unwrap();
    maintained(&store, 1);
    let why = store.statistics().ground.unwrap();
    assert!(why.contains("cannot be made again"), "{why}");
    (50..100).for_each(|number| set(&mut session, number));
    drop((store, session));
    fs::create_dir_all(yard.path("buffers")).unwrap();
    let (store, mut session) = yard.open("a");
    all_are_there(&mut session, 100);
    fs::remove_dir_all(yard.path("buffers")).unwrap();
    maintained(&store, 1);
    fs::create_dir_all(yard.path("buffers")).unwrap();
    maintained(&store, 2);
    assert_eq!((store.statistics().buffers_remade, store.statistics().ground), (1, None));
    (100..150).for_each(|number| set(&mut session, number));
    drop((store, session));
    all_are_there(&mut yard.open("a").1, 150);
}

#[test]
fn a_store_whose_file_is_removed_acknowledges_nothing_more_and_is_still_read() {
    for cut in [false, true] {
        let yard = Yard::new(if cut { "cut" } else { "unlinked" });
        let (store, mut session) = yard.open("a");
        (0..50).for_each(|number| set(&mut session, number));
        maintained(&store, 1);
        let moved = yard.path("moved");
        fs::rename(yard.path("a"), &moved).unwrap();
        maintained(&store, 2);
        let why = store.statistics().ground.unwrap();
        assert!(why.contains("not there by that name"), "{why}");
        set(&mut session, 50);
        match cut {
            true => fs::File::options().write(true).open(&moved).unwrap().set_len(1 << 20).unwrap(),
            false => fs::remove_file(&moved).unwrap(),
        }
        let _refused = store.maintain(Timestamp(NOW.0 + 9_000), Budget { segments: 1 });
        let why = store.statistics().poisoned.unwrap();
        assert!(why.contains(if cut { "was cut from" } else { "was removed while" }), "{why}");
        let operation =
            Operation::Put { key: key(b"no"), value: b"", options: PutOptions::default() };
        let refused = session.run(NOW, operation, &mut |_| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Poisoned, "{refused}");
        all_are_there(&mut session, 51);
    }
}
