//! Opening files: sizes, exclusive use, what cannot be opened.
#![expect(unsafe_code, reason = "poll, as an event loop calls it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::RawFd;
use std::process::{Command, Stdio};

use entresol_device::{
    Device, DeviceList, ErrorKind, FileDevice, FileOptions, Force, Growth, IoBuffer, Preparation,
    QueueOptions, Selection, free_bytes,
};

use crate::place::Place;

/// Set for the process that holds a device until it is killed.
const HOLD: &str = "ENTRESOL_TEST_HOLD";

fn options(capacity_bytes: Option<u64>) -> FileOptions {
    FileOptions { capacity_bytes, ..FileOptions::default() }
}

fn kind(path: impl AsRef<std::path::Path>, options: &FileOptions) -> Option<ErrorKind> {
    FileDevice::open(path, options).err().map(|error| error.kind())
}

#[test]
fn nothing_is_made_or_extended_where_that_is_not_wanted() {
    let place = Place::temporary("reading");
    let path = place.path().join("file");
    let reading =
        FileOptions { makes: false, growth: Growth::ToCapacity, ..options(Some(9 << 20)) };
    assert_eq!(kind(&path, &reading), Some(ErrorKind::NotFound));
    assert!(!path.exists());
    drop(FileDevice::open(&path, &options(Some(1 << 20))).unwrap());
    assert_eq!(kind(&path, &reading), Some(ErrorKind::InvalidInput), "it has less");
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
}

