//! Faults behind a volume and in its cache never lead to wrong data. I/O goes on if the backing can
//! carry it, and fails with an error that says why if not.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use entresol_sim::{CrashChoice, Ordering, Persistence, SimDevice, SimOptions};
use entresol_volume::backing::memory::{Fault, Kind, MemoryMedium, Pace};
use entresol_volume::backing::{Backing, Description};
use entresol_volume::{
    Adoption, Cache, CacheOptions, Context, Cost, Dirty, Durable, ErrorKind, Hole, Mode, Moment,
    Request, Result, Unanswered, VolumeId, VolumeOptions, Volumes,
};

const BYTES: usize = 1 << 20;
const BLOCK: u64 = 4096;

struct Setup {
    device: SimDevice,
    medium: MemoryMedium,
    cache: Option<Cache>,
    volume: VolumeId,
    now: u64,
    distrusted: Rc<Cell<u32>>,
    adopt: Option<Adoption>,
    resize: Vec<String>,
}

impl Setup {
    fn new(mode: Mode) -> Setup {
        Setup::on(mode, SimOptions::new(7, 8 << 20))
    }

    fn on(mode: Mode, options: SimOptions) -> Setup {
        let mut setup = Setup {
            device: SimDevice::new(options),
            medium: MemoryMedium::new(BYTES),
            cache: None,
            volume: VolumeId(0),
            now: 0,
            distrusted: Rc::default(),
            adopt: None,
            resize: Vec::new(),
        };
        let contents: Vec<u8> = (0..BYTES).map(|at| (at / 4096) as u8).collect();
        setup.medium.overwrite(0, &contents);
        setup.open();
        let options = VolumeOptions {
            name: "disk".to_owned(),
            backing: "memory".to_owned(),
            mode,
            // These tests read from front to back and want it cached.
            sequential_cutoff_bytes: 0,
            ..VolumeOptions::default()
        };
        setup.volume = setup.cache.as_mut().unwrap().create(&options, Moment(0)).unwrap();
        setup
    }

    fn open(&mut self) {
        let medium = self.medium.clone();
        let distrusted = Rc::clone(&self.distrusted);
        let options = CacheOptions {
            write_back_delay_ms: 1_000_000,
            adopt: self.adopt.take(),
            resize: std::mem::take(&mut self.resize),
            open_backing: Box::new(move |_| Ok(Box::new(medium.open()?) as Box<dyn Backing>)),
            distrust: Some(Box::new(move |_, _| {
                distrusted.set(distrusted.get() + 1);
                Ok(())
            })),
            ..CacheOptions::default()
        };
        let device = Arc::new(self.device.clone());
        self.cache = Some(Cache::open(device, options, Moment(self.now)).unwrap());
    }

    fn run(&mut self, request: Request) -> Result<Bytes> {
        let cache = self.cache.as_mut().unwrap();
        cache.submit(self.volume, 1, request, Moment(self.now));
        let mut completions = Vec::new();
        for _ in 0..10_000 {
            self.now += 10_000_000;
            cache.wait(Moment(self.now), &mut completions);
            if let Some(completion) = completions.pop() {
                return completion.result;
            }
        }
        panic!("a request never completes: {}", cache.statistics());
    }

    fn read(&mut self, block: u64) -> Result<Bytes> {
        self.run(Request::Read { offset: block * BLOCK, length: BLOCK as u32 })
    }

    fn write(&mut self, block: u64, byte: u8) -> Result<Bytes> {
        let bytes = Bytes::from(vec![byte; BLOCK as usize]);
        self.run(Request::Write { offset: block * BLOCK, bytes, durable: Durable::AtFlush })
    }

    fn assert_reads(&mut self, block: u64, byte: u8) {
        assert!(self.read(block).unwrap().iter().all(|read| *read == byte), "block {block}");
    }
}

