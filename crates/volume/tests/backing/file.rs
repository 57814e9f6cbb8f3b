//! The backing that is a file, or a block device.

use std::fs::{self, File};
use std::path::PathBuf;

use entresol_device::{Access, Force};
use entresol_volume::backing::file::FileBacking;
use entresol_volume::backing::{Backing, BackingRequest, ExtentKind};
use entresol_volume::{Durable, ErrorKind, Hole};

use crate::model::{Model, Seed, is_readable, perform, seeds, write};
use crate::scratch::Scratch;

const BYTES: usize = 3_000_123;

fn file(scratch: &Scratch, bytes: usize) -> PathBuf {
    let path = scratch.path().join("backing");
    File::create(&path).unwrap().set_len(bytes as u64).unwrap();
    path
}

fn open(path: &PathBuf) -> FileBacking {
    FileBacking::open(path, Force::No).unwrap()
}

#[test]
fn requests_in_any_order_leave_what_an_array_would_hold() {
    for seed in seeds() {
        let _seed = Seed(seed);
        let scratch = Scratch::new("file");
        let path = file(&scratch, BYTES);
        let mut model = Model::new(vec![0; BYTES], seed);
        for length_max in [5_000, 200_000] {
            model.length_max = length_max;
            model.exercise(&mut open(&path), 400);
            assert!(fs::read(&path).unwrap() == model.bytes);
        }
    }
}

#[test]
fn what_was_begun_is_done_before_it_is_dropped() {
    let scratch = Scratch::new("dropped");
    let path = file(&scratch, 64 * 4096);
    let mut backing = open(&path);
    for at in 0..64_u8 {
        backing.begin(u64::from(at), write(u64::from(at) * 4096, &[at + 1; 4096]));
    }
    backing.submit();
    drop(backing);
    let bytes = fs::read(&path).unwrap();
    assert!((0..64).all(|at| bytes[at * 4096..][..4096] == [at as u8 + 1; 4096]));
}

#[test]
fn its_descriptor_is_readable_exactly_while_a_completion_waits() {
    let scratch = Scratch::new("polled");
    let path = file(&scratch, 1 << 20);
    let mut backing = open(&path);
    let mut completions = Vec::new();
    for round in 0..200 {
        assert!(!is_readable(&backing));
        for token in 0..3 {
            backing.begin(token, BackingRequest::Read { offset: token * 4096, length: 4096 });
        }
        backing.submit();
        while completions.len() < 3 {
            let descriptors = [backing.poll_fd().unwrap()];
            let limit = std::time::Duration::from_secs(60);
            entresol_device::wait_readable(&descriptors, limit).unwrap();
            let before = completions.len();
            backing.reap(&mut completions);
            assert!(completions.len() > before, "woken for nothing in round {round}");
        }
        completions.clear();
    }
}

#[test]
fn trims_and_zeros_make_holes_where_they_may_and_data_where_they_may_not() {
    let scratch = Scratch::new("holes");
    let path = scratch.path().join("backing");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let mut backing = open(&path);
    perform(&mut backing, BackingRequest::Trim { offset: 65536, length: 65536 }).unwrap();
    let hole = Hole::Allowed;
    perform(&mut backing, BackingRequest::Zero { offset: 200_000, length: 70_000, hole }).unwrap();
    let hole = Hole::Forbidden;
    perform(&mut backing, BackingRequest::Zero { offset: 500_001, length: 3, hole }).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes[200_000..270_000].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[500_000..500_005], [7, 0, 0, 0, 7]);
    assert_eq!((bytes[199_999], bytes[270_000]), (7, 7));
    let extents = backing.allocation((0, 1 << 20), 100).unwrap();
    assert_eq!(extents.iter().map(|extent| extent.length).sum::<u64>(), 1 << 20);
    let holes = extents.iter().filter(|extent| extent.kind == ExtentKind::Hole).count();
    if backing.description().can_trim {
        assert_eq!(holes, 2, "{extents:?}");
        // The whole file was gone through for an answer of one extent.
        assert_eq!(backing.allocation((0, 1 << 20), 2).unwrap(), extents[..2]);
        assert!(bytes[65536..131_072].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn one_opening_excludes_another_and_the_error_says_whose_it_is() {
    let scratch = Scratch::new("claimed");
    let path = file(&scratch, 4096);
    let first = open(&path);
    let error = FileBacking::open(&path, Force::No).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("is in use by this process"), "{error}");
    drop(first);
    open(&path);
    let error = FileBacking::open(path.with_extension("absent"), Force::No).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn what_is_opened_to_be_read_takes_no_writes() {
    let scratch = Scratch::new("read-only");
    let path = file(&scratch, 8192);
    let mut backing = FileBacking::open_as(&path, Access::ReadOnly, Force::No).unwrap();
    assert!(backing.description().read_only);
    let refused = perform(&mut backing, write(0, &[1; 512])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    perform(&mut backing, BackingRequest::Flush).unwrap();
    perform(&mut backing, BackingRequest::Read { offset: 0, length: 8192 }).unwrap();
}

#[test]
fn its_identity_stays_its_version_tells_of_others_writes() {
    let scratch = Scratch::new("identity");
    let path = file(&scratch, 8192);
    let before = open(&path).description().clone();
    File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let mut opened = open(&path);
    let after = opened.description().clone();
    perform(&mut opened, write(0, &[1])).unwrap();
    assert_ne!(opened.version(), after.version);
    drop(opened);
    assert_eq!(before.identity, after.identity);
    assert_ne!(before.version, after.version);
    fs::remove_file(&path).unwrap();
    let kept = scratch.path().join("kept");
    File::create(&kept).unwrap();
    file(&scratch, 8192);
    assert_eq!(open(&path).description().bytes, 8192);
}

#[test]
fn a_file_that_was_truncated_fails_with_an_error_and_goes_on() {
    let scratch = Scratch::new("truncated");
    let path = file(&scratch, 1 << 16);
    let mut backing = open(&path);
    File::options().write(true).open(&path).unwrap().set_len(8192).unwrap();
    let read = |offset| BackingRequest::Read { offset, length: 4096 };
    let error = perform(&mut backing, read(32768)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    perform(&mut backing, read(0)).unwrap();
    let past =
        BackingRequest::Write { offset: 1 << 16, bytes: vec![1].into(), durable: Durable::AtOnce };
    assert_eq!(perform(&mut backing, past).unwrap_err().kind(), ErrorKind::NoSpace);
}
