//! Damage is found, named and given up; backups are heaps.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use entresol_heap::{
    Access, CreateOptions, Durability, ErrorKind, Heap, Medium, OpenOptions, Repair, check,
};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("entresol-heap-check-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn create(path: &Path) -> Heap {
    let options =
        CreateOptions { bytes: 8 << 20, medium: Medium::Pages, ..CreateOptions::default() };
    Heap::create(path, &options).unwrap()
}

/// Commits so many transactions, each a new block of 8 bytes; the root is the last.
fn commit(heap: &Heap, count: u64) {
    for number in 0..count {
        let mut transaction = heap.begin();
        let block = transaction.allocate(8).unwrap();
        transaction.write_u64(block, number).unwrap();
        transaction.set_root(block).unwrap();
        transaction.commit().unwrap();
    }
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_damaged_record_before_durable_ones_is_never_passed_over() {
    let folder = Folder::new("damage");
    let heap = create(&folder.at("heap"));
    commit(&heap, 6);
    let copy = folder.at("copy");
    std::fs::copy(folder.at("heap"), &copy).unwrap();
    // The third group of the log, one block each.
    overwrite(&copy, 4096 * 3 + 4096 * 2 + 40, &[0xee; 8]);
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let options = OpenOptions { access, ..OpenOptions::default() };
        let refused = Heap::open(&copy, &options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
        assert!(refused.to_string().contains("check --repair"), "{refused}");
        assert!(refused.to_string().contains(" 3 whole records"), "{refused}");
    }
    let report = check(&copy, Repair::No, None).unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let report = check(&copy, Repair::Yes, None).unwrap();
    assert_eq!(report.repaired.len(), 1, "{report:?}");
    let heap = Heap::open(&copy, &OpenOptions::default()).unwrap();
    assert_eq!(heap.load_u64(heap.root()).unwrap(), 1);
    heap.close().unwrap();
    assert!(check(&copy, Repair::No, None).unwrap().problems.is_empty());
}

#[test]
fn the_last_record_torn_is_a_commit_that_never_was() {
    let folder = Folder::new("torn");
    let heap = create(&folder.at("heap"));
    commit(&heap, 6);
    let copy = folder.at("copy");
    std::fs::copy(folder.at("heap"), &copy).unwrap();
    // The span's record and the first transaction's share a group; then one group each.
    overwrite(&copy, 4096 * 3 + 4096 * 5 + 40, &[0xee; 8]);
    let heap = Heap::open(&copy, &OpenOptions::default()).unwrap();
    assert_eq!(heap.load_u64(heap.root()).unwrap(), 4);
}

#[test]
fn either_superblock_alone_will_do_and_none_will_not() {
    let folder = Folder::new("superblock");
    let heap = create(&folder.at("heap"));
    commit(&heap, 2);
    heap.close().unwrap();
    for (damaged, opens) in [(vec![0], true), (vec![4096], true), (vec![0, 4096], false)] {
        let copy = folder.at("copy");
        std::fs::copy(folder.at("heap"), &copy).unwrap();
        damaged.iter().for_each(|offset| overwrite(&copy, offset + 48, &[0xee; 4]));
        let opened = Heap::open(&copy, &OpenOptions::default());
        match opened {
            // The older superblock begins at an older head; its log is whole or applied already.
            Ok(heap) => assert_eq!(heap.load_u64(heap.root()).unwrap(), 1),
            Err(error) => assert!(!opens && error.kind() == ErrorKind::Incompatible, "{error}"),
        }
    }
}

#[test]
fn a_flawed_page_table_is_found_and_mended() {
    let folder = Folder::new("table");
    let path = folder.at("heap");
    let heap = create(&path);
    commit(&heap, 3);
    let mut transaction = heap.begin();
    let run = transaction.allocate(100_000).unwrap();
    transaction.commit().unwrap();
    let page = (run - heap.data_offset()) / 4096;
    let table = heap.data_offset() - (heap.limit_bytes() / 4096 * 8).next_multiple_of(4096);
    let count = |heap: &Heap| heap.statistics().live;
    assert_eq!(count(&heap), 4);
    heap.close().unwrap();
    overwrite(&path, table + page * 8 + 7, &[0x77]);
    let refused = Heap::open(&path, &OpenOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    let report = check(&path, Repair::Yes, None).unwrap();
    assert!(report.problems.len() == 1 && report.repaired.len() == 1, "{report:?}");
    let heap = Heap::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(count(&heap), 3);
    assert!(!heap.is_live(run));
    assert!(heap.check().unwrap().problems.is_empty());
}

#[test]
fn a_backup_of_a_busy_heap_is_its_state_at_one_moment() {
    let folder = Folder::new("backup");
    let heap = create(&folder.at("heap"));
    let mut transaction = heap.begin();
    let pair = transaction.allocate(16).unwrap();
    transaction.set_root(pair).unwrap();
    transaction.commit().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                let mut transaction = heap.begin();
                transaction.write_u64(pair, number).unwrap();
                let extra = transaction.allocate(64).unwrap();
                transaction.write_u64(pair + 8, number).unwrap();
                transaction.free(extra).unwrap();
                transaction.commit_with(Durability::Buffered { epoch_ms: 10 }).unwrap();
            }
        });
        for number in 0..5 {
            let target = folder.at(&format!("backup-{number}"));
            heap.backup(&target).unwrap();
            assert_eq!(heap.backup(&target).unwrap_err().kind(), ErrorKind::Exists);
            assert!(check(&target, Repair::No, None).unwrap().problems.is_empty());
            let copy = Heap::open(&target, &OpenOptions::default()).unwrap();
            let halves = [0, 8].map(|at| copy.load_u64(copy.root() + at).unwrap());
            assert_eq!(halves[0], halves[1]);
            assert_eq!(copy.statistics().live, 1);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_backup_of_a_heap_at_rest_holds_what_its_log_holds() {
    let folder = Folder::new("rest");
    let heap = create(&folder.at("heap"));
    commit(&heap, 4);
    let copy = folder.at("copy");
    std::fs::copy(folder.at("heap"), &copy).unwrap();
    let reading = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    let reader = Heap::open(&copy, &reading).unwrap();
    reader.backup(&folder.at("backup")).unwrap();
    assert!(reader.check().unwrap().problems.is_empty());
    let backup = Heap::open(&folder.at("backup"), &OpenOptions::default()).unwrap();
    assert_eq!(backup.load_u64(backup.root()).unwrap(), 3);
    assert_eq!(backup.statistics().live, 4);
}

/// The place of the superblock that counts.
fn newest(path: &Path) -> u64 {
    let file = std::fs::File::open(path).unwrap();
    let sequence = |place: u64| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, place + 48).unwrap();
        u64::from_le_bytes(word)
    };
    if sequence(0) > sequence(4096) { 0 } else { 4096 }
}

