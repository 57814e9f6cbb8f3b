//! The backing in memory: its promises to the tests that use it.

use entresol_sim::Random;
use entresol_volume::backing::memory::{Fault, Kind, Loss, MemoryMedium, Pace};
use entresol_volume::backing::{Backing, BackingRequest, ExtentKind};
use entresol_volume::{Durable, ErrorKind, Hole};

use crate::model::{Model, Seed, is_readable, perform, seeds, write};

const BYTES: usize = 300_123;

#[test]
fn requests_in_any_order_leave_what_an_array_would_hold() {
    for seed in seeds() {
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(BYTES);
        let mut model = Model::new(vec![0; BYTES], seed);
        for pace in [Pace::AtOnce, Pace::Drawn { seed, reaps_max: 5 }] {
            medium.set_pace(pace);
            model.exercise(&mut medium.open().unwrap(), 400);
            assert!(medium.contents() == model.bytes);
        }
    }
}

#[test]
fn a_crash_keeps_what_was_flushed_and_tears_only_what_was_not() {
    let (seeds, mut lost) = (seeds(), 0);
    for seed in &seeds {
        let seed = *seed;
        let _seed = Seed(seed);
        let medium = MemoryMedium::new(BYTES);
        let mut model = Model::new(vec![0; BYTES], seed);
        let mut backing = medium.open().unwrap();
        model.exercise(&mut backing, 100);
        perform(&mut backing, BackingRequest::Flush).unwrap();
        let flushed = model.bytes.clone();
        assert!(medium.durable_contents() == flushed);
        model.written.fill(false);
        model.exercise(&mut backing, 100);
        medium.crash(Loss::Drawn(seed));
        let left = medium.contents();
        assert!(left == medium.durable_contents());
        lost += (0..BYTES).filter(|at| left[*at] != model.bytes[*at]).count();
        let wrong = (0..BYTES).find(|at| !model.written[*at] && left[*at] != flushed[*at]);
        assert_eq!(wrong, None, "it was flushed, and nobody wrote there since");
        let died = perform(&mut backing, BackingRequest::Flush).unwrap_err();
        assert_eq!(died.kind(), ErrorKind::Unavailable);
        assert_eq!(perform(&mut medium.open().unwrap(), read(0, 512)).unwrap(), left[..512]);
    }
    // With one seed the last of all requests may have been a flush.
    assert!(lost > 0 || seeds.len() == 1, "nothing was lost");
}

#[test]
fn an_older_write_never_comes_back_over_a_durable_one() {
    for seed in 0..64 {
        let medium = MemoryMedium::new(8192);
        let mut backing = medium.open().unwrap();
        perform(&mut backing, write(0, &[1; 4096])).unwrap();
        let durable = Durable::AtOnce;
        let bytes = vec![2; 1024].into();
        perform(&mut backing, BackingRequest::Write { offset: 512, bytes, durable }).unwrap();
        medium.crash(Loss::Drawn(seed));
        assert_eq!(medium.contents()[512..1536], [2; 1024]);
    }
}

#[test]
fn a_dying_process_loses_nothing_that_was_answered() {
    let medium = MemoryMedium::new(8192);
    let mut backing = medium.open().unwrap();
    perform(&mut backing, write(0, &[1; 4096])).unwrap();
    medium.set_pace(Pace::Drawn { seed: 3, reaps_max: 9 });
    backing.begin(1, write(4096, &[2; 4096]));
    backing.submit();
    medium.crash(Loss::None);
    assert_eq!(medium.contents()[..4096], [1; 4096]);
    medium.crash(Loss::All);
    assert_eq!(medium.contents(), [0; 8192]);
}

#[test]
fn a_failed_flush_covers_nothing_then_or_later() {
    let medium = MemoryMedium::new(4096);
    medium.add_fault(Fault::Calls { kind: Kind::Flush, from: 0, count: 1 });
    let mut backing = medium.open().unwrap();
    perform(&mut backing, write(0, &[1; 512])).unwrap();
    let failed = perform(&mut backing, BackingRequest::Flush).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Io);
    perform(&mut backing, BackingRequest::Flush).unwrap();
    medium.crash(Loss::All);
    assert_eq!(medium.contents()[..512], [0; 512]);
}

#[test]
fn ordered_faults_strike_where_they_were_ordered_and_nowhere_else() {
    let medium = MemoryMedium::new(1 << 16);
    medium.add_fault(Fault::Calls { kind: Kind::Read, from: 1, count: 2 });
    medium.add_fault(Fault::Range { kind: Kind::Write, bytes: 8192..8193 });
    medium.add_fault(Fault::Sometimes { kind: Kind::Zero, seed: 1, one_in: 3 });
    let mut backing = medium.open().unwrap();
    let reads = (0..5).map(|_| perform(&mut backing, read(0, 4096)).is_ok());
    assert_eq!(reads.collect::<Vec<_>>(), [true, false, false, true, true]);
    perform(&mut backing, write(4096, &[1; 4096])).unwrap();
    perform(&mut backing, write(4096, &[1; 4097])).unwrap_err();
    let zero = BackingRequest::Zero { offset: 0, length: 4096, hole: Hole::Forbidden };
    let failed = (0..300).filter(|_| perform(&mut backing, zero.clone()).is_err()).count();
    assert!((60..140).contains(&failed), "{failed} of 300");
    medium.clear_faults();
    perform(&mut backing, write(4096, &[1; 4097])).unwrap();
}

