//! Heaps in files, as programs use them.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use entresol_heap::backing::Unit;
use entresol_heap::{Access, CreateOptions, Durability, ErrorKind, Heap, Medium, OpenOptions};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        Folder::within(&std::env::temp_dir())
    }

    fn within(folder: &Path) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("entresol-heap-basics-{}-{number}", std::process::id());
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn heap(&self) -> PathBuf {
        self.0.join("heap")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const MEDIA: [Medium; 2] = [Medium::Pages, Medium::Bytes];

fn small(medium: Medium) -> CreateOptions {
    CreateOptions { bytes: 8 << 20, medium, ..CreateOptions::default() }
}

fn open(medium: Medium) -> OpenOptions {
    OpenOptions { medium, ..OpenOptions::default() }
}

#[test]
fn what_was_committed_is_there_after_close_and_after_none() {
    for medium in MEDIA {
        for closes in [true, false] {
            let folder = Folder::new();
            let heap = Heap::create(&folder.heap(), &small(medium)).unwrap();
            let mut transaction = heap.begin();
            let block = transaction.allocate(100).unwrap();
            let large = transaction.allocate(100_000).unwrap();
            transaction.write(block, b"hello").unwrap();
            transaction.write(large + 99_990, b"far end").unwrap();
            transaction.set_root(block).unwrap();
            transaction.commit().unwrap();
            let mut lost = heap.begin();
            lost.write(block, b"never").unwrap();
            let copy = if closes {
                lost.abort();
                heap.close().unwrap();
                folder.heap()
            } else {
                // The file as a kill of the process leaves it.
                let copy = folder.0.join("copy");
                std::fs::copy(folder.heap(), &copy).unwrap();
                copy
            };
            let heap = Heap::open(&copy, &open(medium)).unwrap();
            let mut bytes = [0; 5];
            heap.read(heap.root(), &mut bytes).unwrap();
            assert_eq!(&bytes, b"hello");
            assert_eq!(heap.usable_bytes(block), Some(104));
            assert_eq!(heap.usable_bytes(large), Some(100_000));
            let mut bytes = [0; 7];
            heap.read(large + 99_990, &mut bytes).unwrap();
            assert_eq!(&bytes, b"far end");
        }
    }
}

#[test]
fn a_heap_closed_under_users_keeps_what_was_committed_and_harms_nobody() {
    for medium in MEDIA {
        let folder = Folder::new();
        let heap = Heap::create(&folder.heap(), &small(medium)).unwrap();
        let mut transaction = heap.begin();
        let block = transaction.allocate(64).unwrap();
        transaction.write_u64(block, 7).unwrap();
        transaction.set_root(block).unwrap();
        transaction.commit().unwrap();
        let user = heap.clone();
        let mut late = user.begin();
        late.write_u64(block, 8).unwrap();
        heap.close_under_users().unwrap();
        // Others have the file at once, though users of the old heap are about.
        let again = Heap::open(&folder.heap(), &open(medium)).unwrap();
        assert_eq!(user.load_u64(block).unwrap(), 0);
        assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(user.grow(16 << 20).unwrap_err().kind(), ErrorKind::Closed);
        drop((user, heap));
        assert_eq!(again.load_u64(again.root()).unwrap(), 7);
        assert!(again.check().unwrap().problems.is_empty());
    }
}

#[test]
fn a_heap_in_memory_of_the_system_is_written_by_stores_unless_told_otherwise() {
    let shared = Path::new("/dev/shm");
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) || !shared.is_dir() {
        println!("skipped: no stores past the caches, or no /dev/shm, here");
        return;
    }
    let folder = Folder::within(shared);
    let heap = Heap::create(&folder.heap(), &small(Medium::Auto)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    transaction.write_u64(block, 7).unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    let report = heap.durability();
    assert_eq!((report.unit, report.survives_power_loss), (Unit::Word, Some(false)));
    assert!(report.survives_kill);
    heap.close().unwrap();
    for (medium, unit) in [(Medium::Pages, Unit::Page), (Medium::Auto, Unit::Word)] {
        let heap = Heap::open(&folder.heap(), &open(medium)).unwrap();
        assert_eq!(heap.durability().unit, unit);
        assert_eq!(heap.load_u64(heap.root()).unwrap(), 7);
    }
}

#[test]
fn an_abort_puts_bytes_and_allocations_back() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    transaction.write_u64(block, 1).unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    let mut transaction = heap.begin();
    transaction.write_u64(block, 2).unwrap();
    transaction.write_u64(block + 4, 3).unwrap();
    transaction.set_root(0).unwrap();
    let other = transaction.allocate(64).unwrap();
    transaction.free(block).unwrap();
    assert!(!heap.is_live(block) && heap.is_live(other) && heap.root() == 0);
    transaction.abort();
    assert!(heap.is_live(block) && !heap.is_live(other) && heap.root() == block);
    assert_eq!(heap.load_u64(block).unwrap(), 1);
}