/// The superblock that an opening had written was the only thing that told of its generation. Where
/// it was damaged, the one before was taken, and all commits since that opening were gone.
#[test]
fn a_damaged_superblock_hides_no_commits() {
    let folder = Folder::new("hidden");
    let path = folder.at("heap");
    let heap = create(&path);
    commit(&heap, 1);
    heap.close().unwrap();
    let heap = Heap::open(&path, &OpenOptions::default()).unwrap();
    commit(&heap, 5);
    let copy = folder.at("copy");
    std::fs::copy(&path, &copy).unwrap();
    overwrite(&copy, newest(&copy) + 48, &[0xee; 4]);
    let report = check(&copy, Repair::No, None).unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let reading = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    let refused = Heap::open(&copy, &reading).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    let repaired = folder.at("repaired");
    std::fs::copy(&copy, &repaired).unwrap();
    assert_eq!(check(&repaired, Repair::Yes, None).unwrap().repaired.len(), 1);
    for (path, options) in [(&copy, OpenOptions::default()), (&repaired, reading)] {
        let heap = Heap::open(path, &options).unwrap();
        assert_eq!(heap.load_u64(heap.root()).unwrap(), 4);
        assert_eq!(heap.statistics().live, 6);
        assert!(heap.check().unwrap().problems.is_empty());
    }
}

/// So was the one that growth had written: what was allocated past the former size was cut off.
/// Growth writes both now; versions before wrote one.
#[test]
fn a_damaged_superblock_hides_no_growth() {
    let folder = Folder::new("growth");
    let path = folder.at("heap");
    let options = CreateOptions {
        bytes: 1 << 20,
        limit_bytes: 8 << 20,
        medium: Medium::Pages,
        ..CreateOptions::default()
    };
    let heap = Heap::create(&path, &options).unwrap();
    let former = newest(&path);
    let mut said = [0; 4096];
    std::fs::File::open(&path).unwrap().read_exact_at(&mut said, former).unwrap();
    heap.grow(3 << 20).unwrap();
    let mut transaction = heap.begin();
    transaction.allocate(1 << 20).unwrap();
    let block = transaction.allocate(1 << 20).unwrap();
    transaction.write(block + (1 << 19), b"far in").unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    let copy = folder.at("copy");
    std::fs::copy(&path, &copy).unwrap();
    overwrite(&copy, former, &said);
    overwrite(&copy, 4096 - former + 48, &[0xee; 4]);
    assert_eq!(check(&copy, Repair::No, None).unwrap().problems.len(), 1);
    let reading = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    assert_eq!(Heap::open(&copy, &reading).unwrap_err().kind(), ErrorKind::Corrupt);
    let repaired = folder.at("repaired");
    std::fs::copy(&copy, &repaired).unwrap();
    assert_eq!(check(&repaired, Repair::Yes, None).unwrap().repaired.len(), 1);
    for path in [&copy, &repaired] {
        let heap = Heap::open(path, &OpenOptions::default()).unwrap();
        assert_eq!(heap.usable_bytes(block), Some(1 << 20));
        let mut found = [0; 6];
        heap.read(heap.root() + (1 << 19), &mut found).unwrap();
        assert_eq!(&found, b"far in");
        assert_eq!(heap.size_bytes(), 3 << 20);
    }
}