#[test]
fn a_new_file_has_its_full_size_and_reads_as_zeros() {
    let place = Place::temporary("new");
    for preparation in [Preparation::Allocated, Preparation::Written] {
        let path = place.path().join(format!("{preparation:?}"));
        let options = FileOptions { preparation, ..options(Some(9 << 20)) };
        let mut reports = Vec::new();
        let device =
            FileDevice::open_with_progress(&path, &options, &mut |at| reports.push(at)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 9 << 20);
        let last = reports.last().map(|at| (at.done_bytes, at.total_bytes));
        let expected = (preparation == Preparation::Written).then_some((9 << 20, 9 << 20));
        assert_eq!(last, expected);
        let mut bytes = IoBuffer::aligned(9 << 20);
        bytes.fill(1);
        device.read_at(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing unfinished is left");
        drop(device);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn capacity_may_be_smaller_than_the_file_but_not_larger() {
    let place = Place::temporary("capacity");
    let path = place.path().join("device");
    drop(FileDevice::open(&path, &options(Some(1 << 20))).unwrap());
    let device = FileDevice::open(&path, &options(Some((512 << 10) + 100))).unwrap();
    assert_eq!(device.geometry().capacity_bytes, 512 << 10, "whole units");
    drop(device);
    assert_eq!(FileDevice::open(&path, &options(None)).unwrap().geometry().capacity_bytes, 1 << 20);
    assert_eq!(kind(&path, &options(Some(2 << 20))), Some(ErrorKind::InvalidInput));
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20, "never extended, never truncated");
    assert_eq!(kind(place.path().join("tiny"), &options(Some(100))), Some(ErrorKind::InvalidInput));
}

#[test]
fn a_file_of_ones_own_is_extended_where_that_is_asked_for() {
    let place = Place::temporary("growth");
    let path = place.path().join("device");
    let growing = |bytes| FileOptions { growth: Growth::ToCapacity, ..options(Some(bytes)) };
    let length = || fs::metadata(&path).unwrap().len();
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    assert_eq!(kind(&path, &growing(2 << 20)), Some(ErrorKind::InvalidInput), "another's");
    assert_eq!(length(), 1 << 20);
    let own = [b"ENTRESOL".to_vec(), vec![7; (1 << 20) - 8]].concat();
    fs::write(&path, &own).unwrap();
    assert_eq!(kind(&path, &growing(1 << 50)), Some(ErrorKind::Full));
    assert_eq!(length(), 1 << 20, "nothing of it is left");
    let mut reports = Vec::new();
    let device =
        FileDevice::open_with_progress(&path, &growing(9 << 20), &mut |at| reports.push(at));
    let last = reports.last().map(|at| (at.done_bytes, at.total_bytes));
    assert_eq!(last, Some((8 << 20, 8 << 20)));
    let mut bytes = IoBuffer::aligned(9 << 20);
    device.unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes[..1 << 20], own);
    assert!(bytes[1 << 20..].iter().all(|&byte| byte == 0));
    FileDevice::open(&path, &growing(4 << 20)).unwrap();
    assert_eq!(length(), 9 << 20, "never truncated");
}

#[test]
fn what_cannot_be_opened_is_a_typed_error() {
    let place = Place::temporary("errors");
    assert_eq!(kind(place.path().join("missing"), &options(None)), Some(ErrorKind::NotFound));
    let nowhere = place.path().join("no/such/directory");
    assert_eq!(kind(nowhere, &options(Some(1 << 20))), Some(ErrorKind::NotFound));
    assert_eq!(kind(place.path(), &options(Some(1 << 20))), Some(ErrorKind::InvalidInput));
}

#[test]
fn a_file_that_finds_no_room_is_full_and_leaves_nothing_behind() {
    let place = Place::temporary("full");
    let path = place.path().join("device");
    let error = FileDevice::open(&path, &options(Some(1 << 50))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    let text = error.to_string();
    assert!(text.contains("device") && text.contains("1125899906842624"), "{text}");
    assert!(text.contains("bytes are free"), "{text}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_finds_no_room_says_what_was_free_before_it_was_tried() {
    let place = Place::temporary("room");
    let free = free_bytes(place.path()).unwrap();
    let wanted = (free + (1 << 30)).next_multiple_of(1 << 20);
    let error = FileDevice::open(place.path().join("device"), &options(Some(wanted))).unwrap_err();
    let text = error.to_string();
    let told = text.split(" bytes are free").next().unwrap().rsplit(' ').next().unwrap();
    let told: u64 = told.parse().unwrap();
    // Others write and remove meanwhile.
    assert!(told > free / 2, "{text}");
    assert!(free_bytes(place.path()).unwrap() > free / 2, "what the attempt took is free again");
}

#[test]
fn what_an_interrupted_making_left_is_taken_over() {
    let place = Place::temporary("unfinished");
    for (at, size) in [0, 1, 10_000, 9 << 20].into_iter().enumerate() {
        let path = place.path().join(format!("device{at}"));
        fs::write(path.with_extension("new"), vec![0; size]).unwrap();
        let device = FileDevice::open(&path, &options(Some(1 << 20))).unwrap();
        assert_eq!(device.geometry().capacity_bytes, 1 << 20);
        assert!(!path.with_extension("new").exists());
    }
}

/// Whatever had the name under which a file is made was emptied, and then renamed.
#[test]
fn what_is_no_interrupted_making_stays_where_a_file_would_be_made() {
    let place = Place::temporary("somebodys");
    let path = place.path().join("device");
    let unfinished = place.path().join("device.new");
    for (size, at) in [(6, 2), (9 << 20, 5000), (9 << 20, (9 << 20) - 1)] {
        let mut contents = vec![0; size];
        contents[at] = 7;
        fs::write(&unfinished, &contents).unwrap();
        let refused = FileDevice::open(&path, &options(Some(1 << 20))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Foreign, "{refused}");
        let text = refused.to_string();
        assert!(text.contains(unfinished.to_str().unwrap()), "{text}");
        assert!(text.contains("move it away") && text.contains(&format!("byte {at} ")), "{text}");
        assert!(fs::read(&unfinished).unwrap() == contents, "it stays as it is");
        assert!(!path.exists());
    }
    let forced = FileOptions { force: Force::Yes, ..options(Some(1 << 20)) };
    let device = FileDevice::open(&path, &forced).unwrap();
    let mut bytes = IoBuffer::aligned(16384);
    device.read_at(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0));
}

#[test]
fn a_second_opener_is_refused_and_told_who_has_it() {
    let place = Place::temporary("twice");
    let path = place.path().join("device");
    let device = FileDevice::open(&path, &options(Some(1 << 20))).unwrap();
    let link = place.path().join("link");
    fs::hard_link(&path, &link).unwrap();
    for path in [&path, &link] {
        let error = FileDevice::open(path, &options(None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert!(error.to_string().contains("this process"), "{error}");
    }
    drop(device);
    FileDevice::open(&link, &options(None)).unwrap();
}

#[test]
fn a_killed_process_holds_nothing() {
    let place = Place::temporary("killed");
    let path = place.path().join("device");
    drop(FileDevice::open(&path, &options(Some(1 << 20))).unwrap());
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "opening::holds_a_device_until_killed", "--nocapture"])
            .env(HOLD, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("holding")), "round {round}");
        let error = FileDevice::open(&path, &options(None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "round {round}");
        assert!(error.to_string().contains(&child.id().to_string()), "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
        FileDevice::open(&path, &options(None)).unwrap();
    }
}

/// Does nothing on its own; `a_killed_process_holds_nothing` runs it in another process.
#[test]
fn holds_a_device_until_killed() {
    let Some(path) = std::env::var_os(HOLD) else { return };
    let device = FileDevice::open(path, &options(None)).unwrap();
    let mut queue = device.queue(QueueOptions { depth: 64, buffer_bytes: 4096 }).unwrap();
    for token in 0..64 {
        queue.read(token, 0, 4096).unwrap();
    }
    queue.submit().unwrap();
    println!("holding");
    let _ended = std::io::stdin().read(&mut [0]);
}

#[test]
fn the_first_device_of_a_search_path_that_exists_is_used() {
    let place = Place::temporary("search");
    let text = format!("{0}/a{{n}},{0}/b{{n}}", place.path().display());
    let list = DeviceList::parse(&text, 3).unwrap();
    let open =
        |capacity: Option<u64>| list.open(Selection::SearchPath, &options(capacity), &mut |_| {});
    assert_eq!(open(None).err().map(|error| error.kind()), Some(ErrorKind::NotFound));
    fs::write(place.path().join("b3"), vec![0; 1 << 20]).unwrap();
    let device = open(Some(1 << 20)).unwrap();
    assert!(device.name().ends_with("b3"), "{}", device.name());
    drop(device);
    fs::remove_file(place.path().join("b3")).unwrap();
    assert!(open(Some(1 << 20)).unwrap().name().ends_with("a3"), "the first is made");
}

#[test]
fn a_list_opens_as_a_stripe_and_again() {
    let place = Place::temporary("stripe-list");
    let text = format!("{0}/one,{0}/two", place.path().display());
    let list = DeviceList::parse(&text, 0).unwrap();
    let selection = Selection::Stripe { unit_bytes: 64 << 10 };
    let mut reports = Vec::new();
    let device = list.open(selection, &options(Some(8 << 20)), &mut |at| reports.push(at)).unwrap();
    assert_eq!(device.geometry().capacity_bytes, 8 << 20);
    assert!(reports.last().is_some_and(|at| at.done_bytes == at.total_bytes));
    let mut bytes = IoBuffer::aligned(1 << 20);
    bytes.fill(3);
    device.write_at(0, &bytes).unwrap();
    drop(device);
    let device = list.open(selection, &options(None), &mut |_| {}).unwrap();
    bytes.fill(0);
    device.read_at(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 3));
    drop(device);
    let alone = FileDevice::open(place.path().join("one"), &options(None));
    assert_eq!(alone.err().map(|error| error.kind()), Some(ErrorKind::Foreign));
}

// It was refused, with the advice to leave the capacity away.
#[test]
fn a_stripe_grows_to_the_capacity_asked_for_and_keeps_what_it_has() {
    let place = Place::temporary("stripe-grows");
    let text = format!("{0}/one,{0}/two", place.path().display());
    let list = DeviceList::parse(&text, 0).unwrap();
    let selection = Selection::Stripe { unit_bytes: 64 << 10 };
    let open = |growth, capacity| {
        list.open(selection, &FileOptions { growth, ..options(capacity) }, &mut |_| {})
    };
    let bytes_of = |device: &dyn Device| device.geometry().capacity_bytes;
    let device = open(Growth::ToCapacity, Some(4 << 20)).unwrap();
    let mut bytes = IoBuffer::aligned(4 << 20);
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 4096 % 251) as u8);
    device.write_at(0, &bytes).unwrap();
    drop(device);
    assert!(open(Growth::Never, Some(8 << 20)).is_err());
    for (growth, capacity) in
        [(Growth::ToCapacity, Some(8 << 20)), (Growth::Never, None), (Growth::ToCapacity, None)]
    {
        let device = open(growth, capacity).unwrap();
        assert_eq!(bytes_of(&*device), 8 << 20, "{growth:?}, {capacity:?}");
        let mut found = IoBuffer::aligned(4 << 20);
        device.read_at(0, &mut found).unwrap();
        assert!(*found == *bytes, "{growth:?}, {capacity:?}");
        device.write_at(4 << 20, &bytes).unwrap();
        device.read_at(4 << 20, &mut found).unwrap();
        assert!(*found == *bytes, "{growth:?}, {capacity:?}");
    }
}