#[test]
fn a_rollback_undoes_what_follows_its_savepoint_and_no_more() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    let victim = transaction.allocate(64).unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    let mut transaction = heap.begin();
    transaction.write_u64(block, 1).unwrap();
    let outer = transaction.savepoint();
    transaction.write_u64(block, 2).unwrap();
    transaction.write_u64(block + 8, 2).unwrap();
    let inner = transaction.savepoint();
    transaction.write_u64(block, 3).unwrap();
    let born = transaction.allocate(64).unwrap();
    transaction.free(victim).unwrap();
    transaction.rollback(inner).unwrap();
    assert_eq!(heap.load_u64(block).unwrap(), 2);
    assert!(!heap.is_live(born) && heap.is_live(victim));
    transaction.rollback(outer).unwrap();
    assert_eq!(heap.load_u64(block).unwrap(), 1);
    assert_eq!(transaction.rollback(inner).unwrap_err().kind(), ErrorKind::InvalidInput);
    transaction.write_u64(block + 16, 9).unwrap();
    transaction.commit().unwrap();
    heap.close().unwrap();
    let heap = Heap::open(&folder.heap(), &open(Medium::Pages)).unwrap();
    let words = [0, 8, 16].map(|at| heap.load_u64(block + at).unwrap());
    assert_eq!(words, [1, 0, 9]);
    assert!(!heap.is_live(born) && heap.is_live(victim));
}

/// Savepoints were told apart by how much the transaction had done: one that a rollback had undone
/// counted again once as much was done anew, and a rollback to it undid some of that.
#[test]
fn a_savepoint_that_was_undone_stays_unknown() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    let outer = transaction.savepoint();
    transaction.write_u64(block, 1).unwrap();
    let inner = transaction.savepoint();
    transaction.write_u64(block, 2).unwrap();
    transaction.rollback(outer).unwrap();
    for at in 1..4 {
        transaction.write_u64(block + 8 * at, at).unwrap();
    }
    assert_eq!(transaction.rollback(inner).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!([0, 1, 2, 3].map(|at| heap.load_u64(block + 8 * at).unwrap()), [0, 1, 2, 3]);
    let again = transaction.savepoint();
    transaction.write_u64(block, 5).unwrap();
    transaction.rollback(again).unwrap();
    transaction.write_u64(block, 6).unwrap();
    transaction.rollback(again).unwrap();
    transaction.rollback(outer).unwrap();
    assert_eq!(transaction.rollback(again).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!([0, 1, 2, 3].map(|at| heap.load_u64(block + 8 * at).unwrap()), [0; 4]);
}

#[test]
fn allocations_do_not_overlap_and_are_zero() {
    for medium in MEDIA {
        let folder = Folder::new();
        let heap = Heap::create(&folder.heap(), &small(medium)).unwrap();
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut random = 12345_u64;
        for round in 0..4000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = match random >> 60 {
                0 => 4096 * (1 + (random >> 40) % 20),
                1..4 => 1 + (random >> 40) % 5000,
                _ => 1 + (random >> 40) % 200,
            };
            let mut transaction = heap.begin();
            if live.len() > 200 || (random >> 33).is_multiple_of(3) && !live.is_empty() {
                let (handle, _) = live.swap_remove((random >> 35) as usize % live.len());
                transaction.free(handle).unwrap();
            } else {
                let handle = transaction.allocate(bytes).unwrap();
                let mut found = vec![1; bytes as usize];
                heap.read(handle, &mut found).unwrap();
                assert!(found.iter().all(|byte| *byte == 0), "round {round}");
                transaction.write(handle, &vec![0xaa; bytes as usize]).unwrap();
                live.push((handle, bytes));
            }
            transaction.commit_with(Durability::None).unwrap();
        }
        live.sort_unstable();
        assert!(live.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let count = |heap: &Heap| {
            let mut count = 0;
            heap.visit_live(|_, _| count += 1);
            count
        };
        assert_eq!(count(&heap), live.len());
        heap.close().unwrap();
        let heap = Heap::open(&folder.heap(), &open(medium)).unwrap();
        assert_eq!(count(&heap), live.len());
        for (handle, bytes) in live {
            let mut found = vec![0; bytes as usize];
            heap.read(handle, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 0xaa));
        }
    }
}