#[test]
fn a_volume_written_through_outlives_its_cache_device() {
    let mut setup = Setup::new(Mode::WriteThrough);
    (0..64).for_each(|block| setup.assert_reads(block, block as u8));
    setup.device.fail_write(setup.device.calls(), Persistence::Persistent);
    setup.device.fail_sync(setup.device.calls(), Persistence::Persistent);
    for block in 0..200 {
        setup.write(block, 200 - block as u8).unwrap();
        setup.assert_reads(block, 200 - block as u8);
    }
    setup.run(Request::Flush).unwrap();
    assert_eq!(setup.distrusted.get(), 1, "noted once, before the first write around the cache");
    (0..200).for_each(|block| setup.assert_reads(block, 200 - block as u8));
    assert!(setup.cache.as_ref().unwrap().statistics().contains("the cache device failed"));
}

/// One request for zeros that the backing failed kept everything behind it in the log.
#[test]
fn a_backing_that_fails_zeroes_gets_them_written_and_what_lies_behind_them() {
    let mut setup = Setup::new(Mode::WriteBack);
    let count = u64::MAX;
    setup.medium.add_fault(Fault::Calls { kind: Kind::Zero, from: 0, count });
    setup.medium.add_fault(Fault::Calls { kind: Kind::Trim, from: 0, count });
    let (hole, cost, durable) = (Hole::Allowed, Cost::Any, Durable::AtFlush);
    setup.write(2, 7).unwrap();
    let (offset, length) = (3 * BLOCK, 5 * BLOCK);
    setup.run(Request::Zero { offset, length, hole, cost, durable }).unwrap();
    let (offset, length) = (20 * BLOCK, 300 * BLOCK);
    setup
        .run(Request::Trim { offset, length: length.min(BYTES as u64 - offset), durable })
        .unwrap();
    setup.write(200, 8).unwrap();
    setup.run(Request::WriteBack).unwrap();
    let contents = setup.medium.contents();
    let value = |block: u64| contents[(block * BLOCK) as usize];
    assert_eq!([2, 3, 7, 8, 20, 199, 200].map(value), [7, 0, 0, 8, 0, 0, 8]);
    let expected = [(2, 7), (3, 0), (8, 8), (20, 0), (200, 8)];
    expected.into_iter().for_each(|(block, byte)| setup.assert_reads(block, byte));
}

#[test]
fn dirty_blocks_of_a_failed_cache_are_read_and_new_writes_are_refused() {
    let mut setup = Setup::new(Mode::WriteBack);
    (0..8).for_each(|block| drop(setup.write(block, 99).unwrap()));
    setup.run(Request::Flush).unwrap();
    setup.device.fail_write(setup.device.calls(), Persistence::Persistent);
    setup.device.fail_sync(setup.device.calls(), Persistence::Persistent);
    setup.write(9, 98).and_then(|_| setup.run(Request::Flush)).unwrap_err();
    let refused = setup.write(10, 97).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io);
    assert!(refused.to_string().contains("the cache device failed"), "{refused}");
    (0..8).for_each(|block| setup.assert_reads(block, 99));
    setup.assert_reads(100, 100);
}

