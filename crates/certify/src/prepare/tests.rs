//! Preparation on devices in memory.

use std::sync::Arc;

use entresol_device::MemoryDevice;
use entresol_workload::Random;

use super::*;

const SIZE: u64 = 100 * PIECE_BYTES + 12_288;

fn target() -> Target {
    Target::of(Arc::new(MemoryDevice::new(SIZE).unwrap()))
}

fn running() -> AtomicBool {
    AtomicBool::new(false)
}

/// Prepares until so many bytes of `pass` are done.
fn prepare_until(target: &Target, pass: Pass, bytes: u64) -> (Prepared, Option<PassProgress>) {
    let stop = running();
    let mut first = None;
    let prepared = prepare(target, &stop, &mut |progress| {
        first.get_or_insert(progress);
        if progress.pass == pass && progress.done_bytes >= bytes {
            stop.store(true, Ordering::Relaxed);
        }
    });
    (prepared.unwrap(), first)
}

#[test]
fn a_prepared_target_is_random_to_its_end_and_no_two_sectors_are_alike() {
    let target = target();
    assert_eq!(survey(&target).unwrap(), Survey::Unprepared);
    let prepared = prepare(&target, &running(), &mut |_| {}).unwrap();
    assert_eq!(prepared, Prepared::Whole);
    assert!(matches!(survey(&target).unwrap(), Survey::Prepared { .. }));
    let found = verify(&target, &running(), &mut |_| {}).unwrap().unwrap();
    assert_eq!(found, Verification { good: SIZE / 512, ..Verification::default() });
    let mut all = IoBuffer::aligned(SIZE as usize);
    target.device().unwrap().read_at(0, &mut all).unwrap();
    let mut seen = std::collections::HashSet::new();
    for (page, bytes) in all.chunks(4096).enumerate() {
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let share = |count: u32| f64::from(count) / bytes.len() as f64;
        let used = counts.iter().filter(|&&count| count > 0);
        let entropy: f64 = used.map(|&count| -share(count) * share(count).log2()).sum();
        assert!(entropy > 7.9, "page {page}: {entropy} bits a byte");
        assert!(seen.insert(bytes.to_vec()), "page {page} is there twice");
    }
}

#[test]
fn a_stopped_preparation_goes_on_near_where_it_was() {
    for pass in [Pass::Zeros, Pass::Random] {
        let target = target();
        let (stopped, _) = prepare_until(&target, pass, 70 * PIECE_BYTES);
        assert_eq!(stopped, Prepared::Stopped, "{pass:?}");
        let (prepared, first) = prepare_until(&target, pass, u64::MAX);
        assert_eq!(prepared, Prepared::Whole);
        let first = first.unwrap();
        assert_eq!(first.pass, pass);
        let expected = 36 * PIECE_BYTES..90 * PIECE_BYTES;
        assert!(expected.contains(&first.done_bytes), "{pass:?}: {first:?}");
        assert!(verify(&target, &running(), &mut |_| {}).unwrap().unwrap().is_good());
    }
}

#[test]
fn a_preparation_that_begins_anew_and_is_stopped_goes_on_too() {
    for pass in [Pass::Zeros, Pass::Random] {
        let target = target();
        prepare(&target, &running(), &mut |_| {}).unwrap();
        let (stopped, _) = prepare_until(&target, pass, 70 * PIECE_BYTES);
        assert_eq!(stopped, Prepared::Stopped, "{pass:?}");
        assert!(!matches!(survey(&target).unwrap(), Survey::Prepared { .. }), "{pass:?}");
        let (prepared, first) = prepare_until(&target, pass, u64::MAX);
        assert_eq!(prepared, Prepared::Whole);
        let first = first.unwrap();
        assert_eq!(first.pass, pass);
        assert!(first.done_bytes >= 36 * PIECE_BYTES, "{pass:?}: {first:?}");
        assert!(verify(&target, &running(), &mut |_| {}).unwrap().unwrap().is_good());
    }
}

#[test]
fn a_whole_preparation_begins_anew() {
    let target = target();
    prepare(&target, &running(), &mut |_| {}).unwrap();
    let Survey::Prepared { run: before } = survey(&target).unwrap() else { panic!("prepared") };
    let (_, first) = prepare_until(&target, Pass::Verify, u64::MAX);
    assert_eq!(first.map(|first| first.pass), Some(Pass::Zeros));
    let Survey::Prepared { run: after } = survey(&target).unwrap() else { panic!("prepared") };
    assert_ne!(before, after);
}

#[test]
fn verification_finds_what_was_changed_moved_and_overwritten() {
    let target = target();
    prepare(&target, &running(), &mut |_| {}).unwrap();
    let device = target.device().unwrap();
    let mut unit = IoBuffer::aligned(4096);
    device.read_at(8192, &mut unit).unwrap();
    device.write_at(1 << 20, &unit).unwrap();
    unit[100] ^= 1;
    device.write_at(8192, &unit).unwrap();
    device.write_at(SIZE - 4096, &IoBuffer::aligned(4096)).unwrap();
    let found = verify(&target, &running(), &mut |_| {}).unwrap().unwrap();
    assert_eq!((found.wrong, found.foreign, found.unreadable), (1 + 8, 8, 0));
    assert!(!found.is_good());
    assert!(found.first.unwrap().contains("offset 8192"));
}

/// What a load writes at `offset`.
fn load_at(target: &Target, offset: u64, length: usize) {
    let content = Content::new(9, 100, Marking::Described { run: 9 });
    let place = Place { device: target.identity(), offset };
    let mut bytes = IoBuffer::aligned(length);
    content.fill(&mut Random::new(offset), place, 5, &mut bytes);
    target.device().unwrap().write_at(offset, &bytes).unwrap();
}

/// Where a load had written at both ends, a device that was never filled was taken for prepared.
#[test]
fn only_the_random_pass_proves_that_a_target_was_filled() {
    const BLOCK: usize = 128 << 10;
    let target = target();
    let ends = [PIECE_BYTES, SIZE].map(|end| end - BLOCK as u64);
    ends.iter().for_each(|&offset| load_at(&target, offset, BLOCK));
    assert_eq!(survey(&target).unwrap(), Survey::Unprepared);
    // Nor do writes at the end of each piece.
    for piece in 1..=100 {
        load_at(&target, piece * PIECE_BYTES - BLOCK as u64, BLOCK);
    }
    assert_eq!(survey(&target).unwrap(), Survey::Unprepared);
    prepare(&target, &running(), &mut |_| {}).unwrap();
    ends.iter().for_each(|&offset| load_at(&target, offset, BLOCK));
    load_at(&target, 40 * PIECE_BYTES, PIECE_BYTES as usize);
    assert!(matches!(survey(&target).unwrap(), Survey::Prepared { .. }));
}

#[test]
fn a_target_that_somebody_has_written_to_since_it_was_prepared_is_filled_anew() {
    let target = target();
    prepare(&target, &running(), &mut |_| {}).unwrap();
    let zeros = IoBuffer::aligned(4 * PIECE_BYTES as usize);
    target.device().unwrap().write_at(30 * PIECE_BYTES, &zeros).unwrap();
    assert_eq!(survey(&target).unwrap(), Survey::Unprepared);
}
