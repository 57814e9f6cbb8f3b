//! A process that commits is killed again and again: every acknowledged transaction is there, and
//! no transaction is there by half.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use entresol_heap::{CreateOptions, Durability, Heap, Medium, OpenOptions, Repair, check};
use entresol_sim::Random;

/// Says to the child which heap it commits to.
const HEAP: &str = "ENTRESOL_HEAP_TO_KILL";
const ROUNDS: u64 = 20;
/// Acknowledgements before a kill, at most.
const COMMITS_MAX: u64 = 60;
/// Words that every transaction sets to its number.
const WORDS: u64 = 8;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn medium_of(path: &Path) -> Medium {
    match path.extension().is_some_and(|extension| extension == "bytes") {
        true => Medium::Bytes,
        false => Medium::Pages,
    }
}

fn open(path: &Path) -> Heap {
    let options = OpenOptions { medium: medium_of(path), ..OpenOptions::default() };
    Heap::open(path, &options).unwrap()
}

/// The number that all words of the root agree on.
fn number(heap: &Heap) -> u64 {
    let root = heap.root();
    let words: Vec<u64> = (0..WORDS).map(|word| heap.load_u64(root + word * 8).unwrap()).collect();
    assert!(words.iter().all(|word| *word == words[0]), "half a transaction: {words:?}");
    words[0]
}

/// Commits until it is killed; a no-op unless it is the child.
#[test]
fn the_child_commits_until_it_is_killed() {
    let Ok(path) = std::env::var(HEAP) else { return };
    let heap = open(path.as_ref());
    let root = heap.root();
    let mut at = number(&heap);
    loop {
        at += 1;
        let mut transaction = heap.begin();
        for word in 0..WORDS {
            transaction.write_u64(root + word * 8, at).unwrap();
        }
        // One block hangs on the root at any time; sizes of all kinds.
        let before = heap.load_u64(root + WORDS * 8).unwrap();
        let block = transaction.allocate(1 + at * 7919 % 40_000).unwrap();
        transaction.write_u64(root + WORDS * 8, block).unwrap();
        if before != 0 {
            transaction.free(before).unwrap();
        }
        let durability = match at % 3 {
            0 => Durability::Buffered { epoch_ms: 1 },
            _ => Durability::Sync,
        };
        transaction.commit_with(durability).unwrap();
        // The harness swallows what macros print.
        std::io::stdout().write_all(format!("done {at}\n").as_bytes()).unwrap();
    }
}

/// Runs the child until so many acknowledgements; returns the last one.
fn run_and_kill(path: &Path, commits: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["the_child_commits_until_it_is_killed", "--exact", "--nocapture"])
        .env(HEAP, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = lines
        .by_ref()
        .filter_map(|line| line.unwrap().split("done ").nth(1)?.parse().ok())
        .nth(commits as usize)
        .expect("the child goes on until it is killed");
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said between the last line read and its death was acknowledged as well.
    for line in lines.map_while(Result::ok) {
        if let Some(number) = line.split("done ").nth(1).and_then(|number| number.parse().ok()) {
            acknowledged = number;
        }
    }
    acknowledged
}

#[test]
fn kills_take_no_acknowledged_transaction_and_leave_none_by_half() {
    for (name, medium) in [("pages", Medium::Pages), ("bytes", Medium::Bytes)] {
        let name = format!("entresol-heap-kill-{}.{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let log_bytes = Some(64 << 10);
        let options = CreateOptions { bytes: 8 << 20, log_bytes, medium, ..Default::default() };
        let heap = Heap::create(&path, &options).unwrap();
        let scratch = Scratch(path);
        let mut transaction = heap.begin();
        let root = transaction.allocate((WORDS + 1) * 8).unwrap();
        transaction.set_root(root).unwrap();
        transaction.commit().unwrap();
        heap.close().unwrap();
        let mut random = Random::new(5);
        for round in 0..ROUNDS / 2 {
            let acknowledged = run_and_kill(&scratch.0, random.below(COMMITS_MAX));
            let report = check(&scratch.0, Repair::No, None).unwrap();
            assert!(report.problems.is_empty(), "round {round}: {report:?}");
            assert_eq!(report.live, 2, "round {round}: the root and its block");
            let heap = open(&scratch.0);
            let found = number(&heap);
            assert!(found >= acknowledged, "round {round}: {found} of {acknowledged}");
            heap.close().unwrap();
        }
    }
}