#[test]
fn errors_of_the_backing_reach_who_asked_and_nobody_else() {
    let mut setup = Setup::new(Mode::WriteThrough);
    setup.assert_reads(3, 3);
    let bytes = 3 * BLOCK..5 * BLOCK;
    setup.medium.add_fault(Fault::Range { kind: Kind::Read, bytes: bytes.clone() });
    setup.medium.add_fault(Fault::Range { kind: Kind::Write, bytes });
    setup.assert_reads(3, 3);
    assert_eq!(setup.read(4).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(setup.write(3, 77).unwrap_err().kind(), ErrorKind::Io);
    // What the failed write left on the backing is not known, so the cache does not know either.
    assert_eq!(setup.read(3).unwrap_err().kind(), ErrorKind::Io);
    setup.assert_reads(6, 6);
    setup.medium.clear_faults();
    setup.write(3, 78).unwrap();
    setup.assert_reads(3, 78);
    setup.assert_reads(4, 4);
}

#[test]
fn write_back_goes_on_when_the_backing_is_well_again() {
    let mut setup = Setup::new(Mode::WriteBack);
    (0..20).for_each(|block| drop(setup.write(block, 50).unwrap()));
    setup.medium.add_fault(Fault::Calls { kind: Kind::Write, from: 0, count: u64::MAX });
    assert_eq!(setup.run(Request::WriteBack).unwrap_err().kind(), ErrorKind::Io);
    (0..20).for_each(|block| setup.assert_reads(block, 50));
    setup.medium.clear_faults();
    setup.run(Request::WriteBack).unwrap();
    assert!(setup.medium.durable_contents()[..20 * BLOCK as usize].iter().all(|b| *b == 50));
}

#[test]
fn flipped_bits_of_the_cache_are_never_read() {
    let mut setup = Setup::new(Mode::WriteThrough);
    (0..256).for_each(|block| setup.assert_reads(block, block as u8));
    // What was written lately is in memory too; the medium is what is under test.
    setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    setup.open();
    (0..64).for_each(|block| setup.assert_reads(block, block as u8));
    let counts = setup.cache.as_ref().unwrap().counts(setup.volume).unwrap();
    assert_eq!(counts.blocks_read_hit, 64, "a restart leaves the cache warm");
    (0..8 << 20).step_by(9001).skip(8).for_each(|at| setup.device.flip_bits(at as u64, 0x40));
    (64..256).for_each(|block| setup.assert_reads(block, block as u8));
    let counts = setup.cache.as_ref().unwrap().counts(setup.volume).unwrap();
    assert!((64..256).contains(&counts.blocks_read_hit), "{counts:?}");
}

#[test]
fn a_check_finds_a_backing_that_somebody_else_wrote() {
    let mut setup = Setup::new(Mode::WriteThrough);
    (0..100).for_each(|block| setup.assert_reads(block, block as u8));
    let mut told = Vec::new();
    let (volume, now) = (setup.volume, Moment(setup.now));
    let cache = setup.cache.as_mut().unwrap();
    let report = cache.check(volume, now, &mut |done, of| told.push((done, of))).unwrap();
    assert_eq!((report.blocks, report.clean, report.wrong.len()), (256, 100, 0));
    assert_eq!(told.last(), Some(&(256, 256)));
    setup.medium.overwrite(7 * 4096, &[0xee]);
    let cache = setup.cache.as_mut().unwrap();
    let report = cache.check(volume, now, &mut |_, _| {}).unwrap();
    assert_eq!((report.clean, report.wrong), (99, vec![7]));
}

#[test]
fn a_volume_with_dirty_blocks_is_removed_only_if_they_may_be_lost() {
    let mut setup = Setup::new(Mode::WriteBack);
    setup.write(5, 1).unwrap();
    let (volume, now) = (setup.volume, Moment(setup.now));
    let cache = setup.cache.as_mut().unwrap();
    let refused = cache.remove(volume, Dirty::Keep, now).unwrap_err();
    assert!(refused.to_string().contains("1 blocks are dirty"), "{refused}");
    cache.remove(volume, Dirty::Lose, now).unwrap();
    assert!(cache.list().is_empty());
    let options =
        VolumeOptions { name: "disk".to_owned(), backing: "m".to_owned(), ..Default::default() };
    setup.volume = cache.create(&options, now).unwrap();
    setup.assert_reads(5, 5);
}

/// Nothing could be done with the dirty blocks of a volume whose backing had been copied: it was
/// another file, and no command took it.
#[test]
fn a_volume_takes_over_a_backing_as_it_is_with_its_dirty_blocks_or_without() {
    for dirty in [Dirty::Keep, Dirty::Lose] {
        let mut setup = Setup::new(Mode::WriteBack);
        (0..4).for_each(|block| setup.assert_reads(block + 20, 20 + block as u8));
        (0..4).for_each(|block| drop(setup.write(block, 99).unwrap()));
        let close_and_open = |setup: &mut Setup| {
            setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
            setup.device = setup.device.reopened(CrashChoice::KeepAll);
            setup.open();
        };
        // A copy, in which somebody wrote besides.
        let copy = MemoryMedium::new(BYTES);
        copy.overwrite(0, &setup.medium.contents());
        copy.overwrite(20 * 4096, &[7; 4096]);
        let description = copy.open().unwrap().description().clone();
        let identity = "a copy".to_owned();
        copy.set_description(Description { identity, ..description });
        setup.medium = copy;
        close_and_open(&mut setup);
        let absent = setup.cache.as_ref().unwrap().absent()[0].1.to_string();
        assert!(absent.contains("4 blocks are dirty"), "{absent}");
        assert!(absent.contains("`entresol volume adopt disk`"), "{absent}");
        setup.adopt = Some(Adoption { name: "disk".to_owned(), backing: None, dirty });
        close_and_open(&mut setup);
        // Once it was taken over, it is the volume's.
        close_and_open(&mut setup);
        assert!(setup.cache.as_ref().unwrap().absent().is_empty());
        let left = if dirty == Dirty::Keep { 4 } else { 0 };
        assert_eq!(setup.cache.as_ref().unwrap().dirty_blocks(setup.volume), Some(left));
        setup.assert_reads(20, 7);
        setup.run(Request::WriteBack).unwrap();
        for block in 0..4 {
            let byte = if dirty == Dirty::Keep { 99 } else { block as u8 };
            setup.assert_reads(block, byte);
            assert_eq!(setup.medium.contents()[block as usize * 4096], byte);
        }
        setup.write(1, 55).unwrap();
        close_and_open(&mut setup);
        setup.assert_reads(1, 55);
    }
}

#[test]
fn a_volume_whose_backing_tells_when_it_was_written_to_is_named_after_a_kill_and_not_after_a_close()
{
    let mut setup = Setup::new(Mode::WriteThrough);
    let description = setup.medium.open().unwrap().description().clone();
    let version = "of monday".to_owned();
    setup.medium.set_description(Description { version, ..description });
    let named = |setup: &Setup| setup.cache.as_ref().unwrap().unverified().to_vec();
    setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    setup.open();
    assert_eq!(named(&setup), [""; 0]);
    drop(setup.cache.take());
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    setup.open();
    assert_eq!(named(&setup), ["disk"]);
}

/// They were to be written back first, which nothing could do: a volume whose backing has another
/// size is not opened.
#[test]
fn dirty_blocks_of_a_volume_that_was_resized_too_early_are_kept_once_its_size_is_what_it_was() {
    let mut setup = Setup::new(Mode::WriteBack);
    (0..4).for_each(|block| drop(setup.write(block, 99).unwrap()));
    let close_and_open = |setup: &mut Setup| {
        setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
        setup.device = setup.device.reopened(CrashChoice::KeepAll);
        setup.open();
    };
    let larger = MemoryMedium::new(2 * BYTES);
    let medium = std::mem::replace(&mut setup.medium, larger);
    setup.resize = vec!["disk".to_owned()];
    close_and_open(&mut setup);
    let absent = setup.cache.as_ref().unwrap().absent()[0].1.to_string();
    assert!(absent.contains("4 blocks are dirty"), "{absent}");
    assert!(absent.contains(&format!("{BYTES} bytes only")), "{absent}");
    assert!(absent.contains("`entresol volume adopt disk --keep-dirty`"), "{absent}");
    setup.medium = medium;
    let name = "disk".to_owned();
    setup.adopt = Some(Adoption { name, backing: None, dirty: Dirty::Keep });
    close_and_open(&mut setup);
    setup.run(Request::WriteBack).unwrap();
    (0..4).for_each(|block| assert_eq!(setup.medium.contents()[block * 4096], 99));
}

/// It was opened, and every request of one block failed.
#[test]
fn a_backing_that_takes_single_blocks_no_more_is_refused_until_it_does() {
    let mut setup = Setup::new(Mode::WriteBack);
    setup.write(3, 99).unwrap();
    let close_and_open = |setup: &mut Setup| {
        setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
        setup.device = setup.device.reopened(CrashChoice::KeepAll);
        setup.open();
    };
    let before = setup.medium.open().unwrap().description().clone();
    setup.medium.set_description(Description { alignment: 65_536, ..before.clone() });
    close_and_open(&mut setup);
    let absent = setup.cache.as_ref().unwrap().absent()[0].1.to_string();
    assert!(absent.contains("aligned to 65536 bytes; at most 4096 expected"), "{absent}");
    setup.medium.set_description(before);
    close_and_open(&mut setup);
    setup.assert_reads(3, 99);
}

/// A kill between the records of a close left a volume that counted as closed, although nothing
/// had been noted of how its backing was left: it was neither compared nor named.
#[test]
fn a_backing_changed_after_a_close_that_was_cut_short_is_noticed_or_its_volume_named() {
    let tells = |setup: &Setup, version: &str| {
        let description = setup.medium.open().unwrap().description().clone();
        setup.medium.set_description(Description { version: version.to_owned(), ..description });
    };
    for choice in [CrashChoice::KeepAll, CrashChoice::DropAll] {
        let mut is_whole = false;
        for calls in 0.. {
            let mut setup = Setup::new(Mode::WriteThrough);
            tells(&setup, "of monday");
            setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
            setup.device = setup.device.reopened(CrashChoice::KeepAll);
            setup.open();
            setup.assert_reads(3, 3);
            setup.device.crash_after(setup.device.calls() + calls);
            is_whole = setup.cache.take().unwrap().close(Moment(setup.now)).is_ok();
            setup.device = setup.device.reopened(choice);
            tells(&setup, "of tuesday");
            setup.medium.overwrite(3 * BLOCK as usize, &[77; BLOCK as usize]);
            setup.open();
            let is_named = !setup.cache.as_ref().unwrap().unverified().is_empty();
            let is_noticed = setup.read(3).unwrap()[0] == 77;
            assert!(is_noticed || is_named, "power lost in call {calls} of a close, {choice:?}");
            if is_whole {
                break;
            }
        }
        assert!(is_whole);
    }
}

#[test]
fn a_damaged_entry_of_the_log_is_reported_and_not_passed_over() {
    // In the midst of the log, and at its end.
    for block in [15u8, 39] {
        let mut setup = Setup::new(Mode::WriteBack);
        (0..40).for_each(|block| drop(setup.write(block, 60 + block as u8).unwrap()));
        setup.run(Request::Flush).unwrap();
        setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
        setup.device = setup.device.reopened(CrashChoice::KeepAll);
        let image = setup.device.image().to_vec();
        let pattern = [60 + block; 512];
        let at = image.windows(512).position(|bytes| bytes == pattern).unwrap();
        setup.device.flip_bits(at as u64, 1);
        setup.open();
        let absent = setup.cache.as_ref().unwrap().absent();
        assert!(absent.len() == 1 && absent[0].1.to_string().contains("of its log"), "{absent:?}");
        let contents = setup.medium.contents()[usize::from(block) * 4096];
        assert_eq!(contents, block, "nothing was written back");
    }
}

/// Nothing opened a volume any more whose log was damaged: not even what was to lose the log.
#[test]
fn a_volume_whose_log_is_damaged_is_used_again_once_what_was_dirty_may_be_lost() {
    let mut setup = Setup::new(Mode::WriteBack);
    (0..40).for_each(|block| drop(setup.write(block, 60 + block as u8).unwrap()));
    let close_and_open = |setup: &mut Setup| {
        setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
        setup.device = setup.device.reopened(CrashChoice::KeepAll);
        setup.open();
    };
    setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    let image = setup.device.image().to_vec();
    let at = image.windows(512).position(|bytes| bytes == [75; 512]).unwrap();
    setup.device.flip_bits(at as u64, 1);
    setup.open();
    let absent = setup.cache.as_ref().unwrap().absent()[0].1.to_string();
    assert!(absent.contains("`entresol volume adopt disk --lose-dirty`"), "{absent}");
    let adoption = |dirty| Some(Adoption { name: "disk".to_owned(), backing: None, dirty });
    setup.adopt = adoption(Dirty::Keep);
    close_and_open(&mut setup);
    assert_eq!(setup.cache.as_ref().unwrap().absent().len(), 1, "they cannot be kept");
    setup.adopt = adoption(Dirty::Lose);
    close_and_open(&mut setup);
    assert_eq!(setup.cache.as_ref().unwrap().dirty_blocks(setup.volume), Some(0));
    (0..40).for_each(|block| setup.assert_reads(block, block as u8));
    (0..50).for_each(|block| drop(setup.write(block, 160 + block as u8).unwrap()));
    close_and_open(&mut setup);
    assert_eq!(setup.cache.as_ref().unwrap().dirty_blocks(setup.volume), Some(50));
    setup.run(Request::WriteBack).unwrap();
    (0..50).for_each(|block| setup.assert_reads(block, 160 + block as u8));
}

#[test]
fn a_small_cache_under_large_random_writes_never_runs_out_of_room() {
    let modes = [Mode::WriteBack, Mode::WriteThrough];
    let orderings = [Ordering::Shuffled, Ordering::Late { looks_max: 60 }];
    for (mode, ordering) in modes.into_iter().flat_map(|mode| orderings.map(|how| (mode, how))) {
        let mut setup = Setup::on(mode, SimOptions { ordering, ..SimOptions::new(7, 8 << 20) });
        let mut random = entresol_sim::Random::new(5);
        let mut written = vec![None; 256];
        for step in 0..4000u64 {
            let blocks = 1 + random.below(16);
            let first = random.below(256 - blocks);
            let byte = step as u8;
            let bytes = Bytes::from(vec![byte; (blocks * BLOCK) as usize]);
            let offset = first * BLOCK;
            setup.run(Request::Write { offset, bytes, durable: Durable::AtFlush }).unwrap();
            written[first as usize..(first + blocks) as usize].fill(Some(byte));
            if step % 50 == 0 {
                setup.run(Request::Flush).unwrap();
            }
        }
        for (block, byte) in written.iter().enumerate() {
            byte.iter().for_each(|byte| setup.assert_reads(block as u64, *byte));
        }
        setup.run(Request::WriteBack).unwrap();
        let counts = setup.cache.as_ref().unwrap().counts(setup.volume).unwrap();
        assert_eq!((counts.cache_write_errors, setup.distrusted.get()), (0, 0), "{counts:?}");
    }
}

#[test]
fn entries_beyond_where_a_log_broke_off_never_come_back() {
    let mut setup = Setup::new(Mode::WriteBack);
    (0..120).for_each(|block| drop(setup.write(block, 130 + block as u8).unwrap()));
    let first = setup.device.clone();
    let mut broken_off = 0;
    for choice in first.crash_choices() {
        if !matches!(choice, CrashChoice::DropOne(_) | CrashChoice::KeepOne(_)) {
            continue;
        }
        setup.device = first.reopened(choice);
        setup.open();
        let mut view: Vec<u8> = (0..120).map(|block| setup.read(block).unwrap()[0]).collect();
        broken_off += u32::from(view.iter().any(|&byte| byte < 130));
        // One entry after the other takes the numbers that are missing in the log.
        for block in 0..16 {
            setup.write(block, 1).unwrap();
            setup.run(Request::Flush).unwrap();
            view[block as usize] = 1;
            setup.device = setup.device.reopened(CrashChoice::KeepAll);
            setup.open();
            (0..120).for_each(|block| setup.assert_reads(block, view[block as usize]));
        }
    }
    assert!(broken_off > 4, "{broken_off}");
}

/// A write with FUA was durable in the log and no more: what was written after its answer could be
/// on the backing without it, which no disk does.
#[test]
fn the_backing_never_has_a_write_that_was_begun_after_a_durable_one_that_it_lacks() {
    let mut setup = Setup::new(Mode::WriteBack);
    let bytes = Bytes::from(vec![99; BLOCK as usize]);
    let durable = Durable::AtOnce;
    setup.run(Request::Write { offset: 9 * BLOCK, bytes, durable }).unwrap();
    setup.write(1, 98).unwrap();
    setup.medium.add_fault(Fault::Calls { kind: Kind::Write, from: 1, count: u64::MAX });
    setup.run(Request::WriteBack).unwrap_err();
    // A part of the write that failed may be there.
    let contents = setup.medium.contents();
    let [later, durable] = [1, 9].map(|block| &contents[block * 4096..(block + 1) * 4096]);
    assert!(later.contains(&98) && durable.iter().all(|byte| *byte == 99), "{}", durable[4095]);
}

/// A client's write may be longer than one that the backing takes: it failed.
#[test]
fn a_write_longer_than_the_backing_takes_is_written_in_pieces() {
    let modes = [Mode::WriteThrough, Mode::WriteAround, Mode::PassThrough, Mode::WriteBack];
    for mode in modes {
        let mut setup = Setup::new(mode);
        let description = setup.medium.open().unwrap().description().clone();
        // Cut between multiples of 512, not at the limit itself.
        let (request_bytes_max, alignment) = ((64 << 10) + 100, 512);
        setup.medium.set_description(Description { request_bytes_max, alignment, ..description });
        setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
        setup.device = setup.device.reopened(CrashChoice::KeepAll);
        setup.open();
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let (offset, durable) = (0, Durable::AtFlush);
        let written = Request::Write { offset, bytes: Bytes::from(bytes.clone()), durable };
        setup.run(written).unwrap();
        setup.run(Request::WriteBack).unwrap();
        assert!(setup.medium.contents() == bytes, "{mode}");
    }
}

/// What write-back put into its log were zeros and no more: the room that a client asked to keep
/// was given back by the backing.
#[test]
fn zeros_that_must_stay_allocated_do_so_when_they_are_written_back() {
    let mut setup = Setup::new(Mode::WriteBack);
    for (block, hole) in [(4, Hole::Forbidden), (5, Hole::Allowed)] {
        let (offset, length) = (block * BLOCK, BLOCK);
        let (cost, durable) = (Cost::Any, Durable::AtFlush);
        setup.run(Request::Zero { offset, length, hole, cost, durable }).unwrap();
    }
    setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    setup.open();
    let flags = |setup: &mut Setup, block: u64| {
        let (volume, range) = (setup.volume, (block * BLOCK, BLOCK));
        let cache = setup.cache.as_mut().unwrap();
        let runs = cache.extents(volume, Context::Allocation, range, 1).unwrap();
        runs[0].flags
    };
    let dirty = [4, 5].map(|block| flags(&mut setup, block));
    setup.run(Request::WriteBack).unwrap();
    let clean = [4, 5].map(|block| flags(&mut setup, block));
    // Reads as zeros; a hole that reads as zeros.
    assert_eq!((dirty, clean), ([2, 3], [2, 3]));
    [4, 5].into_iter().for_each(|block| setup.assert_reads(block, 0));
}

/// What zeros cost was asked when a client came, and held for as long as it stayed.
#[test]
fn zeros_that_must_cost_little_are_judged_by_the_mode_that_the_volume_is_in() {
    let mut setup = Setup::new(Mode::WriteBack);
    let description = setup.medium.open().unwrap().description().clone();
    setup.medium.set_description(Description { zeroes_fast: false, ..description });
    setup.cache.take().unwrap().close(Moment(setup.now)).unwrap();
    setup.device = setup.device.reopened(CrashChoice::KeepAll);
    setup.open();
    for (mode, block) in [(Mode::WriteBack, 4), (Mode::WriteThrough, 5), (Mode::WriteBack, 6)] {
        setup.run(Request::SetMode(mode)).unwrap();
        let (offset, length, hole) = (block * BLOCK, BLOCK, Hole::Allowed);
        let (cost, durable) = (Cost::LessThanWrite, Durable::AtFlush);
        let zeroed = setup.run(Request::Zero { offset, length, hole, cost, durable });
        let kind = zeroed.map(drop).map_err(|error| error.kind());
        let (expected, reads) = match mode.is_lazy() {
            true => (Ok(()), 0),
            false => (Err(ErrorKind::Unsupported), block as u8),
        };
        assert_eq!(kind, expected, "{mode}");
        setup.assert_reads(block, reads);
    }
}

/// A backing that never answered was waited for in silence.
#[test]
fn a_backing_that_does_not_answer_is_named_while_the_others_are_not() {
    let mut setup = Setup::new(Mode::WriteThrough);
    let cache = setup.cache.as_mut().unwrap();
    let devices = cache.devices();
    devices.unanswered();
    assert_eq!(devices.unanswered(), []);
    setup.medium.set_pace(Pace::Never);
    let read = Request::Read { offset: 0, length: 4096 };
    cache.submit(setup.volume, 1, read, Moment(0));
    let mut completions = Vec::new();
    cache.turn(Moment(0), &mut completions);
    let found = devices.unanswered();
    let [Unanswered { volume, pending }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((volume.as_deref(), &*pending.device), (Some("disk"), "memory"));
    let later = devices.unanswered();
    assert!(later[0].pending.age > pending.age, "{later:?} after {found:?}");
    setup.medium.set_pace(Pace::AtOnce);
    while completions.is_empty() {
        cache.wait(Moment(0), &mut completions);
    }
    assert_eq!(devices.unanswered(), []);
}