#[test]
fn completions_make_the_queue_s_descriptor_readable() {
    let place = Place::temporary("poll");
    let device = FileDevice::open(place.path().join("device"), &options(Some(1 << 20))).unwrap();
    let mut queue = device.queue(QueueOptions { depth: 4, buffer_bytes: 4096 }).unwrap();
    let Some(descriptor) = queue.poll_fd() else {
        println!("skipped: no io_uring here: {}", device.describe());
        return;
    };
    assert!(!is_readable(descriptor, 0), "nothing has completed");
    queue.read(1, 0, 4096).unwrap();
    queue.submit().unwrap();
    assert!(is_readable(descriptor, -1));
    let mut completions = Vec::new();
    queue.reap(0, &mut completions).unwrap();
    assert_eq!(completions.len(), 1);
    assert!(!is_readable(descriptor, 0), "all was taken");
}

/// Whether `descriptor` becomes readable within the time; -1 waits as long as it takes.
fn is_readable(descriptor: RawFd, timeout_ms: i32) -> bool {
    loop {
        let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, valid for the call.
        match unsafe { libc::poll(&raw mut poll, 1, timeout_ms) } {
            // Interrupted, as any system call may be while requests complete.
            ..0 => {}
            count => return count > 0,
        }
    }
}

#[test]
fn no_file_is_made_among_the_devices() {
    let path = std::path::Path::new("/dev/entresol-no-such-device");
    let error = FileDevice::open(path, &options(Some(1 << 20))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("there is no such device"), "{error}");
    assert!(!path.exists());
}