#[test]
fn power_goes_at_the_change_it_was_ordered_for() {
    let medium = MemoryMedium::new(1 << 16);
    medium.add_fault(Fault::PowerAt(2));
    let mut backing = medium.open().unwrap();
    perform(&mut backing, write(0, &[1; 512])).unwrap();
    perform(&mut backing, BackingRequest::Flush).unwrap();
    assert!(!medium.is_without_power());
    let failed = perform(&mut backing, write(512, &[2; 512])).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert!(medium.is_without_power());
    assert_eq!(medium.open().unwrap_err().kind(), ErrorKind::Unavailable);
    medium.crash(Loss::All);
    let mut backing = medium.open().unwrap();
    let mut expected = vec![1; 512];
    expected.resize(1024, 0);
    assert_eq!(perform(&mut backing, read(0, 1024)).unwrap(), expected);
}

#[test]
fn nothing_completes_while_the_pace_is_never_and_its_descriptor_tells_what_waits() {
    let medium = MemoryMedium::new(1 << 16);
    let mut backing = medium.open().unwrap();
    assert!(!is_readable(&backing));
    medium.set_pace(Pace::Never);
    backing.begin(1, read(0, 512));
    backing.submit();
    let mut completions = Vec::new();
    backing.wait(&mut completions);
    backing.reap(&mut completions);
    assert!(completions.is_empty() && backing.in_flight() == 1);
    medium.set_pace(Pace::AtOnce);
    assert!(is_readable(&backing));
    backing.reap(&mut completions);
    assert!(completions.len() == 1 && backing.in_flight() == 0);
    assert!(!is_readable(&backing));
}

#[test]
fn holes_zeros_and_data_are_told_apart() {
    let medium = MemoryMedium::new(5 * 4096 + 100);
    let mut backing = medium.open().unwrap();
    perform(&mut backing, write(4000, &[1; 8192])).unwrap();
    let kinds = |backing: &mut dyn Backing| {
        let extents = backing.allocation((0, u64::MAX), 100).unwrap();
        extents.iter().map(|extent| (extent.length, extent.kind)).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&mut backing),
        [(3 * 4096, ExtentKind::Data), (2 * 4096 + 100, ExtentKind::Hole)]
    );
    let zero = BackingRequest::Zero { offset: 10, length: 8192, hole: Hole::Forbidden };
    perform(&mut backing, zero).unwrap();
    perform(&mut backing, BackingRequest::Trim { offset: 8192, length: 4096 }).unwrap();
    assert_eq!(
        kinds(&mut backing),
        [(4096, ExtentKind::Data), (4096, ExtentKind::Zero), (3 * 4096 + 100, ExtentKind::Hole)]
    );
}

#[test]
fn requests_that_no_backing_takes_are_refused_by_kind() {
    let medium = MemoryMedium::new(10_000);
    let mut description = medium.open().unwrap().description().clone();
    description.alignment = 512;
    description.request_bytes_max = 4096;
    medium.set_description(description.clone());
    let mut backing = medium.open().unwrap();
    let mut kind = |request| perform(&mut backing, request).map_err(|error| error.kind());
    assert_eq!(kind(read(9728, 272)).map(|bytes| bytes.len()), Ok(272));
    assert_eq!(kind(read(9728, 273)), Err(ErrorKind::InvalidInput));
    assert_eq!(kind(read(u64::MAX, 2)), Err(ErrorKind::InvalidInput));
    assert_eq!(kind(read(0, 0)), Err(ErrorKind::InvalidInput));
    assert_eq!(kind(read(100, 512)), Err(ErrorKind::InvalidInput));
    assert_eq!(kind(read(0, 4608)), Err(ErrorKind::InvalidInput));
    assert_eq!(kind(write(9728, &[0; 512])), Err(ErrorKind::NoSpace));
    description.read_only = true;
    medium.set_description(description);
    let mut backing = medium.open().unwrap();
    let refused = perform(&mut backing, write(0, &[0; 512])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

#[test]
fn the_same_seeds_give_the_same_crash() {
    let run = |seed: u64| {
        let medium = MemoryMedium::new(1 << 16);
        medium.set_pace(Pace::Drawn { seed, reaps_max: 3 });
        let mut random = Random::new(seed);
        let mut backing = medium.open().unwrap();
        for token in 0..16 {
            backing.begin(token, write(token * 4096, &[random.next_u64() as u8; 4096]));
        }
        backing.submit();
        backing.reap(&mut Vec::new());
        medium.crash(Loss::Drawn(seed));
        medium.contents()
    };
    assert!(run(5) == run(5));
    assert!(run(5) != run(6));
}

fn read(offset: u64, length: u32) -> BackingRequest {
    BackingRequest::Read { offset, length }
}