#[test]
fn a_transaction_without_room_goes_on() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    assert_eq!(transaction.allocate(1 << 30).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(transaction.allocate(0).unwrap_err().kind(), ErrorKind::InvalidInput);
    transaction.write_u64(block, 7).unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    assert_eq!(heap.load_u64(heap.root()).unwrap(), 7);
}

#[test]
fn a_transaction_larger_than_the_log_commits() {
    for medium in MEDIA {
        let folder = Folder::new();
        let options = CreateOptions { bytes: 32 << 20, log_bytes: Some(64 << 10), ..small(medium) };
        let heap = Heap::create(&folder.heap(), &options).unwrap();
        let mut transaction = heap.begin();
        let block = transaction.allocate(4 << 20).unwrap();
        let bytes: Vec<u8> = (0..4_u32 << 20).map(|i| ((i * 31) >> 7) as u8 | 1).collect();
        transaction.write(block, &bytes).unwrap();
        transaction.set_root(block).unwrap();
        transaction.commit().unwrap();
        let copy = folder.0.join("copy");
        std::fs::copy(folder.heap(), &copy).unwrap();
        for path in [copy, folder.heap()] {
            if path == folder.heap() {
                heap.clone().close().unwrap();
            }
            let heap = Heap::open(&path, &open(medium)).unwrap();
            let mut found = vec![0; bytes.len()];
            heap.read(heap.root(), &mut found).unwrap();
            assert!(found == bytes);
        }
    }
}

