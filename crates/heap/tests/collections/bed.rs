//! The needs of every test here: a heap, seeds, keys.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use entresol_heap::{CreateOptions, Durability, Heap, Medium, OpenOptions, Transaction};
use entresol_sim::Random;

/// A heap for one test. Nothing is synced, so that what makes it durable is called for by name.
pub(crate) struct Bed {
    folder: PathBuf,
    heap: Heap,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        Bed::of(4 << 20)
    }

    pub(crate) fn of(bytes: u64) -> Bed {
        let limit_bytes = if bytes > 1 << 20 { 64 << 20 } else { 0 };
        let durability = Durability::None;
        Bed::with(&CreateOptions { bytes, limit_bytes, durability, ..CreateOptions::default() })
    }

    /// A heap written by stores and fences, with a log that no test here fills.
    pub(crate) fn by_stores() -> Bed {
        Bed::with(&CreateOptions {
            medium: Medium::Bytes,
            log_bytes: Some(32 << 20),
            ..CreateOptions::default()
        })
    }

    fn with(options: &CreateOptions) -> Bed {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("entresol-heap-collections-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let heap = Heap::create(&folder.join("heap"), options).unwrap();
        Bed { folder, heap }
    }

    /// Checks that the heap holds so many blocks, and calls `check` with the heap as it would be
    /// after a crash now.
    pub(crate) fn check(&self, blocks: u64, check: impl FnOnce(&Heap)) {
        assert_eq!(self.heap.statistics().live, blocks, "blocks in the heap and in collections");
        self.heap.sync().unwrap();
        let copy = self.folder.join("copy");
        std::fs::copy(self.folder.join("heap"), &copy).unwrap();
        let recovered = Heap::open(&copy, &OpenOptions::default()).unwrap();
        assert_eq!(recovered.statistics().live, blocks, "blocks after a crash");
        check(&recovered);
        drop(recovered);
        std::fs::remove_file(copy).unwrap();
    }
}

impl Deref for Bed {
    type Target = Heap;

    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Runs `check` for each seed; a failure names its seed.
pub(crate) fn for_seeds(count: u64, check: impl Fn(u64)) {
    let seeds: Vec<u64> = match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..count).collect(),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed)));
        if let Err(panic) = outcome {
            eprintln!("replay with: ENTRESOL_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Keys of one of several families that meet: prefixes of each other, few bytes, many alike.
pub(crate) fn key(random: &mut Random) -> Vec<u8> {
    let few = [0u8, 1, 2, 127, 128, 254, 255];
    match random.below(6) {
        0 => (0..random.below(5)).map(|_| few[random.below(7) as usize]).collect(),
        1 => random.below(600).to_be_bytes().to_vec(),
        2 => vec![7; random.below(40) as usize],
        3 => {
            let mut key = b"a long beginning that many keys share, and then ".to_vec();
            key.extend(random.below(50).to_string().bytes());
            key
        }
        4 => vec![random.below(256) as u8],
        _ => {
            let mut key = vec![random.below(4) as u8; 3];
            key.push(random.below(256) as u8);
            key.extend((0..random.below(2)).map(|_| random.below(256) as u8));
            key
        }
    }
}

/// Performs `operation` in a transaction of its own.
pub(crate) fn committed<T>(heap: &Heap, operation: impl FnOnce(&mut Transaction) -> T) -> T {
    let mut transaction = heap.begin();
    let result = operation(&mut transaction);
    transaction.commit().unwrap();
    result
}

/// Commits or, now and then, aborts: then the model is again what it was before.
pub(crate) fn ends<T>(transaction: Transaction, random: &mut Random, model: &mut T, before: T) {
    if random.one_in(4) {
        transaction.abort();
        *model = before;
    } else {
        transaction.commit().unwrap();
    }
}
