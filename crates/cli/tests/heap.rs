//! `entresol heap` as people and scripts call it.

#[path = "support/interruptible.rs"]
mod interruptible;
mod support;

use std::os::unix::fs::FileExt;
use std::path::Path;

use entresol_heap::{Heap, OpenOptions};
use interruptible::interruptible;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Directory, entresol, json, refused_with};

/// A heap of 8 MiB with a root of 64 bytes that begin with `hello`.
fn made(directory: &Directory) -> String {
    let path = directory.path("heap");
    let created = json(&entresol(&[
        "heap", "create", &path, "--size", "8MiB", "--limit", "32MiB", "--label", "test", "--json",
    ]));
    assert_eq!(created["size_bytes"], 8 << 20);
    let heap = Heap::open(path.as_ref(), &OpenOptions::default()).expect("it was made just now");
    let mut transaction = heap.begin();
    let block = transaction.allocate(64).expect("there is room");
    transaction.write(block, b"hello").expect("it is a block");
    transaction.set_root(block).expect("any root will do");
    transaction.commit().expect("it commits");
    // The log holds it, and nobody applied it.
    std::fs::copy(&path, directory.path("rest")).expect("files can be copied");
    directory.path("rest")
}

#[test]
fn a_heap_is_made_told_of_listed_and_backed_up() {
    let directory = Directory::new("heap");
    let path = made(&directory);
    let info = json(&entresol(&["heap", "info", &path, "--json"]));
    assert_eq!((&info["label"], &info["live"]), (&"test".into(), &1.into()));
    assert_eq!(info["limit_bytes"], 32 << 20);
    let row = json(&entresol(&["heap", "dump", &path, "--json"]));
    assert_eq!((&row["bytes"], &row["root"]), (&64.into(), &true.into()));
    assert!(row["first"].as_str().is_some_and(|first| first.starts_with("68656c6c6f")));
    let handle = row["handle"].to_string();
    let shown = entresol(&["heap", "dump", &path, "--handle", &handle]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("hello"));
    let target = directory.path("backup");
    let backup = json(&entresol(&["heap", "backup", &path, &target, "--json"]));
    assert_eq!(backup["live"], 1);
    let again = json(&entresol(&["heap", "dump", &target, "--json"]));
    assert_eq!(again, row);
    let table = entresol(&["heap", "info", &target]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("largest_free_bytes") && !table.contains("bench"), "{table}");
}

/// A file of the heap's size stayed, which was no heap, and the next backup found it in its way.
#[test]
fn an_interrupted_backup_leaves_no_file() {
    let directory = Directory::new("heap-interrupted");
    let (path, target) = (directory.path("heap"), directory.path("backup"));
    assert!(entresol(&["heap", "create", &path, "--size", "256MiB"]).status.success());
    let mut child = interruptible()
        .args(["heap", "backup", &path, &target])
        .spawn()
        .expect("the program starts");
    while !Path::new(&target).exists() {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(!Path::new(&target).exists());
    // What was there before is somebody's.
    std::fs::write(&target, "precious").expect("it can be written");
    refused_with(&["heap", "backup", &path, &target], &["backup", "choose another name"]);
    assert_eq!(std::fs::read(&target).expect("it is there"), b"precious");
}

#[test]
fn damage_ends_with_1_and_a_repair_opens_the_heap() {
    let directory = Directory::new("heap-damage");
    let path = made(&directory);
    let sound = json(&entresol(&["heap", "check", &path, "--json"]));
    assert_eq!((&sound["sound"], &sound["live"]), (&true.into(), &1.into()));
    let info = json(&entresol(&["heap", "info", &path, "--json"]));
    // The last word of the page table's first page, for a page that is free.
    let table = info["data_offset"].as_u64().expect("a number") - (32 << 20) / 4096 * 8;
    let word = table.next_multiple_of(4096) + 4096 - 8;
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it is there");
    file.write_all_at(&[0xee; 8], word).expect("it can be written");
    let damaged = entresol(&["heap", "check", &path]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&damaged.stdout).contains("damaged: page"));
    refused_with(&["heap", "info", &path], &["page table", "backup"]);
    let repaired = entresol(&["heap", "check", &path, "--repair"]);
    assert!(String::from_utf8_lossy(&repaired.stdout).contains("repaired: page"));
    let sound = json(&entresol(&["heap", "check", &path, "--json"]));
    assert_eq!((&sound["sound"], &sound["live"]), (&true.into(), &1.into()));
}

