//! Each row of the fault table does what it says, and nothing strikes unordered.

use entresol_device::{
    Device, ErrorKind, IoBuffer, QueueOptions, Result, WriteBuffer, WriteMode, WriteRequest,
};
use entresol_sim::{
    Call, Clock, CrashChoice, Image, Ordering, Persistence, Random, SimDevice, SimOptions, Stall,
    Tear,
};

const CAPACITY: u64 = 1 << 20;

fn device() -> SimDevice {
    SimDevice::new(SimOptions::new(1, CAPACITY))
}

fn filled(byte: u8, length: usize) -> IoBuffer {
    let mut buffer = IoBuffer::aligned(length);
    buffer.fill(byte);
    buffer
}

fn write(device: &SimDevice, offset: u64, byte: u8, length: usize) -> Result<()> {
    device.write_at(offset, &filled(byte, length))
}

fn byte_at(image: &Image, offset: u64) -> u8 {
    let mut byte = [0];
    image.read(offset, &mut byte);
    byte[0]
}

fn read(device: &SimDevice, offset: u64) -> Result<u8> {
    let mut buffer = IoBuffer::aligned(512);
    device.read_at(offset, &mut buffer).map(|()| buffer[0])
}

#[test]
fn synced_writes_survive_every_crash_and_unsynced_ones_may_not() {
    let device = device();
    write(&device, 0, 1, 4096).unwrap();
    device.sync().unwrap();
    write(&device, 8192, 2, 4096).unwrap();
    write(&device, 16384, 3, 4096).unwrap();
    device.crash_now();
    assert_eq!(read(&device, 0).unwrap_err().kind(), ErrorKind::Io);
    let (mut lost, mut kept) = (0, 0);
    let random = (0..50).map(CrashChoice::Random);
    for choice in device.crash_choices().into_iter().chain(random) {
        let image = device.image_after_crash(choice);
        assert_eq!((byte_at(&image, 0), byte_at(&image, 4095)), (1, 1), "{choice:?}");
        lost += u32::from(byte_at(&image, 8192) == 0);
        kept += u32::from(byte_at(&image, 16384) == 3);
    }
    assert!(lost > 5 && kept > 5, "lost {lost}, kept {kept}");
}

#[test]
fn crash_choices_do_what_their_names_say() {
    let device = device();
    write(&device, 0, 1, 4096).unwrap();
    write(&device, 8192, 2, 4096).unwrap();
    let after = |choice| {
        let image = device.image_after_crash(choice);
        [0, 3584, 8192, 11776].map(|offset| byte_at(&image, offset))
    };
    assert_eq!(after(CrashChoice::KeepAll), [1, 1, 2, 2]);
    assert_eq!(after(CrashChoice::DropAll), [0, 0, 0, 0]);
    assert_eq!(after(CrashChoice::DropOne(0)), [0, 0, 2, 2]);
    assert_eq!(after(CrashChoice::KeepOne(0)), [1, 1, 0, 0]);
    assert_eq!(after(CrashChoice::TearOne(1, Tear::Prefix(7))), [1, 1, 2, 0]);
    assert_eq!(after(CrashChoice::TearOne(0, Tear::Suffix(1))), [0, 1, 2, 2]);
    let garbage = device.image_after_crash(CrashChoice::TearOne(0, Tear::Garbage(3)));
    let mut unit = [0; 4096];
    garbage.read(0, &mut unit);
    assert!(unit.iter().any(|&byte| byte > 1), "the unit around the sector is garbage");
    assert_eq!(byte_at(&garbage, 4096), 0, "and no other");
}

#[test]
fn garbage_strikes_what_shares_the_unit_even_if_synced() {
    let device = device();
    write(&device, 0, 1, 512).unwrap();
    device.sync().unwrap();
    write(&device, 512, 2, 512).unwrap();
    let image = device.image_after_crash(CrashChoice::TearOne(0, Tear::Garbage(0)));
    let mut sector = [0; 512];
    image.read(0, &mut sector);
    assert_ne!(sector, [1; 512]);
}