/// Damage to the bytes of a transaction too large for the log could be neither told of nor given
/// up: a check failed, and so did a repair.
#[test]
fn a_damaged_large_transaction_is_told_of_and_given_up() {
    let folder = Folder::new("extent");
    let path = folder.at("heap");
    let options = CreateOptions {
        bytes: 8 << 20,
        medium: Medium::Pages,
        log_bytes: Some(64 << 10),
        ..CreateOptions::default()
    };
    let heap = Heap::create(&path, &options).unwrap();
    commit(&heap, 3);
    let root = heap.root();
    let mut transaction = heap.begin();
    let large = transaction.allocate(100_000).unwrap();
    transaction.write(large, &[7; 100_000]).unwrap();
    transaction.set_root(large).unwrap();
    transaction.commit().unwrap();
    commit(&heap, 2);
    let copy = folder.at("copy");
    std::fs::copy(&path, &copy).unwrap();
    overwrite(&copy, heap.size_bytes() + 5000, &[0xee; 4]);
    let refused = Heap::open(&copy, &OpenOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains("check --repair"), "{refused}");
    let report = check(&copy, Repair::No, None).unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let report = check(&copy, Repair::Yes, None).unwrap();
    assert_eq!(report.repaired.len(), 1, "{report:?}");
    let heap = Heap::open(&copy, &OpenOptions::default()).unwrap();
    assert_eq!((heap.root(), heap.statistics().live), (root, 3));
    assert!(heap.check().unwrap().problems.is_empty());
}

/// A program that knows a newer format had written one superblock of two, and an older program took
/// the other one.
#[test]
fn a_superblock_of_another_version_is_not_passed_over() {
    let folder = Folder::new("version");
    let path = folder.at("heap");
    create(&path).close().unwrap();
    let place = newest(&path);
    let mut page = vec![0; 4096];
    std::fs::File::open(&path).unwrap().read_exact_at(&mut page, place).unwrap();
    page[8] = 9;
    let checksum = crc32c::crc32c(&page[..4092]);
    page[4092..].copy_from_slice(&checksum.to_le_bytes());
    overwrite(&path, place, &page);
    let refused = Heap::open(&path, &OpenOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Incompatible);
    assert!(refused.to_string().contains("version 9"), "{refused}");
}

/// The close of a heap that is only read put zeros in place of its bytes while a backup copied
/// them, or before: the backup was one of zeros, and nobody was told.
#[test]
fn no_backup_is_made_of_a_heap_that_was_closed() {
    let folder = Folder::new("closed");
    let path = folder.at("heap");
    let heap = create(&path);
    commit(&heap, 4);
    heap.close().unwrap();
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let options = OpenOptions { access, ..OpenOptions::default() };
        let heap = Heap::open(&path, &options).unwrap();
        let user = heap.clone();
        heap.close_under_users().unwrap();
        let target = folder.at("backup");
        let refused = user.backup(&target).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed, "{access:?}: {refused}");
        assert!(!target.exists());
        assert_eq!(user.check().unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// The sizes stand in a page without a checksum. One larger than any slot was believed, and the
/// first allocation of it ended the program.
#[test]
fn a_damaged_list_of_registered_sizes_ends_no_program() {
    let folder = Folder::new("sizes");
    let path = folder.at("heap");
    create(&path).close().unwrap();
    for (at, bytes) in [1_u64 << 20, 700, u64::MAX, 40_000].into_iter().enumerate() {
        overwrite(&path, 8192 + 64 + 8 * at as u64, &bytes.to_le_bytes());
    }
    let heap = Heap::open(&path, &OpenOptions::default()).unwrap();
    let mut transaction = heap.begin();
    for (bytes, usable) in [(1 << 20, 1 << 20), (40_000, 40_000), (700, 700)] {
        let handle = transaction.allocate(bytes).unwrap();
        assert_eq!(heap.usable_bytes(handle), Some(usable));
    }
    assert_eq!(transaction.allocate(u64::MAX).unwrap_err().kind(), ErrorKind::Full);
    transaction.commit().unwrap();
    assert!(heap.register_size(900).unwrap());
}

/// A pipe has no end until somebody writes to it: who was to read it waited for that.
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new("pipe");
    let path = folder.at("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let options = OpenOptions { access, ..OpenOptions::default() };
        let refused = Heap::open(&path, &options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Incompatible, "{refused}");
    }
    assert_eq!(check(&path, Repair::No, None).unwrap_err().kind(), ErrorKind::Incompatible);
}