#[test]
fn a_heap_has_one_writer_or_many_readers() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let refused = Heap::open(&folder.heap(), &OpenOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    assert!(refused.to_string().contains("by this process"), "{refused}");
    let mut transaction = heap.begin();
    let block = transaction.allocate(8).unwrap();
    transaction.write_u64(block, 5).unwrap();
    transaction.set_root(block).unwrap();
    transaction.commit().unwrap();
    // At rest, with records in the log that nobody applied.
    let copy = folder.0.join("copy");
    std::fs::copy(folder.heap(), &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let reading = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    let readers = [0, 1].map(|_| Heap::open(&copy, &reading).unwrap());
    for reader in &readers {
        assert_eq!(reader.load_u64(reader.root()).unwrap(), 5);
        let mut transaction = reader.begin();
        transaction.write_u64(reader.root(), 6).unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(reader.load_u64(reader.root()).unwrap(), 5);
    }
    drop(readers);
    assert!(std::fs::read(&copy).unwrap() == before);
}

/// It was freed as the second transaction committed, though the first one went on to mark it live,
/// or freed it again, which ended the program: the handle was never given to the second one.
#[test]
fn a_block_is_freed_by_no_other_transaction_before_its_own_has_committed() {
    for medium in MEDIA {
        let folder = Folder::new();
        let heap = Heap::create(&folder.heap(), &small(medium)).unwrap();
        for bytes in [64, 100_000] {
            let (live, free) = (heap.statistics().live, |handle| {
                let mut other = heap.begin();
                let freed = other.free(handle).map_err(|error| error.kind());
                other.commit().unwrap();
                freed
            });
            let mut undone = heap.begin();
            let savepoint = undone.savepoint();
            let rolled_back = undone.allocate(bytes).unwrap();
            assert_eq!(free(rolled_back), Err(ErrorKind::NotLive));
            undone.rollback(savepoint).unwrap();
            let aborted = undone.allocate(bytes).unwrap();
            assert_eq!(free(aborted), Err(ErrorKind::NotLive));
            undone.abort();
            let mut first = heap.begin();
            let block = first.allocate(bytes).unwrap();
            assert_eq!(free(block), Err(ErrorKind::NotLive));
            let cancelled = first.allocate(bytes).unwrap();
            first.free(cancelled).unwrap();
            let mut second = heap.begin();
            assert_ne!(second.allocate(bytes).unwrap(), block, "handed out twice");
            second.abort();
            first.commit().unwrap();
            assert!(heap.is_live(block));
            assert_eq!(heap.statistics().live, live + 1);
            assert_eq!(free(block), Ok(()));
            assert_eq!(heap.statistics().live, live);
        }
        assert_eq!(heap.check().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn wrong_handles_and_ranges_are_errors() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).unwrap();
    for handle in [0, 8, block + 8, heap.size_bytes(), u64::MAX, u64::MAX - 7] {
        assert_eq!(transaction.free(handle).unwrap_err().kind(), ErrorKind::NotLive);
        assert!(!heap.is_live(handle));
    }
    for (offset, length) in [(0, 8), (u64::MAX - 3, 8), (heap.size_bytes() - 4, 8), (8192, 8)] {
        assert_eq!(transaction.add(offset, length).unwrap_err().kind(), ErrorKind::InvalidInput);
        let read = heap.read(offset, &mut vec![0; length as usize]);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    transaction.free(block).unwrap();
    assert_eq!(transaction.free(block).unwrap_err().kind(), ErrorKind::NotLive);
    transaction.commit().unwrap();
    assert!(!heap.is_live(block));
}

#[test]
fn a_heap_of_another_kind_is_refused() {
    let folder = Folder::new();
    let options = CreateOptions { label: *b"one kind of heap", ..small(Medium::Pages) };
    Heap::create(&folder.heap(), &options).unwrap().close().unwrap();
    let wrong = OpenOptions { label: Some([7; 16]), ..OpenOptions::default() };
    let error = Heap::open(&folder.heap(), &wrong).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("one kind of heap"), "{error}");
    let again = Heap::create(&folder.heap(), &options).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
}

#[test]
fn what_commits_survive_is_told_as_it_is() {
    for medium in MEDIA {
        let folder = Folder::new();
        let heap = Heap::create(&folder.heap(), &small(medium)).unwrap();
        let told = heap.durability();
        assert!(told.survives_kill, "{told}");
        // Stores into a mapping of a plain file are in the page cache, whatever fences say.
        assert!(medium == Medium::Pages || told.survives_power_loss == Some(false), "{told}");
        drop(heap);
        let lazy = OpenOptions { durability: Durability::None, ..open(medium) };
        let told = Heap::open(&folder.heap(), &lazy).unwrap().durability();
        assert_eq!(told.survives_kill, medium == Medium::Bytes, "{told}");
        assert_eq!(told.survives_power_loss, Some(false), "{told}");
    }
}

#[test]
fn a_guard_keeps_freed_blocks_from_being_reused() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(4096 * 3).unwrap();
    let slot = transaction.allocate(64).unwrap();
    transaction.commit().unwrap();
    let guard = heap.guard();
    let mut transaction = heap.begin();
    transaction.free(block).unwrap();
    transaction.free(slot).unwrap();
    transaction.commit().unwrap();
    let mut transaction = heap.begin();
    for _ in 0..70 {
        assert_ne!(transaction.allocate(64).unwrap(), slot);
    }
    assert_ne!(transaction.allocate(4096 * 3).unwrap(), block);
    transaction.abort();
    drop(guard);
    let mut transaction = heap.begin();
    let again: Vec<u64> = (0..200).map(|_| transaction.allocate(64).unwrap()).collect();
    assert!(again.contains(&slot));
    assert_eq!(transaction.allocate(4096 * 3).unwrap(), block);
}

#[test]
fn registered_sizes_are_exact_and_stay_so() {
    let folder = Folder::new();
    let heap = Heap::create(&folder.heap(), &small(Medium::Pages)).unwrap();
    assert!(heap.register_size(1001).unwrap() && heap.register_size(1001).unwrap());
    assert!(!heap.register_size(0).unwrap() && !heap.register_size(1 << 20).unwrap());
    heap.close().unwrap();
    let heap = Heap::open(&folder.heap(), &OpenOptions::default()).unwrap();
    let mut transaction = heap.begin();
    let block = transaction.allocate(1001).unwrap();
    assert_eq!(heap.usable_bytes(block), Some(1001));
    transaction.commit().unwrap();
}

#[test]
fn a_heap_grows_to_its_limit_while_it_is_used_and_shrinks_again() {
    for medium in MEDIA {
        let folder = Folder::new();
        let options = CreateOptions { limit_bytes: 24 << 20, ..small(medium) };
        let heap = Heap::create(&folder.heap(), &options).unwrap();
        let mut blocks = Vec::new();
        loop {
            let mut transaction = heap.begin();
            match transaction.allocate(1 << 20) {
                Ok(block) => blocks.push(block),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    break;
                }
            }
            transaction.write_u64(*blocks.last().unwrap(), blocks.len() as u64).unwrap();
            transaction.commit().unwrap();
        }
        assert!(blocks.len() >= 20, "{}", blocks.len());
        assert_eq!(heap.size_bytes(), 24 << 20);
        for block in blocks.split_off(4) {
            let mut transaction = heap.begin();
            transaction.free(block).unwrap();
            transaction.commit().unwrap();
        }
        let size = heap.shrink(0).unwrap();
        assert!(size < 8 << 20, "{size}");
        assert_eq!(std::fs::metadata(folder.heap()).unwrap().len(), size);
        let mut transaction = heap.begin();
        let again = transaction.allocate(2 << 20).unwrap();
        transaction.write_u64(again, 77).unwrap();
        transaction.commit().unwrap();
        heap.close().unwrap();
        let heap = Heap::open(&folder.heap(), &open(medium)).unwrap();
        for (index, block) in blocks.iter().enumerate() {
            assert_eq!(heap.load_u64(*block).unwrap(), index as u64 + 1);
        }
        assert_eq!(heap.load_u64(again).unwrap(), 77);
        assert_eq!(heap.load_u64(again + (1 << 20)).unwrap(), 0);
    }
}