#[test]
fn older_unsynced_bytes_never_come_back_over_newer_durable_ones() {
    let device = device();
    let mut queue = device.queue(QueueOptions { depth: 4, buffer_bytes: 0 }).unwrap();
    write(&device, 0, 1, 8192).unwrap();
    let mut buffer = WriteBuffer::anonymous(4096).unwrap();
    buffer.bytes_mut().fill(2);
    let mode = WriteMode::Durable;
    let request = WriteRequest { token: 0, offset: 4096, buffer: &buffer, range: 0..4096, mode };
    queue.write(request).unwrap();
    queue.reap(1, &mut Vec::new()).unwrap();
    for choice in device.crash_choices() {
        let image = device.image_after_crash(choice);
        assert_eq!(byte_at(&image, 4096), 2, "{choice:?}");
    }
    let dropped = device.image_after_crash(CrashChoice::DropAll);
    assert_eq!(byte_at(&dropped, 0), 0, "the rest of the older write is still unsynced");
}

#[test]
fn a_sync_covers_only_what_had_completed_before_it() {
    for seed in 0..20 {
        let mut options = SimOptions::new(seed, CAPACITY);
        options.ordering = Ordering::Shuffled;
        let device = SimDevice::new(options);
        let mut queue = device.queue(QueueOptions { depth: 4, buffer_bytes: 0 }).unwrap();
        let buffer = WriteBuffer::anonymous(4096).unwrap();
        let mode = WriteMode::Flushed;
        let request = WriteRequest { token: 0, offset: 0, buffer: &buffer, range: 0..4096, mode };
        queue.write(request).unwrap();
        queue.sync(1).unwrap();
        let mut completions = Vec::new();
        queue.reap(2, &mut completions).unwrap();
        assert_eq!(completions.len(), 2);
        assert!(device.crash_choices().contains(&CrashChoice::DropAll), "unsynced, seed {seed}");
        device.sync().unwrap();
        assert_eq!(device.crash_choices(), [CrashChoice::KeepAll], "synced, seed {seed}");
    }
}

#[test]
fn every_call_can_be_the_one_at_which_power_fails() {
    let run = |device: &SimDevice| -> Result<()> {
        write(device, 0, 1, 512)?;
        device.sync()?;
        write(device, 4096, 2, 512)?;
        device.discard(8192, 4096)?;
        device.sync()
    };
    let whole = device();
    run(&whole).unwrap();
    assert_eq!(whole.calls(), 5);
    assert_eq!(whole.call_log()[..2], [Call::Write { offset: 0, length: 512 }, Call::Sync]);
    for calls in 0..5 {
        let device = device();
        device.crash_after(calls);
        assert_eq!(run(&device).unwrap_err().kind(), ErrorKind::Io, "call {calls}");
        assert!(device.is_crashed());
        let reopened = device.reopened(CrashChoice::KeepAll);
        assert_eq!(read(&reopened, 4096).unwrap(), if calls >= 2 { 2 } else { 0 });
        let reopened = device.reopened(CrashChoice::DropAll);
        assert_eq!(read(&reopened, 0).unwrap(), u8::from(calls >= 2), "call {calls}");
    }
}

#[test]
fn a_failed_sync_is_not_made_good_by_a_later_one() {
    let device = device();
    write(&device, 0, 1, 512).unwrap();
    device.fail_sync(1, Persistence::Transient);
    assert_eq!(device.sync().unwrap_err().kind(), ErrorKind::Io);
    device.sync().unwrap();
    assert_eq!(byte_at(&device.image_after_crash(CrashChoice::DropAll), 0), 0);
}

#[test]
fn write_errors_are_transient_or_persistent() {
    let device = device();
    device.fail_write(0, Persistence::Transient);
    device.fail_write(2, Persistence::Persistent);
    let kinds = [(); 4].map(|()| write(&device, 0, 1, 512).err().map(|error| error.kind()));
    assert_eq!(kinds, [Some(ErrorKind::Io), None, Some(ErrorKind::Io), Some(ErrorKind::Io)]);
    device.heal();
    write(&device, 0, 1, 512).unwrap();
}