#[test]
fn an_encrypted_heap_opens_with_its_key_file_and_no_other() {
    let directory = Directory::new("heap-encrypted");
    let key = directory.file("key", &"5e".repeat(32)).display().to_string();
    let other = directory.file("other", &"e5".repeat(32)).display().to_string();
    let (path, target) = (directory.path("heap"), directory.path("backup"));
    let key = key.as_str();
    let made = ["heap", "create", &path, "--size", "8MiB", "--key-file", key, "--json"];
    assert_eq!(json(&entresol(&made))["cipher"], "aes-256-gcm");
    for command in ["info", "check"] {
        let found = json(&entresol(&["heap", command, &path, "--key-file", key, "--json"]));
        assert_eq!(found["path"], path.as_str());
        refused_with(&["heap", command, &path], &[&path, "encrypted", "--key-file"]);
        let wrong = ["heap", command, &path, "--key-file", &other];
        refused_with(&wrong, &[&path, "another key"]);
    }
    json(&entresol(&["heap", "backup", &path, &target, "--key-file", key, "--json"]));
    refused_with(&["heap", "dump", &target], &["encrypted"]);
    assert!(entresol(&["heap", "dump", &target, "--key-file", key]).status.success());
    assert!(entresol(&["heap", "check", &target, "--key-file", key, "--repair"]).status.success());
    let short = directory.file("short", "too short").display().to_string();
    let refused = ["heap", "info", &path, "--key-file", &short];
    refused_with(&refused, &["short", "64 hexadecimal digits", "9 bytes"]);
    refused_with(&["heap", "info", &path, "--key-file", "/nowhere/key"], &["/nowhere/key"]);
    let plain = made_in_the_clear(&directory);
    refused_with(&["heap", "info", &plain, "--key-file", key], &["not encrypted"]);
}

fn made_in_the_clear(directory: &Directory) -> String {
    let path = directory.path("plain");
    json(&entresol(&["heap", "create", &path, "--size", "8MiB", "--json"]));
    path
}

#[test]
fn what_cannot_run_says_what_to_do() {
    let directory = Directory::new("heap-refused");
    let path = directory.path("none");
    refused_with(&["heap", "info", &path], &["none", "heap create"]);
    let other = directory.file("other", "not a heap").display().to_string();
    refused_with(&["heap", "check", &other], &["not a heap"]);
    refused_with(&["heap", "create", &other, "--size", "8MiB"], &["another name"]);
    refused_with(&["heap", "create", &path, "--size", "4KiB"], &["its own structures take"]);
    let low = ["heap", "create", &path, "--size", "8MiB", "--limit", "4MiB"];
    refused_with(&low, &["--limit 4194304", "8388608"]);
    for log in ["1KiB", "4GiB"] {
        let refused = ["heap", "create", &path, "--size", "16MiB", "--log", log];
        refused_with(&refused, &["16KiB to 1GiB"]);
    }
    let nowhere = directory.path("nowhere/heap");
    refused_with(&["heap", "create", &nowhere, "--size", "8MiB"], &["make its folder first"]);
    let long = "a label that is far too long";
    let refused = ["heap", "create", &path, "--size", "8MiB", "--label", long];
    refused_with(&refused, &["at most 16"]);
    let heap = made(&directory);
    let open = Heap::open(heap.as_ref(), &OpenOptions::default()).expect("it is a heap");
    let owner = format!("process {}", std::process::id());
    refused_with(&["heap", "info", &heap], &["in use", &owner]);
    drop(open);
}