#[test]
fn threads_commit_side_by_side() {
    for medium in MEDIA {
        let folder = Folder::new();
        let options = CreateOptions { log_bytes: Some(128 << 10), ..small(medium) };
        let heap = Heap::create(&folder.heap(), &options).unwrap();
        let mut transaction = heap.begin();
        let table = transaction.allocate(64 * 8).unwrap();
        transaction.set_root(table).unwrap();
        transaction.commit().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let heap = &heap;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for round in 0..200_u64 {
                        let mut transaction = heap.begin();
                        let block = transaction.allocate(32 + round % 100).unwrap();
                        transaction.write_u64(block, thread).unwrap();
                        transaction.write_u64(table + thread * 8, round).unwrap();
                        let freed = (mine.len() > 10).then(|| mine[0]);
                        if let Some(freed) = freed {
                            transaction.free(freed).unwrap();
                        }
                        if round % 7 == 0 {
                            transaction.abort();
                            assert!(freed.is_none_or(|freed| heap.is_live(freed)));
                            continue;
                        }
                        mine.push(block);
                        mine.retain(|block| Some(*block) != freed);
                        transaction.commit_with(Durability::Buffered { epoch_ms: 5 }).unwrap();
                    }
                });
            }
        });
        heap.close().unwrap();
        let heap = Heap::open(&folder.heap(), &open(medium)).unwrap();
        for thread in 0..8 {
            assert_eq!(heap.load_u64(heap.root() + thread * 8).unwrap(), 199);
        }
    }
}

/// It showed what the heap's next owner wrote, and ended the process where that cut the file off.
#[test]
fn clones_of_a_closed_heap_find_zeros_whatever_becomes_of_its_file() {
    let folder = Folder::new();
    let options = CreateOptions { limit_bytes: 16 << 20, ..small(Medium::Pages) };
    let heap = Heap::create(&folder.heap(), &options).unwrap();
    let mut transaction = heap.begin();
    let root = transaction.allocate(64).unwrap();
    let block = transaction.allocate(4 << 20).unwrap();
    transaction.write(block, &vec![7; 4 << 20]).unwrap();
    transaction.set_root(root).unwrap();
    transaction.commit().unwrap();
    heap.close().unwrap();
    let heap = Heap::open(&folder.heap(), &open(Medium::Pages)).unwrap();
    let reader = heap.clone();
    heap.close().unwrap();

    let other = Heap::open(&folder.heap(), &open(Medium::Pages)).unwrap();
    let mut transaction = other.begin();
    transaction.write_u64(block + 4096, 99).unwrap();
    transaction.commit().unwrap();
    other.checkpoint().unwrap();
    assert_eq!(reader.load_u64(block + 4096).unwrap(), 0);
    let mut transaction = other.begin();
    transaction.free(block).unwrap();
    transaction.commit().unwrap();
    assert!(other.shrink(0).unwrap() < 4 << 20);
    assert_eq!(reader.load_u64(block + (2 << 20)).unwrap(), 0);
}
