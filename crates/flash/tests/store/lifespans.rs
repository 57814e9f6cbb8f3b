//! Records of like lifespan share segments: when they are put, and when reclaim copies them.

use entresol_flash::Lifespan;

use super::*;

const SHORT: u64 = 40;
const LONG: u64 = 400;
const LENGTH: usize = 3000;

fn name(lifespan: Lifespan, n: u64) -> Vec<u8> {
    format!("{lifespan:?} {n}").into_bytes()
}

fn put_hinted(session: &mut Session, n: u64, round: u64, lifespan: Lifespan) {
    let options = PutOptions { lifespan, ..PutOptions::default() };
    put(session, &name(lifespan, n), &value_of(round, LENGTH), options);
}

/// Of each segment that holds some, how many records of it are expected to live shortly and long.
fn mixed_segments(device: &Arc<dyn Device>) -> (u64, u64) {
    let capacity = device.geometry().capacity_bytes as usize;
    let mut image = entresol_device::IoBuffer::aligned(capacity);
    device.read_at(0, &mut image).unwrap();
    let count = |segment: &[u8], word: &[u8]| {
        segment.windows(word.len()).filter(|window| *window == word).count() as u64
    };
    let (mut mixed, mut pure) = (0, 0);
    for segment in image.chunks(64 << 10).skip(2).filter(|segment| segment[0] != 0) {
        match (count(segment, b"Short "), count(segment, b"Long ")) {
            (0, 0) => {}
            (0, _) | (_, 0) => pure += 1,
            _ => mixed += 1,
        }
    }
    (mixed, pure)
}

fn worn(device: &Arc<dyn Device>) -> (Store, Session) {
    let (store, mut session) = open(device, StoreOptions { shards: 1, ..small() });
    for n in 0..LONG {
        put_hinted(&mut session, n, n, Lifespan::Long);
    }
    let mut random = entresol_sim::Random::new(4);
    for round in 0..4000 {
        if round % 8 == 0 {
            put_hinted(&mut session, random.below(LONG), round, Lifespan::Long);
        } else {
            put_hinted(&mut session, random.below(SHORT), round, Lifespan::Short);
        }
        store.maintain(NOW, Budget { segments: 4 }).unwrap();
    }
    (store, session)
}

#[test]
fn records_of_different_lifespans_share_no_segment_even_after_they_were_copied() {
    let device = device(3 << 20);
    let (store, session) = worn(&device);
    assert!(store.statistics().moved_bytes > 0);
    drop(session);
    store.close(NOW).unwrap();
    let (mixed, pure) = mixed_segments(&device);
    assert!(mixed == 0 && pure > 10, "{mixed} mixed, {pure} pure");
}

#[test]
fn a_touch_keeps_the_lifespan_of_a_record() {
    let device = device(4 << 20);
    let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
    put_hinted(&mut session, 1, 1, Lifespan::Long);
    put_hinted(&mut session, 1, 1, Lifespan::Short);
    for lifespan in [Lifespan::Short, Lifespan::Long] {
        let bytes = name(lifespan, 1);
        let (condition, expiry) = (Condition::Always, Expiry::default());
        let touch = Operation::Touch { key: key(&bytes), expiry, condition };
        session.run(NOW, touch, &mut |_| {}).unwrap();
        // The long one would follow the short one if it had been forgotten.
    }
    drop(session);
    store.close(NOW).unwrap();
    let (mixed, pure) = mixed_segments(&device);
    assert_eq!((mixed, pure), (0, 2));
}

/// Earlier versions do not know the marks of lifespans: they must not open the store. One without
/// is theirs as well.
#[test]
fn a_store_is_of_the_first_format_until_it_needs_the_second() {
    let device = device(4 << 20);
    let version = |device: &Arc<dyn Device>| {
        let mut copies = entresol_device::IoBuffer::aligned(128 << 10);
        device.read_at(0, &mut copies).unwrap();
        [copies[8], copies[(64 << 10) + 8]]
    };
    let (_store, mut session) = open(&device, small());
    put(&mut session, b"k", b"plain", PutOptions::default());
    assert_eq!(version(&device), [1, 1]);
    put_hinted(&mut session, 1, 1, Lifespan::Short);
    assert_eq!(version(&device), [2, 2]);
    drop(session);
    let (_store, mut session) = open(&device, small());
    assert_eq!(version(&device), [2, 2]);
    put(&mut session, b"k", b"plain", PutOptions::default());
}