#[test]
fn a_full_device_refuses_writes_and_goes_on_reading() {
    let device = device();
    write(&device, 0, 5, 512).unwrap();
    device.fill_up(1);
    assert_eq!(write(&device, 512, 1, 512).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(read(&device, 0).unwrap(), 5);
    device.sync().unwrap();
}

#[test]
fn unreadable_sectors_are_healed_by_writing() {
    let device = device();
    write(&device, 0, 5, 4096).unwrap();
    device.fail_reads(512..1536);
    let error = read(&device, 512).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("512"), "{error}");
    assert_eq!(read(&device, 0).unwrap(), 5);
    write(&device, 512, 6, 512).unwrap();
    assert_eq!(read(&device, 512).unwrap(), 6);
    assert_eq!(read(&device, 1024).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn bits_flip_and_transfers_go_astray() {
    let device = device();
    write(&device, 0, 0b1000, 512).unwrap();
    device.flip_bits(0, 0b0001);
    assert_eq!(read(&device, 0).unwrap(), 0b1001);
    assert_eq!(byte_at(&device.image_after_crash(CrashChoice::KeepAll), 0), 0b1001);
    device.misdirect_write(1, 8192);
    write(&device, 4096, 7, 512).unwrap();
    assert_eq!((read(&device, 4096).unwrap(), read(&device, 8192).unwrap()), (0, 7));
    device.misdirect_read(device.reads(), 8192);
    assert_eq!((read(&device, 0).unwrap(), read(&device, 0).unwrap()), (7, 0b1001));
}

#[test]
fn stalled_queues_complete_nothing_until_the_stall_ends() {
    let device = device();
    let mut queue = device.queue(QueueOptions { depth: 4, buffer_bytes: 4096 }).unwrap();
    let mut completions = Vec::new();
    queue.read(1, 0, 512).unwrap();
    device.stall(Stall::Reaps(2));
    for left in [0, 0, 1] {
        queue.reap(1, &mut completions).unwrap();
        assert_eq!(completions.len(), left);
    }
    device.stall(Stall::Endless);
    queue.read(2, 0, 512).unwrap();
    queue.reap(1, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.in_flight()), (1, 1));
    device.stall(Stall::None);
    queue.reap(1, &mut completions).unwrap();
    assert_eq!(completions.len(), 2);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let device = SimDevice::new(SimOptions::new(seed, CAPACITY));
        let mut queue = device.queue(QueueOptions { depth: 32, buffer_bytes: 4096 }).unwrap();
        let mut completions = Vec::new();
        for token in 0..32 {
            queue.read(token, 0, 512).unwrap();
        }
        while queue.in_flight() > 0 {
            queue.reap(1, &mut completions).unwrap();
        }
        completions.iter().map(|completion| completion.token).collect::<Vec<u64>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    assert_ne!(run(3), (0..32).collect::<Vec<u64>>(), "completions are shuffled");
}

#[test]
fn images_are_copied_without_being_shared() {
    let mut image = Image::blank(CAPACITY);
    image.write(65_530, &[9; 20]);
    let copy = image.clone();
    image.flip(65_530, 1);
    assert_eq!((byte_at(&image, 65_530), byte_at(&copy, 65_530)), (8, 9));
    assert!(image != copy && copy == copy.clone());
    let mut random = Random::new(1);
    assert!((0..1000).all(|_| random.below(7) < 7));
    assert_eq!(copy.to_vec()[65_549], 9);
}

#[test]
fn the_clock_moves_only_when_told() {
    let clock = Clock::new(1000);
    assert_eq!(clock.now_ms(), 1000);
    assert_eq!(clock.advance(5), 1005);
    clock.jump(10);
    assert_eq!(clock.now_ms(), 10);
}
